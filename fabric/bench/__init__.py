"""Benchmarks of collectives: what nccl-tests measures, on an emulated fabric.

A `Bench` says which collective, with which algorithms and sizes, on the fabric of which scenario; `run_bench`
runs each size alone and gives a `Table` with a row a run; `bench_text` prints it as nccl-tests does.
"""

from fabric.bench.measure import run_bench
from fabric.bench.plan import ELEMENT_BYTES, Bench, sizes_between
from fabric.bench.text import bench_csv, bench_text

__all__ = [
    "ELEMENT_BYTES",
    "Bench",
    "bench_csv",
    "bench_text",
    "run_bench",
    "sizes_between",
]
