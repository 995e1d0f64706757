"""MSCCL programs in both dialects: what they become, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fabric.errors import SpecError
from fabric.formats.msccl_xml import STEP_TYPES, parse_msccl
from fabric.workload.collectives import check_template, explain
from fabric.workload.collectives.msccl import import_msccl


def step(
    number: int,
    kind: str,
    source: str,
    destination: str,
    *,
    count: int = 1,
    after: tuple[int, int] = (-1, -1),
) -> str:
    buffers = [
        f'{side}buf="{at[0]}" {side}off="{at[1:]}"' for side, at in (("src", source), ("dst", destination))
    ]
    waits = f'depid="{after[0]}" deps="{after[1]}" hasdep="0"'
    return f'<step s="{number}" type="{kind}" {" ".join(buffers)} cnt="{count}" {waits}/>'


def block(number: int, send: int, recv: int, *steps: str, channel: int = 0) -> str:
    lines = "\n".join(steps)
    return f'<tb id="{number}" send="{send}" recv="{recv}" chan="{channel}">\n{lines}\n</tb>'


def program(
    *gpus: str,
    coll: str = "allgather",
    chunks: int = 2,
    in_place: int = 1,
    buffers: str = "0 2 0",
    **more: object,
) -> str:
    i, o, s = buffers.split()
    head = f'<algo name="x" proto="Simple" nchannels="1" nchunksperloop="{chunks}" ngpus="{len(gpus)}" '
    extra = "".join(f' {key}="{value}"' for key, value in more.items())
    bodies = "\n".join(
        f'<gpu id="{rank}" i_chunks="{i}" o_chunks="{o}" s_chunks="{s}">\n{body}\n</gpu>'
        for rank, body in enumerate(gpus)
    )
    return f'{head}coll="{coll}" inplace="{in_place}"{extra}>\n{bodies}\n</algo>\n'


PAIR = program(
    block(0, 1, 1, step(0, "s", "o0", "o0"), step(1, "r", "o1", "o1")),
    block(0, 0, 0, step(0, "s", "o1", "o1"), step(1, "r", "o0", "o0")),
)
NEWER = """<!-- another dialect -->
<algo name="pair" proto="LL" nchannels="1" nchunksperloop="2" ngpus="2" coll="allgather" inplace="1"
  outofplace="0">
  <gpu id="0" i_chunks="0" o_chunks="2" s_chunks="0"><tb id="0" send="1" recv="1" chan="0">
    <op step="0" type="s" buf="o" off="0"/><op step="1" type="r" buf="o" off="1"/></tb></gpu>
  <gpu id="1" i_chunks="0" o_chunks="2" s_chunks="0"><tb id="0" send="0" recv="0" chan="0">
    <op step="0" type="s" buf="o" off="1"/><op step="1" type="r" buf="o" off="0"/></tb></gpu>
</algo>
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "some.xml"
    file.write_text(text)
    return file


@pytest.mark.parametrize("text", [PAIR, NEWER], ids=["step", "op"])
def test_both_dialects(tmp_path: Path, text: str) -> None:
    given = parse_msccl(written(tmp_path, text))
    assert [STEP_TYPES[each] for each in given.step_type] == ["s", "r", "s", "r"]
    assert (given.least_bytes, given.most_bytes) == (0, 2**27)
    template = import_msccl(given)
    assert (template.collective, template.n_ranks, template.n_messages) == ("all_gather", 2, 2)
    assert template.transfer_bytes(100).tolist() == [50, 50]
    check_template(template)


def all_reduce(in_place: int, out: str) -> str:
    """Two ranks exchange halves: each adds one, and sends it back."""
    gpus = []
    for rank in (0, 1):
        other = 1 - rank
        own = f"{out}{rank}"
        gpus.append(
            block(
                0,
                other,
                other,
                step(0, "s", f"i{other}", f"i{other}"),
                step(1, "rrcs", f"i{rank}", own),
                step(2, "r", f"i{other}", f"{out}{other}"),
            )
        )
    return program(*gpus, coll="allreduce", in_place=in_place, buffers="2 2 0" if out == "o" else "2 0 0")


@pytest.mark.parametrize(("in_place", "out"), [(1, "i"), (1, "o"), (0, "o")])
def test_in_and_out_of_place(tmp_path: Path, in_place: int, out: str) -> None:
    template = import_msccl(written(tmp_path, all_reduce(in_place, out)))
    assert template.n_messages == 4
    assert template.reduce.sum() == 2
    assert len(template.after) == 2


def test_scratch_and_local_reduction(tmp_path: Path) -> None:
    gpus = [
        block(0, 1, 1, step(0, "s", "i0", "s0"), step(1, "r", "s0", "s0"), step(2, "re", "s0", "i0")),
        block(0, 0, 0, step(0, "s", "i0", "s0"), step(1, "r", "s0", "s0"), step(2, "re", "s0", "i0")),
    ]
    template = import_msccl(written(tmp_path, program(*gpus, coll="allreduce", chunks=1, buffers="1 0 1")))
    assert template.reduce.tolist() == [1, 1]
    assert template.n_steps == 1


def test_other_thread_blocks_are_waited_for(tmp_path: Path) -> None:
    def rank(own: int, send: int, recv: int) -> str:
        return "\n".join(
            [
                block(
                    0,
                    -1,
                    recv,
                    step(0, "r", "o0", f"o{(own - 1) % 3}"),
                    step(1, "r", "o0", f"o{(own - 2) % 3}"),
                ),
                block(
                    1,
                    send,
                    -1,
                    step(0, "s", f"o{own}", "o0"),
                    step(1, "nop", "i-1", "o-1", count=0, after=(0, 0)),
                    step(2, "s", f"o{(own - 1) % 3}", "o0"),
                ),
            ]
        )

    text = program(rank(0, 1, 2), rank(1, 2, 0), rank(2, 0, 1), chunks=3, buffers="0 3 0")
    template = import_msccl(written(tmp_path, text))
    assert template.n_messages == 6
    assert len(template.after) == 3
    assert template.n_steps == 2


def test_broadcast_reduce_scatter_and_custom(tmp_path: Path) -> None:
    broadcast = program(
        block(0, -1, 1, step(0, "r", "i0", "o0")),
        block(0, 0, -1, step(0, "s", "i0", "o0")),
        coll="broadcast",
        chunks=1,
        in_place=0,
        buffers="1 1 0",
    )
    template = import_msccl(written(tmp_path, broadcast))
    assert (template.collective, template.root) == ("broadcast", 1)
    scatter = program(
        block(0, 1, 1, step(0, "s", "i1", "i1"), step(1, "rrc", "i0", "i0")),
        block(0, 0, 0, step(0, "s", "i0", "i0"), step(1, "rrc", "i1", "i1")),
        coll="reduce_scatter",
        buffers="2 1 0",
    )
    template = import_msccl(written(tmp_path, scatter))
    assert template.transfer_bytes(11).tolist() == [5, 6]
    reduce = program(
        block(0, -1, 1, step(0, "rrc", "i0", "i0")),
        block(0, 0, -1, step(0, "s", "i0", "i0")),
        coll="reduce",
        chunks=1,
        buffers="1 0 0",
    )
    template = import_msccl(written(tmp_path, reduce))
    assert (template.collective, template.root, template.reduce.tolist()) == ("reduce", 0, [1])
    template = import_msccl(written(tmp_path, PAIR.replace("allgather", "custom")))
    assert template.collective == "custom"


def test_all_to_all_by_distance(tmp_path: Path) -> None:
    gpus = [
        "\n".join(
            block(number, peer, peer, step(0, "s", f"i{peer}", f"o{own}"), step(1, "r", "i0", f"o{peer}"))
            for number, peer in enumerate(each for each in range(3) if each != own)
        )
        for own in range(3)
    ]
    text = program(*gpus, coll="alltoall", chunks=3, in_place=0, buffers="3 3 0")
    template = import_msccl(written(tmp_path, text))
    assert template.n_messages == 6
    assert np.array_equal(template.piece, (template.destination.astype(int) - template.source) % 3)


def test_sums_that_are_passed_on_as_they_came_and_added_to(tmp_path: Path) -> None:
    gpus = [
        "\n".join([block(0, 1, -1, step(0, "s", "i0", "s0")), block(1, -1, 1, step(0, "r", "i0", "i0"))]),
        "\n".join(
            [
                block(
                    0,
                    2,
                    0,
                    step(0, "r", "s0", "s0"),
                    step(1, "s", "s0", "i0"),
                    step(2, "s", "i0", "i0"),
                    step(3, "re", "s0", "i0"),
                ),
                block(1, 0, 2, step(0, "r", "i0", "i0", after=(0, 3)), step(1, "s", "i0", "i0")),
            ]
        ),
        block(0, 1, 1, step(0, "rrc", "i0", "i0"), step(1, "rrc", "i0", "i0"), step(2, "s", "i0", "i0")),
    ]
    text = program(*gpus, coll="allreduce", chunks=1, buffers="1 0 1")
    template = import_msccl(written(tmp_path, text))
    assert (template.collective, template.n_messages) == ("custom", 5)
    assert "nan" in str(explain(template, 1000))
    with pytest.raises(SpecError, match="rank 0: output chunk 0: without the contribution of rank 2"):
        import_msccl(written(tmp_path, damaged('type="rrc"', 'type="r"', text)))


def damaged(old: str, new: str, text: str = PAIR) -> str:
    assert old in text
    return text.replace(old, new, 1)


RECEIVE = step(1, "r", "o1", "o1")
DAMAGED = {
    "not xml": ("<algo", "XML"),
    "ends early": (PAIR[:200], "XML"),
    "another element": ('<topology name="x"/>', "an algo element"),
    "entities": ('<!DOCTYPE algo [<!ENTITY a "b">]>' + PAIR, "elements alone"),
    "no ranks": (damaged('ngpus="2"', 'ngpus="0"'), ":1 ngpus"),
    "ranks missing": (damaged('ngpus="2"', 'ngpus="3"'), "no gpu 2"),
    "rank twice": (damaged('gpu id="1"', 'gpu id="0"'), "another id than on line 2"),
    "no collective": (damaged('coll="allgather"', ""), ":1 coll"),
    "unknown collective": (damaged("allgather", "gossip"), "one of allreduce"),
    "unknown protocol": (damaged("Simple", "Fancy"), "one of Simple"),
    "chunks no number": (damaged('nchunksperloop="2"', 'nchunksperloop="two"'), ":1 nchunksperloop"),
    "chunks not divided": (damaged('nchunksperloop="2"', 'nchunksperloop="3"'), "a multiple of 2"),
    "to itself": (damaged('send="1"', 'send="0"'), ":3 send"),
    "to nobody": (damaged('send="1"', 'send="5"'), ":3 send"),
    "no channel": (damaged('chan="0"', 'chan="1"'), ":3 chan"),
    "sends without a peer": (damaged('send="1"', 'send="-1"'), ":4 type"),
    "steps out of order": (damaged('<step s="1"', '<step s="2"'), ":5 s"),
    "unknown type": (damaged('type="r"', 'type="rx"'), "one of nop"),
    "unknown buffer": (damaged('srcbuf="o"', 'srcbuf="q"'), ":4 srcbuf"),
    "outside the buffer": (damaged('dstoff="1"', 'dstoff="2"', PAIR), ":5 dstoff"),
    "no chunks": (damaged('cnt="1"', 'cnt="0"'), "at least one chunk"),
    "waits for no block": (damaged('depid="-1"', 'depid="4"'), ":4 depid"),
    "waits for itself": (damaged('depid="-1" deps="-1"', 'depid="0" deps="1"'), "another thread block"),
    "element inside": (damaged("<tb", "<xx/><tb"), "tb in gpu"),
    "element in block": (damaged('<step s="0"', '<stop s="0"'), "step or op"),
    "counts differ": (damaged(step(0, "s", "o0", "o0"), step(0, "s", "o0", "o0", count=2)), "nothing is"),
    "received twice": (damaged(RECEIVE, RECEIVE + step(2, "r", "o1", "o1")), "wait for ever"),
    "never received": (damaged(RECEIVE, ""), "nobody receives"),
    "wrong chunk": (damaged('dstoff="1"', 'dstoff="0"', PAIR), "rank 0"),
    "sends nothing": (damaged('srcoff="0"', 'srcoff="1"'), "in which nothing is"),
    "two blocks on one link": (
        damaged("</tb>", "</tb>" + block(1, 1, -1, step(0, "s", "o0", "o0"))),
        "a second thread block",
    ),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_programs_get_one_error(tmp_path: Path, case: str) -> None:
    text, what = DAMAGED[case]
    file = written(tmp_path, text)
    with pytest.raises(SpecError) as error:
        import_msccl(file)
    assert what in str(error.value)
    assert error.value.path.startswith(f"{file}:")


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('type="rrcs"', 'type="rcs"', "without the contribution of rank 0"),
        ('s="2" type="r"', 's="2" type="rrc"', "twice"),
        ('srcoff="0" dstbuf="i" dstoff="0"', 'srcoff="1" dstbuf="i" dstoff="0"', "parts of one chunk"),
        (step(0, "s", "i1", "i1"), step(0, "s", "i0", "i0", count=2), "chunks, as line"),
    ],
)
def test_what_it_does_is_checked(tmp_path: Path, old: str, new: str, what: str) -> None:
    with pytest.raises(SpecError, match=what):
        import_msccl(written(tmp_path, damaged(old, new, all_reduce(1, "i"))))


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="an existing file"):
        import_msccl(tmp_path / "absent.xml")
