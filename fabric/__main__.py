"""`python -m fabric` is the command line."""

import sys

from fabric.cli import main

if __name__ == "__main__":
    sys.exit(main())
