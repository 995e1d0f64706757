"""The network interface of a host: what is fixed about it apart from transport and link.

Its rate and ports belong to the topology's links, its queue pairs to the transport. A host's
buffers are not limited: a sender holds back by window, rate and PAUSE.
"""

from __future__ import annotations

from fabric.spec.base import Spec, quantity
from fabric.units import Duration

__all__ = ["Nic"]


class Nic(Spec, frozen=True, kw_only=True):
    """Every host's interface.

    Parameters
    ----------
    latency : Duration
        Fixed processing latency of a received frame, added to the delay of every link that ends
        at a host. Default 0.
    pfc_response : Duration
        From the arrival of a PAUSE or RESUME to its effect. Default 0.
    control_ignores_pause : bool
        Whether ACK, NACK and CNP leave the host although the peer has paused their class. Default
        False. Matters where control shares a lossless class with data, as in the HPCC simulator.
    """

    latency: Duration = quantity("0ns")
    pfc_response: Duration = quantity("0ns")
    control_ignores_pause: bool = False
