"""A result in the columns of the HPCC simulator: `fct.txt` and `pfc.txt`.

`fct.txt` has a line for each flow whose last ACK has reached the sender, in order of that instant:
`source_ip destination_ip source_port destination_port bytes start_ns fct_ns standalone_ns`. Addresses
follow from the number of the host, source ports count the flows of a pair from 10000, and `standalone`
is their estimate for an idle network, which is larger than the time that it takes. `pfc.txt` has a line
`time_ns node type port kind` for each PAUSE (1) and RESUME (0), where and when it takes effect; ports
count from 1, type 0 is a host. Times are rounded down to nanoseconds. Source:
github.com/alibaba-edu/High-Precision-Congestion-Control, `simulation/scratch/third.cc`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fabric.convert.path_times import PathTimes
from fabric.errors import FabricError
from fabric.formats.hpcc_topology import node_ids
from fabric.result import Result
from fabric.scenario import load_scenario
from fabric.spec import GraphFile
from fabric.topology import Network, build_network
from fabric.topology.networkx_io import graph_json

__all__ = ["fct_text", "host_address", "pfc_text"]

BASE_ADDRESS = 0x0B000001
FIRST_SOURCE_PORT = 10000
DESTINATION_PORT = 100
NS_PER_S = 10**9
PS_PER_NS = 1000
BITS_PER_BYTE = 8
NOT_YET = -1
PAUSE, RESUME = 1, 0
LARGEST_ID = 65_535

Int64Array = npt.NDArray[np.int64]


def host_address(number: int) -> int:
    """Return the IPv4 address of a host.

    Examples
    --------
    >>> f"{host_address(1):08x}", f"{host_address(256):08x}"
    ('0b000101', '0b010001')
    """
    return BASE_ADDRESS + (number // 256 << 16) + (number % 256 << 8)


def fct_text(
    result: Result, *, network: Network | None = None, destination_port: int = DESTINATION_PORT
) -> str:
    """Return completion times as `fct.txt`.

    Parameters
    ----------
    result : Result
    network : Network, optional
        That it ran on; otherwise built again from the scenario that the result holds.
    destination_port : int
        Of every flow; results do not have any.

    Returns
    -------
    str

    Raises
    ------
    FabricError
        If a host's number has no address there, or the network's files are gone.

    Examples
    --------
    >>> import fabric
    >>> result = fabric.run(
    ...     fabric.Scenario(
    ...         topology=fabric.SingleSwitch(hosts=2),
    ...         traffic=[fabric.Flows(flows=[fabric.Flow(source=0, destination=1, size="1KB")])],
    ...     )
    ... )
    >>> fct_text(result).split()[:5]
    ['0b000001', '0b000101', '10000', '100', '1000']
    """
    scenario = load_scenario(result.provenance.scenario)
    if network is None:
        network = _network_of(result)
    ids = _checked_ids(network)
    flows = result.flows
    source = _numbers(network, flows["source"])
    destination = _numbers(network, flows["destination"])
    paths = PathTimes(network, payload_bytes=int(scenario.transport.payload))
    port = FIRST_SOURCE_PORT + _occurrence(source * network.n_nodes + destination)
    completed = np.asarray(flows["completed_ps"], dtype=np.int64)
    start = np.asarray(flows["start_ps"], dtype=np.int64)
    size = np.asarray(flows["size_bytes"], dtype=np.int64)
    fct_ns = (completed - start) // PS_PER_NS
    done = np.flatnonzero(completed != NOT_YET)
    lines = []
    for flow in done[np.argsort(completed[done], kind="stable")].tolist():
        one, other, payload_bytes = int(source[flow]), int(destination[flow]), int(size[flow])
        way = paths.from_host(one)
        packets = -(-payload_bytes // int(scenario.transport.payload))
        bits = (payload_bytes + packets * int(scenario.transport.header)) * BITS_PER_BYTE
        standalone = int(way.round_trip_ns[other]) + bits * NS_PER_S // int(way.slowest_bps[other])
        lines.append(
            f"{host_address(ids[one]):08x} {host_address(ids[other]):08x} {port[flow]} {destination_port} "
            f"{payload_bytes} {start[flow] // PS_PER_NS} {fct_ns[flow]} {standalone}"
        )
    return "".join(f"{line}\n" for line in lines)


def pfc_text(result: Result, *, network: Network | None = None) -> str:
    """Return pauses as `pfc.txt`.

    Parameters
    ----------
    result : Result
        Of a scenario with `record.pauses`.
    network : Network, optional
        As for `fct_text`.

    Returns
    -------
    str
        Empty if nothing was paused.

    Raises
    ------
    FabricError
        If pauses were not recorded.
    """
    if "pauses" not in result.recorded:
        raise FabricError("pauses were not recorded: set record.pauses = true in the scenario")
    if network is None:
        network = _network_of(result)
    ids = _checked_ids(network)
    port_of = {network.port_arrow(port): port for port in range(network.n_ports)}
    rows = []
    columns = (result.pauses[name].tolist() for name in ("begin_ps", "end_ps", "link"))
    for begin, end, link in zip(*columns, strict=True):
        port = port_of[link]
        node = int(network.port_node[port])
        local = port - int(network.node_port_base[node]) + 1
        rows.append((begin // PS_PER_NS, ids[node], int(node >= network.n_hosts), local, PAUSE))
        if end != NOT_YET:
            rows.append((end // PS_PER_NS, ids[node], int(node >= network.n_hosts), local, RESUME))
    rows.sort()
    return "".join(" ".join(map(str, row)) + "\n" for row in rows)


def _network_of(result: Result) -> Network:
    """Return the network of a result, from the files that it has itself if a script gave it to the run."""
    topology, files = load_scenario(result.provenance.scenario).topology, result.provenance.files
    if isinstance(topology, GraphFile) and topology.file in files:
        return graph_json(topology, files[topology.file])
    return build_network(topology)


def _checked_ids(network: Network) -> list[int]:
    ids = node_ids(network.names)
    if max(ids) > LARGEST_ID:
        raise FabricError(
            f"node {max(ids)} has no address: the HPCC simulator has {LARGEST_ID + 1} nodes at most"
        )
    return ids


def _numbers(network: Network, names: npt.NDArray[np.str_]) -> Int64Array:
    return np.array([network.node_numbers[name] for name in names.tolist()], dtype=np.int64)


def _occurrence(keys: Int64Array) -> Int64Array:
    """How many earlier rows have the key of each row."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    position = np.arange(len(keys), dtype=np.int64)
    begins = np.ones(len(keys), dtype=np.bool_)
    begins[1:] = ordered[1:] != ordered[:-1]
    count = np.empty(len(keys), dtype=np.int64)
    count[order] = position - np.maximum.accumulate(np.where(begins, position, 0))
    return count
