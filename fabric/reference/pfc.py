"""Being paused: what a port knows of its peer's wishes, per class.

A PAUSE holds until the RESUME, or until it runs out (`quanta.py`); a repeated one only lasts longer, and a
frame that is being sent is finished. The time between the effect of a PAUSE and the end of the pause is
summed. The other side, deciding to pause one's peer, belongs to the buffer (`buffer.py`). After IEEE
802.1Qbb.
"""

from __future__ import annotations

__all__ = ["PeerPause", "Wish", "decode_effect", "encode_effect"]


class Wish:
    """What a PFC frame says, as its sequence number; a storm says it for as long as it lasts."""

    RESUME, PAUSE, REPEAT, STORM = range(4)


class PeerPause:
    """Whether and since when the peer of a port has paused one class, and for how long."""

    __slots__ = ("since_ps", "taken", "total_ps", "until_ps")

    def __init__(self) -> None:
        self.since_ps: int | None = None
        self.until_ps: int | None = None
        self.total_ps = 0
        self.taken = 0

    @property
    def is_paused(self) -> bool:
        """The port must not begin a frame of this class."""
        return self.since_ps is not None

    def on_pause(self, now_ps: int) -> None:
        """A PAUSE takes effect."""
        if self.since_ps is None:
            self.since_ps = now_ps

    def on_resume(self, now_ps: int) -> int | None:
        """The pause ends; returns when the interval that it ends began, None if there is none."""
        began_ps = self.since_ps
        if began_ps is not None:
            self.total_ps += now_ps - began_ps
            self.since_ps = None
        return began_ps

    def total_until(self, end_ps: int) -> int:
        """Picoseconds paused, an open interval counted up to `end_ps`."""
        open_ps = 0 if self.since_ps is None else max(0, end_ps - self.since_ps)
        return self.total_ps + open_ps


def encode_effect(port: int, traffic_class: int, wish: int) -> int:
    """The id of the timer that lets a PFC frame take effect, or (RESUME) a pause run out."""
    return port * 32 + traffic_class * 4 + wish


def decode_effect(ident: int) -> tuple[int, int, int]:
    """Port, class and wish of such a timer."""
    return ident >> 5, ident >> 2 & 7, ident & 3
