"""From an engine's columns to the tables of a result.

Columns are numbered; tables are named and in units. Definitions made here:

* `fct_ps` of a flow runs from its start (`start_ps`, after its dependencies) until the receiver has
  its last frame; `slowdown` is that over the time in an empty network, `goodput_bps` the payload over it.
* `utilisation` of a port counts wire bytes, preamble and gap included, over the duration of the run, and is
  at most 1: a frame that the end of a bounded run cuts counts whole in `tx_bytes`, but a link is not busy
  for longer than the run.
* `queue_mean_bytes` is the time average over the run, from the waiting time of the frames that left.
* A port's `queue_peak_bytes` and `paused_ps` are those of its fullest and its longest paused class;
  the table `classes` has every one.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fabric.analysis import stats
from fabric.lowered import Lowered

from .labels import Labels
from .table import Array, Category, Table

__all__ = ["connection_table", "flow_table", "node_table", "port_class_table", "port_table"]

BITS_PER_BYTE = 8
PS_PER_S = 10**12
COUNTED = ("sent", "retransmitted", "timeouts", "cnps", "nacks", "marked")
"""Counters of flows that have a column of their name."""

Columns = Mapping[str, Array]


def _categories(names: Array) -> Category:
    labels, codes = np.unique(names, return_inverse=True)
    return Category(codes.astype(np.int32), labels)


def flow_table(columns: Columns, *, lowered: Lowered, labels: Labels, ideal_ps: Array) -> Table:
    """Return the table of flows; connections of programs are none.

    Parameters
    ----------
    columns : mapping of str to numpy.ndarray
        What the engine counted.
    lowered : Lowered
        The scenario that it ran.
    labels : Labels
        Names.
    ideal_ps : numpy.ndarray of int64, [flows]
        Time from start to delivery in an empty network.
    """
    own = lowered.flow_frames > 0
    sizes = labels.flow_bytes[own]
    started, delivered = columns["flow_started_ps"][own], columns["flow_delivered_ps"][own]
    fct = np.where((delivered >= 0) & (started >= 0), delivered - started, -1)
    ideal = ideal_ps[own]
    slowdown = stats.slowdown(fct, ideal_ps=np.maximum(ideal, 1))
    return Table(
        {
            "flow": np.flatnonzero(own).astype(np.uint32),
            "name": labels.flows[own],
            "pattern": Category(labels.patterns.codes[own], labels.patterns.labels),
            "source": Category(lowered.flow_source[own], labels.nodes),
            "destination": Category(lowered.flow_destination[own], labels.nodes),
            "traffic_class": Category(lowered.flow_class[own], labels.classes),
            "size_bytes": sizes,
            "start_ps": started,
            "delivered_ps": delivered,
            "completed_ps": columns["flow_completed_ps"][own],
            "fct_ps": fct,
            "ideal_ps": ideal,
            "slowdown": np.where(ideal > 0, slowdown, np.nan),
            "goodput_bps": stats.goodput_bps(sizes, duration_ps=fct),
            **{name: columns[f"flow_{name}"][own] for name in COUNTED},
        },
        name="flows",
        optional=("start_ps", "delivered_ps", "completed_ps", "fct_ps"),
    )


def connection_table(columns: Columns, *, lowered: Lowered, labels: Labels) -> Table:
    """Return the table of connections, on which programs of collectives post their messages.

    `timeout_ps` is for how long a connection waited for its time-outs.

    Parameters
    ----------
    columns, lowered, labels
        As of `flow_table`.
    """
    own = lowered.flow_frames == 0
    rto_ps = lowered.transports["rto_ps"]
    return Table(
        {
            "flow": np.flatnonzero(own).astype(np.uint32),
            "job": Category(labels.patterns.codes[own], labels.patterns.labels),
            "source": Category(lowered.flow_source[own], labels.nodes),
            "destination": Category(lowered.flow_destination[own], labels.nodes),
            "traffic_class": Category(lowered.flow_class[own], labels.classes),
            "size_bytes": labels.flow_bytes[own],
            "start_ps": columns["flow_started_ps"][own],
            "delivered_ps": columns["flow_delivered_ps"][own],
            "acknowledged_ps": columns["flow_completed_ps"][own],
            **{name: columns[f"flow_{name}"][own] for name in COUNTED},
            "timeout_ps": columns["flow_timeouts"][own] * rto_ps[lowered.flow_transport[own]],
        },
        name="connections",
        optional=("start_ps", "delivered_ps", "acknowledged_ps"),
    )


def port_table(columns: Columns, *, lowered: Lowered, labels: Labels, duration_ps: int) -> Table:
    """Return the table of ports, classes taken together."""
    rate = lowered.port_rate_bps
    sent = columns["port_tx_bytes"]
    mean = columns["queue_wait_integral"].sum(axis=1) / max(duration_ps, 1)
    peer = lowered.port_node[lowered.port_peer]
    return Table(
        {
            "port": np.arange(lowered.n_ports, dtype=np.uint32),
            "name": labels.ports,
            "link": labels.links,
            "tier": _tier_pairs(labels, lowered.port_node, peer),
            "rate_bps": rate,
            "tx_bytes": sent,
            "utilisation": np.minimum(
                sent * float(BITS_PER_BYTE * PS_PER_S) / (rate * float(max(duration_ps, 1))), 1.0
            ),
            "queue_peak_bytes": columns["queue_peak_bytes"].max(axis=1),
            "queue_mean_bytes": mean,
            "marks": columns["queue_marks"].sum(axis=1),
            "drops": columns["queue_drops"].sum(axis=1),
            "paused_ps": columns["paused_ps"].max(axis=1),
            "pauses_sent": columns["pauses_sent"].sum(axis=1),
        },
        name="ports",
    )


def _tier_pairs(labels: Labels, owner: Array, peer: Array) -> Category:
    """Return for each port the tiers that its link joins, sender first ("leaf->spine")."""
    tiers, tier_of = np.unique(labels.tiers, return_inverse=True)
    pairs, codes = np.unique(tier_of[owner] * len(tiers) + tier_of[peer], return_inverse=True)
    names = [f"{tiers[pair // len(tiers)]}->{tiers[pair % len(tiers)]}" for pair in pairs]
    return Category(codes.astype(np.int32), np.array(names, dtype=np.str_))


def port_class_table(columns: Columns, *, lowered: Lowered, labels: Labels, duration_ps: int) -> Table:
    """Return the table of queues: one row a port and traffic class, in that order."""
    shape = (lowered.n_ports, lowered.n_classes)
    port, traffic_class = (part.ravel() for part in np.indices(shape, dtype=np.uint32))
    profile = lowered.profiles[lowered.port_profile]
    marking = (profile["ecn_mode"] > 0) & (lowered.node_kind[lowered.port_node[port]] == 1)
    return Table(
        {
            "port": port,
            "link": Category(port, labels.links),
            "traffic_class": Category(traffic_class, labels.classes),
            "lossless": profile["lossless"].astype(bool),
            "ecn_kmin_bytes": np.where(marking, profile["ecn_kmin_bytes"], -1),
            "ecn_kmax_bytes": np.where(marking, profile["ecn_kmax_bytes"], -1),
            "queue_bytes": columns["queue_bytes"].ravel(),
            "queue_peak_bytes": columns["queue_peak_bytes"].ravel(),
            "queue_mean_bytes": columns["queue_wait_integral"].ravel() / max(duration_ps, 1),
            "marks": columns["queue_marks"].ravel(),
            "drops": columns["queue_drops"].ravel(),
            "ingress_bytes": columns["ingress_bytes"].ravel(),
            "headroom_bytes": columns["headroom_bytes"].ravel(),
            "headroom_peak_bytes": columns["headroom_peak_bytes"].ravel(),
            "pauses_sent": columns["pauses_sent"].ravel(),
            "paused_ps": columns["paused_ps"].ravel(),
        },
        name="classes",
        optional=("ecn_kmin_bytes", "ecn_kmax_bytes"),
    )


def node_table(columns: Columns, *, lowered: Lowered, labels: Labels) -> Table:
    """Return the table of nodes, hosts first."""
    kinds = np.array(["host", "switch"])
    return Table(
        {
            "node": np.arange(lowered.n_nodes, dtype=np.uint32),
            "name": labels.nodes,
            "kind": Category(lowered.node_kind, kinds),
            "tier": _categories(labels.tiers),
            "ports": np.diff(lowered.node_port_base.astype(np.int64)),
            "shared_bytes": lowered.node_shared_bytes,
            "shared_used_bytes": columns["shared_used"],
        },
        name="nodes",
    )
