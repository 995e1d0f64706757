"""The network interface of a host: what is fixed about it apart from transport and link.

Its rate and ports belong to the topology's links, its queue pairs to the transport. A host's
buffers are not limited: a sender holds back by window, rate and PAUSE.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from fabric.spec.base import Problem, Spec, quantity
from fabric.spec.switch import LARGEST_LATENCY_PS
from fabric.units import Duration, Rate

__all__ = ["Nic"]


class Nic(Spec, frozen=True, kw_only=True):
    """Every host's interface.

    Parameters
    ----------
    latency : Duration
        Fixed processing latency of a received frame, added to the delay of every link that ends
        at a host; at most 1s. Default 0.
    pfc_response : Duration
        From the arrival of a PAUSE or RESUME to its effect; at most 1s. Default 0.
    control_ignores_pause : bool
        Whether ACK, NACK and CNP leave the host although the peer has paused their class. Default
        False. Matters where control shares a lossless class with data, as in the HPCC simulator.
    copy_rate : Rate, optional
        At which messages between ranks of one host are copied, one after the other between two of
        them. None (default): in no time.
    copy_latency : Duration
        That such a message takes beside its copy; at most 1s. Default 0.
    queue_pairs : {"earliest", "in_turn"}
        Which flow of a port sends next: the one that may send for longest (default), or the next in turn of
        those that may. In turn is meant as the HPCC simulator has it, with its single wake-up a
        port: a flow that is held by its window can keep one waiting that is held by its rate.
    """

    latency: Duration = quantity("0ns")
    pfc_response: Duration = quantity("0ns")
    control_ignores_pause: bool = False
    copy_rate: Rate | None = None
    copy_latency: Duration = quantity("0ns")
    queue_pairs: Literal["earliest", "in_turn"] = "earliest"

    def problems(self) -> Iterator[Problem]:
        if self.copy_rate == 0:
            yield "copy_rate", self.copy_rate, "a rate above 0, or none"
        for name in ("latency", "pfc_response", "copy_latency"):
            if getattr(self, name) > LARGEST_LATENCY_PS:
                yield name, getattr(self, name), "a duration of at most 1s"
