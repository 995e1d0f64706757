"""`SequenceWork`: how much longer or shorter the parts of a micro-batch take, by the sequences that are in
it.

Places of packed sequences go to data ranks in turn, micro-batch by micro-batch. What grows with tokens
counts every token of a place, padding included, for it is computed like any other; scores and values of
attention count pairs of tokens of one sequence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fabric.spec.training.job import TrainingJob
from fabric.spec.training.packing import SequencePacking
from fabric.training.flops import part_flops, step_flops
from fabric.training.packing import Packing, draw_lengths, pack_sequences

__all__ = ["SequenceWork", "packed_job"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class SequenceWork:
    """Work of attention, by micro-batch and data rank.

    Attributes
    ----------
    attention : ndarray of float64 [micro_batches, data ranks]
        Against places that are full of one sequence.
    packing : Packing
    """

    attention: FloatArray
    packing: Packing

    def flops(self, job: TrainingJob) -> float:
        """Operations that the sequences need, padding left out, forward and backward, as `step_flops`."""
        share = self.packing.length.sum() / (job.global_batch * job.sequence)
        full = job.sequence * (job.sequence + 1) / 2
        pairs = (self.packing.length * (self.packing.length + 1) // 2).sum() / (job.global_batch * full)
        linear, core = step_flops(job)
        return float(linear * share + core * pairs)

    def factor(self, part: str, micro_batch: int, data_rank: npt.NDArray[np.int64]) -> FloatArray:
        """Work of a part on ranks, against full places."""
        if part != "attention":
            return np.ones(len(data_rank))
        return np.asarray(self.attention[micro_batch, data_rank])


def packed_job(job: TrainingJob, spec: SequencePacking, *, seed: int) -> tuple[TrainingJob, SequenceWork]:
    """Return a job whose batch is that of packed sequences, and the work of its micro-batches.

    Examples
    --------
    >>> job = TrainingJob(model="gpt2-small", sequence=1024, global_batch=1)
    >>> spec = SequencePacking(lengths=[128, 1024], shares=[0.9, 0.1], sequences=100)
    >>> packed, work = packed_job(job, spec, seed=1)
    >>> packed.global_batch, round(work.packing.padding, 2)
    (23, 0.0)
    """
    lengths = draw_lengths(spec.lengths, spec.shares, sequences=spec.sequences, seed=seed)
    packing = pack_sequences(lengths, place_tokens=job.sequence, how=spec.how)
    share = job.micro_batch * job.parallelism.dp
    batch = -(-packing.n_places // share) * share
    whole = job.replace(global_batch=batch)
    pairs = np.zeros(batch)
    pairs[: packing.n_places] = packing.attention_pairs
    if spec.how == "none":
        pairs[: packing.n_places] = job.sequence * (job.sequence + 1) / 2
    full = job.sequence * (job.sequence + 1) / 2
    ratio = pairs.reshape(-1, job.parallelism.dp, job.micro_batch).mean(axis=2) / full
    linear, core = part_flops(job, "attention")
    return whole, SequenceWork(attention=(linear + core * ratio) / (linear + core), packing=packing)
