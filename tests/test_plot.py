"""Pictures: they say what is in the result, and no text lies on another."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import to_hex
from matplotlib.text import Text

from fabric import plot
from fabric.errors import FabricError
from fabric.plot.queues import matching_links
from fabric.plot.steps import covered, envelope
from fabric.plot.style import COLOURS, spaced, spread
from fabric.result import Category, Result, Table
from fabric.result.text import size_text
from fabric.simulate import run
from fabric.spec import (
    Clos3,
    Ecn,
    FatTree,
    Incast,
    LeafSpine,
    Lossy,
    Permutation,
    Pfc,
    QueueRecord,
    RailOptimized,
    Record,
    Scenario,
    SingleSwitch,
    Switch,
    TrafficClass,
)
from fabric.topology import build_network

CONGESTED = Scenario(
    name="incast",
    question="Where does a queue build?",
    topology=LeafSpine(leaves=2, spines=2, hosts_per_leaf=4),
    traffic=(
        Incast(receivers=("host0",), senders=6, size="100KB"),
        Permutation(size="30KB"),
    ),
    switch=Switch(buffer="1MB", pfc=Pfc(xoff="20KB"), ecn=Ecn(kmin="20KB", kmax="60KB")),
    record=Record(queues=QueueRecord(delta=1), pauses=True, marks=True, rates=("incast", "permutation")),
)

Drawing = Callable[..., Axes]
DRAWINGS: list[Drawing] = [plot.queues, plot.fct_cdf, plot.slowdown_by_size, plot.utilisation, plot.rates]


@pytest.fixture(scope="module")
def congested() -> Result:
    return run(CONGESTED, engine="reference", progress=False)


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    plt.close("all")


def texts_of(ax: Axes) -> list[Text]:
    ax.figure.draw_without_rendering()
    labels = [*ax.get_xticklabels(), *ax.get_yticklabels(), ax.xaxis.label, ax.yaxis.label]
    if not ax.axison:
        labels = []
    titles = [ax.title, ax._left_title]  # type: ignore[attr-defined]
    return [text for text in [*ax.texts, *titles, *labels] if text.get_text() and text.get_visible()]


def overlapping(ax: Axes) -> list[tuple[str, str]]:
    """Return the pairs of texts whose letters touch."""
    boxes = [(text.get_text(), text.get_window_extent().padded(-1)) for text in texts_of(ax)]
    return [(one, other) for (one, a), (other, b) in combinations(boxes, 2) if a.overlaps(b)]


def heading(ax: Axes) -> str:
    return ax.get_title(loc="left")


def everything(ax: Axes) -> str:
    return "\n".join(text.get_text() for text in texts_of(ax))


def strips_below(ax: Axes) -> dict[str, Axes]:
    return {heading(one): one for one in ax.figure.axes if one is not ax}


def area(strip: Axes, *, of: str = "collections") -> float:
    """Return the area of the stack or the stairs that a strip shows."""
    total = 0.0
    for layer in getattr(strip, of):
        path = layer.get_path() if of == "patches" else layer.get_paths()[0]
        x, y = path.vertices[:, 0], path.vertices[:, 1]
        total += abs(float(np.dot(x[:-1], y[1:]) - np.dot(x[1:], y[:-1]))) / 2
    return total


class TestEveryPicture:
    @pytest.mark.parametrize("draw", DRAWINGS)
    def test_no_text_lies_on_another(self, draw: Drawing, congested: Result) -> None:
        assert overlapping(draw(congested)) == []

    @pytest.mark.parametrize("draw", DRAWINGS)
    def test_draws_on_given_axes_and_returns_them(self, draw: Drawing, congested: Result) -> None:
        figure, ax = plt.subplots()
        assert draw(congested, ax=ax) is ax
        assert heading(ax)
        assert plt.get_fignums() == [figure.number]

    @pytest.mark.parametrize("draw", DRAWINGS)
    def test_leaves_the_settings_of_matplotlib_alone(self, draw: Drawing, congested: Result) -> None:
        before = dict(mpl.rcParams)
        draw(congested)
        assert dict(mpl.rcParams) == before

    @pytest.mark.parametrize(
        ("image_format", "magic"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")]
    )
    def test_images(self, image_format: str, magic: bytes, congested: Result) -> None:
        image = plot.to_image(plot.fct_cdf(congested), format=image_format)
        assert image.startswith(magic)
        assert plt.get_fignums() == []


class TestWords:
    def test_one_is_one(self) -> None:
        assert heading(plot.topology(build_network(SingleSwitch(hosts=2)))) == "2 hosts, 1 switch, 2 cables"

    def test_the_rate_of_one_flow_is_of_one_flow(self) -> None:
        result = run(
            CONGESTED.replace(record=CONGESTED.record.replace(rates=("incast#3",))), engine="reference"
        )
        names = list(strips_below(plot.queues(result)))
        assert any("mean of 1 flow (" in name for name in names), names

    def test_a_rate_that_does_not_change_is_no_range(self) -> None:
        scenario = CONGESTED.replace(
            traffic=(Permutation(size="8KB", count=1),), record=Record(rates=("permutation",))
        )
        title = heading(plot.rates(run(scenario, engine="reference")))
        assert title == "8 flows send at 400 Gbit/s"

    def test_letters_that_the_font_lacks_are_no_warning(self, congested: Result) -> None:
        origin = dataclasses.replace(congested.provenance, name="渋滞", question="どこ?")
        result = dataclasses.replace(congested, provenance=origin)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert plot.to_image(plot.queues(result)).startswith(b"\x89PNG")


class TestQueues:
    def test_samples_do_not_hide_the_peak(self) -> None:
        sampled = Record(queues=QueueRecord(interval="2us"))
        result = run(CONGESTED.replace(record=sampled), engine="reference")
        fullest = result.summary["fullest_queues"][0]
        exact, link = fullest["queue_peak_bytes"], fullest["link"]
        assert exact > result.queue["queue_bytes"].max()
        ax = plot.queues(result)
        shown = spaced(size_text(exact))
        assert heading(ax) == f"The queue of {link.replace('->', '→')} reaches {shown}"
        assert f"peak {shown}" in everything(ax)
        assert "peaks are exact" in everything(ax)

    def test_the_title_names_the_fullest_queue(self, congested: Result) -> None:
        fullest = congested.ports.sort("queue_peak_bytes", descending=True)
        ax = plot.queues(congested)
        assert heading(ax).startswith(f"The queue of {fullest['link'][0].replace('->', '→')} reaches ")
        assert "incast: Where does a queue build?" in everything(ax)

    def test_curves_hold_the_recorded_peaks(self, congested: Result) -> None:
        ax = plot.queues(congested)
        unit = {"Queue (KB)": 1e3, "Queue (B)": 1.0}[ax.get_ylabel()]
        curves = [line for line in ax.lines if len(line.get_ydata()) > 2]
        drawn = sorted(float(np.max(np.asarray(line.get_ydata()))) * unit for line in curves)
        peaks = np.sort(congested.classes["queue_peak_bytes"])[-len(curves) :]
        assert drawn == pytest.approx(peaks.tolist())
        assert ax.get_ylim()[1] * unit > max(drawn)

    def test_thresholds_are_shown(self, congested: Result) -> None:
        ax = plot.queues(congested)
        assert "ECN kmin\n20 KB" in everything(ax)
        assert "ECN kmax\n60 KB" in everything(ax)

    def test_what_was_recorded_stands_in_strips_below(self, congested: Result) -> None:
        strips = strips_below(plot.queues(congested))
        assert list(strips) == [
            "Ports paused by PFC",
            "Frames marked by ECN, per µs",
            f"Rate allowed by congestion control, mean of {len(congested.flows)} flows (Gbit/s)",
        ]
        unit_ps = 1e6
        pauses = congested.pauses
        paused_ps = float((pauses["end_ps"] - pauses["begin_ps"]).sum())
        assert area(strips["Ports paused by PFC"]) * unit_ps == pytest.approx(paused_ps)
        assert area(strips["Frames marked by ECN, per µs"]) == pytest.approx(len(congested.marks))

    def test_drops_have_a_strip(self) -> None:
        lossy = TrafficClass(name="data", pfc=False, lossy=Lossy(limit="10KB"))
        switch = Switch(classes=(lossy, TrafficClass(name="control", priority=7, pfc=False)))
        record = Record(queues=QueueRecord(delta=1), drops=True)
        result = run(CONGESTED.replace(switch=switch, record=record), engine="reference", progress=False)
        strips = strips_below(plot.queues(result))
        assert list(strips) == ["Frames dropped, per µs"]
        strip = strips["Frames dropped, per µs"]
        assert strip.get_xlabel() == "Time (ms)"
        assert 1000 * area(strip, of="patches") == pytest.approx(len(result.drops))

    def test_a_strip_is_labelled_where_nothing_else_is(self, congested: Result) -> None:
        ax = plot.queues(congested)
        assert ax.get_xlabel() == ""
        labels = [one.get_xlabel() for one in strips_below(ax).values()]
        assert labels == ["", "", "Time (µs)"]
        for strip in strips_below(ax).values():
            assert overlapping(strip) == []
            assert strip.get_xlim() == ax.get_xlim()

    def test_what_did_not_happen_has_no_strip(self, congested: Result) -> None:
        nothing = {name: congested.tables[name][:0] for name in ("pauses", "marks", "rates")}
        ax = plot.queues(dataclasses.replace(congested, tables={**congested.tables, **nothing}))
        assert strips_below(ax) == {}
        assert ax.get_xlabel() == "Time (µs)"

    def test_axes_outside_a_grid_hold_the_queues_alone(self, congested: Result) -> None:
        ax = plt.figure().add_axes((0.1, 0.1, 0.6, 0.7))
        assert strips_below(plot.queues(congested, ax=ax)) == {}

    def test_far_thresholds_are_named_instead_of_drawn(self, congested: Result) -> None:
        columns = {name: congested.classes.raw(name) for name in congested.classes.columns}
        columns["ecn_kmin_bytes"] = np.full(len(congested.classes), 800_000)
        columns["ecn_kmax_bytes"] = np.full(len(congested.classes), 3_200_000)
        tables = {**congested.tables, "classes": Table(columns, name="classes")}
        ax = plot.queues(dataclasses.replace(congested, tables=tables))
        assert "ECN marks from 800 KB to 3.2 MB" in everything(ax)
        assert "kmin" not in everything(ax)

    def test_ports_are_chosen_by_pattern(self, congested: Result) -> None:
        ax = plot.queues(congested, ports="leaf0->host0")
        assert heading(ax).startswith("The queue of leaf0→host0")
        assert sum("peak" in text.get_text() for text in ax.texts) <= 2

    def test_an_idle_end_is_cut_off_and_said(self, congested: Result) -> None:
        longer = dataclasses.replace(congested, duration_ps=congested.duration_ps * 10)
        ax = plot.queues(longer)
        assert "No further change until the end of the run" in everything(ax)

    def test_what_was_not_recorded_cannot_be_drawn(self, congested: Result) -> None:
        bare = dataclasses.replace(congested, recorded=frozenset())
        with pytest.raises(FabricError, match=r"set record\.queues"):
            plot.queues(bare)
        with pytest.raises(FabricError, match=r"set record\.rates"):
            plot.rates(bare)
        with pytest.raises(FabricError, match="no port matches 'leaf9'"):
            plot.queues(congested, ports="leaf9")
        with pytest.raises(FabricError, match=r"no queue of 'host0->\*' changed"):
            plot.queues(congested, ports="host0->*")

    def test_patterns_of_ports(self) -> None:
        result = run(
            Scenario(
                topology=LeafSpine(leaves=2, spines=1, hosts_per_leaf=1, links_per_pair=2),
                traffic=(Permutation(size="1KB"),),
            ),
            engine="reference",
            progress=False,
        )
        assert matching_links(result, "leaf0->spine0") == {"leaf0->spine0#0", "leaf0->spine0#1"}
        assert matching_links(result, "leaf0->spine0#1") == {"leaf0->spine0#1"}
        assert matching_links(result, "leaf0:0") == {"leaf0->host0"}
        assert matching_links(result, "host?") == {"host0->leaf0", "host1->leaf1"}
        assert matching_links(result, "*->host1") == {"leaf1->host1"}


class TestCompletion:
    def test_the_curves_end_at_all_flows(self, congested: Result) -> None:
        ax = plot.fct_cdf(congested)
        assert [float(np.asarray(line.get_ydata())[-1]) for line in ax.lines] == [100.0, 100.0]
        assert "incast (6)" in everything(ax)
        assert "permutation (8)" in everything(ax)

    def test_flows_that_were_not_delivered_count(self) -> None:
        result = run(CONGESTED, engine="reference", until="12us", progress=False)
        missing = int((result.flows["fct_ps"] < 0).sum())
        assert 0 < missing < len(result.flows)
        ax = plot.fct_cdf(result)
        assert f"{missing} of 14 flows were not delivered" in everything(ax)
        assert min(float(np.asarray(line.get_ydata())[-1]) for line in ax.lines) < 100

    def test_nothing_delivered_is_an_error(self) -> None:
        result = run(CONGESTED, engine="reference", until="1us", progress=False)
        for draw in (plot.fct_cdf, plot.slowdown_by_size):
            with pytest.raises(FabricError, match="no flow was delivered"):
                draw(result)

    def test_slowdown_has_a_dot_for_every_flow(self, congested: Result) -> None:
        ax = plot.slowdown_by_size(congested)
        dots = next(line for line in ax.lines if line.get_marker() == ".")
        np.testing.assert_array_equal(np.sort(dots.get_ydata()), np.sort(congested.flows["slowdown"]))
        assert [label.get_text() for label in ax.get_xticklabels()] == ["30 KB", "100 KB"]

    def test_wide_spreads_stand_on_logarithmic_axes(self, congested: Result) -> None:
        flows = congested.flows
        columns = {name: flows.raw(name) for name in flows.columns}
        columns["fct_ps"] = 10 ** np.linspace(6, 10, len(flows)).round().astype(np.int64)
        columns["slowdown"] = np.geomspace(1, 1e4, len(flows))
        columns["size_bytes"] = 10 ** (np.arange(len(flows)) % 8)
        tables = {**congested.tables, "flows": Table(columns, name="flows")}
        wide = dataclasses.replace(congested, tables=tables)
        for draw in (plot.fct_cdf, plot.slowdown_by_size):
            ax = draw(wide)
            assert ax.get_xscale() == "log"
            assert overlapping(ax) == []
        assert "100 µs" in [label.get_text() for label in plot.fct_cdf(wide).get_xticklabels()]


class TestUtilisation:
    def test_blocks_follow_a_frame_through_the_tiers(self, congested: Result) -> None:
        ax = plot.utilisation(congested)
        blocks = [part for part in ax.collections if isinstance(part, QuadMesh)]
        assert [np.shape(block.get_array()) for block in blocks] == [(2, 4), (2, 2), (2, 2), (2, 4)]
        headers = [text.get_text().split("\n")[0] for text in ax.texts if "mean" in text.get_text()]
        assert headers == ["host→leaf", "leaf→spine", "spine→leaf", "leaf→host"]
        shares = np.concatenate([np.ravel(block.get_array()) for block in blocks])
        np.testing.assert_array_equal(np.sort(shares), np.sort(congested.ports["utilisation"]))

    def test_rows_are_leaves_in_every_block(self, congested: Result) -> None:
        ax = plot.utilisation(congested)
        last = [part for part in ax.collections if isinstance(part, QuadMesh)][-1]
        wanted = congested.ports.where(link="leaf1->host?")["utilisation"]
        np.testing.assert_array_equal(np.asarray(last.get_array())[1], wanted)

    def test_three_tiers_name_the_rows_of_the_middle(self) -> None:
        scenario = Scenario(
            topology=Clos3(pods=2, leaves_per_pod=2, spines_per_pod=2, cores=2, hosts_per_leaf=2),
            traffic=(Permutation(size="10KB", cross_leaf=True),),
        )
        ax = plot.utilisation(run(scenario, engine="reference", progress=False))
        assert sum("rows spine0" in text.get_text() for text in ax.texts) == 2
        assert overlapping(ax) == []

    def test_a_single_switch(self) -> None:
        scenario = Scenario(topology=SingleSwitch(hosts=3), traffic=(Permutation(size="10KB"),))
        assert overlapping(plot.utilisation(run(scenario, engine="reference", progress=False))) == []


class TestRates:
    def test_few_flows_are_named(self, congested: Result) -> None:
        ax = plot.rates(congested, flows="incast*")
        assert len(ax.lines) == 6
        assert "incast#0\n" in everything(ax)
        assert to_hex(ax.lines[0].get_color()) == COLOURS[0].lower()

    def test_many_flows_are_grey_with_their_mean(self, congested: Result) -> None:
        ax = plot.rates(congested)
        assert len(ax.lines) == 15
        assert "mean" in everything(ax)
        top = max(float(np.max(np.asarray(line.get_ydata()))) for line in ax.lines[:-1])
        assert float(np.max(np.asarray(ax.lines[-1].get_ydata()))) <= top

    def test_an_unknown_flow_is_an_error(self, congested: Result) -> None:
        with pytest.raises(FabricError, match="no recorded flow matches 'storage'"):
            plot.rates(congested, flows="storage")


class TestTopology:
    @pytest.mark.parametrize(
        "spec",
        [
            SingleSwitch(hosts=8),
            LeafSpine(leaves=4, spines=2, hosts_per_leaf=8),
            LeafSpine(leaves=64, spines=16, hosts_per_leaf=16),
            Clos3(pods=4, leaves_per_pod=4, spines_per_pod=4, cores=8, hosts_per_leaf=8),
            FatTree(k=4),
            RailOptimized(servers=32, accelerators_per_server=8, spines=4),
        ],
        ids=["single", "leaf-spine", "1024 hosts", "clos", "fat tree", "rail"],
    )
    def test_readable_at_every_size(self, spec: Any) -> None:
        ax = plot.topology(build_network(spec))
        assert overlapping(ax) == []
        assert len(ax.texts) < 100

    def test_counts_stand_for_what_is_left_out(self) -> None:
        ax = plot.topology(build_network(LeafSpine(leaves=64, spines=16, hosts_per_leaf=16)))
        shown = everything(ax)
        for part in ("1,024 hosts", "64 leaves", "16 spines", "16\nhosts", "1,024 × 400 Gbps", "· · ·"):
            assert part in shown
        assert heading(ax) == "1,024 hosts, 80 switches, 2,048 cables"


class TestParts:
    def test_an_envelope_loses_no_peak(self) -> None:
        rng = np.random.default_rng(5)
        times = np.sort(rng.integers(0, 10**9, 50_000))
        depth = rng.integers(0, 100, 50_000)
        depth[31_234] = 5_000
        x, y = envelope(times, depth, end_ps=10**9, stretches=500)
        assert len(x) < 2_000
        assert (np.diff(x) >= 0).all()
        assert y.max() == 5_000
        assert y[-1] == depth[-1]
        assert x[-1] == 10**9

    def test_an_envelope_of_bursts_goes_forward(self) -> None:
        times = np.repeat(np.arange(1, 11) * 10**6, 1000) - np.tile(np.arange(1000)[::-1], 10)
        x, y = envelope(times, np.arange(10_000), end_ps=10**7, stretches=7)
        assert (np.diff(x) >= 0).all()
        assert y.max() == 9_999

    def test_an_empty_envelope_is_flat(self) -> None:
        x, y = envelope(np.array([], np.int64), np.array([], np.int64), end_ps=5)
        assert (x.tolist(), y.tolist()) == ([0, 5], [0, 0])

    def test_intervals_cover_each_stretch_in_part(self) -> None:
        begin, stop = np.array([0, 5, 30]), np.array([10, 10, 40])
        edges = np.array([0, 10, 20, 35, 40])
        assert covered(begin, stop, edges_ps=edges).tolist() == pytest.approx([1.5, 0, 1 / 3, 1])
        assert covered(begin[:0], stop[:0], edges_ps=edges).tolist() == [0, 0, 0, 0]

    def test_labels_are_spread_and_keep_their_order(self) -> None:
        heights = spread([0.9, 0.91, 0.1, 0.905], gap=0.1)
        assert heights[1] > heights[3] > heights[0] > heights[2] == pytest.approx(0.1)
        assert spread([0.0, 0.01], gap=0.2) == pytest.approx([0.1, 0.3])
        gaps = -np.diff(sorted(heights, reverse=True))
        assert (gaps >= 0.1 - 1e-9).all()

    def test_quantities_have_a_space_in_print(self) -> None:
        assert spaced("36.12us") == "36.12 µs"
        assert spaced("400Gbps to 1.6Tbps") == "400 Gbps to 1.6 Tbps"

    def test_categories_match_patterns(self) -> None:
        names = Category(np.array([1, 0, 1]), np.array(["a->b", "a->c"]))
        assert names.matches("*->c").tolist() == [True, False, True]


class TestSideBySide:
    """Two programs' series on one scale."""

    def curves(self, high: float, *names: str) -> dict[str, tuple[Any, Any]]:
        return {name: (np.array([0.0, 1e6, 2e6]), np.array([0.0, high, high / 2])) for name in names}

    def test_one_scale_and_one_colour_a_name(self) -> None:
        left, right = plot.side_by_side(
            self.curves(10, "a", "b"),
            self.curves(40, "b"),
            titles=("theirs", "ours"),
            ylabel="Rate (Gbit/s)",
            instants_ps=(500_000,),
        )
        assert left.get_ylim() == right.get_ylim() == (0, 1.06 * 40)
        assert left.get_xlim() == (0, 2)
        assert left.get_xlabel() == "Time (µs)"
        colour = {line.get_color() for line in right.get_lines()[:1]}
        assert colour == {left.get_lines()[1].get_color()}
        assert [len(panel.get_lines()) for panel in (left, right)] == [3, 2]
        plt.close(left.figure)

    def test_nothing_on_a_side(self) -> None:
        with pytest.raises(FabricError, match="one side has no curve"):
            plot.side_by_side({}, self.curves(1, "a"), titles=("", ""), ylabel="")
