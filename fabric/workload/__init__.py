"""Workloads: what is sent between which hosts, when, as flows.

`build_flows` turns the traffic of a scenario into a `FlowTable`; `FlowTable.from_arrays` makes one from
arrays. Patterns stand one a file (`explicit`, `incast`, `permutation`, `uniform`, `all_to_all`,
`poisson`); `queue_pairs` splits messages; `distributions` holds flow sizes, `draws` the randomness that all
of them share.

`build_jobs` turns its collectives into jobs: a `Job` is a `Program` on hosts, a `ProgramBuilder` makes one
of the algorithms in `collectives`.
"""

from fabric.workload.build import build_flows
from fabric.workload.distributions import SizeDistribution, load_distribution, read_distribution
from fabric.workload.flow_table import FlowTable
from fabric.workload.foreign import group_class
from fabric.workload.job import Job
from fabric.workload.jobs import build_jobs
from fabric.workload.program import Program, ProgramBuilder
from fabric.workload.queue_pairs import split_over_queue_pairs

__all__ = [
    "FlowTable",
    "Job",
    "Program",
    "ProgramBuilder",
    "SizeDistribution",
    "build_flows",
    "build_jobs",
    "group_class",
    "load_distribution",
    "read_distribution",
    "split_over_queue_pairs",
]
