# Rate and window of a flow, whatever controls them.
#
# A transport's window is fixed, or (`variable_window`) follows the rate: it holds `window_bytes` of
# payload at line rate and in proportion below, never less than the frames that an ACK stands for. It is
# evaluated after each send, ACK, NACK, CNP and time-out, and at no other time.

from fabric.engine.flow cimport Sender
from fabric.engine.link cimport FREE_PHASE_PS, PS_PER_TICK, tick_ps
from fabric.engine.profile cimport TransportProfile
from fabric.engine.recorder cimport FLOW_RECORD_RATE, record_rate
from fabric.engine.types cimport i64, later, u32, u64, unlikely
from fabric.engine.world cimport World

cdef enum:
    MOST_FRAMES = 0xFFFFFFFF


cdef inline double line_rate(const World* w, const Sender* s) noexcept nogil:
    return <double>w.port_line_bps[s.port]


cdef inline u32 window_at(const TransportProfile* p, double rate, double line_bps) noexcept nogil:
    """Frames of the window that goes with a rate."""
    cdef u64 size_bytes, frames
    if not p.variable_window:
        return p.window_frames
    size_bytes = <u64>(<double>p.window_bytes * rate / line_bps)
    frames = (size_bytes + p.payload_bytes - 1) // p.payload_bytes
    if frames < p.ack_every:
        return p.ack_every
    return <u32>frames if frames < MOST_FRAMES else <u32>MOST_FRAMES


cdef inline double kept_rate(const TransportProfile* p, double rate) noexcept nogil:
    """A rate as it is kept: as it is, or cut to whole bit/s."""
    return <double><i64>rate if unlikely(p.whole_rates) else rate


cdef inline double mean_rate(const TransportProfile* p, double one, double other) noexcept nogil:
    """The mean of two rates; of whole ones the sum of their halves, each cut."""
    if unlikely(p.whole_rates):
        return <double>(<i64>(one / 2.0) + <i64>(other / 2.0))
    return (one + other) / 2.0


cdef inline i64 gap_in_ticks(const World* w, double rate, u32 wire_bytes, i64 start_ps) noexcept nogil:
    cdef i64 gap_ps = tick_ps(8 * <u64>wire_bytes, <u64>rate)
    return gap_ps + FREE_PHASE_PS - start_ps % PS_PER_TICK if w.ties_by_start else gap_ps


cdef inline i64 gap_at(
    const World* w, const TransportProfile* p, double rate, double line_bps, u32 wire_bytes, i64 serialisation_ps,
    i64 start_ps
) noexcept nogil:
    """The time from the start of a frame to the start of the flow's next one, at a rate."""
    if rate >= line_bps:
        return serialisation_ps
    if unlikely(p.whole_rates):
        return gap_in_ticks(w, rate, wire_bytes, start_ps)
    return later(serialisation_ps, <i64>(<double>wire_bytes * 8e12 / rate))


cdef inline void note_rate(World* w, u32 flow, const Sender* s, double before, i64 time_ps) noexcept nogil:
    """Records the rate, and the window that goes with it, if the rate has changed."""
    if unlikely(s.record & FLOW_RECORD_RATE != 0) and s.cc.rate != before:
        record_rate(
            w, flow, time_ps, s.cc.rate, window_at(&w.transports[s.transport], s.cc.rate, line_rate(w, s))
        )
