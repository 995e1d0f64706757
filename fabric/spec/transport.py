"""Transports: how a message becomes frames, what makes it reliable and what paces it.

Reliability, paths and congestion control are three choices. Reliability is go-back-N as RoCE NICs do
it (the receiver takes frames in order only, answers with ACKs and NACKs, and the sender rewinds), or
selective repeat, which sends again only what is missing. A sender may spread its frames over several
paths. Its congestion control is one of: none, a fixed window, DCQCN, and those of
`fabric.spec.congestion`, of which HPCC and TIMELY need go-back-N. What a sender and a receiver do with
these parameters is `docs/design.md`, sections 6 and 7. Not modelled: retry limits, connection set-up,
read requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import msgspec

from fabric.errors import SpecError
from fabric.spec.base import Problem, Spec, outside, quantity
from fabric.spec.congestion import Dctcp, Hpcc, Timely
from fabric.spec.decode import convert, did_you_mean, field_types
from fabric.spec.link import LARGEST_FRAME_BYTES
from fabric.spec.presets import DCQCN_PRESETS, DEFAULT_DCQCN_PRESET
from fabric.units import LARGEST, Duration, Rate, Size, format_rate

__all__ = [
    "Congestion",
    "Dcqcn",
    "FixedWindow",
    "GoBackN",
    "NoCongestionControl",
    "Paths",
    "SelectiveRepeat",
    "Transport",
]

LARGEST_COUNT = 2**32 - 1
MOST_QUEUE_PAIRS = 1024
SHORTEST_PERIOD_PS = 1_000
"""Of what ticks or expires: real clocks are above 1 us, and one of 1 ps would keep a run from ending."""


class GoBackN(Spec, frozen=True, kw_only=True, tag_field="kind", tag="go_back_n"):
    """Reliability by rewinding (InfiniBand specification, volume 1, section 9.7).

    Parameters
    ----------
    rto : Duration or None
        Without progress for this long, the sender rewinds; at least 1ns. Default 4ms. None (in a
        file: 0): never.
    nack : bool
        Whether the receiver reports a gap. Default True.
    nack_on_rewind : bool
        Whether it reports the same gap again when the sender has rewound without filling it.
        Default True.
    nack_interval : Duration, optional
        Report the same gap again after this long. None (default): do not.
    ack_duplicates : bool
        Whether a frame that was already received is acknowledged again, so that a sender that
        missed the ACK can go on. Default True.
    """

    IS_DEFAULT_KIND: ClassVar[bool] = True

    rto: Duration | None = quantity("4ms")
    nack: bool = True
    nack_on_rewind: bool = True
    nack_interval: Duration | None = None
    ack_duplicates: bool = True

    def settle(self) -> None:
        if self.rto == 0:
            msgspec.structs.force_setattr(self, "rto", None)

    def problems(self) -> Iterator[Problem]:
        if self.rto is not None and self.rto < SHORTEST_PERIOD_PS:
            yield "rto", self.rto, "a duration of at least 1ns, or 0: never"
        if self.nack_interval == 0:
            yield "nack_interval", self.nack_interval, "a duration above 0, or no nack_interval"


class SelectiveRepeat(Spec, frozen=True, kw_only=True, tag_field="kind", tag="selective_repeat"):
    """Reliability that sends again only what is missing (after IRN: Mittal et al., SIGCOMM 2018).

    The receiver keeps frames that come out of order and reports each of them.

    Parameters
    ----------
    rto : Duration or None
        Without news for this long, all that is not known to have arrived is sent again. Default
        4ms. None (in a file: 0): never.
    reorder : int
        A frame is lost when one at least so many beyond it has arrived; at least 1. Default 256:
        at 400 Gbit/s frames of 4 KB that are 20 us late, which spraying over equal paths does not
        make them. IRN has 1, for a single path.
    """

    rto: Duration | None = quantity("4ms")
    reorder: int = 256

    def settle(self) -> None:
        if self.rto == 0:
            msgspec.structs.force_setattr(self, "rto", None)

    def problems(self) -> Iterator[Problem]:
        yield from outside("reorder", self.reorder, low=1, high=LARGEST_COUNT)


class Paths(Spec, frozen=True, kw_only=True):
    """How a sender spreads the frames of a flow, by giving them different path hashes.

    Each path hash is to ECMP as a flow of its own: that is what several queue pairs that take turns, or
    source ports that change, are for. Frames then overtake each other: use `SelectiveRepeat`. (To split
    a message into a part for each queue pair: `Transport.queue_pairs`.)

    Parameters
    ----------
    spread : {"none", "round_robin", "random"}
        Default "none": one path hash. Otherwise frame by frame the next one, or a random one.
    count : int
        Path hashes of a flow, at least 1. Default 64, the number of paths of the UET simulator
        (github.com/ultraethernet/uet-htsim). Not used by "none".
    """

    spread: Literal["none", "round_robin", "random"] = "none"
    count: int = 64

    def problems(self) -> Iterator[Problem]:
        yield from outside("count", self.count, low=1, high=LARGEST_COUNT)


class NoCongestionControl(Spec, frozen=True, kw_only=True, tag_field="kind", tag="none"):
    """Every flow sends at line rate; only PAUSE holds it back."""


class FixedWindow(Spec, frozen=True, kw_only=True, tag_field="kind", tag="window"):
    """At line rate, with a bound on what is not yet acknowledged.

    Parameters
    ----------
    window : Size
        Payload bytes, above 0; rounded up to whole frames.
    """

    window: Size

    def problems(self) -> Iterator[Problem]:
        if self.window == 0:
            yield "window", self.window, "a size above 0"


def _from_preset() -> Any:
    """Declare a field that the preset fills in when it is not given."""
    return msgspec.field(default_factory=lambda: msgspec.UNSET)


class Dcqcn(Spec, frozen=True, kw_only=True, tag_field="kind", tag="dcqcn"):
    """DCQCN (Zhu et al., SIGCOMM 2015) in the paper's or the vendors' form.

    A preset names every value; fields given beside it override the preset's. The presets and their
    sources are listed in `fabric.spec.presets`.

    Parameters
    ----------
    preset : str
        Default "connectx_scaled". Also "connectx", "hpcc", "hpcc_paper", "simai", "paper_2015",
        "ns3_rdma".
    form : {"paper", "vendor"}
        Act on each notification at once, or check on a clock whether one came.
    feedback : {"cnp", "echo"}
        Marks return in notification packets, or in the ACK of each marked frame.
    cnp_interval : Duration
        The receiver's smallest time between notifications of one flow.
    alpha_period : Duration
        The clock of alpha: paper, decay without notification; vendor, update. At least 1ns.
    cut_period : Duration
        Vendor: how often the sender looks for a notification to cut on; at least 1ns. Not used by
        the paper form.
    increase_period : Duration
        The increase clock; at least 1ns.
    byte_counter : Size or None
        Paper: bytes sent per increase event. None (in a file: 0): no byte counter.
    fast_recovery : int
        Increase events F that only halve the distance to the target rate.
    g : float
        Gain of alpha, in (0, 1].
    ai, hai : Rate
        Steps of the target rate, additive and hyper.
    scale_from : Rate or None
        The line rate for which ai and hai hold; for a flow on a port of another rate they are
        scaled in proportion. None (in a file: 0): the same at every rate.
    min_rate : Rate
        No flow is slower.
    first_cut : float
        Vendor: factor on the rate at the first mark, in (0, 1].
    clamp_target : bool
        Vendor: whether each cut takes the target over, even the second in a row.
    window : Size or None
        As `FixedWindow.window`, beside the rate. None (in a file: 0): no bound.
    variable_window : bool
        Whether the window is that at line rate, and smaller in proportion at other rates.

    Examples
    --------
    >>> Dcqcn(preset="hpcc").at_line_rate(100_000_000_000).ai
    Rate("20Mbps")
    """

    preset: str = DEFAULT_DCQCN_PRESET
    form: Literal["paper", "vendor"] = _from_preset()
    feedback: Literal["cnp", "echo"] = _from_preset()
    cnp_interval: Duration = _from_preset()
    alpha_period: Duration = _from_preset()
    cut_period: Duration = _from_preset()
    increase_period: Duration = _from_preset()
    byte_counter: Size | None = _from_preset()
    fast_recovery: int = _from_preset()
    g: float = _from_preset()
    ai: Rate = _from_preset()
    hai: Rate = _from_preset()
    scale_from: Rate | None = _from_preset()
    min_rate: Rate = _from_preset()
    first_cut: float = _from_preset()
    clamp_target: bool = _from_preset()
    window: Size | None = _from_preset()
    variable_window: bool = _from_preset()

    def settle(self) -> None:
        types = field_types(type(self))
        for name, value in DCQCN_PRESETS.get(self.preset, {}).items():
            if getattr(self, name) is msgspec.UNSET:
                msgspec.structs.force_setattr(self, name, convert(value, types[name]))
        for name in ("byte_counter", "scale_from", "window"):
            if getattr(self, name) == 0:
                msgspec.structs.force_setattr(self, name, None)

    def problems(self) -> Iterator[Problem]:
        if self.preset not in DCQCN_PRESETS:
            known = ", ".join(f'"{name}"' for name in DCQCN_PRESETS)
            yield "preset", self.preset, f"one of {known}{did_you_mean(self.preset, DCQCN_PRESETS)}"
        for name in ("alpha_period", "cut_period", "increase_period"):
            if getattr(self, name) < SHORTEST_PERIOD_PS:
                yield name, getattr(self, name), "a duration of at least 1ns"
        if not 0 < self.g <= 1:
            yield "g", self.g, "a number above 0 and at most 1"
        if not 0 < self.first_cut <= 1:
            yield "first_cut", self.first_cut, "a number above 0 and at most 1"
        yield from outside("fast_recovery", self.fast_recovery, low=0, high=LARGEST_COUNT)
        if self.min_rate == 0:
            yield "min_rate", self.min_rate, "a rate above 0"
        if self.form == "vendor" and self.byte_counter is not None:
            yield "byte_counter", self.byte_counter, '0 with form = "vendor", which has only a timer'

    def implied(self) -> dict[str, Any]:
        return msgspec.structs.asdict(Dcqcn(preset=self.preset)) | {"preset": DEFAULT_DCQCN_PRESET}

    def at_line_rate(self, rate_bps: int) -> Dcqcn:
        """Return these parameters for a port of `rate_bps`, with `ai` and `hai` scaled.

        Steps are rounded down to whole bit/s; `scale_from` of the result is None.

        Raises
        ------
        SpecError
            If a step is scaled beyond the largest rate.
        """
        if self.scale_from is None:
            return self
        return self.replace(
            ai=self._scaled("ai", rate_bps), hai=self._scaled("hai", rate_bps), scale_from=None
        )

    def _scaled(self, name: str, rate_bps: int) -> Rate:
        step = getattr(self, name)
        assert self.scale_from is not None
        scaled_bps = step * rate_bps // self.scale_from
        if scaled_bps > LARGEST:
            allowed = f"a rate that remains below 4.6e18 bit/s if scaled from {self.scale_from} to "
            raise SpecError(f"Dcqcn.{name}", step, allowed + format_rate(rate_bps))
        return Rate(scaled_bps)


Congestion = NoCongestionControl | FixedWindow | Dcqcn | Hpcc | Dctcp | Timely


class Transport(Spec, frozen=True, kw_only=True):
    """How messages are carried.

    Parameters
    ----------
    payload : Size
        Message bytes per data frame (the RDMA path MTU). Default 4096.
    header : Size
        What a frame carries besides and buffers hold. Default 62: Ethernet 14, IPv4 20, UDP 8,
        BTH 12, ICRC 4, FCS 4 (RoCEv2).
    control_frame : Size
        An ACK, NACK or CNP as buffers hold it; padded to `smallest_frame` if below. Default 64, the
        smallest Ethernet frame.
    data_class, control_class : str
        Traffic classes of data and control frames. Defaults "data" and "control".
    ack_every : int
        One ACK for this many data frames; the last frame of a message is always acknowledged.
        Default 1.
    ack_delay : Duration, optional
        And one at the latest so long after a frame that none has answered, above 0. None
        (default): only by number.
    reliability : GoBackN or SelectiveRepeat
        What happens when frames are lost. A table without `kind` is go-back-N, which `Hpcc` and
        `Timely` need: their ACKs bring back what one frame has met.
    paths : Paths
        How the frames of a flow spread over path hashes. Default: not at all.
    queue_pairs : int
        Into how many parts a message is split, each a flow with path hash, window and rate of its own; 1
        to 1024. Default 1. Results have a row for each, such as "incast#3/0"; the message is done when
        the last of them is.
    smallest_frame : Size
        Shorter frames, data and control, are padded to this. Default 64 (IEEE 802.3, clause 4.4.2).
    congestion : NoCongestionControl, FixedWindow, Dcqcn, Hpcc, Dctcp or Timely
        Default `Dcqcn()`.
    """

    payload: Size = quantity(4096)
    header: Size = quantity(62)
    control_frame: Size = quantity(64)
    data_class: str = "data"
    control_class: str = "control"
    ack_every: int = 1
    ack_delay: Duration | None = None
    reliability: GoBackN | SelectiveRepeat = msgspec.field(default_factory=GoBackN)
    paths: Paths = msgspec.field(default_factory=Paths)
    queue_pairs: int = 1
    smallest_frame: Size = quantity(64)
    congestion: Congestion = msgspec.field(default_factory=Dcqcn)

    def problems(self) -> Iterator[Problem]:
        if self.payload == 0:
            yield "payload", self.payload, "a size above 0"
        if self.frame > LARGEST_FRAME_BYTES:
            yield (
                "payload",
                self.payload,
                f"a size of at most {LARGEST_FRAME_BYTES - min(self.overhead, LARGEST_FRAME_BYTES)} bytes: "
                f"frames, payload and header together, have at most {LARGEST_FRAME_BYTES}",
            )
        if not 1 <= self.control_frame <= LARGEST_FRAME_BYTES:
            yield "control_frame", self.control_frame, f"a size from 1 to {LARGEST_FRAME_BYTES} bytes"
        if not 1 <= self.smallest_frame <= LARGEST_FRAME_BYTES:
            yield "smallest_frame", self.smallest_frame, f"a size from 1 to {LARGEST_FRAME_BYTES} bytes"
        yield from outside("ack_every", self.ack_every, low=1, high=LARGEST_COUNT)
        yield from outside("queue_pairs", self.queue_pairs, low=1, high=MOST_QUEUE_PAIRS)
        if self.ack_delay == 0:
            yield "ack_delay", self.ack_delay, "a duration above 0, or no ack_delay"
        if isinstance(self.reliability, SelectiveRepeat) and isinstance(self.congestion, Hpcc | Timely):
            yield "reliability", "selective_repeat", "go_back_n: hpcc and timely need go-back-N"
        yield from self._window_problems()

    def _window_problems(self) -> Iterator[Problem]:
        """A window that is full before an ACK is due would never open."""
        window = self.window
        if window is None or self.payload == 0 or self.ack_delay:
            return
        frames = -(-window // self.payload)
        if frames < self.ack_every:
            yield "ack_every", self.ack_every, f"at most the frames of a window ({frames}), to open it again"

    @property
    def frame(self) -> Size:
        """The largest data frame, as buffers hold it."""
        return Size(self.payload + self.overhead)

    @property
    def overhead(self) -> Size:
        """What each data frame holds beside payload: the header, and what telemetry adds to it."""
        telemetry = self.congestion.telemetry_header if isinstance(self.congestion, Hpcc | Timely) else 0
        return Size(self.header + telemetry)

    @property
    def window(self) -> Size | None:
        """The bound on unacknowledged payload bytes, if there is one that holds at every line rate."""
        return None if isinstance(self.congestion, NoCongestionControl) else self.congestion.window
