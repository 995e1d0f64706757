"""Closed forms and statistics: what a run should give, and what its numbers say.

Everything here is a function of plain numbers and arrays; nothing runs a simulation or reads a result
object. Each function names its source, and its example is a test.

* :mod:`fabric.analysis.ideal`: completion time in an empty network, exact to the picosecond.
* :mod:`fabric.analysis.stats`: percentiles, slowdown by flow size, fairness, goodput.
* :mod:`fabric.analysis.ecn`, :mod:`fabric.analysis.pfc`: marking, headroom, thresholds.
* :mod:`fabric.analysis.queueing`: queues, incast, retransmission.
* :mod:`fabric.analysis.capacity`: hashing onto links, oversubscription, headers, bytes in flight.
* :mod:`fabric.analysis.dcqcn_fluid`: where DCQCN settles.
"""

from fabric.analysis.capacity import (
    bandwidth_delay_bytes,
    crossing_share,
    ecmp_fullest_link,
    ecmp_permutation_share,
    header_efficiency,
    oversubscribed_share,
)
from fabric.analysis.dcqcn_fluid import DcqcnFixedPoint, DcqcnFluid, fixed_point, most_flows_at_rest
from fabric.analysis.ecn import marking_probability, queue_at_probability
from fabric.analysis.ideal import PathTimes, ideal_completion_ps, ideal_delivery_ps, serialisation_ps
from fabric.analysis.pfc import (
    dynamic_threshold_bytes,
    ecn_before_pfc_bytes,
    headroom_bound_bytes,
    peak_ingress_bytes,
    quanta_ps,
    response_time_ps,
    sonic_mellanox_xoff_bytes,
    static_threshold_bytes,
)
from fabric.analysis.queueing import (
    frame_loss_probability,
    go_back_n_share,
    incast_drain_ps,
    incast_peak_frames,
    lindley_waits,
    mg1_wait,
    selective_repeat_share,
)
from fabric.analysis.stats import (
    SlowdownBins,
    empirical_cdf,
    goodput_bps,
    jain_index,
    percentiles,
    slowdown,
    slowdown_by_size,
)

__all__ = [
    "DcqcnFixedPoint",
    "DcqcnFluid",
    "PathTimes",
    "SlowdownBins",
    "bandwidth_delay_bytes",
    "crossing_share",
    "dynamic_threshold_bytes",
    "ecmp_fullest_link",
    "ecmp_permutation_share",
    "ecn_before_pfc_bytes",
    "empirical_cdf",
    "fixed_point",
    "frame_loss_probability",
    "go_back_n_share",
    "goodput_bps",
    "header_efficiency",
    "headroom_bound_bytes",
    "ideal_completion_ps",
    "ideal_delivery_ps",
    "incast_drain_ps",
    "incast_peak_frames",
    "jain_index",
    "lindley_waits",
    "marking_probability",
    "mg1_wait",
    "most_flows_at_rest",
    "oversubscribed_share",
    "peak_ingress_bytes",
    "percentiles",
    "quanta_ps",
    "queue_at_probability",
    "response_time_ps",
    "selective_repeat_share",
    "serialisation_ps",
    "slowdown",
    "slowdown_by_size",
    "sonic_mellanox_xoff_bytes",
    "static_threshold_bytes",
]
