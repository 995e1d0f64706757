"""Ctrl-C as a request: a run stops at the end of its chunk and keeps what it has recorded.

An engine must not be torn in the middle of an event, so for the length of a run SIGINT only sets a
flag. A second Ctrl-C raises KeyboardInterrupt at once, for whoever does not want to wait, unless what is
going on is short and must not be lost, such as saving. Only the main thread can handle signals; in others
the flag stays unset.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

__all__ = ["INTERRUPTED", "InterruptRequest"]

INTERRUPTED = 130
"""Exit code of a command that Ctrl-C has ended, as shells have it: 128 and the number of the signal."""


class InterruptRequest:
    """A context manager in which the first SIGINT is kept in `requested` instead of raised.

    Parameters
    ----------
    patient : bool
        Keep all further ones too.
    """

    def __init__(self, *, patient: bool = False) -> None:
        self.requested = False
        self._patient = patient
        self._before: Any = None
        self._installed = False

    def __enter__(self) -> InterruptRequest:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._take)
            self._installed = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, self._before)
            self._installed = False

    def _take(self, number: int, frame: FrameType | None) -> None:
        if self.requested and not self._patient:
            raise KeyboardInterrupt
        self.requested = True
