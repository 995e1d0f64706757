"""`Bench`: what is measured, and on what.

Sizes are those of nccl-tests: bytes of the full vector of a rank, from one to another by a factor or a step
(its `-b -e -f -i`), rounded down to whole elements. Everything that a benchmark does not say is as the
scenario's first collective has it: hosts, order, channels, skew, transport, class. Other traffic of the
scenario stays out.

What nccl-tests has and this has not: warm-up runs and averages over many (a run is the same each time), and
results that are in place or out of place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fabric.errors import Said, SpecError
from fabric.spec import Collective, Scenario
from fabric.spec.traffic import NO_OPTIONS
from fabric.units import Size
from fabric.workload.collectives import COLLECTIVES, algorithm_names, algorithm_options

__all__ = ["ELEMENT_BYTES", "Bench", "sizes_between"]

ELEMENT_BYTES = {
    **{"int8": 1, "uint8": 1, "half": 2, "bfloat16": 2},
    **{"int32": 4, "uint32": 4, "float": 4, "int64": 8, "uint64": 8, "double": 8},
}
"""Bytes of an element, by the names of nccl-tests."""

SHORT_NAMES = {"tree": "double_binary_tree"}
"""What else algorithms are called: NCCL's tree is a double binary one."""

MOST_SIZES = 10_000

OPTIONS = {
    **{"repeat": "--iterations", "order": "--placement", "ranks": "--ranks", "channels": "--channels"},
    **{"ranks_per_host": "--ranks-per-host", "chunk": "--chunk"},
}
"""Which option sets a field of the collective that is run."""


def sizes_between(begin: int, end: int, *, factor: float | None = None, step: int | None = None) -> list[int]:
    """Return the sizes of a benchmark, ascending.

    Parameters
    ----------
    begin, end : int
        Bytes of the first, and of the last at most.
    factor : float, optional
        Each is so many times the one before, in whole bytes; above 1. 2 unless a step is given.
    step : int, optional
        Each is so many bytes more.

    Returns
    -------
    list of int

    Raises
    ------
    SpecError
        If there are none or more than 10,000, or both a factor and a step.

    Examples
    --------
    >>> sizes_between(1024, 8192, factor=2)
    [1024, 2048, 4096, 8192]
    >>> sizes_between(1000, 4000, step=1500)
    [1000, 2500, 4000]
    """
    if end < begin:
        raise SpecError("--end", Size(end), f"at least --begin ({Size(begin)})")
    if factor is not None and step is not None:
        raise SpecError("--step", Size(step), "either a step or a factor, not both")
    if step is not None:
        if step < 1:
            raise SpecError("--step", Size(step), "at least 1 byte")
        if (end - begin) // step >= MOST_SIZES:
            raise SpecError(
                "--step", f"{step} bytes", f"a step with which there are at most {MOST_SIZES} sizes"
            )
        return list(range(begin, end + 1, step))
    factor = 2.0 if factor is None else factor
    if not 1 < factor < float("inf"):
        raise SpecError("--factor", factor, "a number above 1, not infinite")
    if begin < 1:
        raise SpecError("--begin", Size(begin), "at least 1 byte, with a factor")
    sizes = [begin]
    while (following := max(int(sizes[-1] * factor), sizes[-1] + 1)) <= end:
        sizes.append(following)
        if len(sizes) > MOST_SIZES:
            raise SpecError("--factor", factor, f"a factor with which there are at most {MOST_SIZES} sizes")
    return sizes


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A collective to measure.

    Attributes
    ----------
    scenario : Scenario
        Its fabric, transport and run are used, and its first collective where the rest here is None.
    sizes : sequence of int
        Bytes of the full vector of a rank.
    collective : str, optional
        All-reduce if the scenario has no collective.
    algorithms : sequence of str
        To compare; "tree" is NCCL's double binary tree. Empty: the scenario's.
    ranks : int, optional
    placement : "as_named" or "shuffled", optional
        Order in which ranks take hosts.
    ranks_per_host, channels, chunk : int, optional
        As of `fabric.Collective`.
    options : mapping, optional
        Of algorithms, beside those that the scenario's collective has: each is for those that take it.
    iterations : int
        One after the other at every rank; the time is their mean.
    element : str
        Key of `ELEMENT_BYTES`.

    Raises
    ------
    SpecError
        If there is no such collective, algorithm or element, or nothing to run.

    Examples
    --------
    >>> from fabric.spec import Permutation, SingleSwitch
    >>> fabric = Scenario(topology=SingleSwitch(hosts=4), traffic=[Permutation(size="1MB")])
    >>> bench = Bench(scenario=fabric, sizes=[1024, 1030], algorithms=["ring", "tree"])
    >>> bench.named, [int(run.traffic[0].size) for run in bench.runs()]
    (('ring', 'double_binary_tree'), [1024, 1028, 1024, 1028])
    """

    scenario: Scenario
    sizes: Sequence[int]
    collective: str | None = None
    algorithms: Sequence[str] = ()
    ranks: int | None = None
    placement: str | None = None
    ranks_per_host: int | None = None
    channels: int | None = None
    chunk: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    iterations: int = 1
    element: str = "float"

    def __post_init__(self) -> None:
        if self.scenario.sweep:
            raise SpecError(
                "sweep", ", ".join(self.scenario.sweep), "no sweep in the scenario of a benchmark"
            )
        if self.element not in ELEMENT_BYTES:
            raise SpecError("--type", self.element, f"one of {', '.join(ELEMENT_BYTES)}")
        if self.kind not in COLLECTIVES:
            raise SpecError("--collective", self.kind, f"one of {', '.join(COLLECTIVES)}")
        if not self.sizes:
            raise SpecError("sizes", Said("none"), "at least one size")
        known = algorithm_names(self.kind)
        for number, name in enumerate(self.named):
            if name != "auto" and name not in known:
                allowed = f"for {self.kind} one of {', '.join(known)}, auto"
                raise SpecError("--compare" if len(self.named) > 1 else "--algorithm", name, allowed)
            if name in self.named[:number]:
                raise SpecError("--compare", name, "every algorithm once")
        if self.entry.matrix and self.kind == "all_to_all_v":
            raise SpecError("matrix", self.entry.matrix, "sizes by skew: a matrix is of one size only")
        for name, value in self.options.items():
            if not any(name in self._known_options(algorithm) for algorithm in self.named):
                names = dict.fromkeys(each for one in self.named for each in self._known_options(one))
                raise SpecError(f"--option {name}", value, f"one of {', '.join(names)}")
        self.runs()

    @property
    def entry(self) -> Collective:
        """The scenario's first collective; the default one if it has none."""
        found = (each for each in self.scenario.traffic if isinstance(each, Collective))
        return next(found, Collective())

    @property
    def kind(self) -> str:
        """The collective."""
        return self.entry.collective if self.collective is None else self.collective

    @property
    def named(self) -> tuple[str, ...]:
        """The algorithms by their full names."""
        given = tuple(self.algorithms) or (self._default_algorithm,)
        return tuple(SHORT_NAMES.get(name, name) for name in given)

    @property
    def _default_algorithm(self) -> str:
        own = self.entry.algorithm
        return own if self.kind == self.entry.collective else next(iter(algorithm_names(self.kind)), own)

    def _known_options(self, algorithm: str) -> tuple[str, ...]:
        own = () if algorithm == "auto" else tuple(algorithm_options(self.kind, algorithm))
        return (*(name for name in own if name not in NO_OPTIONS), "chunks", "slices")

    def _options(self, algorithm: str) -> dict[str, Any]:
        """Options of the scenario, and on top of them of the benchmark, that an algorithm takes."""
        given = {**self.entry.options, **self.options}
        if self.chunk is not None:
            given.pop("chunks", None)
        return {name: value for name, value in given.items() if name in self._known_options(algorithm)}

    def runs(self) -> list[Scenario]:
        """The scenario of each run: by algorithm, then by size, with sizes in whole elements of a vector."""
        changes = {
            "collective": self.kind,
            "repeat": self.iterations,
            "name": "bench",
            "skew": self.entry.skew if self.kind == "all_to_all_v" else 0.0,
            "matrix": None,
        }
        for name, value in (
            ("ranks", self.ranks),
            ("order", self.placement),
            ("ranks_per_host", self.ranks_per_host),
            ("channels", self.channels),
            ("chunk", self.chunk),
        ):
            if value is not None:
                changes[name] = value
        sizes = [0] if self.kind == "barrier" else self.sizes
        element = ELEMENT_BYTES[self.element]
        return [
            self.scenario.replace(
                traffic=(
                    self._entry(
                        changes, algorithm=name, options=self._options(name), size=size // element * element
                    ),
                )
            )
            for name in self.named
            for size in sizes
        ]

    def _entry(self, changes: Mapping[str, Any], **others: Any) -> Collective:
        """Return the collective of a run; what is not allowed is said of the option that asked for it."""
        try:
            return self.entry.replace(**changes, **others)
        except SpecError as error:
            path = error.path.removeprefix("Collective.")
            raise SpecError(OPTIONS.get(path, path), error.value, error.allowed) from None
