"""Which algorithm NCCL would take: its published tuning model.

The time of an algorithm and protocol is `latency + bytes / (1000 bandwidth)`, in us and GB/s of algorithm
bandwidth; the smallest wins. A model with fitted constants: "what would NCCL pick", not how long it takes
here. Modelled are ring and tree for all-reduce, and the ring for reduce-scatter and all-gather, each with
protocols LL, LL128 and Simple; other collectives have one algorithm there. Not modelled: CollNet, NVLS and
PAT, which need switches or settings of their own.

Source: NCCL 5067397c (2026-06), `src/graph/tuning.cc`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from fabric.errors import SpecError
from fabric.workload.collectives.kinds import kind_of

__all__ = ["PROTOCOLS", "Choice", "NcclMachine", "choose", "nccl_parts"]

PROTOCOLS = ("LL", "LL128", "Simple")

BASE_US = {"tree": (6.8, 14.0, 8.4), "ring": (6.6, 14.0, 8.4)}
INTRA_US = {
    ("tree", "nvlink"): (0.6, 1.25, 4.0),
    ("ring", "nvlink"): (0.6, 1.9, 3.4),
    ("tree", "pcie"): (1.0, 1.9, 4.0),
    ("ring", "pcie"): (1.0, 2.5, 5.7),
}
NET_US = {"tree": (5.0, 8.5, 14.0), "ring": (2.7, 4.0, 14.0)}

TREE_CORRECTION = {
    "LL": (
        *(1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5),
        *(0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.0, 1.0, 1.0),
    ),
    "LL128": (
        *(1.0, 1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6),
        *(0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1.0, 1.0),
    ),
    "Simple": (
        *(0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5),
        *(0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9),
    ),
}
CORRECTED_BELOW = 2**28
SMALLEST_CORRECTED = 64

GENERATIONS = ("volta", "ampere", "hopper", "blackwell")
LL_ONE_NODE = dict(zip(GENERATIONS, (39.0, 87.7, 141.0, 282.0), strict=True))
LL_MORE_NODES = {"intel": (39.0, 20.4), "amd": (22.5, 19.0)}
RING_LL128 = dict(zip(GENERATIONS, (20.0, 20.0, 36.7, 40.0), strict=True))
TREE_LL128 = {
    "volta": (20.0, 20.0, 20.0),
    "ampere": (20.0, 20.0, 20.0),
    "hopper": (36.7, 36.7, 29.0),
    "blackwell": (55.6, 31.67, 20.0),
}
TREE_MAX = {
    "volta": (26.5, 18.5, 10.0),
    "ampere": (24.0, 23.6, 17.8),
    "hopper": (38.7, 41.4, 36.0),
    "blackwell": (70.0, 42.8, 24.0),
}
"""GB/s a channel, for one, two and more nodes."""

USABLE = 0.92
TREE_LL_SHARE = 3.8
LL128_DATA = 120 / 128
LL128_DATA_ONE_NODE = 7 / 9
PLATEAU = {"volta": 1.9}
PLATEAU_SINCE_AMPERE = 1.4
PLATEAU_FROM_BYTES = 64
SIMPLE_OVERHEAD = 3

STEP_BYTES = 512 * 1024
CHUNK_STEPS = 4
CHUNK_SLICES = 2

NAMES = {"ring": "ring", "tree": "double_binary_tree"}
ONLY = {
    "all_to_all": "direct",
    "all_to_all_v": "direct",
    "broadcast": "chain",
    "reduce": "chain",
    "gather": "direct",
    "scatter": "direct",
    "barrier": "dissemination",
    "send_recv": "shift",
}
"""What NCCL does for the others, with the Simple protocol."""


@dataclass(frozen=True, kw_only=True)
class NcclMachine:
    """What NCCL's model wants to know of a system.

    Attributes
    ----------
    nodes, ranks : int
        Equally many ranks on each node.
    generation : str
        "volta", "ampere", "hopper" or "blackwell".
    channels : int
        At most 64.
    intra_gbytes_per_s, inter_gbytes_per_s : float
        Of a channel, inside a node and between nodes.
    nvlink : bool
        Inside a node; otherwise PCIe.
    cpu : str
        "intel" or "amd".
    network_overhead_us : float
        Of posting to the network (2 on AMD x86).
    nic_latency_us : float
    """

    nodes: int
    ranks: int
    generation: str = "hopper"
    channels: int = 16
    intra_gbytes_per_s: float = 20.0
    inter_gbytes_per_s: float = 20.0
    nvlink: bool = True
    cpu: str = "intel"
    network_overhead_us: float = 1.0
    nic_latency_us: float = 0.0

    def __post_init__(self) -> None:
        if self.nodes < 1 or self.ranks < 1 or self.ranks % self.nodes:
            raise SpecError("machine.nodes", self.nodes, f"a divisor of the number of ranks ({self.ranks})")
        if self.generation not in GENERATIONS:
            raise SpecError("machine.generation", self.generation, f"one of {', '.join(GENERATIONS)}")
        if self.cpu not in LL_MORE_NODES:
            raise SpecError("machine.cpu", self.cpu, f"one of {', '.join(LL_MORE_NODES)}")
        if not 1 <= self.channels <= 64:
            raise SpecError("machine.channels", self.channels, "1 to 64")


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What NCCL would take.

    Attributes
    ----------
    algorithm : str
        As the algorithms here are called.
    protocol : str
    time_us : float
        By the model; NaN where there is nothing to choose from.
    times_us : mapping of (str, str) to float
        Of every algorithm and protocol.
    """

    algorithm: str
    protocol: str
    time_us: float
    times_us: Mapping[tuple[str, str], float]


def choose(collective: str, *, size_bytes: int, machine: NcclMachine) -> Choice:
    """Return what NCCL would take.

    Parameters
    ----------
    collective : str
    size_bytes : int
        Of the full logical vector.
    machine : NcclMachine

    Returns
    -------
    Choice

    Examples
    --------
    >>> machine = NcclMachine(nodes=1, ranks=8, generation="hopper", channels=16)
    >>> small, large = (choose("all_reduce", size_bytes=size, machine=machine) for size in (2**16, 2**30))
    >>> (small.algorithm, small.protocol, round(small.time_us, 3)), large.protocol
    (('ring', 'LL', 15.813), 'Simple')
    """
    kind_of(collective)
    if collective in ONLY:
        return Choice(algorithm=ONLY[collective], protocol="Simple", time_us=math.nan, times_us={})
    shapes = ("ring", "tree") if collective == "all_reduce" else ("ring",)
    times = {
        (NAMES[shape], protocol): predicted_us(
            collective, shape, protocol, size_bytes=size_bytes, machine=machine
        )
        for shape in shapes
        for protocol in PROTOCOLS
    }
    algorithm, protocol = min(times, key=lambda each: times[each])
    return Choice(algorithm=algorithm, protocol=protocol, time_us=times[algorithm, protocol], times_us=times)


def predicted_us(
    collective: str, shape: str, protocol: str, *, size_bytes: int, machine: NcclMachine
) -> float:
    """Return the time of a "ring" or "tree" with a protocol."""
    if machine.ranks == 1:
        return 0.0
    latency = latency_us(collective, shape, protocol, machine=machine)
    bandwidth = algorithm_bandwidth(collective, shape, protocol, machine=machine)
    if shape == "tree" and size_bytes < CORRECTED_BELOW:
        table = TREE_CORRECTION[protocol]
        index = (size_bytes // SMALLEST_CORRECTED).bit_length() - 1
        bandwidth *= table[min(max(index, 0), len(table) - 1)]
    plateau = shape == "ring" and protocol == "Simple" and machine.nodes > 1 and collective == "all_reduce"
    if plateau and size_bytes / (machine.channels * machine.ranks) >= PLATEAU_FROM_BYTES:
        latency *= PLATEAU.get(machine.generation, PLATEAU_SINCE_AMPERE)
    return latency + size_bytes / (1000 * bandwidth)


def latency_us(collective: str, shape: str, protocol: str, *, machine: NcclMachine) -> float:
    """Return the model's latency, before the plateau factor.

    Examples
    --------
    >>> latency_us("all_reduce", "tree", "LL128", machine=NcclMachine(nodes=2, ranks=16))
    48.5
    """
    index = PROTOCOLS.index(protocol)
    simple = protocol == "Simple"
    intra = INTRA_US[shape, "nvlink" if machine.nvlink else "pcie"][index]
    alone = machine.nodes == machine.ranks
    net = NET_US["tree" if alone else shape][index] + machine.nic_latency_us * (2 if simple else 1)
    if shape == "tree":
        inside = machine.ranks // machine.nodes - 1
        return BASE_US[shape][index] + 2 * (inside * intra + (machine.nodes.bit_length() - 1) * net)
    rounds = 2 if collective == "all_reduce" else 1
    inter = rounds * (machine.nodes - 1)
    if machine.nodes > 1:
        intra = max(intra, machine.network_overhead_us * (SIMPLE_OVERHEAD if simple else 1))
    return BASE_US[shape][index] + (rounds * (machine.ranks - 1) - inter) * intra + inter * net


def algorithm_bandwidth(collective: str, shape: str, protocol: str, *, machine: NcclMachine) -> float:
    """Return the model's algorithm bandwidth in GB/s, before the tree's correction."""
    size = min(machine.nodes, 3) - 1
    channels, generation = machine.channels, machine.generation
    bus = channels * (machine.intra_gbytes_per_s if machine.nodes <= 2 else machine.inter_gbytes_per_s)
    most_ll = LL_ONE_NODE[generation] if size == 0 else LL_MORE_NODES[machine.cpu][size - 1]
    if shape == "ring":
        rounds = 2 if collective == "all_reduce" else 1
        limits = {
            "LL": min(most_ll, bus / 2),
            "LL128": min(USABLE * bus, channels * RING_LL128[generation]),
            "Simple": bus,
        }
        return limits[protocol] * machine.ranks / (rounds * (machine.ranks - 1))
    tree = min(USABLE * bus, channels * TREE_MAX[generation][size])
    data = LL128_DATA_ONE_NODE if size == 0 else LL128_DATA
    limits = {
        "LL": min(tree / TREE_LL_SHARE, most_ll),
        "LL128": min(tree * data, channels * TREE_LL128[generation][size]),
        "Simple": tree,
    }
    return limits[protocol] / 2


def nccl_parts(collective: str, *, size_bytes: int, n_ranks: int, channels: int = 1) -> dict[str, int]:
    """Return options that cut a collective as NCCL's Simple protocol does.

    A channel's buffer of 4 MiB has 8 steps. All-reduce, all-gather and reduce-scatter move chunks of 4
    steps in 2 slices, of every rank's block; the others one step at a time.

    Examples
    --------
    >>> nccl_parts("all_reduce", size_bytes=2**30, n_ranks=8, channels=16)
    {'channels': 16, 'chunks': 4, 'slices': 2}
    """
    kind = kind_of(collective)
    sliced = collective in ("all_reduce", "all_gather", "reduce_scatter")
    blocks = 1 if kind.factor == "one" else n_ranks
    chunk = STEP_BYTES * (CHUNK_STEPS if sliced else 1)
    chunks = max(-(-size_bytes // (blocks * channels * chunk)), 1)
    return {"channels": channels, "chunks": chunks, "slices": CHUNK_SLICES if sliced else 1}
