# RED marking of data frames by the instantaneous depth of their class queue.
#
# Floyd and Jacobson 1993 without the average, as DCQCN uses it (Zhu et al., SIGCOMM 2015): never up to
# Kmin, with a probability that rises linearly to Pmax at Kmax, always above. At enqueue the depth
# includes the frame, at dequeue it does not; hardware of both kinds exists.

from fabric.engine.packet cimport DATA, MARK, Packet
from fabric.engine.profile cimport ClassProfile
from fabric.engine.recorder cimport record_mark
from fabric.engine.rng cimport draw, frame_key, unit_interval
from fabric.engine.types cimport i64, u32, u64
from fabric.engine.world cimport World


cdef inline void ecn_mark(
    World* w, const ClassProfile* profile, u32 port, Packet* frame, i64 depth, i64 time_ps
) noexcept nogil:
    """Marks `frame` or not, at a depth above Kmin."""
    cdef u64 key
    cdef double p
    if frame.kind != DATA:
        return
    if depth <= profile.ecn_kmax_bytes:
        p = profile.ecn_pmax * <double>(depth - profile.ecn_kmin_bytes)
        p = p / <double>(profile.ecn_kmax_bytes - profile.ecn_kmin_bytes)
        key = frame_key(time_ps, frame.flow, frame.sequence)
        if unit_interval(draw(w.key_ecn, port, key)) >= p:
            return
    frame.mark_ttl |= MARK
    w.queues[port * w.n_classes + frame.traffic_class].marks += 1
    record_mark(w, port, frame, time_ps, depth)
