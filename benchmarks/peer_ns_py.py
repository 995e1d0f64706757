"""ns.py (PyPI `ns.py`) on a given work, run by an interpreter that has it; prints JSON.

ns.py is a discrete-event simulator in plain Python on simpy. Each link of the work is a `Port`
(serialisation, unbounded queue) and a `Wire` (propagation); each switch is a `FIBDemux` with the paths of
the work; each flow is a generator at line rate and a sink that records nothing. So there are no ACKs, no
PFC, no ECN and no congestion control in this run: it does less for each packet than fabric does.

Reads the work (`benchmarks.peer_work`) from standard input. Imports nothing of fabric, so that ns.py may
live in an environment of its own. Ends with status 3 if ns.py is not there.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from typing import Any

NOT_INSTALLED = 3


def main() -> None:
    """Run the work on standard input."""
    work = json.load(sys.stdin)
    try:
        simpy = importlib.import_module("simpy")
        wire = importlib.import_module("ns.port.wire").Wire
        port = importlib.import_module("ns.port.port").Port
        demux = importlib.import_module("ns.demux.fib_demux").FIBDemux
        generator = importlib.import_module("ns.packet.dist_generator").DistPacketGenerator
        sink = importlib.import_module("ns.packet.sink").PacketSink
    except ImportError:
        sys.exit(NOT_INSTALLED)
    env = simpy.Environment()
    links = _links(env, work, port, wire)
    sinks = _connect(env, work, links, demux, sink)
    for flow, row in enumerate(work["flows"]):
        _start(env, work, flow, row, generator).out = links[row["ports"][0]][0]
    began_s = time.process_time()
    env.run()
    run_s = time.process_time() - began_s
    json.dump(
        {
            "run_s": run_s,
            "hops": sum(link.packets_rec for _, link in links.values()),
            "delivered": sum(sum(each.packets_received.values()) for each in sinks),
        },
        sys.stdout,
    )


def _links(env: Any, work: Any, port: Any, wire: Any) -> dict[int, tuple[Any, Any]]:
    """A transmitter and a cable for each link that some path uses."""
    delay_s = work["delay_ps"] / 1e12
    links = {}
    for number in {number for row in work["flows"] for number in row["ports"]}:
        transmitter = port(env, rate=work["rate_bps"])
        cable = wire(env, delay_dist=lambda: delay_s)
        transmitter.out = cable
        links[number] = (transmitter, cable)
    return links


def _connect(env: Any, work: Any, links: dict[int, tuple[Any, Any]], demux: Any, sink: Any) -> list[Any]:
    """Join the links of every path, by a demultiplexer at each switch and a sink at each end."""
    receivers: dict[int, Any] = {}
    sinks = []
    for flow, row in enumerate(work["flows"]):
        for number, following in zip(row["ports"], row["ports"][1:], strict=False):
            node = work["port_end"][number]
            if node not in receivers:
                receivers[node] = demux(fib={}, outs=[])
            table = receivers[node]
            if links[following][0] not in table.outs:
                table.outs.append(links[following][0])
            table.fib[flow] = table.outs.index(links[following][0])
            links[number][1].out = table
        end = sink(env, rec_arrivals=False, rec_waits=False)
        sinks.append(end)
        links[row["ports"][-1]][1].out = end
    return sinks


def _start(env: Any, work: Any, flow: int, row: Any, generator: Any) -> Any:
    gap_s = work["wire_bytes"] * 8 / work["rate_bps"]
    return generator(
        env,
        element_id=f"host{row['source']}",
        arrival_dist=lambda: gap_s,
        size_dist=lambda: work["wire_bytes"],
        size=row["packets"] * work["wire_bytes"],
        flow_id=flow,
    )


if __name__ == "__main__":
    main()
