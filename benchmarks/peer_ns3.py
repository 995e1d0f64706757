"""ns-3 (PyPI `ns3`) on a given work, run by an interpreter that has it; prints JSON.

ns-3 is a discrete-event simulator in C++; the package binds it to Python with cppyy, which only sets the
run up here: while time runs no Python is called. Each link of the work is a point-to-point channel with an
unbounded device queue; hosts and switches are IP nodes with static routes along the paths of the work; each
flow is a `UdpClient` at line rate and a `UdpServer`. So there are no ACKs, no PFC, no ECN and no congestion
control in this run (the mainline ns-3 has no PFC and no RoCE transport), but headers are built and parsed,
and every node runs an IP stack, which fabric does not have.

Reads the work (`benchmarks.peer_work`) from standard input. Imports nothing of fabric, so that ns-3 may
live in an environment of its own. Ends with status 3 if ns-3 is not there.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from typing import Any

NOT_INSTALLED = 3
UDP_PORT = 4791
UNBOUNDED = "4000000000B"
HEADERS_BYTES = 8 + 20 + 2
"""UDP, IPv4 and PPP, which ns-3 adds to what a client sends."""


def main() -> None:
    """Run the work on standard input."""
    work = json.load(sys.stdin)
    try:
        ns: Any = importlib.import_module("ns3.ns").ns
    except ImportError:
        sys.exit(NOT_INSTALLED)
    nodes = ns.NodeContainer()
    nodes.Create(work["nodes"])
    ns.InternetStackHelper().Install(nodes)
    interfaces = _cables(ns, work, nodes)
    servers = _flows(ns, work, nodes, interfaces)
    began_s = time.process_time()
    ns.Simulator.Run()
    run_s = time.process_time() - began_s
    delivered = [server.Get(0).GetReceived() for server in servers]
    hops = sum(count * len(row["ports"]) for count, row in zip(delivered, work["flows"], strict=True))
    print(json.dumps({"run_s": run_s, "hops": hops, "delivered": sum(delivered)}), flush=True)
    os._exit(0)


def _cables(ns: Any, work: Any, nodes: Any) -> dict[int, tuple[Any, int]]:
    """Lay every cable; for each port its address and the number of its interface."""
    helper = ns.PointToPointHelper()
    helper.SetDeviceAttribute("DataRate", ns.StringValue(f"{work['rate_bps']}bps"))
    helper.SetDeviceAttribute("Mtu", ns.UintegerValue(65_000))
    helper.SetChannelAttribute("Delay", ns.StringValue(f"{work['delay_ps']}ps"))
    helper.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", ns.StringValue(UNBOUNDED))
    addresses = ns.Ipv4AddressHelper(ns.Ipv4Address("10.0.0.0"), ns.Ipv4Mask("255.255.255.252"))
    found: dict[int, tuple[Any, int]] = {}
    for port, peer in enumerate(work["port_peer"]):
        if port > peer:
            continue
        ends = (nodes.Get(work["port_node"][port]), nodes.Get(work["port_node"][peer]))
        devices = helper.Install(*ends)
        pair = addresses.Assign(devices)
        ns.TrafficControlHelper().Uninstall(devices)
        addresses.NewNetwork()
        for side, number in enumerate((port, peer)):
            found[number] = (pair.GetAddress(side), pair.Get(side).second)
    return found


def _flows(ns: Any, work: Any, nodes: Any, interfaces: dict[int, tuple[Any, int]]) -> list[Any]:
    """Set routes and applications up; returns the servers."""
    routing = ns.Ipv4StaticRoutingHelper()
    gap_ps = work["wire_bytes"] * 8 * 10**12 // work["rate_bps"]
    servers = []
    for row in work["flows"]:
        address = interfaces[work["port_peer"][row["ports"][-1]]][0]
        for port in row["ports"]:
            ip = nodes.Get(work["port_node"][port]).GetObject[ns.Ipv4]()
            gateway = interfaces[work["port_peer"][port]][0]
            routing.GetStaticRouting(ip).AddHostRouteTo(address, gateway, interfaces[port][1])
        server = ns.UdpServerHelper(UDP_PORT).Install(nodes.Get(row["destination"]))
        client = ns.UdpClientHelper(ns.InetSocketAddress(address, UDP_PORT).ConvertTo())
        client.SetAttribute("MaxPackets", ns.UintegerValue(row["packets"]))
        client.SetAttribute("Interval", ns.TimeValue(ns.PicoSeconds(gap_ps)))
        client.SetAttribute("PacketSize", ns.UintegerValue(work["wire_bytes"] - HEADERS_BYTES))
        client.Install(nodes.Get(row["source"]))
        servers.append(server)
    return servers


if __name__ == "__main__":
    main()
