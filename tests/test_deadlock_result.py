"""What a result says of a deadlock: as an object, as tables, in words and as pictures."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest

import fabric
from fabric import plot
from fabric.analysis.pauses import Pause, spread_of_pauses
from fabric.cli import main
from fabric.errors import FabricError
from fabric.result import Result

SCENARIOS = Path(__file__).resolve().parent.parent / "scenarios"


@functools.cache
def result_of(name: str) -> Result:
    return fabric.run(SCENARIOS / f"{name}.toml", progress=False)


class TestDeadlock:
    def test_a_ring_waits_for_itself(self) -> None:
        result = result_of("deadlock_ring")
        (found,) = result.deadlocks
        assert result.status == "STALLED"
        assert set(found.cycle) == {f"S{k}->S{(k + 1) % 5}" for k in range(5)}
        for one, other in zip(found.cycle, found.cycle[1:] + found.cycle[:1], strict=True):
            assert one.split("->")[1] == other.split("->")[0], "each waits for the next"
        assert found.flows == ("f0", "f1", "f2", "f3", "f4")
        assert found.broken_ps == -1
        assert found.closing_link == found.cycle[0]
        assert found.links["paused_ps"].max() == found.formed_ps
        assert found.closing_flow == "f4"

    @pytest.mark.parametrize("name", ["deadlock_ring", "deadlock_clos_bounce"])
    def test_the_books_of_a_deadlock_balance(self, name: str) -> None:
        found = result_of(name).deadlocks[0]
        assert found.queue_bytes == found.frames["size_bytes"].sum()
        assert found.links["queue_frames"].sum() == len(found.frames)
        assert found.frames["since_ps"].max() <= found.formed_ps
        for row in found.links:
            waiting = found.frames.where(link=row["link"])
            assert waiting["size_bytes"].sum() == row["queue_bytes"]

    def test_it_is_the_circle_that_the_static_check_predicts(self) -> None:
        scenario = fabric.load_scenario(SCENARIOS / "deadlock_clos_bounce.toml")
        report = fabric.checks.check_scenario(scenario, fail=["leaf0-spine0,leaf1-spine1"])
        predicted = {"leaf2->spine0", "spine0->leaf3", "leaf3->spine1", "spine1->leaf2"}
        assert all(link in str(report) for link in predicted)
        result = result_of("deadlock_clos_bounce")
        assert set(result.deadlocks[0].cycle) == predicted
        assert result.status == "DEADLOCK"
        look_ps = 64 * 500_000
        assert result.deadlocks[0].formed_ps < result.counters["end_ps"] < 15 * look_ps

    def test_up_down_routes_have_none(self) -> None:
        result = result_of("deadlock_avoided")
        assert result.deadlocks == ()
        between = result.ports[~np.char.startswith(result.ports["tier"].astype(str), "host")]
        assert between["paused_ps"].max() == 0
        delivered = result.flows["delivered_ps"] >= 0
        inner = [name in {f"host{k}" for k in range(8, 16)} for name in result.flows["source"].tolist()]
        assert delivered.tolist() == inner

    def test_none_is_looked_for_when_off(self) -> None:
        scenario = fabric.load_scenario(SCENARIOS / "deadlock_ring.toml", overrides=["run.deadlock=off"])
        result = fabric.run(scenario, progress=False)
        assert result.deadlocks == ()
        assert result.fingerprint == result_of("deadlock_ring").fingerprint

    def test_saved_and_loaded(self, tmp_path: Path) -> None:
        result = result_of("deadlock_ring")
        result.save(tmp_path / "ring")
        again = Result.load(tmp_path / "ring")
        assert [one.to_dict() for one in again.deadlocks] == [one.to_dict() for one in result.deadlocks]
        assert again.summary["deadlocks"] == result.summary["deadlocks"]

    def test_on_the_command_line(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        target = tmp_path / "out"
        assert main(["run", str(SCENARIOS / "deadlock_ring.toml"), "--out", str(target)]) == 0
        printed = capsys.readouterr().out
        assert "deadlock        formed at 59.48us, stands: 5 links wait in a circle" in printed
        assert "closed by flow f4" in printed
        assert (target / "deadlock.png").exists()
        assert main(["plot", str(target), "--kind", "pauses"]) == 0
        assert (target / "pauses.png").exists()

    def test_in_words(self) -> None:
        text = str(result_of("deadlock_ring").deadlocks[0])
        assert text.startswith("formed at 59.48us; it stands\nclosed by flow f4 at S0->S1\n")


class TestPictures:
    @pytest.mark.parametrize("name", ["deadlock_ring", "deadlock_clos_bounce"])
    def test_a_deadlock(self, name: str) -> None:
        axes = plot.deadlock(result_of(name))
        texts = [text.get_text() for text in axes.texts]
        assert sum("paused at" in text for text in texts) == len(result_of(name).deadlocks[0].links)
        assert plot.to_image(axes).startswith(b"\x89PNG")

    def test_no_deadlock(self) -> None:
        with pytest.raises(FabricError, match="deadlock 0 is not in this result, which has 0 deadlocks"):
            plot.deadlock(result_of("deadlock_avoided"))

    def test_pauses(self) -> None:
        axes = plot.pause_tree(result_of("deadlock_ring"))
        names = [label.get_text() for label in axes.get_yticklabels()]
        assert len(names) == 10
        assert plot.to_image(axes).startswith(b"\x89PNG")

    def test_pauses_that_were_not_recorded(self) -> None:
        scenario = fabric.load_scenario(SCENARIOS / "deadlock_ring.toml", overrides=["record.pauses=false"])
        with pytest.raises(FabricError, match=r"record\.pauses"):
            plot.pause_tree(fabric.run(scenario, progress=False))


class TestSpreadOfPauses:
    def test_a_chain_is_a_chain(self) -> None:
        """c pauses b, b pauses a: a root and what it caused, in order."""
        spread = spread_of_pauses(
            [
                Pause("host", "a", "data", 30, None),
                Pause("a", "b", "data", 20, None),
                Pause("b", "c", "data", 10, None),
            ]
        )
        assert [link.pauses[0].sender for link in spread] == ["b", "a", "host"]
        assert [link.depth for link in spread] == [0, 1, 2]
        assert [link.cause for link in spread] == [None, 0, 1]

    def test_what_was_over_or_of_another_class_is_no_cause(self) -> None:
        over = [Pause("a", "b", "data", 20, None), Pause("b", "c", "data", 10, 15)]
        other = [Pause("a", "b", "data", 20, None), Pause("b", "c", "control", 10, None)]
        for pauses in (over, other):
            assert all(link.cause is None for link in spread_of_pauses(pauses))

    def test_a_circle_has_a_beginning(self) -> None:
        pauses = [Pause(f"s{k}", f"s{(k + 1) % 4}", "data", 40 - 10 * k, None) for k in range(4)]
        spread = spread_of_pauses(pauses)
        assert [link.depth for link in spread] == [0, 1, 2, 3]
