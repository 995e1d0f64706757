"""Networks from the topology files of other simulators, which `fabric.formats` parses.

What such a file does not say (the gap between frames, loss where its own column is 0) comes from the
spec's default link. Tiers follow from the distance to hosts where the file has none.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fabric.formats import NetworkData, recognise
from fabric.formats.hpcc_topology import parse_topology
from fabric.formats.htsim_topology import parse_fat_tree
from fabric.spec.link import Link
from fabric.spec.topology import GraphFile
from fabric.topology.graph import check_reachable, infer_tiers
from fabric.topology.network import Network

__all__ = ["foreign_network", "network_from_data"]

PARSERS = {"hpcc_topology": parse_topology, "htsim_topology": parse_fat_tree}


def foreign_network(spec: GraphFile, path: Path) -> Network | None:
    """Read the file of a `GraphFile` if it is another simulator's.

    Parameters
    ----------
    spec : GraphFile
    path : Path
        Where its file is.

    Returns
    -------
    Network or None
        None if the file is none of these, or cannot be read.

    Raises
    ------
    fabric.errors.SpecError
        Naming file, line and what is wrong; or two hosts without a path.
    """
    kind = recognise(path) if path.is_file() else None
    if kind not in PARSERS:
        return None
    data, _ = PARSERS[kind](path)
    return network_from_data(data, link=spec.link)


def network_from_data(data: NetworkData, *, link: Link) -> Network:
    """Turn parsed nodes and cables into a checked network.

    Parameters
    ----------
    data : NetworkData
    link : Link
        What the data leave out.

    Returns
    -------
    Network

    Raises
    ------
    fabric.errors.SpecError
        If two hosts have no path.
    """
    ends = np.sort(np.stack([data.link_a, data.link_b], axis=1), axis=1).astype(np.uint32)
    inferred = infer_tiers([(name, {}) for name in data.names], ends, data.n_hosts)
    network = Network(
        names=data.names,
        n_hosts=data.n_hosts,
        tier=np.where(data.tier < 0, inferred, data.tier).astype(np.uint8),
        link_a=ends[:, 0],
        link_b=ends[:, 1],
        link_rate_bps=data.link_rate_bps,
        link_delay_ps=data.link_delay_ps,
        link_loss=np.where(data.link_loss == 0, link.loss, data.link_loss),
        link_bit_error_rate=np.full(len(ends), link.bit_error_rate),
        link_gap_bytes=np.full(len(ends), int(link.gap), dtype=np.int64),
    )
    check_reachable(network, path="topology.file")
    return network
