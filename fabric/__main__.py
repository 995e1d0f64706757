"""The command line as a process: `python -m fabric`, and `fabric` once it is installed.

Most of a quick command is the import of its modules: Ctrl-C there is no traceback either.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> int:
    """Run the command line with the arguments of this process and return its exit code."""
    try:
        from fabric.cli import main as run_command
    except KeyboardInterrupt:
        from fabric.interrupt import INTERRUPTED

        print("fabric: interrupted", file=sys.stderr)
        return INTERRUPTED
    return run_command()


if __name__ == "__main__":
    sys.exit(main())
