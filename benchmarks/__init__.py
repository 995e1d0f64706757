"""Measurements of the native engine: speed, memory, instruction counts, and peers on the same work.

`python -m benchmarks` prints the table of speed and memory, `python -m benchmarks.instructions` counts
instructions, `python -m benchmarks.peers` times other packet simulators. `README.md` says how to read
the figures. Nothing here is timed by a test, and nothing in `fabric` imports this package.
"""
