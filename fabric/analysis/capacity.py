"""Closed forms of capacity: hashing onto links, oversubscription, headers, bytes in flight.

These say what a fabric can carry before anything is simulated. Hashing is ideal: every flow chooses a
link uniformly and independently, as ECMP does with a good hash and a salt per switch; a poor hash or
the same salt in every tier does worse. All follow from counting, as each docstring says; nothing here
reacts to congestion.
"""

from __future__ import annotations

import math
from fractions import Fraction

__all__ = [
    "bandwidth_delay_bytes",
    "crossing_share",
    "ecmp_fullest_link",
    "ecmp_permutation_share",
    "header_efficiency",
    "oversubscribed_share",
]

BITS_PER_BYTE = 8
PS_PER_SECOND = 10**12


def ecmp_permutation_share(links: int) -> float:
    """Throughput share of `links` line-rate flows hashed onto `links` equal links: 1 - (1-1/m)^m.

    A link that no flow chose is idle; the others are full.

    Parameters
    ----------
    links : int
        Equal-cost links m, as many as flows.

    Returns
    -------
    float
        Expected share of the capacity in use; 1 - 1/e for many links.

    Examples
    --------
    >>> round(ecmp_permutation_share(4), 4)
    0.6836
    """
    return float(1 - (1 - 1 / links) ** links)


def ecmp_fullest_link(flows: int, *, links: int) -> float:
    """Expected number of flows on the fullest of `links` links, hashed uniformly.

    A synchronous collective waits for that link, so it runs at `flows / links` over this. Computed
    exactly from P(max <= k) = flows! / links^flows * [x^flows] (sum_{i<=k} x^i / i!)^links.

    Parameters
    ----------
    flows, links : int
        At least 1 each. Meant for up to a few hundred flows.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If there is no flow or no link.

    Examples
    --------
    >>> ecmp_fullest_link(4, links=4)
    2.125
    """
    if flows < 1 or links < 1:
        raise ValueError("there must be at least one flow and one link")
    ways_total = links**flows
    at_most = [_assignments_with_at_most(k, flows, links) for k in range(flows)]
    return float(sum(1 - Fraction(ways, ways_total) for ways in at_most))


def _assignments_with_at_most(most: int, flows: int, links: int) -> int:
    """Ways to put distinguishable flows on links with at most `most` on each."""
    if most * links < flows:
        return 0
    ways = [1] + [0] * flows
    for _ in range(links):
        ways = [
            sum(math.comb(placed, here) * ways[placed - here] for here in range(min(most, placed) + 1))
            for placed in range(flows + 1)
        ]
    return ways[flows]


def oversubscribed_share(oversubscription: float, *, crossing: float = 1.0) -> float:
    """Share of its line rate that a host gets across an oversubscribed leaf, with ideal spreading.

    Parameters
    ----------
    oversubscription : float
        Rate of a leaf's host links over the rate of its uplinks.
    crossing : float
        Share of the traffic that leaves the leaf, in [0, 1].

    Returns
    -------
    float
        Share in (0, 1]: 1 / (oversubscription * crossing), at most 1.

    Examples
    --------
    >>> oversubscribed_share(4), oversubscribed_share(2, crossing=0.5)
    (0.25, 1.0)
    """
    if oversubscription <= 0 or not 0 <= crossing <= 1:
        raise ValueError("oversubscription must be positive and crossing lie in [0, 1]")
    demand = oversubscription * crossing
    return 1.0 if demand <= 1 else 1 / demand


def crossing_share(hosts: int, *, hosts_per_leaf: int) -> float:
    """Share of uniform random traffic between other hosts that crosses leaves.

    Parameters
    ----------
    hosts, hosts_per_leaf : int
        Hosts of the network, at least 2, and of each leaf.

    Returns
    -------
    float
        (n - n_leaf) / (n - 1).

    Examples
    --------
    >>> round(crossing_share(128, hosts_per_leaf=8), 5)
    0.94488
    """
    if hosts < 2 or not 1 <= hosts_per_leaf <= hosts:
        raise ValueError("there must be at least two hosts, and at most all of them on a leaf")
    return (hosts - hosts_per_leaf) / (hosts - 1)


def bandwidth_delay_bytes(rate_bps: int, *, round_trip_ps: int) -> int:
    """Bytes in flight that keep a link busy for one round trip, rounded up.

    Parameters
    ----------
    rate_bps : int
        Rate in bit/s.
    round_trip_ps : int
        Round-trip time in picoseconds.

    Returns
    -------
    int

    Examples
    --------
    >>> bandwidth_delay_bytes(400 * 10**9, round_trip_ps=8_000_000)
    400000
    """
    return -(-rate_bps * round_trip_ps // (BITS_PER_BYTE * PS_PER_SECOND))


def header_efficiency(payload_bytes: int, *, header_bytes: int = 62, gap_bytes: int = 20) -> float:
    """Share of the wire that is payload.

    The defaults are RoCEv2 over Ethernet: 14 + 20 + 8 + 12 B of headers, 4 B ICRC, 4 B FCS; preamble
    8 B and inter-packet gap 12 B.

    Parameters
    ----------
    payload_bytes, header_bytes, gap_bytes : int
        Bytes per frame.

    Returns
    -------
    float

    Examples
    --------
    >>> round(header_efficiency(4096), 4)
    0.9804
    """
    return payload_bytes / (payload_bytes + header_bytes + gap_bytes)
