"""Named parameter sets of DCQCN, each as some public system ships it.

Every set names every field of `fabric.spec.Dcqcn` but `preset` itself. "paper" sets act on
congestion notification packets at once and decay between them; "vendor" sets check on a clock
whether a mark came. Where a source leaves a value open, the row says what stands there instead.

* `connectx_scaled`, the default: `connectx` with the increase steps scaled with the line rate as in
  `hpcc`, and the smallest rate (100 Mbit/s) that SimAI and ConWeave use.
* `connectx`: NVIDIA DOCA documentation, "DCQCN CC parameters", register defaults of ConnectX-4 and
  later. Steps are 5 and 50 Mbit/s at every speed. The byte counter (32767, without a unit) is left
  out: the vendor form runs on its timer alone.
* `hpcc`: github.com/alibaba-edu/High-Precision-Congestion-Control, `simulation/run.py`, `dcqcn`.
  Steps are 5 C/25 and 50 C/25 Mbit/s at C Gbit/s; every ACK of a marked frame carries the mark.
* `hpcc_paper`: the same file, `dcqcn_paper`.
* `simai`: github.com/aliyun/SimAI, `astra-sim-alibabacloud/inputs/config/SimAI.conf`. Its window,
  one bandwidth-delay product, depends on the path and is left to the user.
* `paper_2015`: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015. It
  lists neither hyper-increase step nor smallest rate: those of `ns3_rdma` and `connectx`.
* `ns3_rdma`: github.com/bobzhuyb/ns3-rdma, `windows/ns-3-dev/x64/Release/mix/config.txt`. The
  smallest rate is not in that file: that of `connectx`.

Why the default is not `connectx` itself: steps of 5 Mbit/s every 300 us take a flow back to its
share at 400 Gbit/s in seconds, which nobody simulates. Scaling them with the line rate is what the
authors of HPCC do to compare DCQCN at 100 Gbit/s and above.
"""

from __future__ import annotations

from typing import Any

__all__ = ["DCQCN_PRESETS", "DEFAULT_DCQCN_PRESET"]

DEFAULT_DCQCN_PRESET = "connectx_scaled"

_CONNECTX: dict[str, Any] = {
    "form": "vendor",
    "feedback": "cnp",
    "cnp_interval": "4us",
    "alpha_period": "1us",
    "cut_period": "4us",
    "increase_period": "300us",
    "byte_counter": None,
    "fast_recovery": 1,
    "g": 5 / 1024,
    "ai": "5Mbps",
    "hai": "50Mbps",
    "scale_from": None,
    "min_rate": "1Mbps",
    "first_cut": 1.0,
    "clamp_target": False,
    "window": None,
    "variable_window": False,
}
_HPCC: dict[str, Any] = _CONNECTX | {
    "feedback": "echo",
    "g": 1 / 256,
    "scale_from": "25Gbps",
    "min_rate": "1Gbps",
}
_PAPER: dict[str, Any] = _CONNECTX | {
    "form": "paper",
    "cnp_interval": "50us",
    "alpha_period": "55us",
    "cut_period": "50us",
    "increase_period": "55us",
    "byte_counter": "10MB",
    "fast_recovery": 5,
    "g": 1 / 256,
    "ai": "40Mbps",
    "hai": "200Mbps",
    "clamp_target": True,
}

DCQCN_PRESETS: dict[str, dict[str, Any]] = {
    "connectx_scaled": _CONNECTX | {"scale_from": "25Gbps", "min_rate": "100Mbps"},
    "connectx": _CONNECTX,
    "hpcc": _HPCC,
    "hpcc_paper": _HPCC | {"alpha_period": "50us", "cut_period": "50us", "increase_period": "55us"},
    "simai": _HPCC
    | {
        "increase_period": "900us",
        "ai": "50Mbps",
        "hai": "100Mbps",
        "scale_from": None,
        "min_rate": "100Mbps",
    },
    "paper_2015": _PAPER,
    "ns3_rdma": _PAPER | {"increase_period": "60us", "byte_counter": "300MB"},
}
"""Values by preset and field, in the form that a scenario file would hold."""
