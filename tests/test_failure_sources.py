"""Failures by chance and from logs: rates, keyed draws, replay, errors with the line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support_failures import MS, US, fabric_of

import fabric
from fabric.errors import SpecError
from fabric.failures import find_occurrences, network_failures, read_log
from fabric.failures.draw import PURPOSE_FAILURES, draw_times
from fabric.failures.occurrences import NEVER_PS
from fabric.keyed_hash import purpose_key
from fabric.lower import lower
from fabric.spec import (
    DrawnFailures,
    FailureLog,
    FailureRates,
    LeafSpine,
    Permutation,
)
from fabric.topology import build_network


class TestChance:
    def test_draws_have_the_mean_and_variance_of_a_poisson_process(self) -> None:
        """1,000 parts over a hundredth of their mean time, 400 seeds: 3 standard errors."""
        counts = []
        for seed in range(400):
            key = purpose_key(seed, PURPOSE_FAILURES)
            parts, times = draw_times(1000, mean_ps=1e6, horizon_ps=10_000, key=key)
            assert np.all((times >= 0) & (times < 10_000))
            counts.append(len(parts))
        mean, variance = np.mean(counts), np.var(counts, ddof=1)
        assert abs(mean - 10) < 3 * (10 / 400) ** 0.5
        assert abs(variance - 10) < 3 * ((10 + 2 * 100) / 400) ** 0.5

    def test_every_class_of_part_fails_at_its_rate(self) -> None:
        network = build_network(
            fabric.Clos3(pods=4, leaves_per_pod=2, spines_per_pod=2, hosts_per_leaf=4, cores=4)
        )
        for name, units in (
            ("accelerator", 32),
            ("nic", 32),
            ("optic", 2 * network.n_links),
            ("link", network.n_links),
            ("leaf", 8),
            ("spine", 8),
            ("core", 4),
        ):
            rates = FailureRates(**dict.fromkeys(FailureRates.__struct_fields__, 0.0) | {name: 1.0})
            entry = DrawnFailures(lasts="1s", rates=rates, acceleration=8760 * 3600 * 100 / units)
            count = np.mean([len(list(network_failures(entry, network, seed=seed))) for seed in range(60)])
            assert abs(count - 100) < 4 * (100 / 60) ** 0.5, name

    def test_rates_are_those_of_the_reliability_model(self) -> None:
        """Per unit and year there as here; an optic is half a link."""
        rates = FailureRates()
        for name, device in fabric.reliability.DEVICES.items():
            assert getattr(rates, name) == pytest.approx(device.rate_per_hour * 8760, rel=0.01), name
        assert rates.optic == rates.link / 2

    def test_one_part_does_not_depend_on_others(self) -> None:
        small, large = (build_network(LeafSpine(leaves=n, spines=2, hosts_per_leaf=2)) for n in (2, 4))
        rates = FailureRates(**dict.fromkeys(FailureRates.__struct_fields__, 0.0) | {"accelerator": 1.0})
        entry = DrawnFailures(lasts="1ms", rates=rates, acceleration=1e11)
        mine = {(each.host, each.at) for each in network_failures(entry, small, seed=5)}
        theirs = {(each.host, each.at) for each in network_failures(entry, large, seed=5)}
        assert mine
        assert mine < theirs

    def test_drawn_and_replayed_do_the_same(self, tmp_path: Path) -> None:
        entry = DrawnFailures(lasts="40us", acceleration=3e13, repair="8us")
        drawn = fabric_of(failures=[entry], traffic=[Permutation(size="2MB", cross_leaf=True)])
        network = build_network(drawn.topology)
        lines = ["at,lasts,kind,target,value"]
        for each in network_failures(entry, network, seed=1):
            target = next(getattr(each, name) for name in ("link", "switch", "host") if hasattr(each, name))
            kind, value = type(each).__struct_config__.tag, getattr(each, "bit_error_rate", "")
            lines.append(f"{int(each.at)},{int(each.lasts or 0)},{kind},{target},{value}")
        log = tmp_path / "faults.csv"
        log.write_text("\n".join(lines) + "\n")
        assert len(lines) > 4
        replayed = drawn.replace(failures=[FailureLog(file=str(log))])
        assert find_occurrences(drawn, network) == find_occurrences(replayed, network)
        results = [fabric.run(each, progress=False).fingerprint for each in (drawn, replayed)]
        assert results[0] == results[1]
        other = fabric.run(drawn.replace(run=drawn.run.replace(seed=2)), progress=False)
        assert other.fingerprint != results[0]

    def test_a_log_reproduces_every_beginning_and_end(self, tmp_path: Path) -> None:
        log = tmp_path / "faults.csv"
        log.write_text(
            "kind,target,at,lasts,value\n"
            "link_down,leaf0-spine1,1.5ms,200us,\n"
            "\n"
            "degraded_link,leaf0->spine0,10,5,100Gbps\n"
            "switch_down,spine1,2ms,,\n"
        )
        scenario = fabric_of(failures=[FailureLog(file=str(log))])
        found = find_occurrences(scenario, build_network(scenario.topology))
        assert [(each.target, each.began_ps, each.ended_ps) for each in found] == [
            ("leaf0->spine0", 10, 15),
            ("leaf0-spine1", 1_500 * US, 1_700 * US),
            ("spine1", 2 * MS, NEVER_PS),
        ]


BAD_LOGS = {
    "no column": ("at,kind\n", "{file}:1", "'at,kind'", "a column target"),
    "unknown column": ("at,kind,traget\n", "{file}:1", "'traget'", 'did you mean "target"?'),
    "unknown kind": ("at,kind,target\n1us,link_dwon,a-b\n", "{file}:2: kind", "'link_dwon'", '"link_down"'),
    "too few cells": ("at,kind,target\n1us,link_down\n", "{file}:2", "'1us,link_down'", "3 cells"),
    "no time": ("at,kind,target\nsoon,link_down,a-b\n", "{file}:2: at", "'soon'", "a duration"),
    "no target": ("at,kind,target\n1us,link_down,\n", "{file}:2: target", "(missing)", "a string"),
    "no such link": (
        "at,kind,target\n1us,link_down,leaf0-spine9\n",
        "{file}:2.link",
        "'leaf0-spine9'",
        "two ends of a link",
    ),
    "value where none belongs": (
        "at,kind,target,value\n\n1us,host_hang,host0,3\n",
        "{file}:3: value",
        "'3'",
        "nothing",
    ),
    "no rate": ("at,kind,target,value\n1us,slow_nic,host0,fast\n", "{file}:2: value", "'fast'", "a rate"),
    "no error rate": (
        "at,kind,target,value\n1us,corruption,leaf0-spine0,0.5\n",
        "{file}:2: value",
        "0.5",
        "at most 1e-6",
    ),
}


@pytest.mark.parametrize("name", BAD_LOGS)
def test_bad_logs_give_one_error_with_the_line(name: str, tmp_path: Path) -> None:
    text, path, value, allowed = BAD_LOGS[name]
    log = tmp_path / "faults.csv"
    log.write_text(text)
    with pytest.raises(SpecError) as caught:
        lower(fabric_of(failures=[FailureLog(file=str(log))]))
    message = str(caught.value)
    assert path.format(file=log) in message
    assert value in message
    assert allowed in message


def test_a_log_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"failures\[0\].file.*that can be read"):
        lower(fabric_of(failures=[FailureLog(file=str(tmp_path / "none.csv"))]))
    assert read_log.__doc__
