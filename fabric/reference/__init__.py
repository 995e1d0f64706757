"""The readable engine: the semantics of `docs/design.md`, sections 2 to 9 and 11, in plain Python.

It exists to be read and to be compared with: it is written from the same page as the native engine, and
both must give the same bits for every scenario. One concept a file; start with `simulator.py`, then
`clock.py` (what happens first), `node.py`, `switch.py` and `host.py`; programs of collectives are walked
in `program.py`. What the native engine does
cleverly (windows, lazy ports, flat memory) is done here plainly, so it is some hundred times slower.

NumPy appears only at the border: `tables.py`, `port.py` and `routing.py` read a `Lowered` into lists,
`columns.py` and `recorder.py` return arrays.
"""

from __future__ import annotations

from .simulator import Simulator

__all__ = ["Simulator"]
