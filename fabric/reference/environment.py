"""What every node needs of the world around it, handed to it as one object."""

from __future__ import annotations

from dataclasses import dataclass

from .clock import Clock, Phases
from .deadlock import DeadlockSearch
from .frame import Frame
from .link import Links
from .quanta import Quanta
from .recorder import Recorder
from .tally import Tally
from .watchdog import Watchdog

__all__ = ["Environment"]


@dataclass(frozen=True, slots=True)
class Environment:
    """The parts of a run that all nodes share.

    Parameters
    ----------
    clock : Clock
        Where later events are scheduled.
    links : Links
        Where frames begin.
    tally, recorder
        Where what happens is counted and written down.
    ecn_key : int
        Key of the draws for congestion marks.
    pfc_frame_bytes : int
        Size of a PFC frame.
    phases : Phases
        Of the instants of a nanosecond.
    ttl : int
        Of every frame that a host makes: switches that it may reach, 0 for any number.
    deadlocks : DeadlockSearch
        Told of what may bring a deadlock about.
    watchdog : Watchdog
        Knows which queues ignore their peer, or drop what comes.
    quanta : Quanta
        Knows for how long a PAUSE holds.
    """

    clock: Clock
    links: Links
    tally: Tally
    recorder: Recorder
    ecn_key: int
    pfc_frame_bytes: int
    phases: Phases
    ttl: int
    deadlocks: DeadlockSearch
    watchdog: Watchdog
    quanta: Quanta

    def drop(self, frame: Frame, *, port: int, reason: int, now_ps: int) -> None:
        """Let a frame vanish, counted at `port`, for a `DropReason`."""
        self.tally.on_drop(frame, port=port, reason=reason, now_ps=now_ps)
        self.recorder.on_drop(frame, port=port, reason=reason, now_ps=now_ps)
