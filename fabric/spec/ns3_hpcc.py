"""The settings of the HPCC group's ns-3 simulator, as ordinary values of ordinary specs.

github.com/alibaba-edu/High-Precision-Congestion-Control is the code behind HPCC, many DCQCN studies,
SimAI and ASTRA-sim's packet backend. Its frames have 48 bytes of headers (14 link, 20 IP, 8 UDP, 6 of its
own) and nothing on the wire beside them; ACKs of 60 bytes share the class of the data and are
never held back at the host; PFC frames have 43 bytes; a switch has no latency, reserves 4096 bytes per
port and keeps 3 times rate x delay of headroom; alpha is 1/8, doubled with every doubling of a port's
rate beyond the NIC's; marks are made when a frame leaves; a receiver answers no duplicate; there is no
time-out, so losses at the end of a message never end. Times are truncated to nanoseconds. A `config.txt`
becomes these specs with its own values in them (`fabric.convert`).

Next hops are hashed by MurmurHash3, those with higher numbers first (there their order is that of addresses
in memory; those of the published runs descend).

Rates are whole bit/s, queue pairs of a port take turns, telemetry of HPCC is compact (`Hpcc.telemetry_unit`).
What happens first within one nanosecond there depends on one global list of events; the readable
engine can follow it (`fabric.reference.Simulator(lowered, order="insertion")`).
"""

from __future__ import annotations

from typing import Any

from fabric.errors import SpecError
from fabric.spec.decode import convert
from fabric.spec.link import Link
from fabric.spec.nic import Nic
from fabric.spec.routing import Routing
from fabric.spec.run import Run
from fabric.spec.switch import Ecn, Pfc, Switch, TrafficClass
from fabric.spec.transport import GoBackN, NoCongestionControl, Transport
from fabric.units import Rate, Size

__all__ = ["ns3_hpcc", "ns3_hpcc_link"]

CLASS_NAME = "data"


def ns3_hpcc_link(rate: str | Rate, *, delay: str = "1us") -> Link:
    """A cable as that simulator has it: no preamble, no gap."""
    return Link(rate=rate, delay=delay, gap=0)  # type: ignore[arg-type]


def ns3_hpcc(
    *,
    buffer: str | Size = "32MiB",
    nic_rate: str | Rate = "100Gbps",
    classes: tuple[str, ...] = (CLASS_NAME,),
) -> dict[str, Any]:
    """Fields of a scenario with that simulator's semantics, without congestion control.

    Parameters
    ----------
    buffer : Size
        Of every switch. Default 32MiB.
    nic_rate : Rate
        Of the hosts; ECN thresholds (4 and 16 KB per Gbit/s) and alpha are relative to it.
    classes : tuple of str
        Names of the traffic classes, all alike; the transport uses the first. Default: "data" alone.

    Returns
    -------
    dict
        `switch`, `nic`, `transport`, `routing`, `run`.

    Raises
    ------
    SpecError
        Naming the parameter that is no such quantity, or holds no class.

    Examples
    --------
    >>> from fabric.spec import Incast, Scenario, SingleSwitch
    >>> topology = SingleSwitch(hosts=9, link=ns3_hpcc_link("100Gbps"))
    >>> scenario = Scenario(topology=topology, traffic=[Incast(senders=8, size="1MB")], **ns3_hpcc())
    >>> scenario.transport.header, scenario.switch.pfc.frame
    (Size("48B"), Size("43B"))
    """
    rate: Rate = convert(nic_rate, Rate, path="nic_rate")
    names: tuple[str, ...] = convert(classes, tuple[str, ...], path="classes")
    if not names:
        raise SpecError("classes", classes, "at least one name of a traffic class")
    kmin_bytes = 4 * rate // 1_000_000
    return {
        "switch": Switch(
            buffer=convert(buffer, Size, path="buffer"),
            latency=0,  # type: ignore[arg-type]
            ecn=Ecn(kmin=Size(kmin_bytes), kmax=Size(4 * kmin_bytes), pmax=0.2, scale_from=rate),
            pfc=Pfc(
                alpha=0.125,
                alpha_scale_from=rate,
                xon_offset=Size(3072),
                headroom_delays=3.0,
                frame=Size(43),
            ),
            classes=tuple(TrafficClass(name=name, reserved=Size(4096)) for name in names),
        ),
        "nic": Nic(control_ignores_pause=True, queue_pairs="in_turn"),
        "transport": Transport(
            payload=Size(1000),
            header=Size(48),
            control_frame=Size(60),
            smallest_frame=Size(1),
            data_class=names[0],
            control_class=names[0],
            reliability=GoBackN(
                rto=None,
                nack_on_rewind=False,
                nack_interval="500us",  # type: ignore[arg-type]
                ack_duplicates=False,
            ),
            congestion=NoCongestionControl(),
        ),
        "routing": Routing(hash="murmur3", udp_port=100, next_hop_order="neighbours_descending"),
        "run": Run(timing="ns3", ties="transmission_start", waits="instant"),
    }
