"""The memory of a switch: who may still bring a frame in, and when to pause and resume a peer.

Every frame is charged to the (ingress port, class) where it came in, until it begins to leave. An
account has a *reserve* of its own; what exceeds it comes out of the *pool* that the whole switch
shares; and a lossless class has *headroom* for what is still on its way after a PAUSE. How much of the
pool one account may take is a fixed limit, or a fraction (alpha) of what is free at this moment
(Choudhury and Hahne, *Dynamic Queue Length Thresholds*, IEEE/ACM ToN 1998). A lossy class is held back
at its egress queue instead, by the same kind of threshold.

Invariants: the pool's use is the sum over accounts of what exceeds their reserve, and never exceeds
its size; headroom is used only by lossless classes and is given back first.
"""

from __future__ import annotations

from fabric.lowered import DropReason

from .tables import Profile

__all__ = ["IngressAccount", "SharedPool", "admit", "may_resume", "must_pause", "release"]


class SharedPool:
    """The memory that all ports and classes of a switch share."""

    __slots__ = ("peak_bytes", "size_bytes", "used_bytes")

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.used_bytes = 0
        self.peak_bytes = 0

    @property
    def free_bytes(self) -> int:
        """What is left."""
        return self.size_bytes - self.used_bytes

    def threshold(self, alpha_q16: int, limit_bytes: int) -> int:
        """A fixed limit, or if alpha (in 1/65536) is given, that fraction of what is free."""
        return self.free_bytes * alpha_q16 >> 16 if alpha_q16 else limit_bytes


class IngressAccount:
    """What one (ingress port, class) holds of its switch's memory, and whether its peer is paused."""

    __slots__ = (
        "bytes",
        "cause_flow",
        "headroom_bytes",
        "headroom_peak_bytes",
        "paused",
        "pauses_sent",
        "profile",
        "released_ps",
    )

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.bytes = 0
        self.headroom_bytes = 0
        self.headroom_peak_bytes = 0
        self.paused = False
        self.pauses_sent = 0
        self.cause_flow = 0
        self.released_ps = 0
        """When a frame last left while the peer was paused."""

    def shared_bytes(self, extra_bytes: int = 0) -> int:
        """The part in the pool, if `extra_bytes` were added."""
        return max(0, self.bytes + extra_bytes - self.profile.reserved_bytes)

    def threshold(self, pool: SharedPool) -> int:
        """The most that this account may have in the pool now (XOFF)."""
        return pool.threshold(self.profile.alpha_q16, self.profile.limit_bytes)


def admit(
    account: IngressAccount, *, pool: SharedPool, size_bytes: int, egress: Profile, egress_bytes: int
) -> int | None:
    """Charge a frame of `size_bytes`, or say why it has to be dropped.

    Parameters
    ----------
    account : IngressAccount
        Where the frame came in.
    egress : Profile
        Profile of the egress (port, class) that it goes to, whose queue holds `egress_bytes`.

    Returns
    -------
    int or None
        A `DropReason`; None if the frame is in.
    """
    with_frame = account.shared_bytes(size_bytes)
    growth = with_frame - account.shared_bytes()
    fits_pool = growth <= pool.free_bytes
    if account.profile.lossless:
        if not (with_frame <= account.threshold(pool) and fits_pool):
            return _admit_to_headroom(account, size_bytes)
    else:
        egress_threshold = pool.threshold(egress.egress_alpha_q16, egress.egress_limit_bytes)
        if egress_bytes + size_bytes > egress_threshold:
            return DropReason.EGRESS_THRESHOLD
        if not fits_pool:
            return DropReason.POOL
    account.bytes += size_bytes
    pool.used_bytes += growth
    pool.peak_bytes = max(pool.peak_bytes, pool.used_bytes)
    return None


def _admit_to_headroom(account: IngressAccount, size_bytes: int) -> int | None:
    if account.headroom_bytes + size_bytes > account.profile.headroom_bytes:
        return DropReason.HEADROOM
    account.headroom_bytes += size_bytes
    account.headroom_peak_bytes = max(account.headroom_peak_bytes, account.headroom_bytes)
    return None


def release(account: IngressAccount, *, pool: SharedPool, size_bytes: int) -> None:
    """Give back what a frame was charged: headroom first, then pool, then reserve."""
    from_headroom = min(account.headroom_bytes, size_bytes)
    account.headroom_bytes -= from_headroom
    before = account.shared_bytes()
    account.bytes -= size_bytes - from_headroom
    pool.used_bytes -= before - account.shared_bytes()


def must_pause(account: IngressAccount, *, pool: SharedPool) -> bool:
    """Whether, after an admission, the peer has to be paused (XOFF)."""
    if not account.profile.lossless or account.paused:
        return False
    return account.headroom_bytes > 0 or account.shared_bytes() >= account.threshold(pool)


def may_resume(account: IngressAccount, *, pool: SharedPool) -> bool:
    """Whether, after a release, a paused peer may go on (XON)."""
    if not account.paused or account.headroom_bytes:
        return False
    shared_bytes = account.shared_bytes()
    return shared_bytes == 0 or shared_bytes + account.profile.xon_offset_bytes <= account.threshold(pool)
