"""The switch: a shared-memory, output-queued chip with ECN, PFC and up to 8 traffic classes.

Every switch of a scenario is alike. Buffer space is charged to the ingress port and class: first a
reserve, then a shared pool, then (lossless classes) headroom, which holds what still arrives after
PAUSE. A lossless class sends PAUSE when its use of the pool reaches a threshold; a lossy class
drops when its egress queue does. Thresholds are static, or `alpha` times what is free in the pool
(Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet switches",
IEEE/ACM ToN 1998). What happens to a frame is `docs/design.md`, section 5.

That reserves and headroom of all ports fit the buffer depends on the number of ports and is judged
when a scenario is lowered, not here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from fabric.errors import SpecError
from fabric.spec.base import Problem, Spec, outside, quantity
from fabric.spec.decode import did_you_mean
from fabric.units import Duration, QuantityError, Rate, Size

__all__ = ["BUFFER_LIMIT_BYTES", "Ecn", "Lossy", "Pfc", "Switch", "TrafficClass", "Watchdog"]

BUFFER_LIMIT_BYTES = 10**12
"""Buffers stay below 1 TB: `free * alpha` is then exact in 64 bits."""
LARGEST_LATENCY_PS = 10**12
"""Latencies and responses of devices last at most 1 s, so that sums of times stay exact."""
SMALLEST_ALPHA = 2.0**-16
LARGEST_ALPHA = 64.0
LARGEST_CLASSES = 8
"""IEEE 802.1Q has 8 priorities, and PFC (802.1Qbb) a bit for each."""
LARGEST_WEIGHT = 255

LARGEST_HEADROOM_DELAYS = 1000
LONGEST_WATCHDOG_PS = 10**15
LARGEST_PFC_FRAME_BYTES = 1500
DEFAULT_PFC_ALPHA = 0.125
"""2^-3, as SONiC sets for lossless pools and the HPCC simulator's shift of 3."""
DEFAULT_LOSSY_ALPHA = 1.0

LARGEST_QUANTA = 65535
"""The times in a PFC frame have 16 bits."""

if TYPE_CHECKING:
    HeadroomSize = Size | Literal["auto"]
    RefreshPeriod = Duration | Literal["auto", "never"]
else:
    HeadroomSize = Annotated[int | str, msgspec.Meta(description=f'{Size.describe()}, or "auto"')]
    RefreshPeriod = Annotated[
        int | str, msgspec.Meta(description=f'{Duration.describe()}, or "auto", or "never"')
    ]


class Ecn(Spec, frozen=True, kw_only=True):
    """Congestion marks by RED on an egress class queue (RFC 3168; Zhu et al., SIGCOMM 2015).

    No mark up to `kmin`, then a probability rising linearly to `pmax` at `kmax`, then always.
    The defaults are those that SimAI ships for 400 Gbit/s.

    Parameters
    ----------
    kmin, kmax : Size
        Queue lengths in bytes, kmin <= kmax, below 1 TB (scaled ones too). Defaults 800KB and 3200KB.
    pmax : float
        Probability at kmax, in (0, 1]. Default 0.2.
    mark : {"enqueue", "dequeue"}
        Which queue is compared: on arrival with the frame in it, or at the start of its
        transmission without it. Default "dequeue", as the HPCC simulator and SimAI.
    scale_from : Rate, optional
        The port rate for which kmin and kmax hold; at a port of another rate they are scaled in
        proportion. None (default): the same at every port.
    """

    kmin: Size = quantity("800KB")
    kmax: Size = quantity("3200KB")
    pmax: float = 0.2
    mark: Literal["enqueue", "dequeue"] = "dequeue"
    scale_from: Rate | None = None

    def problems(self) -> Iterator[Problem]:
        if self.kmax >= BUFFER_LIMIT_BYTES:
            yield "kmax", self.kmax, "a size below 1TB"
        if self.kmin > self.kmax:
            yield "kmin", self.kmin, f"a size of at most kmax ({self.kmax})"
        if not 0 < self.pmax <= 1:
            yield "pmax", self.pmax, "a probability: above 0 and at most 1"
        if self.scale_from == 0:
            yield "scale_from", self.scale_from, "a rate above 0, or no scale_from"


if TYPE_CHECKING:
    EcnOrOff = Ecn | None
else:
    EcnOrOff = Ecn | bool | None


class Pfc(Spec, frozen=True, kw_only=True):
    """Priority flow control of a lossless class (IEEE 802.1Qbb), per ingress port.

    Parameters
    ----------
    alpha : float, optional
        Dynamic XOFF threshold: alpha times the free shared pool, 2^-16 to 64. Default 0.125
        (SONiC's and the HPCC simulator's 2^-3) unless `xoff` is given.
    xoff : Size, optional
        Static XOFF threshold in bytes of the pool; excludes alpha.
    xon : Size, optional
        With xoff only: RESUME at or below it; at most xoff. None: xoff less two of the largest
        frames.
    xon_offset : Size, optional
        With alpha only: RESUME when the use of the pool plus this is at most the threshold.
        None: two of the largest frames.
    headroom : Size or "auto"
        Per ingress port and class, for what arrives after PAUSE; below 1 TB. Default "auto": the bound
        C (2 d + t_pfc + t_response) + 2 L of that port, which loses nothing for any fan-in
        (C rate, d delay, t_pfc time of a PAUSE frame on the wire, L largest frame).
    headroom_delays : float, optional
        Instead of `headroom`: this many times rate x delay of the port's cable, in whole bytes. The
        HPCC simulator takes 3, which is too little for short cables.
    alpha_scale_from : Rate, optional
        With alpha: doubled for every doubling of the port's rate beyond this one, to at most 1, as
        in the HPCC simulator. None (default): the same at every port.
    frame : Size
        Of a PAUSE or RESUME frame, as it occupies the link with the link's gap. Default 64 (IEEE
        802.3, clause 31); that of `switch.pfc` holds for all classes.
    quanta : int, optional
        How long a PAUSE holds if it is not repeated, 1 to 65535: so many times 512 bits at the rate of
        the paused port (IEEE 802.3, annex 31B; 65535 are 84 us at 400 Gbit/s). None (default): until the
        RESUME, as if repetitions always came in time and took no bandwidth. That of `switch.pfc` holds
        for all classes.
    refresh : Duration, "auto" or "never"
        With quanta: at multiples of it every switch repeats the PAUSEs that stand. "auto" (default): half
        of what the quanta last at the fastest port. With "never", or if it is too long, pauses run out,
        and what comes then can overflow the headroom. That of `switch.pfc` holds for all classes.
    """

    alpha: float | None = None
    xoff: Size | None = None
    xon: Size | None = None
    xon_offset: Size | None = None
    headroom: HeadroomSize = "auto"
    headroom_delays: float | None = None
    alpha_scale_from: Rate | None = None
    frame: Size = quantity(64)
    quanta: int | None = None
    refresh: RefreshPeriod = "auto"

    def settle(self) -> None:
        if self.alpha is None and self.xoff is None:
            msgspec.structs.force_setattr(self, "alpha", DEFAULT_PFC_ALPHA)
        self._settle_quantity("headroom", Size, ("auto",))
        self._settle_quantity("refresh", Duration, ("auto", "never"))

    def _settle_quantity(self, name: str, unit: type[Size] | type[Duration], words: tuple[str, ...]) -> None:
        given = getattr(self, name)
        if given in words:
            return
        try:
            msgspec.structs.force_setattr(self, name, unit(given))
        except QuantityError as error:
            allowed = "".join(f', or "{word}"' for word in words)
            raise SpecError(f"Pfc.{name}", error.value, f"{error.allowed}{allowed}") from None

    def implied(self) -> dict[str, Any]:
        return {**super().implied(), "alpha": DEFAULT_PFC_ALPHA if self.xoff is None else None}

    def problems(self) -> Iterator[Problem]:
        yield from _threshold_problems(self.alpha, self.xoff, "xoff")
        if self.xon is not None and self.xoff is None:
            yield "xon", self.xon, "no xon without xoff; with alpha, xon_offset sets where sending resumes"
        if self.xon is not None and self.xoff is not None and self.xon > self.xoff:
            yield "xon", self.xon, f"a size of at most xoff ({self.xoff})"
        if self.xon_offset is not None and self.alpha is None:
            yield "xon_offset", self.xon_offset, "no xon_offset with xoff; xon sets where sending resumes"
        if self.xon_offset is not None and self.xon_offset >= BUFFER_LIMIT_BYTES:
            yield "xon_offset", self.xon_offset, "a size below 1TB"
        if isinstance(self.headroom, int) and self.headroom >= BUFFER_LIMIT_BYTES:
            yield "headroom", self.headroom, 'a size below 1TB, or "auto"'
        if self.headroom_delays is not None and self.headroom != "auto":
            yield "headroom_delays", self.headroom_delays, f"either headroom (here {self.headroom}) or this"
        if self.headroom_delays is not None and not 0 <= self.headroom_delays <= LARGEST_HEADROOM_DELAYS:
            yield "headroom_delays", self.headroom_delays, f"a number from 0 to {LARGEST_HEADROOM_DELAYS}"
        if self.alpha_scale_from is not None and self.alpha is None:
            yield "alpha_scale_from", self.alpha_scale_from, "no alpha_scale_from with xoff"
        if self.alpha_scale_from == 0:
            yield "alpha_scale_from", self.alpha_scale_from, "a rate above 0"
        if not 1 <= self.frame <= LARGEST_PFC_FRAME_BYTES:
            yield "frame", self.frame, f"a size from 1 to {LARGEST_PFC_FRAME_BYTES} bytes"
        if self.quanta is not None and not 1 <= self.quanta <= LARGEST_QUANTA:
            yield "quanta", self.quanta, f"a number from 1 to {LARGEST_QUANTA}, or no quanta"
        if self.quanta is None and self.refresh != "auto":
            yield "refresh", self.refresh, "no refresh without quanta: a PAUSE holds until its RESUME then"
        if isinstance(self.refresh, int) and not 0 < self.refresh <= LARGEST_LATENCY_PS:
            yield "refresh", self.refresh, 'a duration above 0 and of at most 1s, or "auto", or "never"'


class Watchdog(Spec, frozen=True, kw_only=True):
    """What a switch does about a queue that PFC stops for too long.

    All switches poll at once. A queue of a lossless class is *stalled* at a poll if it holds frames and its
    peer has paused it since the poll before, or longer. After so many stalled polls in a row that
    `detection` has passed it is *mitigated*, and later *restored*. The defaults are those of SONiC's `pfcwd`
    for up to 32 ports (github.com/sonic-net/sonic-utilities, `pfcwd/main.py`: 200 ms each, drop; twice that
    for 33 to 64 ports). Junos' are `Watchdog(poll="100ms", restore="time")`.

    Parameters
    ----------
    detection : Duration
        A queue that is stalled for so long is mitigated: at the latest one poll after that. Default 200ms.
    restoration : Duration
        When it is restored: after its peer has not paused it for so long, or after so much time. Default
        200ms.
    poll : Duration
        From one poll to the next; at most the shorter of the two. Default 200ms.
    action : {"drop", "forward", "alert"}
        "drop" (default): what waits in the queue is dropped, and what comes for it until it is restored.
        "forward": it sends although it is paused. "alert": nothing, but it is in the result.
    drop_ingress : bool
        With "drop": also what comes in at the port in that class, wherever it goes. False (default): as
        SONiC does with buffer profiles since 2022 (sonic-swss, pull requests 2279 and 2304). True: as it did
        before (326), and as it does where an access list drops (361: Broadcom).
    restore : {"quiet", "time"}
        "quiet" (default, SONiC): once the peer has been quiet for `restoration`. "time" (Junos):
        `restoration` after the detection, whatever the peer does; an alert always ends with "quiet".
    """

    detection: Duration = quantity("200ms")
    restoration: Duration = quantity("200ms")
    poll: Duration = quantity("200ms")
    action: Literal["drop", "forward", "alert"] = "drop"
    drop_ingress: bool = False
    restore: Literal["quiet", "time"] = "quiet"

    def problems(self) -> Iterator[Problem]:
        for name in ("detection", "restoration", "poll"):
            if not 0 < getattr(self, name) <= LONGEST_WATCHDOG_PS:
                yield name, getattr(self, name), "a duration above 0 and at most 1000s"
        if self.drop_ingress and self.action != "drop":
            yield "drop_ingress", self.drop_ingress, f'false, or action "drop" (not "{self.action}")'
        if self.poll > min(self.detection, self.restoration):
            shortest = min(self.detection, self.restoration)
            yield "poll", self.poll, f"at most the shorter of detection and restoration ({shortest})"


class Lossy(Spec, frozen=True, kw_only=True):
    """When a lossy class drops: a threshold on its egress queue.

    Parameters
    ----------
    alpha : float, optional
        Dynamic threshold: alpha times the free shared pool, 2^-16 to 64. Default 1 unless `limit`
        is given.
    limit : Size, optional
        Static threshold in bytes; excludes alpha.
    """

    alpha: float | None = None
    limit: Size | None = None

    def settle(self) -> None:
        if self.alpha is None and self.limit is None:
            msgspec.structs.force_setattr(self, "alpha", DEFAULT_LOSSY_ALPHA)

    def implied(self) -> dict[str, Any]:
        return {**super().implied(), "alpha": DEFAULT_LOSSY_ALPHA if self.limit is None else None}

    def problems(self) -> Iterator[Problem]:
        yield from _threshold_problems(self.alpha, self.limit, "limit")


class TrafficClass(Spec, frozen=True, kw_only=True):
    """One of up to 8 classes: a queue at each egress port and a PFC priority at each ingress port.

    Parameters
    ----------
    name : str
        By which transports and traffic refer to it; letters, digits, `_` and `-`.
    priority : int
        0 to 7; a class is served before all lower ones, and equal classes share by deficit round
        robin. Default 0.
    weight : int
        1 to 255: the share among equals, in largest frames per round. Default 1.
    reserved : Size
        Buffer that each ingress port has for itself. Default 0.
    ecn : bool or Ecn
        True (default): as `Switch.ecn`; False: never marked; or thresholds of its own.
    pfc : bool or Pfc
        True (default): lossless, as `Switch.pfc`; False: lossy; or thresholds of its own.
    lossy : Lossy, optional
        Of a lossy class; None (default): as `Switch.lossy`.
    """

    name: str
    priority: int = 0
    weight: int = 1
    reserved: Size = quantity(0)
    ecn: bool | Ecn = True
    pfc: bool | Pfc = True
    lossy: Lossy | None = None

    def problems(self) -> Iterator[Problem]:
        if not re.fullmatch(r"[A-Za-z0-9_-]+", self.name):
            yield "name", self.name, "a name of letters, digits, _ and -"
        if not 0 <= self.priority <= 7:
            yield "priority", self.priority, "an integer from 0 to 7"
        yield from outside("weight", self.weight, low=1, high=LARGEST_WEIGHT)
        if self.reserved >= BUFFER_LIMIT_BYTES:
            yield "reserved", self.reserved, "a size below 1TB, and within the buffer of the switch"
        if self.lossy is not None and self.pfc is not False:
            yield "lossy", self.lossy, "no lossy threshold unless the class has pfc = false"


def _default_classes() -> tuple[TrafficClass, ...]:
    return (
        TrafficClass(name="data"),
        TrafficClass(name="control", priority=7, ecn=False, pfc=False),
    )


class Switch(Spec, frozen=True, kw_only=True):
    """Every switch of the fabric.

    Parameters
    ----------
    buffer : Size
        Packet memory in bytes, below 1 TB. Default 64MB, that of Tomahawk 3 and of the order of
        Spectrum-3 (42) and Tomahawk 4 (114).
    latency : Duration
        Fixed pipeline latency, added to the delay of every link that ends at a switch; at most 1s.
        Default 500ns.
    pfc_response : Duration
        From the arrival of a PAUSE or RESUME to its effect; at most 1s. Default 0.
    ecn : Ecn or None
        Of classes with `ecn = true`. None (in a file: false): no class is marked that does not
        bring its own.
    pfc : Pfc
        Of classes with `pfc = true`.
    lossy : Lossy
        Of lossy classes without their own.
    watchdog : Watchdog, optional
        What is done about queues that stay paused. None (default): nothing.
    classes : tuple of TrafficClass
        1 to 8. Default: "data" (lossless, marked) and "control" (priority 7, lossy, not marked).
    arbiter : {"fifo", "round_robin"}
        Order within an egress class queue: of arrival, or in turn by ingress port. Default "fifo".
    cut_through : bool
        Begin to forward before the whole frame has arrived. Default False: store and forward.

    Examples
    --------
    >>> Switch(buffer="32MB", ecn=Ecn(kmin="400KB", kmax="1600KB")).ecn.kmin
    Size("400KB")
    """

    buffer: Size = quantity("64MB")
    latency: Duration = quantity("500ns")
    pfc_response: Duration = quantity("0ns")
    ecn: EcnOrOff = msgspec.field(default_factory=Ecn)
    pfc: Pfc = msgspec.field(default_factory=Pfc)
    lossy: Lossy = msgspec.field(default_factory=Lossy)
    watchdog: Watchdog | None = None
    classes: tuple[TrafficClass, ...] = msgspec.field(default_factory=_default_classes)
    arbiter: Literal["fifo", "round_robin"] = "fifo"
    cut_through: bool = False

    def settle(self) -> None:
        given: object = self.ecn
        if given is False:
            msgspec.structs.force_setattr(self, "ecn", None)
        elif given is True:
            msgspec.structs.force_setattr(self, "ecn", Ecn())

    def problems(self) -> Iterator[Problem]:
        if not 0 < self.buffer < BUFFER_LIMIT_BYTES:
            yield "buffer", self.buffer, "a size above 0 and below 1TB"
        for name in ("latency", "pfc_response"):
            if getattr(self, name) > LARGEST_LATENCY_PS:
                yield name, getattr(self, name), "a duration of at most 1s"
        if not 1 <= len(self.classes) <= LARGEST_CLASSES:
            names = tuple(each.name for each in self.classes)
            yield "classes", names, f"1 to {LARGEST_CLASSES} classes (there are {len(names)})"
        seen: dict[str, int] = {}
        for index, each in enumerate(self.classes):
            if each.name in seen:
                yield f"classes[{index}].name", each.name, f"a name not used by classes[{seen[each.name]}]"
            seen.setdefault(each.name, index)
            if each.reserved >= self.buffer:
                yield f"classes[{index}].reserved", each.reserved, f"a size below the buffer ({self.buffer})"

    def class_index(self, name: str, *, path: str = "") -> int:
        """Return the number of the class called `name`.

        Raises
        ------
        SpecError
            At `path`, if there is none.
        """
        names = [each.name for each in self.classes]
        if name not in names:
            known = ", ".join(f'"{known}"' for known in names)
            raise SpecError(path, name, f"the name of a traffic class: {known}{did_you_mean(name, names)}")
        return names.index(name)


def _threshold_problems(alpha: float | None, static: Size | None, name: str) -> Iterator[Problem]:
    """Judge a threshold that is either dynamic or static."""
    if alpha is not None and static is not None:
        yield "alpha", alpha, f"either alpha (dynamic) or {name} (static, here {static}), not both"
    if alpha is not None and not SMALLEST_ALPHA <= alpha <= LARGEST_ALPHA:
        yield "alpha", alpha, "a number from 2^-16 (0.0000153) to 64"
    if static is not None and not 0 < static < BUFFER_LIMIT_BYTES:
        yield name, static, "a size above 0 and below 1TB"
