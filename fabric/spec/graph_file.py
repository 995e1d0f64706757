"""`GraphFile`: a network from a file, where the generated shapes of `fabric.spec.topology` do not fit.

Only the name of the file and the default link are described here; what the file may hold is checked
when the network is built (`fabric.topology.graph`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import msgspec

from fabric.spec.base import Problem, Spec
from fabric.spec.link import Link, LinkOverride

__all__ = ["GraphFile"]


class GraphFile(Spec, frozen=True, kw_only=True, tag_field="kind", tag="graph"):
    """A network of one's own: node-link JSON, as networkx writes it, or another simulator's file.

    In JSON, nodes may have the attributes `kind`, "host" or "switch", and `tier`; edges may have `rate`,
    `delay`, `loss`, `bit_error_rate`, `gap`; another attribute is an error. Other files are `topology.txt`
    of the HPCC simulator and SimAI, and `.topo` of htsim (`docs/formats.md`).

    Parameters
    ----------
    file : str
        Its name; in a scenario file relative to that file.
    link : Link
        What an edge does not say.
    overrides : tuple of LinkOverride
        What differs on some links from what the file says.
    reducers : tuple of str
        Which switches have a reducer beside them, for in-network reduction, as patterns of their names.
        Default: none.
    """

    FILES: ClassVar[tuple[str, ...]] = ("file",)

    file: str
    link: Link = msgspec.field(default_factory=Link)
    overrides: tuple[LinkOverride, ...] = ()
    reducers: tuple[str, ...] = ()

    def problems(self) -> Iterator[Problem]:
        if not self.file:
            yield "file", self.file, "the name of a file: node-link JSON, topology.txt or .topo"
