"""Chakra traces as programs: small ones written here, and what does not fit together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support_chakra import attribute, collective, node, put, receive, send, traces
from support_chakra_programs import ALL_REDUCE, OWN, US, after, waits

from fabric._core import Engine
from fabric.errors import SpecError
from fabric.lower import lower
from fabric.spec import Permutation, Scenario, SingleSwitch
from fabric.workload.chakra import import_chakra
from fabric.workload.job import Job

ALL_GATHER = 2
BROADCAST = 5
BARRIER = 9


class TestImport:
    def test_a_send_meets_a_receive(self, tmp_path: Path) -> None:
        file = traces(
            tmp_path,
            node(1, 4, put(7, 3)) + send(2, 1, 500, after(1)),
            receive(9, 0, 500) + node(4, 4, after(9), put(7, 5)),
        )
        program, remarks = import_chakra(file)
        assert not remarks
        assert (program.n_ranks, len(program), program.n_messages) == (2, 3, 1)
        assert program.size_bytes.tolist() == [500, 0, 0]
        assert program.compute_ps.tolist() == [0, 3 * US, 5 * US]
        assert [program.ranks_of(each).tolist() for each in range(3)] == [[0, 1], [0], [1]]
        assert waits(program) == {(0, 0, 1), (1, 2, 0)}
        assert program.eager.tolist()[0]

    def test_a_wait_is_of_one_rank_alone(self, tmp_path: Path) -> None:
        """The sender orders its two messages, the receiver does not."""
        file = traces(
            tmp_path,
            send(1, 1, 10, tag=1) + send(2, 1, 20, after(1), tag=2),
            receive(1, 0, 10, tag=1) + receive(2, 0, 20, tag=2),
        )
        program, _ = import_chakra(file)
        assert waits(program) == {(0, 1, 0)}

    def test_messages_of_one_tag_meet_in_the_order_of_issue(self, tmp_path: Path) -> None:
        """Not of the file: node 3 is issued first, though it stands last."""
        file = traces(
            tmp_path,
            send(5, 1, 50, after(3)) + send(3, 1, 30),
            receive(7, 0, 50, after(6)) + receive(6, 0, 30),
        )
        program, _ = import_chakra(file)
        assert program.size_bytes.tolist() == [30, 50]

    def test_sizes_of_collectives(self, tmp_path: Path) -> None:
        """An all-gather's is one rank's part; elements have bytes."""
        own = collective(1, ALL_REDUCE, 1000, name="a") + collective(2, ALL_GATHER, 1000, name="b")
        file = traces(tmp_path, own, own, own, own)
        assert import_chakra(file)[0].size_bytes.tolist() == [1000, 4000]
        assert import_chakra(file, element_bytes=2)[0].size_bytes.tolist() == [2000, 8000]

    def test_collectives_belong_together_by_name(self, tmp_path: Path) -> None:
        one = collective(1, ALL_REDUCE, 8, name="x") + collective(2, ALL_REDUCE, 16, name="y")
        other = collective(1, ALL_REDUCE, 16, name="y") + collective(2, ALL_REDUCE, 8, name="x")
        assert import_chakra(traces(tmp_path, one, other))[0].size_bytes.tolist() == [8, 16]

    def test_or_by_order_where_names_differ(self, tmp_path: Path) -> None:
        one = collective(1, ALL_REDUCE, 8, name="rank 0, b") + collective(2, ALL_REDUCE, 16, name="rank 0, a")
        other = collective(1, ALL_REDUCE, 8, name="rank 1") + collective(2, ALL_REDUCE, 16, name="rank 1")
        assert import_chakra(traces(tmp_path, one, other))[0].size_bytes.tolist() == [8, 16]

    @pytest.mark.parametrize("group", ["", "0"])
    def test_no_group_is_all_ranks(self, tmp_path: Path, group: str) -> None:
        own = collective(1, ALL_REDUCE, 8, group=group)
        program, _ = import_chakra(traces(tmp_path, own, own, own))
        assert program.ranks_of(0).tolist() == [0, 1, 2]

    def test_groups_beside_the_traces_or_named(self, tmp_path: Path) -> None:
        own = collective(1, ALL_REDUCE, 8, group="7")
        file = traces(tmp_path, own, own, groups='{"7": [1, 0]}')
        assert import_chakra(file)[0].ranks_of(0).tolist() == [1, 0]
        named = tmp_path / "mine.json"
        named.write_text('{"7": [0, 1]}')
        assert import_chakra(file, groups=named)[0].ranks_of(0).tolist() == [0, 1]
        (tmp_path / "w.comm_groups.json").write_text('{"7": [0]}')
        with pytest.raises(SpecError, match="a group with rank 1 in it"):
            import_chakra(file)

    def test_the_root_is_first(self, tmp_path: Path) -> None:
        own = collective(1, BROADCAST, 9, attribute("comm_src", 2, arm=7))
        program, _ = import_chakra(traces(tmp_path, own, own, own))
        assert program.ranks_of(0).tolist() == [2, 0, 1]
        barrier = collective(1, BARRIER, 0)
        assert import_chakra(traces(tmp_path, barrier, barrier, barrier))[0].size_bytes.tolist() == [0]

    def test_algorithms(self, tmp_path: Path) -> None:
        own = collective(1, ALL_REDUCE, 8, attribute("algorithm", "direct"))
        file = traces(tmp_path, *[own] * 4)
        assert import_chakra(file)[0].templates[0].name == "direct"
        asked = import_chakra(file, algorithms={"all_reduce": "halving_doubling"})[0]
        assert asked.templates[0].name == "halving_doubling"
        plain = traces(tmp_path, *[collective(1, ALL_REDUCE, 8)] * 4)
        assert import_chakra(plain)[0].templates[0].name == "ring"

    def test_operations_without_a_time(self, tmp_path: Path) -> None:
        file = traces(tmp_path, node(1, 4, attribute("num_ops", 5000)))
        program, remarks = import_chakra(file)
        assert program.compute_ps.tolist() == [0]
        assert ["flops" in str(each) for each in remarks] == [True]
        program, remarks = import_chakra(file, flops=1e9)
        assert (program.compute_ps.tolist(), remarks) == ([5 * US], [])

    def test_computation_is_done_one_at_a_time(self, tmp_path: Path) -> None:
        """The smallest number of what is ready first; a CPU computes beside the accelerator."""
        loose = (
            node(3, 4, put(7, 1))
            + node(2, 4, after(9), put(7, 1))
            + node(9, 4, put(7, 1))
            + node(4, 4, put(7, 2))
            + node(1, 4, put(7, 5), attribute("is_cpu_op", 1))
            + node(5, 4)
        )
        program, remarks = import_chakra(traces(tmp_path, loose))
        assert [str(each.what) for each in remarks] == ["computation of 1 ranks that nothing orders"]
        times = (program.compute_ps // US).tolist()
        assert times == [5, 1, 2, 0, 1, 1]
        assert waits(program) == {(0, 2, 1), (0, 4, 2), (0, 5, 4)}

    def test_one_chain_needs_no_order(self, tmp_path: Path) -> None:
        chain = node(1, 4, put(7, 1)) + node(2, 1, after(1)) + node(3, 4, after(2), put(7, 1))
        program, remarks = import_chakra(traces(tmp_path, chain))
        assert len(program.wait_task) == 2
        assert "nothing orders" not in str(remarks)

    def test_the_order_is_that_of_an_execution(self, tmp_path: Path) -> None:
        """By number alone, rank 0 would wait with node 2 for node 1, which waits for what follows node 2."""
        file = traces(
            tmp_path,
            node(1, 4, after(7), put(7, 1))
            + receive(7, 1, 8)
            + node(2, 4, put(7, 1))
            + send(3, 1, 8, after(2)),
            receive(7, 0, 8) + node(1, 4, after(7), put(7, 1)) + send(2, 0, 8, after(1)),
        )
        program, _ = import_chakra(file)
        order = waits(program)
        computes = {int(program.ranks_of(each)[0]): [] for each in range(2, 5)}
        for each in range(2, 5):
            computes[int(program.ranks_of(each)[0])].append(each)
        one, two = computes[0]
        assert (0, two, one) in order or (0, one, two) in order
        program.verify()
        with_hosts = Job(program=program, hosts=[0, 1])
        scenario = Scenario(topology=SingleSwitch(hosts=2), traffic=[Permutation(size="1KB")])
        engine = Engine(lower(scenario, jobs=[with_hosts]))
        assert engine.run() == "FINISHED"

    def test_other_nodes_take_their_time(self, tmp_path: Path) -> None:
        program, remarks = import_chakra(traces(tmp_path, node(1, 2, put(7, 4)) + node(2, 10, after(1))))
        assert program.compute_ps.tolist() == [4 * US, 0]
        assert [each.what for each in remarks] == ["accesses to memory and storage, metadata"]


BAD: dict[str, tuple[tuple[bytes, ...], str | None, str]] = {
    "a send without a receive": ((send(1, 1, 5), b""), None, r"w\.0\.et: byte 9 \(node 1\) message to 1"),
    "a receive without a send": ((b"", receive(1, 0, 5)), None, r"w\.1\.et.*message from 0, tag 0"),
    "tags that differ": ((send(1, 1, 5, tag=1), receive(1, 0, 5)), None, "alone"),
    "sizes that differ": ((send(1, 1, 5), receive(3, 0, 6)), None, r"w\.1\.et.*6.*5, as node 1 of rank 0"),
    "a message to oneself": ((send(1, 0, 5),), None, "comm_dst: 0.*another rank"),
    "a message to nobody": ((send(1, 7, 5), b""), None, "comm_dst: 7.*below 2"),
    "no receiver": ((node(1, 5, attribute("comm_size", 5)),), None, r"comm_dst: \(missing\)"),
    "no size": ((node(1, 5, attribute("comm_dst", 1)), b""), None, r"comm_size: \(missing\)"),
    "another's send": (
        (send(1, 1, 5, attribute("comm_src", 1)), receive(1, 0, 5)),
        None,
        "comm_src: 1.*the rank of the trace",
    ),
    "a circle": (
        (node(3, 4, after(4)) + node(4, 4, after(3)),),
        None,
        r"node 3 after 4 after 3.*do not wait for themselves",
    ),
    "no group file": ((collective(1, 0, 8, group="3"),), None, "pg_name: '3'.*a file of groups"),
    "no such group": ((collective(1, 0, 8, group="3"),), '{"1": [0]}', "'3'.*comm_groups.json"),
    "not in its group": ((OWN, collective(1, 0, 8, group="1")), '{"1": [0]}', "a group with rank 1"),
    "a group of strangers": ((OWN,), '{"1": [0, 5]}', "group '1': 5.*ranks from 0 to 0"),
    "group 0 of some": ((OWN, OWN), '{"0": [0]}', "all ranks"),
    "one more collective": (
        (OWN + collective(2, 0, 8, name="d"), OWN),
        None,
        r"w\.0\.et.*node 2.*all ranks: 1 collectives on rank 1, 2 on rank 0",
    ),
    "a rank without it": ((OWN, b""), None, r"0 collectives on rank 1, 1 on rank 0"),
    "two types": ((OWN, collective(1, 2, 8)), None, r"w\.1\.et.*all_gather of 8.*all_reduce of 8, as node 1"),
    "two sizes": ((OWN, collective(1, 0, 9)), None, r"all_reduce of 9.*all_reduce of 8"),
    "no type": ((node(1, 7, attribute("comm_size", 8)),), None, r"comm_type: \(missing\).*written 0"),
    "a collective without a size": (
        (node(1, 7, attribute("comm_type", 0)),),
        None,
        r"comm_size: \(missing\)",
    ),
    "too large": ((*[collective(1, 2, 2**61)] * 3,), None, "at most 4611686018427387904"),
    "too long": ((node(1, 4, put(7, 2**50)),), None, "duration.*at most"),
    "a root elsewhere": ((collective(1, 5, 8, attribute("comm_src", 4)),), None, "root: 4"),
    "no such algorithm": ((collective(1, 0, 8, attribute("algorithm", "pigeon")),), None, "'pigeon'"),
    "nothing": ((b"", b""), None, "traces without a node"),
}


@pytest.mark.parametrize("case", BAD)
def test_traces_that_do_not_fit_each_other(tmp_path: Path, case: str) -> None:
    by_rank, groups, words = BAD[case]
    with pytest.raises(SpecError, match=words) as error:
        import_chakra(traces(tmp_path, *by_rank, groups=groups))
    assert str(error.value).startswith(str(tmp_path))


def test_files_that_are_missing(tmp_path: Path) -> None:
    traces(tmp_path, OWN, OWN, OWN)
    (tmp_path / "w.1.et").unlink()
    with pytest.raises(SpecError, match=r"w\.1\.et: nothing.*each rank from 0 to 2"):
        import_chakra(tmp_path / "w.2.et")
    (tmp_path / "w.et").write_bytes(b"")
    with pytest.raises(SpecError, match=r"such as w\.0\.et"):
        import_chakra(tmp_path / "w.et")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"element_bytes": 0}, "element_bytes"),
        ({"flops": 0.0}, "flops"),
        ({"flops": float("nan")}, "flops"),
        ({"algorithms": {"all_reduces": "ring"}}, "all_reduces"),
        ({"algorithms": {"all_reduce": "pigeon"}}, "algorithms.all_reduce: 'pigeon'"),
    ],
)
def test_options_that_are_none(tmp_path: Path, given: dict[str, Any], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        import_chakra(traces(tmp_path, OWN, OWN), **given)
