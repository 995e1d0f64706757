# A link: serialisation, propagation, and the bell that tells the peer.
#
# A frame that starts at s occupies the transmitter for exactly ceil(8e12 * wire bytes / rate)
# picoseconds, rounded per frame and never per byte, so no rate is ever beaten. It arrives when its
# last bit has (or, at a cut-through receiver, its first `cut_bytes`), plus the delay. Frames of one
# link arrive in the order in which they started. Loss is drawn at the receiver. While the link is down a frame
# takes its time at the transmitter and is lost there.

from fabric.engine.packet cimport PFC, PFC_PAUSE, PFC_REPEAT, Packet
from fabric.engine.port cimport (
    LINK_LOSES,
    LINK_WAKE_BIT,
    ODD_DOWN,
    ODD_RECORDED,
    ODD_TICKS,
    ODD_TIMING,
    Port,
)
from fabric.engine.recorder cimport record_drop, record_start
from fabric.engine.ring cimport Ring, ring_empty, ring_full, ring_grow, ring_slot
from fabric.engine.rng cimport draw, frame_key, unit_interval
from fabric.engine.types cimport i64, later, likely, sooner, u16, u32, u64, unlikely
from fabric.engine.node cimport Wake
from fabric.engine.world cimport World, check


cdef enum:
    PS_PER_TICK = 1000
    FREE_PHASE_PS = 1           # with `ties_by_start`: how much later than a frame's end its port is free
    START_PHASE_PS = 2          # and how much later than its time a flow starts
    BYTE_PS_AT_1_BPS = 8000000000000
    LINK_DOWN = 6               # a drop reason


cdef extern from *:
    """
    /* Seconds as a double, then as a 64.64 fixed-point number, then truncated to a nanosecond. */
    static int64_t fabric_tick_ps(uint64_t bits, uint64_t rate_bps)
    {
        unsigned __int128 seconds = (unsigned __int128)((double)bits / (double)rate_bps * 18446744073709551616.0);
        return (int64_t)((seconds * 1000000000u) >> 64) * 1000;
    }
    """
    i64 tick_ps "fabric_tick_ps" (u64, u64) noexcept nogil


cdef inline i64 serialisation_ps(const World* w, const Port* p, u32 wire_bytes) noexcept nogil:
    cdef u64 rate
    if unlikely(p.odd & ODD_TICKS):
        return tick_ps(8 * <u64>wire_bytes, <u64>w.port_rate_bps[p - w.ports])
    if likely(p.ps_per_byte != 0):
        return <i64>(<u64>wire_bytes * p.ps_per_byte)
    rate = <u64>w.port_rate_bps[p - w.ports]
    return <i64>((<u64>wire_bytes * <u64>BYTE_PS_AT_1_BPS + rate - 1) // rate)


cdef inline void set_rate(Port* p, u64 rate_bps) noexcept nogil:
    """What follows from the rate of a link: time per byte, and whether frames need more than that."""
    cdef u64 ps_per_byte = <u64>BYTE_PS_AT_1_BPS // rate_bps
    p.ps_per_byte = 0
    if ps_per_byte * rate_bps == <u64>BYTE_PS_AT_1_BPS and ps_per_byte < <u64>0xFFFFFFFF:
        p.ps_per_byte = <u32>ps_per_byte
    p.odd &= ~<u32>ODD_TIMING
    if p.cut_bytes or not p.ps_per_byte or p.odd & (ODD_TICKS | ODD_DOWN):
        p.odd |= ODD_TIMING


cdef inline void set_loss(Port* p, double loss, double ber_rate) noexcept nogil:
    """Whether the receiver has to draw if a frame of the link was lost."""
    p.link.tag &= ~<u32>LINK_LOSES
    if loss > 0.0 or ber_rate > 0.0:
        p.link.tag |= LINK_LOSES


cdef inline i64 seen_after_ps(const World* w, const Port* p, u32 wire_bytes) noexcept nogil:
    """How long after its start a frame is all that its receiver waits for."""
    if p.cut_bytes and p.cut_bytes < wire_bytes:
        return serialisation_ps(w, p, p.cut_bytes)
    return serialisation_ps(w, p, wire_bytes)


cdef inline void ring_bell(World* w, const Port* p, i64 arrival_ps) noexcept nogil:
    """Tells the peer that its link, which was empty, holds a frame."""
    cdef u32 bit = p.link.tag & LINK_WAKE_BIT
    cdef Wake* word = &w.wakes[bit >> 6]
    word.bits |= <u64>1 << (bit & 63)
    word.due_ps = sooner(word.due_ps, arrival_ps)


cdef inline Packet* occupy(World* w, Port* p, u32 size_bytes, i64 end_ps, i64 arrival_ps) noexcept nogil:
    """Puts a frame on a link that has a slot for it."""
    cdef Ring* link = &p.link
    cdef Packet* slot = ring_slot(link, link.tail)
    if ring_empty(link):
        ring_bell(w, p, arrival_ps)
    link.tail += 1
    slot.time_ps = arrival_ps
    slot.size_bytes = <u16>size_bytes
    p.busy_ps = end_ps
    p.tx_bytes += size_bytes + p.gap_bytes
    w.frames_started += 1
    return slot


cdef inline Packet* begin_odd_frame(World* w, Port* p, u32 size_bytes, i64 start_ps) noexcept nogil:
    """`begin_frame` where the link needs more slots, or times are no plain multiples."""
    cdef u32 wire_bytes = size_bytes + p.gap_bytes
    cdef i64 end_ps = start_ps
    if unlikely(w.ties_by_start):
        start_ps -= start_ps % PS_PER_TICK
        end_ps = later(end_ps, start_ps + serialisation_ps(w, p, wire_bytes) + FREE_PHASE_PS)
    else:
        end_ps += serialisation_ps(w, p, wire_bytes)
    if p.odd & ODD_DOWN:
        p.busy_ps = end_ps
        w.scratch.size_bytes = <u16>size_bytes
        return &w.scratch
    if ring_full(&p.link) and not ring_grow(&p.link):
        w.out_of_memory = 1
        return &w.scratch
    return occupy(w, p, size_bytes, end_ps, start_ps + seen_after_ps(w, p, wire_bytes) + p.delay_ps)


cdef inline Packet* begin_frame(World* w, Port* p, u32 size_bytes, i64 start_ps) noexcept nogil:
    """Occupies the transmitter from `start_ps` and returns the frame's slot on the link.

    The caller fills in all but `time_ps` and `size_bytes`, then calls `announce`.
    """
    cdef i64 end_ps
    check(w, start_ps >= p.busy_ps and start_ps >= w.now_ps)
    if unlikely(ring_full(&p.link) or p.odd & ODD_TIMING):
        return begin_odd_frame(w, p, size_bytes, start_ps)
    end_ps = start_ps + <i64>(<u64>(size_bytes + p.gap_bytes) * p.ps_per_byte)
    return occupy(w, p, size_bytes, end_ps, end_ps + p.delay_ps)


cdef inline void lose_pfc(World* w, u32 port, const Packet* frame) noexcept nogil:
    """A PAUSE that is lost on the link of a port is on its way no more."""
    if frame.kind == PFC:
        w.pauses[w.port_peer[port] * w.n_classes + frame.traffic_class].pauses_taken += frame.sequence == PFC_PAUSE
        w.quanta.repeats_in_flight -= frame.sequence == PFC_REPEAT


cdef inline void announce(World* w, Port* p, const Packet* frame, i64 start_ps) noexcept nogil:
    """Records the frame that has just begun, if the port is recorded; it is lost if the link is down."""
    if unlikely(p.odd & (ODD_RECORDED | ODD_DOWN)):
        if p.odd & ODD_DOWN:
            record_drop(w, <u32>(p - w.ports), frame, start_ps, LINK_DOWN)
            lose_pfc(w, <u32>(p - w.ports), frame)
            return
        record_start(w, p, frame, start_ps, <u32>frame.size_bytes + p.gap_bytes)


cdef inline void transmit(World* w, Port* p, const Packet* frame, i64 start_ps) noexcept nogil:
    """Starts a copy of `frame` on the link."""
    cdef Packet* slot = begin_frame(w, p, frame.size_bytes, start_ps)
    cdef i64 arrival_ps = slot.time_ps
    slot[0] = frame[0]
    slot.time_ps = arrival_ps
    announce(w, p, slot, start_ps)


cdef inline bint lost_on_link(World* w, u32 sender_port, const Packet* frame) noexcept nogil:
    """Draws whether a frame that has just arrived was lost on a link that loses frames."""
    cdef double x, q, p
    cdef u64 key
    if frame.kind == PFC:
        return False
    x = <double>(8 * (<u32>frame.size_bytes + w.ports[sender_port].gap_bytes)) * w.port_ber_rate[sender_port]
    q = x - x * x / 2.0 + x * x * x / 6.0 - x * x * x * x / 24.0
    p = w.port_loss[sender_port] + (1.0 - w.port_loss[sender_port]) * q
    key = frame_key(frame.time_ps, frame.flow, frame.sequence)
    return unit_interval(draw(w.key_loss, sender_port, key)) < p
