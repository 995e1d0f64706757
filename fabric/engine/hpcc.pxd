# HPCC: Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, algorithm 1, on rates.
#
# Each ACK brings what the frame met at every switch port: when it left, how much the port had sent, what
# was queued. Two of them give a link's use over that time; the queue counts as what it takes a base
# round trip T to drain. The most used link, averaged over T, moves the rate: in proportion where it is
# used more than eta, else by a step. Every ACK starts from the reference rate, which follows once a
# round trip, so that no news is counted twice. The window is rate x T. When the path changes (or frames
# pass each other), what is known of the links starts anew. A pause that has begun is measured anew at
# a changed rate, as in the authors' simulator: else a slow flow would hear of its new rate too late.

from fabric.engine.flow cimport CC_ACTIVE, CC_MOVED, Sender
from fabric.engine.frame_log cimport (
    FrameLog,
    FrameMemory,
    HopRecord,
    hop_queued,
    hop_records,
    hop_sent,
    log_keep,
    sent_between,
)
from fabric.engine.numbers cimport least, most
from fabric.engine.pace cimport gap_at, kept_rate, line_rate, note_rate
from fabric.engine.profile cimport TransportProfile
from fabric.engine.types cimport i64, sooner, u32, unlikely
from fabric.engine.world cimport World

cdef enum:
    PS_PER_NS = 1000
    TIME_MASK = 0xFFFFFF
    SENT_BYTES = 128
    SENT_MASK = 0xFFFFF
    QUEUED_BYTES = 80
    QUEUED_MASK = 0x1FFFF


cdef inline void hpcc_start(Sender* s) noexcept nogil:
    """A flow starts; `cc.rate` is the line rate."""
    s.cc_flags |= CC_ACTIVE
    s.cc.hpcc.reference = s.cc.rate
    s.cc.hpcc.utilisation = 1.0


cdef inline void hpcc_sent(Sender* s, u32 wire_bytes, i64 serialisation_ps, i64 start_ps) noexcept nogil:
    """A frame has begun to leave."""
    s.cc.hpcc.sent_ps = start_ps
    s.cc.hpcc.sent_serialisation_ps = serialisation_ps
    s.cc.hpcc.sent_wire_bytes = wire_bytes


cdef inline bint same_links(const FrameLog* log, FrameMemory* memory, u32 hops) noexcept nogil:
    """Whether a frame took the path of the one before, and came later everywhere."""
    cdef const HopRecord* now = hop_records(memory)
    cdef u32 k
    if log.n_seen != hops:
        return False
    for k in range(hops):
        if now[k].port != log.seen[k].port or now[k].time_ps <= log.seen[k].time_ps:
            return False
    return True


cdef inline double compact_use(
    const HopRecord* then, const HopRecord* now, const TransportProfile* p, double rate_bps, double line_bps,
    i64* elapsed_ps
) noexcept nogil:
    """The use of a link by what fits a record of 64 bits (24 of time, 20 and 17 of counts); -1: no time went by."""
    cdef i64 sent_unit = SENT_BYTES * <i64>p.telemetry_unit, queued_unit = QUEUED_BYTES * <i64>p.telemetry_unit
    cdef i64 elapsed_ns = (now.time_ps // PS_PER_NS - then.time_ps // PS_PER_NS) & TIME_MASK
    cdef i64 sent = (hop_sent(now) // sent_unit - hop_sent(then) // sent_unit) & SENT_MASK
    cdef i64 queued = sooner(
        hop_queued(now) // queued_unit & QUEUED_MASK, hop_queued(then) // queued_unit & QUEUED_MASK
    )
    elapsed_ps[0] = elapsed_ns * PS_PER_NS
    if elapsed_ns == 0:
        return -1.0
    return (
        <double>(sent * sent_unit * 8) / (<double>elapsed_ns * 1e-9) / rate_bps
        + <double>(queued * queued_unit) * line_bps / rate_bps / <double>p.window_bytes
    )


cdef inline void hpcc_measure(
    World* w, const FrameLog* log, FrameMemory* memory, Sender* s, const TransportProfile* p
) noexcept nogil:
    """Averages the use of the most used link into U."""
    cdef i64 base_rtt_ps = p.base_rtt_ps
    cdef const HopRecord* now = hop_records(memory)
    cdef const HopRecord* then = log.seen
    cdef double per_rtt = 8e12 / <double>base_rtt_ps
    cdef double highest = -1.0, use
    cdef i64 elapsed_ps, highest_ps = 0
    cdef u32 k
    for k in range(log.n_seen):
        elapsed_ps = now[k].time_ps - then[k].time_ps
        if unlikely(p.telemetry_unit):
            use = compact_use(
                &then[k], &now[k], p, <double>w.port_line_bps[now[k].port], line_rate(w, s), &elapsed_ps
            )
        else:
            use = (
                <double>sent_between(&then[k], &now[k]) * 8e12 / <double>elapsed_ps
                + <double>sooner(hop_queued(&now[k]), hop_queued(&then[k])) * per_rtt
            ) / <double>w.port_line_bps[now[k].port]
        if use > highest:
            highest = use
            highest_ps = elapsed_ps
    highest_ps = sooner(highest_ps, base_rtt_ps)
    s.cc.hpcc.utilisation = (
        s.cc.hpcc.utilisation * <double>(base_rtt_ps - highest_ps) + highest * <double>highest_ps
    ) / <double>base_rtt_ps


cdef inline void hpcc_update(Sender* s, const TransportProfile* p, double line_bps, bint full) noexcept nogil:
    """The rate from U; a full update makes it the reference."""
    cdef double over = s.cc.hpcc.utilisation / p.eta
    cdef u32 stage = 0
    if over >= 1.0 or s.cc.hpcc.stage >= p.max_stage:
        s.cc.rate = kept_rate(p, s.cc.hpcc.reference / over) + p.ai_bps
    else:
        s.cc.rate = s.cc.hpcc.reference + p.ai_bps
        stage = s.cc.hpcc.stage + 1
    s.cc.rate = most(p.min_rate_bps, least(s.cc.rate, line_bps))
    if full:
        s.cc.hpcc.reference = s.cc.rate
        s.cc.hpcc.stage = stage
        if s.next > s.cc.hpcc.last:
            s.cc.hpcc.last = s.next


cdef inline void hpcc_ack(
    World* w, u32 flow, Sender* s, const TransportProfile* p, double line_bps, u32 sequence, FrameMemory* memory,
    u32 hops, i64 time_ps
) noexcept nogil:
    """An ACK of a frame that has collected telemetry."""
    cdef FrameLog* log = &w.logs[flow]
    cdef double before = s.cc.rate
    cdef bint full = sequence > s.cc.hpcc.last
    if hops == 0:
        return
    if log.n_seen == 0:
        s.cc.hpcc.last = s.next
    elif unlikely(not same_links(log, memory, hops)):
        pass
    elif full or p.fast_reaction:
        hpcc_measure(w, log, memory, s, p)
        hpcc_update(s, p, line_bps, full)
        if s.cc.rate != before:
            note_rate(w, flow, s, before, time_ps)
            s.cc_flags |= CC_MOVED
            s.next_time_ps = s.cc.hpcc.sent_ps + gap_at(
                w, p, s.cc.rate, line_bps, s.cc.hpcc.sent_wire_bytes, s.cc.hpcc.sent_serialisation_ps,
                s.cc.hpcc.sent_ps
            )
    else:
        return
    if unlikely(not log_keep(log, memory, hops)):
        w.out_of_memory = 1
