"""Where several DCQCN senders settle, over three seeds and both places of marking.

The values are those of an independent event simulation of the same scenario (`support_dcqcn`), and only
those that held for all its seeds and under small changes of pacing.
"""

from __future__ import annotations

import pytest
from support_dcqcn import D40, D41, D42, D44, DcqcnCase, measure

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("mark", ["enqueue", "dequeue"])
class TestSettling:
    @pytest.mark.parametrize(("case", "queue_bytes", "tolerance"), [(D40, 24_600, 0.10), (D41, 54_500, 0.08)])
    def test_at_40g(self, case: DcqcnCase, queue_bytes: int, tolerance: float, mark: str, seed: int) -> None:
        found = measure(case, mark=mark, seed=seed)
        assert found.queue_bytes == pytest.approx(queue_bytes, rel=tolerance)
        assert found.utilisation > 0.995
        assert found.fairness > 0.99

    def test_utilisation_with_eight_senders(self, mark: str, seed: int) -> None:
        utilisation = measure(D42, mark=mark, seed=seed).utilisation
        assert utilisation > 0.999 if mark == "dequeue" else utilisation < 0.992

    def test_32_senders_at_400g(self, mark: str, seed: int) -> None:
        found = measure(D44, mark=mark, seed=seed)
        assert found.queue_bytes == pytest.approx(817_000, rel=0.03)
        assert found.fairness > 0.99
