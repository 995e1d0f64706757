"""Two batches that overlap: each dispatches and combines while the other computes, in closed form."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import fabric
from fabric.errors import SpecError
from fabric.step import StepReport, run_step

TOKENS, WIDTH = 1024, 4096
LAYERS = 3
LINK_GBPS = 400


def wire_us() -> float:
    """Bytes of an exchange on a link: half of the copies go to the other rank."""
    frames, rest = divmod(TOKENS * 2 * WIDTH // 2, 4096)
    assert rest == 0
    return frames * 4178 * 8 / (LINK_GBPS * 1e3)


def run(*, part_us: float, overlap: bool, micro_batches: int = 2, **more: Any) -> StepReport:
    """Two expert ranks, layers of attention and experts that each take so long forward, nothing backward."""
    model = {
        **{"layers": LAYERS, "hidden": WIDTH, "ffn": 512, "heads": 8, "vocabulary": 512},
        "experts": {"count": 2, "top_k": 1, "ffn": 512},
    }
    entry = {
        "kind": "training",
        "job": {
            "model": model,
            "sequence": TOKENS,
            "global_batch": 2 * micro_batches,
            "parallelism": {"dp": 2, "ep": 2},
        },
        "compute": {"kind": "given", "forward": f"{2 * round(part_us * 1e6)}ps", "backward": "0us"},
        "two_batch_overlap": overlap,
        **more,
    }
    scenario = fabric.Scenario(
        topology=fabric.SingleSwitch(hosts=2),
        transport={"congestion": {"kind": "none"}},
        traffic=[entry],
    )
    return run_step(scenario, progress=False)


def exchanged_us(report: StepReport, exchanges: int) -> float:
    """When so many dispatches and combines were over."""
    tasks = report.tasks[report.tasks["dimension"] == "ep"]
    operations = list(dict.fromkeys(tasks["operation"].tolist()))
    own = tasks[np.isin(tasks["operation"], operations[:exchanges])]
    return float(own["left_ps"].max()) / 1e6


@cache
def exchange_us() -> float:
    """Of one exchange by itself: its bytes, and ACKs of the other direction and the way, some per cent."""
    found = exchanged_us(run(part_us=10, overlap=False), 2 * LAYERS)
    return found / (2 * LAYERS) - 10


class TestTwoBatches:
    @pytest.mark.parametrize("part_us", [1, 100, 400])
    def test_without_it_all_is_exposed(self, part_us: float) -> None:
        assert wire_us() < exchange_us() < 1.05 * wire_us()
        stages = 2 * LAYERS
        found = exchanged_us(run(part_us=part_us, overlap=False), stages)
        assert found - stages * part_us == pytest.approx(stages * exchange_us(), abs=1e-4)

    @pytest.mark.parametrize("part_us", [100, 200, 400])
    def test_compute_hides_all_but_the_last_exchange(self, part_us: float) -> None:
        """Communication M, compute C > M: of a pair max(0, M - C) is exposed, nothing."""
        stages = 2 * LAYERS
        found = exchanged_us(run(part_us=part_us, overlap=True), 2 * stages)
        assert found - 2 * stages * part_us == pytest.approx(exchange_us(), abs=1e-4)

    @pytest.mark.parametrize("part_us", [10, 40, 80])
    def test_what_is_exposed_of_a_pair_is_what_compute_does_not_hide(self, part_us: float) -> None:
        """C < M: stages, two for each layer, of two batches each.

        While one batch computes the other communicates: a stage takes 2 M, of which 2 (M - C) is exposed.
        After the last stage C of the second batch's is left. Of two exchanges that meet, ways are hidden.
        """
        stages = 2 * LAYERS
        found = exchanged_us(run(part_us=part_us, overlap=True), 2 * stages) - 2 * stages * part_us
        low, high = (stages * 2 * (each - part_us) + part_us for each in (wire_us(), exchange_us()))
        assert low < found <= high

    @pytest.mark.parametrize(
        ("more", "words"),
        [({"micro_batches": 3}, "odd"), ({"schedule": "dualpipe", "micro_batches": 4}, "dualpipe")],
    )
    def test_what_cannot_overlap(self, more: dict[str, Any], words: str) -> None:
        with pytest.raises(SpecError, match=words) as error:
            run(part_us=1, overlap=True, **more)
        assert error.value.path == "traffic[0].two_batch_overlap"
