"""Next hops of every switch in each state of failure, worked out before a run.

`Rerouter` makes the tables of a state (`tables.py`) from distances with some cables down (`distances.py`);
groups of next hops are plain or resilient (`groups.py`).
"""

from __future__ import annotations

from fabric.reroute.tables import Rerouter

__all__ = ["Rerouter"]
