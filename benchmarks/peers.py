"""Other packet simulators that install as packages, on the same work as fabric.

Prints, for each work and simulator, the packet-hops that it simulated (packets that arrived at the end of
a link; for fabric, control frames are counted apart), its process seconds (best of the repetitions, setting
up not counted), hops per second, data packets delivered per second, and how much longer it takes for a
delivered packet than fabric does. That ratio is the fair figure: the work is to deliver these packets over
these links. It still is not the same model. fabric acknowledges every packet, keeps switch buffers, marks,
pauses and paces each flow by DCQCN; the peers, as set up here, send at line rate into unbounded queues and
hear nothing back: `benchmarks.peer_ns_py`, `benchmarks.peer_ns3`.

A peer that its interpreter cannot import is left out with a line that says so. ns.py and ns-3 both install
a module called `ns`, so each needs an environment of its own: name their interpreters on the command line.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.machine import machine_line
from benchmarks.measure import measure_speed
from benchmarks.peer_work import WORKS, Work, as_data
from benchmarks.tables import table_text

__all__ = ["PEERS", "Peer", "Sample", "main", "peers_table", "run_fabric", "run_peer"]

REPEAT = 3
FABRIC_REPEAT = 15
"""fabric's runs are milliseconds long."""
HERE = Path(__file__).resolve().parent
NOT_INSTALLED = 3
"""With this status a peer's script ends when it cannot import its simulator."""

HEADER = (
    "simulator", "packet-hops", "control hops", "best s",
    "Mhops/s", "packets/s", "time per packet, fabric = 1",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Peer:
    """Another simulator: its name, its distribution on PyPI, the script that runs it."""

    name: str
    package: str
    script: Path
    option: str


PEERS = (
    Peer(name="ns.py", package="ns.py", script=HERE / "peer_ns_py.py", option="--ns-py-python"),
    Peer(name="ns-3", package="ns3", script=HERE / "peer_ns3.py", option="--ns3-python"),
)


@dataclass(frozen=True, kw_only=True)
class Sample:
    """What a simulator did with a work.

    Attributes
    ----------
    name : str
    hops, control_hops : int
        Links that data packets and control frames have crossed.
    delivered : int
        Data packets that reached their destination.
    run_s : float
        Process time.
    """

    name: str
    hops: int
    control_hops: int
    delivered: int
    run_s: float


class PeerMissing(Exception):
    """A peer is not installed for its interpreter."""


def run_fabric(work: Work, *, repeat: int = FABRIC_REPEAT) -> Sample:
    """Time fabric's native engine."""
    flows = as_data(work.lowered())["flows"]
    speed = measure_speed(work.scenario, repeat=repeat)
    hops = sum(flow["packets"] * len(flow["ports"]) for flow in flows)
    return Sample(
        name="fabric",
        hops=hops,
        control_hops=speed.hops - hops,
        delivered=sum(flow["packets"] for flow in flows),
        run_s=min(speed.run_s),
    )


def run_peer(peer: Peer, work: Work, *, python: str, repeat: int = REPEAT) -> Sample:
    """Time a peer with the interpreter that has it.

    Raises
    ------
    PeerMissing
        If that interpreter cannot import it.
    RuntimeError
        If it fails, or does not deliver every packet.
    """
    data = as_data(work.lowered())
    samples = [_run_once(peer, data, python=python) for _ in range(repeat)]
    best = min(samples, key=lambda seen: float(seen["run_s"]))
    packets = sum(flow["packets"] for flow in data["flows"])
    if best["delivered"] != packets:
        raise RuntimeError(f"{peer.name} delivered {best['delivered']} of {packets} packets")
    return Sample(name=peer.name, control_hops=0, **best)


def _run_once(peer: Peer, data: dict[str, Any], *, python: str) -> dict[str, Any]:
    try:
        done = subprocess.run(
            [python, str(peer.script)], input=json.dumps(data), capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise PeerMissing(f"{peer.name}: cannot start {python} ({error.strerror}), left out") from None
    if done.returncode == NOT_INSTALLED:
        raise PeerMissing(
            f"{peer.name}: not installed for {python}, left out "
            f"(pip install {peer.package} in an environment of its own, then {peer.option})"
        )
    if done.returncode != 0:
        complaint = done.stderr.strip().splitlines() or ["no message"]
        raise RuntimeError(f"{peer.name} ended with {done.returncode}: {complaint[-1]}")
    seen: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return seen


def peers_table(samples: Sequence[Sample], *, markdown: bool = False) -> str:
    """Return the table of one work; the first sample is fabric's."""
    base_s = samples[0].run_s / samples[0].delivered
    rows = [
        [
            each.name,
            f"{each.hops:,}",
            f"{each.control_hops:,}",
            f"{each.run_s:.4f}",
            f"{(each.hops + each.control_hops) / each.run_s / 1e6:.3f}",
            f"{each.delivered / each.run_s:,.0f}",
            f"{each.run_s / each.delivered / base_s:,.0f}",
        ]
        for each in samples
    ]
    return table_text(HEADER, rows, markdown=markdown)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    for peer in PEERS:
        parser.add_argument(
            peer.option, dest=peer.name, default=sys.executable, metavar="PYTHON",
            help=f"the interpreter that has {peer.name} (default: this one)",
        )  # fmt: skip
    parser.add_argument("--repeat", type=int, default=REPEAT, help=f"repetitions (default {REPEAT})")
    parser.add_argument("--markdown", action="store_true", help="print Markdown tables")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None, *, write: Callable[[str], object] = print) -> None:
    """Time fabric and every peer that is there, on every work."""
    chosen = _arguments(argv)
    present = dict.fromkeys(PEERS)
    write(machine_line())
    for work in WORKS:
        samples = [run_fabric(work)]
        for peer in list(present):
            try:
                samples.append(run_peer(peer, work, python=vars(chosen)[peer.name], repeat=chosen.repeat))
            except PeerMissing as missing:
                write(str(missing))
                del present[peer]
        write(f"\n{work.name}\n\n{peers_table(samples, markdown=chosen.markdown)}")


if __name__ == "__main__":
    main()
