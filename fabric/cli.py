"""The command line: run a scenario, draw a result, look at a network.

::

    fabric run FILE... [--set path=value]... [--sweep path=value,value]... [--seed N] [--out DIR]
                       [--until 5ms] [--engine NAME]
    fabric bench FILE [--collective NAME] [--compare ALGORITHM,...] [--ranks N] [-b SIZE] [-e SIZE]
                      [-f FACTOR] [--csv FILE] [--out FILE]
    fabric plot DIR [--kind queues] [--ports PATTERN] [--out FILE]
    fabric topo FILE [--out FILE]
    fabric check FILE [--routes traffic] [--fail NAME,...]... [--remedy NAME] [--out FILE]
    fabric convert SOURCE... --out FILE
    fabric validate DIR [--only PATTERN] [--seeds N] [--markdown FILE] [--pictures DIR]
    fabric matrix FILE [--per N] [--collectives direct] [--out FILE] [--array FILE]
    fabric schema

FILE is a scenario, or the files of another simulator (`docs/formats.md`): a topology, flows or a program, and
possibly a configuration. Of `matrix` it is a training job (`docs/training.md`).

Exit codes: 0 done; 1 a validation found something outside its grade, or a checked network can deadlock; 2
something was described wrongly, or a file cannot be read or written, said in one line on standard error;
130 interrupted, after saving what was recorded. Output is written whole or not at all, and a result is
saved before its picture is drawn.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from fabric.errors import FabricError, SpecError
from fabric.units import QuantityError, Size

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fabric.result import Result
    from fabric.spec import Scenario

__all__ = ["main"]

DONE, MISSED, REFUSED, INTERRUPTED = 0, 1, 2, 130

FEW_SIZES = 6
"""Different sizes of flows up to which completion times say more than slowdown by size."""

IMAGE_FORMATS = ("png", "pdf", "svg")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    arguments : sequence of str
        Without the program's name; by default those of this process.
    """
    try:
        options = _parser().parse_args(arguments)
        code: int = options.command(options)
        sys.stdout.flush()
        return code
    except (FabricError, QuantityError) as error:
        return _refuse(str(error))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return DONE
    except OSError as error:
        named = f"{error.filename}: " if error.filename else ""
        return _refuse(f"{named}{error.strerror or error}")
    except MemoryError:
        return _refuse("out of memory")
    except KeyboardInterrupt:
        print("fabric: interrupted", file=sys.stderr)
        return INTERRUPTED


def _refuse(message: str) -> int:
    print("fabric: error:", " ".join(message.split()), file=sys.stderr)
    return REFUSED


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, like all others."""

    def error(self, message: str) -> NoReturn:
        self.exit(_refuse(f"{message} (see {self.prog} --help)"))


class _Version(argparse.Action):
    """Prints the version, which is only looked up when asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *ignored: Any) -> NoReturn:
        from fabric.version import version

        print(f"fabric {version()}")
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="fabric", description="Packet-level network emulator for AI training clusters.")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_run(commands)
    _add_bench(commands)
    _add_plot(commands)
    _add_topo(commands)
    _add_check(commands)
    _add_convert(commands)
    _add_validate(commands)
    _add_matrix(commands)
    schema = commands.add_parser("schema", help="print the JSON Schema of scenario files")
    schema.set_defaults(command=_schema)
    return parser


def _add_run(commands: Any) -> None:
    parser = commands.add_parser("run", help="run a scenario, print what happened, save the result")
    parser.add_argument(
        "sources",
        metavar="FILE",
        nargs="+",
        help="scenario file (TOML), or topology, flows (or program) and configuration of another simulator",
    )
    _add_overrides(parser)
    parser.add_argument(
        "--sweep",
        metavar="PATH=VALUE,VALUE",
        action="append",
        default=[],
        help="run once for each value (or element of a TOML list) and compare; repeated: every combination",
    )
    _add_foreign_options(parser)
    parser.add_argument("--seed", type=int, metavar="N", help="seed of the run, instead of run.seed")
    parser.add_argument("--out", metavar="DIR", help="directory of the result (default: results/NAME)")
    parser.add_argument("--until", metavar="TIME", help='end of the run in simulated time, such as "5ms"')
    parser.add_argument("--engine", choices=("native", "reference"), default="native", help="default: native")
    parser.add_argument("--no-plot", action="store_true", help="draw no picture")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")
    parser.set_defaults(command=_run)


def _add_bench(commands: Any) -> None:
    parser = commands.add_parser("bench", help="measure a collective over sizes, as nccl-tests does")
    parser.add_argument("scenario", metavar="FILE", help="scenario file (TOML) whose fabric is used")
    _add_overrides(parser)
    parser.add_argument("--collective", metavar="NAME", help="default: the scenario's, or all_reduce")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--algorithm", metavar="NAME", help="default: the scenario's")
    which.add_argument(
        "--compare", metavar="NAME,NAME", help="algorithms, such as ring,tree,halving_doubling"
    )
    parser.add_argument("--ranks", type=int, metavar="N", help="on the first hosts (default: all hosts)")
    parser.add_argument("--ranks-per-host", type=int, metavar="N", help="default: the scenario's, or 1")
    parser.add_argument(
        "--placement", choices=("as_named", "shuffled"), help="of ranks on hosts: by number, or drawn"
    )
    parser.add_argument("--channels", type=int, metavar="N", help="default: the scenario's, or 1")
    parser.add_argument(
        "--chunk", metavar="SIZE", help="largest part of a piece (default: the scenario's, or whole)"
    )
    parser.add_argument("-b", "--begin", metavar="SIZE", default="1KiB", help="first size (default: 1KiB)")
    parser.add_argument("-e", "--end", metavar="SIZE", default="64MiB", help="largest (default: 64MiB)")
    parser.add_argument("-f", "--factor", type=float, metavar="N", help="between sizes (default: 2)")
    parser.add_argument("-i", "--step", metavar="SIZE", help="between sizes, instead of a factor")
    parser.add_argument("-n", "--iterations", type=int, metavar="N", default=1, help="default: 1")
    parser.add_argument("--type", metavar="NAME", default="float", help="of elements (default: float)")
    parser.add_argument("--seed", type=int, metavar="N", help="seed of the runs, instead of run.seed")
    parser.add_argument("--engine", choices=("native", "reference"), default="native", help="default: native")
    parser.add_argument("--csv", metavar="FILE", help="write every column there")
    parser.add_argument(
        "--out", metavar="FILE", help="image, .png, .pdf or .svg (default: results/NAME-bench.png)"
    )
    parser.add_argument("--no-plot", action="store_true", help="draw no picture")
    parser.set_defaults(command=_bench)


def _add_overrides(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        metavar="PATH=VALUE",
        action="append",
        default=[],
        help='change a value of the scenario, such as switch.ecn.kmin="200KB"; may be repeated',
    )


def _add_foreign_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--start-unit",
        choices=("ps", "ns", "us"),
        default="ps",
        help="what start counts in a connection matrix (default: ps)",
    )
    parser.add_argument(
        "--first-start",
        metavar="TIME",
        help='move the flows of other simulators so that the first starts then, such as "0s"',
    )


def _add_convert(commands: Any) -> None:
    parser = commands.add_parser("convert", help="turn files of other simulators into a scenario, and back")
    parser.add_argument(
        "sources", metavar="SOURCE", nargs="+", help="files as for run, or the directory of a result"
    )
    parser.add_argument(
        "--out",
        metavar="FILE",
        required=True,
        help="a scenario (*.toml), network, flows or program (topology*.txt, flow*.txt, *.cm, *.goal), or of "
        "a result completion times or pauses (fct*.txt, pfc*.txt)",
    )
    _add_foreign_options(parser)
    parser.set_defaults(command=_convert)


def _add_plot(commands: Any) -> None:
    from fabric.io.directory import DRAWN

    parser = commands.add_parser("plot", help="draw a saved result")
    parser.add_argument("directory", metavar="DIR", help="directory of a result")
    parser.add_argument("--kind", choices=DRAWN, default="queues", help="default: queues")
    parser.add_argument("--ports", metavar="PATTERN", help='ports whose queues are drawn, such as "leaf0->*"')
    parser.add_argument("--out", metavar="FILE", help="image, .png, .pdf or .svg (default: DIR/KIND.png)")
    parser.set_defaults(command=_plot)


def _add_topo(commands: Any) -> None:
    parser = commands.add_parser("topo", help="describe and draw the network of a scenario")
    parser.add_argument("scenario", metavar="FILE", help="scenario file (TOML), topology.txt or .topo")
    _add_overrides(parser)
    parser.add_argument(
        "--out", metavar="FILE", help="image file, .png, .pdf or .svg (default: results/NAME-topology.png)"
    )
    parser.set_defaults(command=_topo)


def _add_check(commands: Any) -> None:
    parser = commands.add_parser("check", help="look for deadlocks, doubtful settings and failure domains")
    parser.add_argument("scenario", metavar="FILE", help="scenario file (TOML)")
    _add_overrides(parser)
    parser.add_argument(
        "--routes",
        choices=("all", "traffic"),
        default="all",
        help="routes between all hosts (default), or those of the scenario's flows",
    )
    parser.add_argument(
        "--fail",
        metavar="NAME,...",
        action="append",
        default=[],
        help="what is down at once, such as leaf0-spine1,spine3; repeated: several such cases, one after the "
        "other (default: nothing, then each cable and switch by itself)",
    )
    parser.add_argument("--no-single", action="store_true", help="do not try each failure by itself")
    parser.add_argument("--remedy", choices=("up-down", "classes", "lossy"), help="check with this applied")
    parser.add_argument("--out", metavar="FILE", help="draw failure domains, .png, .pdf or .svg")
    parser.set_defaults(command=_check)


def _add_validate(commands: Any) -> None:
    parser = commands.add_parser("validate", help="repeat runs of the HPCC simulator and compare")
    parser.add_argument("directory", metavar="DIR", help="reference runs: index.csv and a folder a run")
    parser.add_argument("--only", metavar="PATTERN", default="*", help='names of runs, such as "S2_*"')
    parser.add_argument("--seeds", type=int, metavar="N", default=20, help="of drawn marks (default: 20)")
    parser.add_argument(
        "--native-only", action="store_true", help="leave out the readable engine, which is slow"
    )
    parser.add_argument(
        "--markdown",
        metavar="FILE",
        help="write the tables there too; into a page that has marks for them, between these",
    )
    parser.add_argument("--pictures", metavar="DIR", help="draw time series there; nothing is graded then")
    parser.add_argument("--quiet", action="store_true", help="print only what is outside its grade")
    parser.set_defaults(command=_validate)


def _add_matrix(commands: Any) -> None:
    parser = commands.add_parser("matrix", help="describe and draw who sends how much in a training step")
    parser.add_argument("job", metavar="FILE", help="training job (TOML)")
    parser.add_argument(
        "--per",
        type=int,
        metavar="N",
        help="ranks of a row (default: so many that there are at most 128 rows)",
    )
    parser.add_argument(
        "--collectives",
        choices=("ring", "direct"),
        default="ring",
        help="which way their bytes go inside a group (default: ring)",
    )
    parser.add_argument(
        "--out", metavar="FILE", help="image file, .png, .pdf or .svg (default: results/NAME-matrix.png)"
    )
    parser.add_argument("--array", metavar="FILE", help="NumPy file (.npz) with the matrix of each dimension")
    parser.set_defaults(command=_matrix)


def _run(options: argparse.Namespace) -> int:
    from fabric.interrupt import InterruptRequest
    from fabric.io.directory import check_target
    from fabric.result.text import time_text
    from fabric.simulate import Simulation

    overrides = list(options.set)
    if options.seed is not None:
        overrides.append(f"run.seed={options.seed}")
    if options.until is not None:
        overrides.append(f"run.until={options.until}")
    scenario, left_out = _load_any(
        options.sources, overrides, start_unit=options.start_unit, first_start=options.first_start
    )
    target = _out(options) or Path("results", _name_of(scenario, options.sources[0]))
    scenario = _swept(scenario, options.sweep)
    if scenario.sweep:
        return _run_sweep(scenario, target, options)
    check_target(target)
    simulation = Simulation(scenario, engine=options.engine)
    with InterruptRequest(patient=True) as interrupt:
        status = simulation.run(progress=False if options.quiet else None)
        if status == "INTERRUPTED":
            when = time_text(simulation.now)
            print(f"fabric: interrupted at {when}, saving what was recorded", file=sys.stderr)
        result = simulation.result()
        result.save(target)
    notes = [f"result      {target}"]
    if not options.quiet:
        print(result.summary, flush=True)
    wants_picture = not options.no_plot and not interrupt.requested
    interrupted = status == "INTERRUPTED" or interrupt.requested
    try:
        notes += _add_picture(result, target) if wants_picture else []
    except KeyboardInterrupt:
        interrupted = True
        notes.append("no picture: interrupted")
    notes += [f"left out    {remark}" for remark in left_out]
    if not options.quiet:
        print("", *(f"  {line}" for line in notes), sep="\n")
    return INTERRUPTED if interrupted else DONE


def _swept(scenario: Scenario, axes: Sequence[str]) -> Scenario:
    """Return the scenario with the axes of `--sweep` added to those that it has."""
    from fabric.scenario import override_value

    sweep = dict(scenario.sweep)
    for axis in axes:
        path, equals, text = axis.partition("=")
        if not equals or not text.strip():
            raise SpecError("--sweep", axis, 'a path and values, such as "switch.ecn.kmin=200KB,400KB"')
        values = override_value(text.strip())
        listed = isinstance(values, list | dict)
        sweep[path.strip()] = values if listed else [override_value(each.strip()) for each in text.split(",")]
    return scenario.replace(sweep=sweep) if axes else scenario


def _run_sweep(scenario: Scenario, target: Path, options: argparse.Namespace) -> int:
    from fabric.plot import comparison, to_image
    from fabric.sweep import check_sweep_target, run_sweep, save_sweep, sweep_runs

    check_sweep_target(target, sweep_runs(scenario))
    sweep = run_sweep(scenario, engine=options.engine, progress=False if options.quiet else None)
    pictures = {}
    if not options.no_plot:
        pictures["sweep.png"] = to_image(comparison(sweep.table, axes=sweep.axes)[0])
    save_sweep(sweep, target, pictures=pictures)
    if not options.quiet:
        head = ": ".join(part for part in (scenario.name, scenario.question) if part)
        print(*([head] if head else []), sweep, "", sep="\n")
        print(f"  results     {target}")
        print(*(f"  picture     {target / name}\n" for name in pictures), sep="", end="")
    return INTERRUPTED if sweep.results[-1].status == "INTERRUPTED" else DONE


def _bench(options: argparse.Namespace) -> int:
    from fabric.bench import bench_csv, bench_text, run_bench
    from fabric.io.files import write_whole
    from fabric.plot import bandwidth, to_image

    bench = _bench_of(options)
    target = _out(options) or Path("results", f"{_name_of(bench.scenario, options.scenario)}-bench.png")
    image_format = _image_format(target)

    def watch(name: str) -> None:
        if sys.stderr.isatty():
            print(f"\r\x1b[K{name}", end="", file=sys.stderr, flush=True)

    table = run_bench(bench, engine=options.engine, watch=watch)
    watch("")
    print(bench_text(table), flush=True)
    if options.csv is not None:
        write_whole(Path(options.csv), bench_csv(table).encode())
        print(f"\n  table    {options.csv}")
    if not options.no_plot and table["size_bytes"].any():
        write_whole(target, to_image(bandwidth(table), format=image_format))
        print(f"\n  picture  {target}")
    return DONE


def _bench_of(options: argparse.Namespace) -> Any:
    """Return the benchmark that the options describe."""
    from fabric.bench import Bench, sizes_between

    overrides = [*options.set, *([] if options.seed is None else [f"run.seed={options.seed}"])]
    sizes = sizes_between(
        _size("--begin", options.begin),
        _size("--end", options.end),
        factor=options.factor,
        step=None if options.step is None else _size("--step", options.step),
    )
    compared = options.compare if options.compare is not None else options.algorithm
    return Bench(
        scenario=_load(options.scenario, overrides),
        sizes=sizes,
        collective=options.collective,
        algorithms=() if compared is None else tuple(name.strip() for name in compared.split(",")),
        ranks=options.ranks,
        placement=options.placement,
        ranks_per_host=options.ranks_per_host,
        channels=options.channels,
        chunk=None if options.chunk is None else _size("--chunk", options.chunk),
        iterations=options.iterations,
        element=options.type,
    )


def _size(option: str, text: str) -> int:
    try:
        return int(Size(text))
    except QuantityError as error:
        raise SpecError(option, error.value, error.allowed) from None


def _add_picture(result: Result, target: Path) -> list[str]:
    """Draw the picture of a run into its saved result; return what to say of it."""
    from fabric.io.files import write_whole

    pictures, notes = _pictures(result)
    for name, content in pictures.items():
        write_whole(target / name, content)
    return [*(f"picture     {target / name}" for name in pictures), *notes]


def _out(options: argparse.Namespace) -> Path | None:
    """Return what `--out` names; None if it is not given."""
    if options.out == "":
        raise SpecError("--out", "", "the name of a file or directory")
    return Path(options.out) if options.out is not None else None


def _load(path: str, overrides: Sequence[str]) -> Scenario:
    from fabric.scenario import load_scenario

    return load_scenario(path, overrides=overrides)


def _load_any(
    sources: Sequence[str], overrides: Sequence[str], *, start_unit: Any, first_start: str | None
) -> tuple[Scenario, Sequence[object]]:
    """Return a scenario, and what was left out of the files of another simulator."""
    from fabric.formats import recognise

    if len(sources) == 1 and recognise(sources[0]) is None:
        return _load(sources[0], overrides), ()
    from fabric.convert import import_files
    from fabric.scenario import dump_scenario, load_scenario

    imported = import_files(*sources, start_unit=start_unit, first_start=first_start)
    return load_scenario(dump_scenario(imported.scenario), overrides=overrides), imported.ignored


def _name_of(scenario: Scenario, path: str) -> str:
    """Return a scenario's name, or that of its file, as the name of a file."""
    return re.sub(r"[^\w.+-]+", "-", scenario.name or Path(path).stem).strip("-.") or "scenario"


def _pictures(result: Result) -> tuple[dict[str, bytes], list[str]]:
    """Return the picture of a run by its name: queues if they were recorded, else what flows took."""
    from fabric.plot import to_image

    notes = []
    kind = "queues"
    if "queue" not in result.recorded and not len(result.flows):
        kind = "utilisation"
        notes.append("no queue depths were recorded (record.queues): the picture shows how busy links were")
    elif "queue" not in result.recorded:
        many_sizes = len(set(result.flows["size_bytes"].tolist())) > FEW_SIZES
        kind, shown = ("slowdown", "slowdown by size") if many_sizes else ("fct", "completion times")
        notes.append(f"no queue depths were recorded (record.queues): the picture shows {shown}")
    try:
        return {f"{kind}.png": to_image(_draw(result, kind))}, notes
    except FabricError as error:
        return {}, [f"no picture: {error}"]


def _draw(result: Result, kind: str, ports: str | None = None) -> Axes:
    from fabric import plot

    if kind == "queues":
        return plot.queues(result, ports=ports)
    drawings = {
        "fct": plot.fct_cdf,
        "slowdown": plot.slowdown_by_size,
        "utilisation": plot.utilisation,
        "rates": plot.rates,
    }
    return drawings[kind](result)


def _plot(options: argparse.Namespace) -> int:
    from fabric.io.files import write_whole
    from fabric.plot import to_image
    from fabric.result import Result

    if options.ports is not None and options.kind != "queues":
        raise FabricError(f"--ports chooses queues and does not go with --kind {options.kind}")
    target = _out(options) or Path(options.directory, f"{options.kind}.png")
    image_format = _image_format(target)
    axes = _draw(Result.load(options.directory), options.kind, options.ports)
    write_whole(target, to_image(axes, format=image_format))
    print(target)
    return DONE


def _image_format(target: Path) -> str:
    image_format = target.suffix.lower().removeprefix(".")
    if image_format not in IMAGE_FORMATS:
        raise SpecError("--out", str(target), "a file name ending in .png, .pdf or .svg")
    return image_format


def _topo(options: argparse.Namespace) -> int:
    from fabric.io.files import write_whole
    from fabric.plot import to_image, topology
    from fabric.topology import build_network

    name, spec = _topology_of(options.scenario, options.set)
    target = _out(options) or Path("results", f"{name}-topology.png")
    image_format = _image_format(target)
    network = build_network(spec)
    write_whole(target, to_image(topology(network), format=image_format))
    print(name)
    for line in _network_lines(network):
        print(f"  {line}")
    print(f"\n  picture  {target}")
    return DONE


def _check(options: argparse.Namespace) -> int:
    from fabric.checks import check_scenario

    scenario = _load(options.scenario, options.set)
    target = _out(options)
    image_format = None if target is None else _image_format(target)
    report = check_scenario(
        scenario,
        routes=options.routes,
        fail=options.fail,
        single=not options.no_single,
        apply=options.remedy,
    )
    if target is not None and image_format is not None:
        from fabric.io.files import write_whole
        from fabric.plot import failure_domains, to_image

        write_whole(target, to_image(failure_domains(report.domains), format=image_format))
    print(_name_of(scenario, options.scenario))
    for line in report.lines():
        print(f"  {line}".rstrip())
    if target is not None:
        print(f"\n  picture  {target}")
    return MISSED if report.can_deadlock else DONE


def _topology_of(path: str, overrides: Sequence[str]) -> tuple[str, Any]:
    """Return the name and topology of a scenario, or of another simulator's topology file."""
    from fabric.formats import recognise

    if recognise(path) is None:
        scenario = _load(path, overrides)
        return _name_of(scenario, path), scenario.topology
    from fabric.convert import network_spec

    if overrides:
        raise FabricError("--set changes scenarios; convert the topology to one first")
    return Path(path).stem, network_spec(path)


def _network_lines(network: Any) -> list[str]:
    from fabric.result.text import align, count_text, counted, rate_text
    from fabric.topology import describe

    facts = describe(network)
    ratios = sorted({round(ratio, 3) for ratio in facts.oversubscription.values()})
    rows = [[tier, count_text(count)] for tier, count in facts.nodes_per_tier.items()]
    rows += [[f"cables {tiers}", count_text(count)] for tiers, count in facts.links_per_tier.items()]
    if ratios:
        low, high = f"{ratios[0]:g}:1", f"{ratios[-1]:g}:1"
        rows.append(["oversubscription", low if low == high else f"{low} to {high}"])
    rows.append(["diameter", counted(facts.diameter_links, "link")])
    if facts.bisection_bps is not None:
        rows.append(["bisection bandwidth", rate_text(facts.bisection_bps)])
    return align(rows)


def _convert(options: argparse.Namespace) -> int:
    from fabric.convert.outputs import convert

    _out(options)
    written, left_out = convert(
        options.sources, options.out, start_unit=options.start_unit, first_start=options.first_start
    )
    for path in written:
        print(path)
    for remark in left_out:
        print(f"  left out  {remark}")
    return DONE


def _validate(options: argparse.Namespace) -> int:
    from fabric.io.files import write_whole
    from fabric.validation import validate

    def watch(name: str) -> None:
        if sys.stderr.isatty() and not options.quiet:
            print(f"\r\x1b[K{name}", end="", file=sys.stderr, flush=True)

    if options.pictures is not None:
        from fabric.validation import pictures

        for name, image in pictures(options.directory, only=options.only):
            write_whole(Path(options.pictures, name), image)
            print(Path(options.pictures, name), flush=True)
        return DONE
    report = validate(
        options.directory,
        only=options.only,
        seeds=options.seeds,
        readable=not options.native_only,
        watch=watch,
    )
    watch("\r")
    if options.markdown is not None:
        file = Path(options.markdown)
        page = file.read_text(encoding="utf-8") if file.is_file() else ""
        write_whole(file, report.markdown_in(page).encode())
    print(report.text(missed_only=options.quiet))
    return MISSED if report.missed else DONE


ROWS_OF_A_MATRIX = 128


def _matrix(options: argparse.Namespace) -> int:
    import io

    import numpy as np

    from fabric.io.files import write_whole
    from fabric.plot import matrices, to_image
    from fabric.training import communication_matrix, load_job
    from fabric.training.volumes import NAMES

    job = load_job(options.job)
    name = re.sub(r"[^\w.+-]+", "-", job.name or Path(options.job).stem).strip("-.") or "job"
    target = _out(options) or Path("results", f"{name}-matrix.png")
    image_format = _image_format(target)
    if options.array is not None and not options.array.endswith(".npz"):
        raise SpecError("--array", options.array, "a file name ending in .npz")
    matrix = communication_matrix(job, collectives=options.collectives)
    per = options.per if options.per is not None else -(-matrix.n_ranks // ROWS_OF_A_MATRIX)
    arrays = {each: matrix.array(each, per=per) for each in matrix.pairs}
    of = "rank" if per == 1 else f"group of {per} ranks"
    model = job.shape.name or "model"
    panels = {f"{each}: {NAMES[each]}": array for each, array in arrays.items()}
    drawn = matrices(panels, of=of, title=f"Bytes sent in a step: {model} on {matrix.n_ranks} ranks")
    write_whole(target, to_image(drawn[0], format=image_format))
    if options.array is not None:
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
        write_whole(Path(options.array), buffer.getvalue())
    print(name)
    for line in _matrix_lines(job, matrix):
        print(f"  {line}")
    print(f"\n  picture  {target}")
    return DONE


def _matrix_lines(job: Any, matrix: Any) -> list[str]:
    from fabric.result.text import align, count_text
    from fabric.training.volumes import GROUPS
    from fabric.units import format_size

    total = sum(matrix.total_bytes(each) for each in matrix.pairs)
    rows = [["dimension", "group", "sent a rank", "share"]]
    for each in matrix.pairs:
        tokens, expert = GROUPS[each]
        members = job.parallelism.groups(tokens, expert=expert).shape[1]
        sent = matrix.total_bytes(each)
        rows.append(
            [
                each,
                f"{count_text(members)} ranks",
                format_size(round(sent / matrix.n_ranks)),
                f"{sent / total:.1%}",
            ]
        )
    return align(rows)


def _schema(options: argparse.Namespace) -> int:
    import json

    from fabric.scenario import json_schema

    print(json.dumps(json_schema(), indent=2))
    return DONE
