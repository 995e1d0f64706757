"""The parts of lowering, one a concept: ports, buffers, transports, flows, dependencies, recording.

Each turns specs into the columns of `fabric.lowered.Lowered` that it is about and returns them by the
names of their fields; `fabric.lower.lower` joins them. Only this package and `fabric.lower` know how a
scenario becomes arrays.
"""
