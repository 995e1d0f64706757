"""Pauses that run out, by chance, for Hypothesis: see `strategies.py`.

Quanta last from less than a frame to longer than a case; repetitions come in time, too late at fast ports
and in time at slow ones, too late everywhere, or never.
"""

from __future__ import annotations

from fractions import Fraction

from hypothesis import strategies as st
from strategies_topology import pick

from fabric.spec import Scenario
from fabric.topology import Network, build_network

__all__ = ["with_quanta"]

SLOWEST_FAILING_BPS = 10**9
"""No failure of `strategies_failures` makes a link slower."""
PS_BIT_PER_QUANTUM = 512 * 10**12
MOST_QUANTA = 65535


@st.composite
def with_quanta(draw: st.DrawFn, scenario: Scenario, *, network: Network | None = None) -> Scenario:
    """The scenario with PAUSE that does not hold for ever."""
    if network is None:
        network = build_network(scenario.topology)
    rates_bps = [int(rate) for rate in network.link_rate_bps]
    fastest_bps = max(rates_bps)
    slowest_bps = min([*rates_bps, *([SLOWEST_FAILING_BPS] if scenario.failures else [])])
    frames = (scenario.transport, *(each.transport for each in scenario.traffic if each.transport))
    largest_bytes = max(max(int(each.frame), int(each.control_frame)) for each in frames)
    wire_bits = 8 * (largest_bytes + int(network.link_gap_bytes.max()))
    shortest_ps = -(-3 * wire_bits * 10**12 // slowest_bps)
    refresh_ps = shortest_ps * pick(draw, (1, 2, 5)) + pick(draw, (0, 1, 77_777))
    lasts_ps = refresh_ps * pick(draw, (Fraction(5, 2), Fraction(3, 2), 4, Fraction(1, 3), Fraction(1, 40)))
    quanta = max(1, min(MOST_QUANTA, int(lasts_ps * fastest_bps / PS_BIT_PER_QUANTUM)))
    refresh = pick(draw, (refresh_ps, refresh_ps, "never", "auto"))
    if refresh == "auto":
        quanta = MOST_QUANTA
        if 2 * shortest_ps * fastest_bps >= quanta * PS_BIT_PER_QUANTUM:
            refresh = "never"
    elif any(abs(_lasts_ps(quanta, rate) - refresh_ps) <= shortest_ps for rate in rates_bps):
        refresh = "never"
    pfc = scenario.switch.pfc.replace(quanta=quanta, refresh=refresh)
    return scenario.replace(switch=scenario.switch.replace(pfc=pfc))


def _lasts_ps(quanta: int, rate_bps: int) -> int:
    return quanta * PS_BIT_PER_QUANTUM // rate_bps
