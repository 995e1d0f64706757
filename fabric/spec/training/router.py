"""`Router`: where the tokens of a training job go, and in which form.

What each kind means is in `fabric.training.router`, `dispatch` and `replication`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from fabric.spec.base import Problem, Spec

__all__ = ["Router"]

LARGEST_EXPONENT = 8.0
MOST_CHUNKS = 4096


class Router(Spec, frozen=True, kw_only=True):
    """Which experts tokens choose, and how their copies travel.

    Parameters
    ----------
    choice : {"balanced", "uniform", "zipf", "hot", "loads", "trace"}
        "balanced" (default): every expert as often as every other, no draw. "uniform", "zipf", "hot": drawn
        with these popularities. "loads": drawn in proportion to measured loads, "trace": the measured choice
        itself, both from `file`.
    exponent : float
        Of Zipf's law. Default 1.
    hot : int
        The hot expert. Default 0.
    hot_share : float
        Share of the draws that go to it, above 0, at most 1. Default 0.5.
    file : str, optional
        CSV without header, in a scenario file relative to that file. Loads: one row, a number an expert.
        Trace: a row a token, its experts; ranks take the rows in turn, a rank's tokens one after the other.
    node_limited : bool
        Whether a token's experts come from the model's `groups_per_token` best groups of its `groups`
        (DeepSeek-V3), for draws. Default False: from all.
    copies : {"expert", "rank", "server"}
        What a token has a copy for. "server": one to each server that has a rank with one of its experts,
        passed on inside over the server's own network. Default "expert".
    capacity_factor : float, optional
        An expert takes at most so many times its even share of a rank's tokens. None (default): all that
        come.
    overflow : {"drop", "pad"}
        Beyond the capacity: tokens are dropped (default), or, besides, every message is padded to it.
    replicas : int
        Experts in addition, as replicas of busy ones, placed by load as EPLB does: so many that experts and
        replicas are a multiple of the expert ranks. Default 0.
    regroup : bool
        Whether the ranks of a server first put their tokens for one rank of another server together, on the
        rank that shares its rail, which sends them as one message (NCCL's PXN does that): fewer senders to a
        busy expert, and no way from rail to rail. Default False.
    chunks : int, optional
        Where copies go in two legs (to servers, or regrouped), both go on at once: every message is cut into
        so many chunks, each passed on when it has come, as DeepEP's normal kernels do. None (default): the
        second leg begins, rank by rank, when the first is over.
    header_bytes : int
        What a copy carries to its expert beside the token and its scales. Default 0; 16 in DeepEP's kernels
        for low latency.
    redraw : {"always", "never"}
        Whether each layer and micro-batch draws anew (default), or all take the first draw.
    """

    FILES: ClassVar[tuple[str, ...]] = ("file",)

    choice: Literal["balanced", "uniform", "zipf", "hot", "loads", "trace"] = "balanced"
    exponent: float = 1.0
    hot: int = 0
    hot_share: float = 0.5
    file: str | None = None
    node_limited: bool = False
    copies: Literal["expert", "rank", "server"] = "expert"
    capacity_factor: float | None = None
    overflow: Literal["drop", "pad"] = "drop"
    replicas: int = 0
    regroup: bool = False
    chunks: int | None = None
    header_bytes: int = 0
    redraw: Literal["always", "never"] = "always"

    def problems(self) -> Iterator[Problem]:
        if not 0 <= self.exponent <= LARGEST_EXPONENT:
            yield "exponent", self.exponent, f"from 0 to {LARGEST_EXPONENT:g}"
        if self.hot < 0:
            yield "hot", self.hot, "at least 0"
        if not 0 < self.hot_share <= 1:
            yield "hot_share", self.hot_share, "above 0, at most 1"
        if (self.choice in ("loads", "trace")) != bool(self.file):
            allowed = "the name of a CSV file" if not self.file else 'none, except for "loads" and "trace"'
            yield "file", self.file, allowed
        if self.capacity_factor is not None and not 0 < self.capacity_factor <= 1e6:
            yield "capacity_factor", self.capacity_factor, "above 0"
        if self.overflow == "pad" and self.capacity_factor is None:
            yield "overflow", self.overflow, '"drop" without a capacity_factor'
        if self.overflow == "pad" and self.copies != "expert":
            yield "copies", self.copies, '"expert" where messages are padded to an expert\'s capacity'
        for name in ("replicas", "header_bytes"):
            if getattr(self, name) < 0:
                yield name, getattr(self, name), "at least 0"
        if self.node_limited and self.choice in ("balanced", "trace"):
            yield "node_limited", self.node_limited, "false where nothing is drawn"
        if self.chunks is not None:
            if not 1 <= self.chunks <= MOST_CHUNKS:
                yield "chunks", self.chunks, f"from 1 to {MOST_CHUNKS}, or none"
            if self.copies != "server" and not self.regroup:
                yield (
                    "chunks",
                    self.chunks,
                    'none where copies go in one leg: needs copies = "server" or regroup',
                )
        if self.regroup and self.copies == "server":
            yield "regroup", self.regroup, 'false where copies are for "server", which share a rail anyway'
