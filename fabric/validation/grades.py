"""Three grades by which a repetition is compared with the peer's run.

* `exact`: the peer's order of events, or one that comes to the same in this run. Every line of its flows and
  PFC frames, and every total, is the same.
* `own order`: simultaneous events in another order. The mean and the largest completion time, the number
  of PAUSE frames, the fullest queue, makespan and victim are within what other fair orders differ by; never
  flow by flow.
* `stat`: marks are drawn. Over n seeds, `|mean - theirs| <= 3 sd sqrt(1/m + 1/n) + share * theirs`, with sd
  and mean over the m seeds of the peer, and a share of 1 % (5 % for PAUSE frames and queues). Where none
  of its m seeds has a PAUSE, the mean may be up to 3/m (why: `docs/validation.md`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from fabric.validation.folder import Case
from fabric.validation.peer_files import FlowLine, PeerRun, goodput_names
from fabric.validation.repeat import OurRun
from fabric.validation.tolerance import Tolerance

__all__ = ["Row", "beside", "exact_rows", "headline", "own_order_rows", "statistical_rows"]

GOODPUT_GBPS = {"timely": "3", "dctcp": "0.01", "dcqcn_vwin": "0.01"}
"""What goodput may differ by in another order: TIMELY's rates swing between 16 and 66 Gbit/s, where a window
holds flows it hardly moves. For others it is not known, and not graded."""

SHARE, COARSE_SHARE = 0.01, 0.05
COARSE = ("pauses", "queue")
SIGMAS = 3
RULE_OF_THREE = 3
"""Over the number of trials: what their mean is below, at 95 %, if a rare event has happened in none."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One comparison.

    Attributes
    ----------
    scenario, way, quantity : str
        What is compared; times are in ns, sizes in bytes, goodput in Gbit/s.
    ours, theirs : float
    tolerance : str
    grade : str
        "exact", "own order", "stat", or "-" for what is shown beside and not graded.
    is_met : bool
    """

    scenario: str
    way: str
    quantity: str
    ours: float
    theirs: float
    tolerance: str
    grade: str
    is_met: bool

    @property
    def difference(self) -> float:
        """Ours less theirs."""
        return self.ours - self.theirs


def headline(flows: Sequence[FlowLine]) -> dict[str, float]:
    """Return mean and largest completion time of flows that have ended, the makespan, and the last flow's.

    A victim is the last flow of a run that has one.
    """
    ended = [flow for flow in flows if flow.sender_ns >= 0]
    if not ended:
        return {}
    times = [flow.sender_ns for flow in ended]
    first = min(flow.start_ns for flow in ended)
    return {
        "mean": sum(times) / len(times),
        "max": max(times),
        "makespan": max(flow.start_ns + flow.sender_ns for flow in ended) - first,
        "victim": flows[-1].sender_ns,
    }


def exact_rows(case: Case, ours: OurRun, peer: PeerRun, *, way: str) -> Iterator[Row]:
    """Compare everything, in the peer's order of events."""

    def row(quantity: str, mine: float, their: float) -> Row:
        return _graded(case, way, quantity, (mine, their), tolerance=Tolerance(), grade="exact")

    pairs = list(zip(ours.flows, peer.flows, strict=True))
    yield row(
        "flows that are the same",
        sum(_same(one, two, not ours.has_drawn_marks) for one, two in pairs),
        len(pairs),
    )
    theirs = headline(peer.flows)
    for quantity, mine in headline(ours.flows).items():
        if quantity in ("mean", "max") and quantity in theirs:
            yield row(quantity, mine, theirs[quantity])
    if peer.pfc is not None:
        yield row("PFC frames that are the same", _common(ours.pfc, peer.pfc), len(peer.pfc))
        yield row("PFC frames", len(ours.pfc), len(peer.pfc))
    elif "pauses" in case.known:
        yield row("pauses", ours.pauses, case.known["pauses"])
    totals = {
        "link_transmissions": ("frames on links", ours.frames),
        "drops": ("drops", ours.drops),
        "max_queue_bytes": ("queue", ours.queue_bytes),
        "max_shared_bytes": ("largest use of a pool", ours.pool_bytes),
    }
    for name, (quantity, value) in totals.items():
        if name in case.known and value is not None:
            yield row(quantity, value, case.known[name])
    if peer.ports:
        same = sum(_same_peaks(ours, port, *peaks) for port, peaks in peer.ports.items())
        yield row("switch ports with the same peaks", same, len(peer.ports))
    yield from (row(name, round(mine, 3), their) for name, mine, their in _goodput_pairs(ours, peer))


def _pauses(case: Case, peer: PeerRun) -> int | None:
    """PAUSE frames of the peer, if that is known."""
    return case.known.get("pauses") if peer.pfc is None else sum(line[4] for line in peer.pfc)


def _same(one: FlowLine, two: FlowLine, with_marks: bool) -> bool:
    """Whether two flows agree in all that is known of the peer's."""
    fields = ("start_ns", "sender_ns", "receiver_ns", "packets", *(("marked",) if with_marks else ()))
    return all(getattr(two, field) in (None, getattr(one, field)) for field in fields)


def _same_peaks(ours: OurRun, port: tuple[int, int], queue_bytes: int, headroom_bytes: int) -> bool:
    """Whether a port has their peaks; a frame that passes an idle port is a queue there and none here."""
    queue, headroom = ours.ports.get(port, (0, 0))
    passed = queue == 0 and queue_bytes <= ours.frame_bytes
    return (queue == queue_bytes or passed) and headroom == headroom_bytes


def _common(one: Sequence[tuple[int, ...]], two: Sequence[tuple[int, ...]]) -> int:
    """Lines that two sorted lists share."""
    ours, count = list(one), 0
    at = 0
    for line in two:
        while at < len(ours) and ours[at] < line:
            at += 1
        if at < len(ours) and ours[at] == line:
            count += 1
            at += 1
    return count


def _goodput_pairs(ours: OurRun, peer: PeerRun) -> Iterator[tuple[str, float, float]]:
    for flow in range(len(peer.goodput[0].gbps) if peer.goodput else 0):
        names = goodput_names(peer.goodput, flow)
        for name, mine, their in zip(names, ours.goodput, peer.goodput, strict=True):
            yield name, mine.gbps[flow], their.gbps[flow]


def own_order_rows(case: Case, ours: OurRun, peer: PeerRun, *, way: str) -> Iterator[Row]:
    """Compare headline numbers, with simultaneous events in another order."""
    for quantity, pair in _headline_pairs(case, ours, peer).items():
        if quantity in case.tolerances:
            yield _graded(case, way, quantity, pair, tolerance=case.tolerances[quantity], grade="own order")
    if case.congestion in GOODPUT_GBPS:
        margin = Tolerance(amount=Fraction(GOODPUT_GBPS[case.congestion]))
        for name, mine, theirs in _goodput_pairs(ours, peer):
            pair = round(mine, 3), theirs
            yield _graded(case, way, name, pair, tolerance=margin, grade="own order")


def _headline_pairs(case: Case, ours: OurRun, peer: PeerRun) -> dict[str, tuple[float, float]]:
    """Headline numbers that both have, PAUSE frames and the fullest queue: ours and theirs."""
    mine, theirs = headline(ours.flows), headline(peer.flows)
    pairs: dict[str, tuple[float, float]] = {
        quantity: (mine[quantity], theirs[quantity]) for quantity in mine if quantity in theirs
    }
    if (pauses := _pauses(case, peer)) is not None:
        pairs["pauses"] = ours.pauses, pauses
    if "max_queue_bytes" in case.known:
        pairs["queue"] = ours.queue_bytes, case.known["max_queue_bytes"]
    return pairs


def _graded(
    case: Case, way: str, quantity: str, pair: tuple[float, float], *, tolerance: Tolerance | None, grade: str
) -> Row:
    """A row with ours and theirs; without a tolerance they are shown, and not graded."""
    return Row(
        scenario=case.name,
        way=way,
        quantity=quantity,
        ours=pair[0],
        theirs=pair[1],
        tolerance="" if tolerance is None else str(tolerance),
        grade=grade,
        is_met=tolerance is None or tolerance.is_met(*pair),
    )


def statistical_rows(
    case: Case, ours: Sequence[OurRun], peer: PeerRun, *, way: str, graded: bool = True
) -> Iterator[Row]:
    """Compare means over seeds; without a grade, only show them."""
    samples = _samples(ours, peer)
    for quantity, theirs in peer.seeds.items():
        mine = samples[quantity]
        share = COARSE_SHARE if quantity in COARSE else SHARE
        allowed = statistical_margin(mine, theirs, share=share)
        if quantity == "pauses" and not theirs.any():
            allowed = RULE_OF_THREE / len(theirs)
        yield Row(
            scenario=case.name,
            way=way,
            quantity=quantity,
            ours=float(mine.mean()),
            theirs=float(theirs.mean()),
            tolerance=f"±{allowed:.5g}" if graded else "",
            grade="stat" if graded else "-",
            is_met=not graded or abs(float(mine.mean()) - float(theirs.mean())) <= allowed,
        )


def statistical_margin(
    mine: npt.NDArray[np.float64], theirs: npt.NDArray[np.float64], *, share: float
) -> float:
    """Return what the means over two sets of seeds may differ by.

    Examples
    --------
    >>> round(statistical_margin(np.zeros(20), np.array([9.0, 10.0, 11.0]), share=0.01), 3)
    1.957
    """
    spread = float(theirs.std(ddof=1)) if len(theirs) > 1 else 0.0
    return SIGMAS * spread * math.sqrt(1 / len(theirs) + 1 / len(mine)) + share * abs(float(theirs.mean()))


def _samples(ours: Sequence[OurRun], peer: PeerRun) -> Mapping[str, npt.NDArray[np.float64]]:
    table: dict[str, list[float]] = {}
    for one in ours:
        values = {**headline(one.flows), "pauses": one.pauses, "queue": one.queue_bytes}
        values |= {name: mine for name, mine, _ in _goodput_pairs(one, peer)}
        for name, value in values.items():
            table.setdefault(name, []).append(value)
    return {name: np.array(values) for name, values in table.items()}


def beside(case: Case, ours: OurRun, peer: PeerRun, *, way: str) -> Iterator[Row]:
    """Show headline numbers that are not graded."""
    pairs = _headline_pairs(case, ours, peer)
    pairs |= {name: (round(mine, 3), theirs) for name, mine, theirs in _goodput_pairs(ours, peer)}
    for quantity, pair in pairs.items():
        if quantity not in ("makespan", "victim") or quantity in case.tolerances:
            yield _graded(case, way, quantity, pair, tolerance=None, grade="-")
