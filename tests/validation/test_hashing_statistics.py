"""Flows hashed onto equal-cost links: links in use and flows on the fullest link, 400 samples each.

n flows of one link's rate, hashed independently and uniformly onto m links, use a share
1 - (1 - 1/m)^n of them; a synchronous exchange waits for the fullest, whose expected number of flows is exact
from the multinomial distribution. Tolerance: three standard errors of the mean.
"""

from __future__ import annotations

import pytest
from support_random_traffic import permutation_over_uplinks, within_standard_errors

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("flows", "links", "fullest"),
    [
        (2, 2, 1.5000),
        (4, 4, 2.1250),
        (8, 8, 2.5972),
        (16, 16, 3.0782),
        (16, 8, 4.2014),
        (32, 8, 7.0478),
        (64, 8, 12.2353),
        (128, 8, 21.9096),
        (64, 16, 7.8804),
        (128, 16, 13.3569),
    ],
)
def test_permutation(flows: int, links: int, fullest: float) -> None:
    found = permutation_over_uplinks(flows, links=links, seeds=range(1_000, 1_200))
    assert within_standard_errors(found.fullest, fullest)
    expected = 1 - (1 - 1 / links) ** flows
    if expected < 0.999:
        assert within_standard_errors(found.used_share, expected)
    if flows == links:
        assert within_standard_errors(found.throughput_share, expected)
