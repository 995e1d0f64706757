"""Lets the long tests use what the short ones share, from whatever directory pytest was started."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
