"""Failures by chance, for Hypothesis: see `strategies.py`.

Everything that can fail, at times and for durations within what a small case lasts, some at one instant, some
overlapping, some for ever; and every way to recover.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from strategies_topology import pick

from fabric.spec import (
    Corruption,
    DegradedLink,
    DrawnFailures,
    HostHang,
    LinkDown,
    LinkDrain,
    LinkFlap,
    Paths,
    PfcStorm,
    Recovery,
    Scenario,
    SlowNic,
    SwitchDown,
)
from fabric.topology import Network, build_network

__all__ = ["with_failures"]

RATES = ("100Gbps", "1Gbps", "33333333333bps", "6999999999bps")
TIMES_PS = (0, 1, 1_000_000, 5_000_000, 7_654_321, 20_000_000)
DELAYS_PS = (0, 1_000_000, 1, 3_333_333)


@st.composite
def with_failures(draw: st.DrawFn, scenario: Scenario) -> Scenario:
    """The scenario with some failures, and what they rule out left out."""
    network = build_network(scenario.topology)
    names = [each.name for each in scenario.switch.classes]
    failures = draw(st.lists(_failure(network, names), min_size=1, max_size=4))
    first, second = (network.port_arrow(port) for port in (0, 1))
    if first.split("->")[0] == second.split("->")[0] and draw(st.booleans()):
        failures.append(LinkDown(link=first, at=draw(st.sampled_from(TIMES_PS))))
    if scenario.run.ties == "transmission_start":
        failures = [each for each in failures if not isinstance(each, DegradedLink | SlowNic)]
        failures = failures or [LinkDown(link=first, at=draw(st.sampled_from(TIMES_PS)))]
    choices = ("ecmp", "up_down", "end_host", "none")
    plain = scenario.routing.weights == "equal" and scenario.routing.choice == "ecmp"
    delays_ps = st.sampled_from([each for each in DELAYS_PS if each % scenario.run.tick_ps == 0])
    suspect_ps, isolate_ps = sorted((0, draw(delays_ps)))
    recovery = Recovery(
        reroute=pick(draw, ("ecmp", "resilient", "resilient", *choices[1:]) if plain else choices),
        suspect=suspect_ps,
        isolate=isolate_ps,
        convergence=draw(delays_ps),
        restore=draw(delays_ps),
        failover=pick(draw, ("next_port", "next_port", "none")),
        buckets=pick(draw, (4, 1, 16)),
    )
    if recovery.reroute == "end_host" and draw(st.booleans()):
        scenario = scenario.replace(transport=scenario.transport.replace(paths=Paths()))
    return scenario.replace(
        failures=tuple(failures),
        recovery=recovery,
        run=scenario.run.replace(
            until=draw(st.sampled_from((10**9, 10**10)) | st.integers(8_000_000, 200_000_000))
        ),
    )


@st.composite
def _failure(draw: st.DrawFn, network: Network, classes: list[str]) -> Any:
    time: dict[str, Any] = {"at": draw(st.sampled_from(TIMES_PS) | st.integers(0, 30_000_000))}
    lasts = draw(st.none() | st.sampled_from(TIMES_PS[1:]) | st.integers(1, 40_000_000))
    if lasts is not None:
        time["lasts"] = lasts
    # hosts come first, with their ports
    arrow = network.port_arrow(
        draw(st.integers(0, network.n_ports - 1) | st.integers(0, network.n_hosts - 1))
    )
    link = arrow.replace("->", "-") if draw(st.booleans()) else arrow
    host = network.names[draw(st.integers(0, network.n_hosts - 1))]
    switch = network.names[draw(st.integers(network.n_hosts, network.n_nodes - 1))]
    rate = pick(draw, RATES)
    kind = draw(st.integers(-2, 9))
    if kind <= 0:
        return LinkDown(link=link, **time)
    if kind == 1:
        return LinkDrain(link=link, **time)
    if kind == 2:
        return LinkFlap(
            link=link,
            period=draw(st.integers(2, 9_000_000)) + 400_000,
            duty=pick(draw, (0.5, 0.1, 0.9)),
            **{"lasts": 9_000_000, **time},
        )
    if kind == 3:
        return DegradedLink(link=link, rate=rate, **time)
    if kind == 4:
        isolate = draw(st.none() | st.sampled_from(DELAYS_PS))
        return Corruption(link=link, bit_error_rate=pick(draw, (1e-6, 1e-7)), isolate=isolate, **time)
    if kind == 5:
        return SwitchDown(switch=switch, **time)
    if kind == 6:
        return HostHang(host=host, **time)
    if kind == 7:
        return SlowNic(host=host, rate=rate, **time)
    if kind == 8:
        return PfcStorm(host=host, classes=pick(draw, ((), (classes[-1],))), **time)
    return DrawnFailures(lasts="20us", acceleration=pick(draw, (1e12, 1e14)), repair="5us")
