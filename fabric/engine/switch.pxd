# A shared-memory switch with output queues: what it does with a frame, and its windows.
#
# A frame is routed, admitted to the shared buffer (or dropped, with a reason), may cause a PAUSE
# towards where it came from, may be marked, and is queued by class at its egress; a free egress starts
# it at once. See `buffer`, `pfc`, `ecn`, `queues`, `scheduler` for the parts.

from fabric.engine.ahead cimport prefetch_step
from fabric.engine.arrivals cimport count_arrivals, gather_arrivals, next_port, take_frame
from fabric.engine.balance cimport chosen_port
from fabric.engine.buffer cimport charge, pool_share, profile_of, roomy, surely_roomy, threshold
from fabric.engine.ecn cimport ecn_mark
from fabric.engine.egress cimport advance, catch_up, holds_frames, may_start, settle, try_start
from fabric.engine.expiry cimport runs_out
from fabric.engine.heap cimport Due
from fabric.engine.link cimport lost_on_link, transmit
from fabric.engine.node cimport TIMER_PFC_EFFECT, Node, timer_pop
from fabric.engine.packet cimport PFC, PFC_PAUSE, PFC_RESUME, SPARE_STAMPED, Packet
from fabric.engine.pfc cimport acts_later, note_backlog, send_pfc, take_pfc
from fabric.engine.port cimport LINK_CLOSED, LINK_LOSES, RECORD_QUEUE, ClassQueue, Gate, Ingress, PauseStat, Port
from fabric.engine.profile cimport ECN_AT_ENQUEUE, ClassProfile
from fabric.engine.queues cimport queue_push
from fabric.engine.recorder cimport fingerprint_arrival, record_drop, record_queue
from fabric.engine.routing cimport EXPIRED, NO_PORT, route
from fabric.engine.scheduler cimport top_level
from fabric.engine.telemetry cimport stamp
from fabric.engine.types cimport i64, later, likely, sooner, u8, u16, u32, u64, unlikely
from fabric.engine.world cimport World

cdef enum Admission:            # a verdict that is not ADMITTED is a drop reason
    LINK_LOSS = 0
    NO_ROUTE = 1
    HEADROOM_FULL = 2
    EGRESS_THRESHOLD = 3
    POOL_FULL = 4
    TTL_EXPIRED = 5
    WATCHDOG_DROPS = 7
    ADMITTED = 0xFF


cdef inline u8 admit_lossless(
    World* w, Node* n, const ClassProfile* inward, u32 local, const Packet* frame, i64 time_ps
) noexcept nogil:
    """Admission of a lossless frame at a settled switch, and the PAUSE that it may cause."""
    cdef u32 index = (n.port_base + local) * w.n_classes + frame.traffic_class
    cdef i64 size_bytes = frame.size_bytes
    cdef Ingress* ingress = &w.ingress[index]
    cdef PauseStat* stat = &w.pauses[index]
    cdef i64 share = pool_share(inward, ingress.bytes + size_bytes)
    cdef i64 free_bytes = n.shared_bytes - n.shared_used
    if (
        share <= threshold(inward.alpha_q16, inward.limit_bytes, free_bytes)
        and share - pool_share(inward, ingress.bytes) <= free_bytes
    ):
        charge(n, inward, ingress, size_bytes)
    elif ingress.headroom_used + size_bytes <= inward.headroom_bytes:
        ingress.headroom_used += <u32>size_bytes
        if ingress.headroom_used > stat.headroom_peak:
            stat.headroom_peak = ingress.headroom_used
    else:
        return HEADROOM_FULL
    if not ingress.paused and (
        ingress.headroom_used > 0
        or pool_share(inward, ingress.bytes)
        >= threshold(inward.alpha_q16, inward.limit_bytes, n.shared_bytes - n.shared_used)
    ):
        ingress.paused = 1
        n.n_paused += 1
        stat.cause_flow = frame.flow
        send_pfc(w, n, local, frame.traffic_class, PFC_PAUSE, time_ps)
    return ADMITTED


cdef inline u8 admit_lossy(
    Node* n, Ingress* ingress, const ClassProfile* inward, const ClassProfile* outward, i64 egress_bytes, i64 size_bytes
) noexcept nogil:
    """Admission of a lossy frame at a settled switch."""
    cdef i64 free_bytes = n.shared_bytes - n.shared_used
    cdef i64 limit = threshold(outward.egress_alpha_q16, outward.egress_limit_bytes, free_bytes)
    if egress_bytes + size_bytes > limit:
        return EGRESS_THRESHOLD
    if pool_share(inward, ingress.bytes + size_bytes) - pool_share(inward, ingress.bytes) > free_bytes:
        return POOL_FULL
    charge(n, inward, ingress, size_bytes)
    return ADMITTED


cdef inline void note_direct_start(World* w, const Node* n, u32 port, u8 traffic_class) noexcept nogil:
    """What the scheduler remembers of a frame that found its port free."""
    cdef u8 level
    if unlikely(n.scheduler.shared_classes >> traffic_class & 1):
        level = top_level(n.scheduler, <u8>(1 << traffic_class))
        w.dwrr_current[port * 8 + level] = traffic_class + 1
        w.queues[port * w.n_classes + traffic_class].deficit = 0


cdef inline void enqueue(
    World* w, Node* n, u32 in_local, u32 out_local, Port* out, const ClassProfile* outward, const Packet* frame,
    i64 time_ps
) noexcept nogil:
    """Queues an admitted frame at its egress and starts it if that is free."""
    cdef u32 port = n.port_base + out_local
    cdef u8 c = frame.traffic_class
    cdef u32 index = port * w.n_classes + c
    cdef ClassQueue* q = &w.queues[index]
    cdef bint noted = may_start(out)
    cdef Packet* slot = queue_push(w, n, index, in_local)
    if unlikely(w.out_of_memory != 0):
        return
    slot[0] = frame[0]
    slot.ingress = <u16>in_local
    slot.time_ps = time_ps
    q.bytes += frame.size_bytes
    if q.bytes > outward.ecn_kmin_bytes and outward.ecn_mode == ECN_AT_ENQUEUE:
        ecn_mark(w, outward, port, slot, q.bytes, time_ps)
    out.backlog |= <u8>(1 << c)
    if out.busy_ps <= time_ps:
        try_start(w, n, out_local, out, time_ps)
    elif not noted:
        note_backlog(n, out_local, out)
    q.peak_bytes = later(q.peak_bytes, q.bytes)
    if unlikely(out.record & RECORD_QUEUE != 0):
        record_queue(w, port, c, time_ps)


cdef inline void forward(World* w, Node* n, u32 local, const Gate* gate, Packet* frame, i64 time_ps) noexcept nogil:
    """A data or control frame has arrived at a local port."""
    cdef u32 out_local = route(w, n, frame)
    cdef u8 c = frame.traffic_class
    cdef Ingress* ingress = gate.classes + c
    cdef const ClassProfile* inward = gate.profiles + c
    cdef const ClassProfile* outward
    cdef u32 out_index, out_port
    cdef Port* out
    cdef i64 egress_bytes = 0
    cdef u8 verdict
    if unlikely(out_local == NO_PORT):
        if n.paths != NULL:
            out_local = chosen_port(w, n, local, frame)
        if out_local >= EXPIRED:
            record_drop(w, n.port_base + local, frame, time_ps, NO_ROUTE if out_local == NO_PORT else TTL_EXPIRED)
            return
    out_port = n.port_base + out_local
    out = &w.ports[out_port]
    outward = profile_of(w, out_port, c)
    if holds_frames(out):
        advance(w, n, out_local, out, time_ps)
        if out.backlog >> c & 1:
            egress_bytes = w.queues[out_port * w.n_classes + c].bytes
    if likely(surely_roomy(n, inward, outward, ingress, egress_bytes, frame.size_bytes)) or roomy(
        n, inward, outward, ingress, egress_bytes, frame.size_bytes
    ):
        if (
            out.busy_ps <= time_ps and not out.paused >> c & 1 and not ingress.paused
            and frame.size_bytes <= outward.direct_bytes
        ):
            note_direct_start(w, n, out_port, c)
            if unlikely(frame.spare & SPARE_STAMPED != 0):
                stamp(w, frame, out_port, time_ps)
            transmit(w, out, frame, time_ps)
            return
        charge(n, inward, ingress, frame.size_bytes)
    elif unlikely(outward.easy_egress_bytes < 0):
        record_drop(w, out_port, frame, time_ps, WATCHDOG_DROPS)
        return
    else:
        settle(w, n, time_ps)
        if inward.lossless:
            verdict = admit_lossless(w, n, inward, local, frame, time_ps)
        else:
            out_index = out_port * w.n_classes + c
            verdict = admit_lossy(n, ingress, inward, outward, w.queues[out_index].bytes, frame.size_bytes)
        if verdict != ADMITTED:
            record_drop(w, n.port_base + local, frame, time_ps, verdict)
            return
    enqueue(w, n, local, out_local, out, outward, frame, time_ps)


cdef inline void pfc_effect_at_switch(World* w, Node* n, u32 port, u8 traffic_class, u8 wish, i64 time_ps) noexcept nogil:
    cdef u32 local = port - n.port_base
    cdef Port* p = &w.ports[port]
    advance(w, n, local, p, time_ps)
    take_pfc(w, port, traffic_class, wish, time_ps)
    try_start(w, n, local, p, time_ps)


cdef inline bint dropped_on_arrival(World* w, u32 port, const Packet* frame) noexcept nogil:
    """Whether a frame is lost on the link that ends at a port, or dropped there by a watchdog."""
    if lost_on_link(w, w.port_peer[port], frame):
        record_drop(w, w.port_peer[port], frame, frame.time_ps, LINK_LOSS)
        return True
    if (
        w.watchdog.drops_ingress and frame.kind != PFC
        and w.watchdog.queues[port * w.n_classes + frame.traffic_class].mitigated
    ):
        record_drop(w, port, frame, frame.time_ps, WATCHDOG_DROPS)
        return True
    return False


cdef inline void switch_arrival(World* w, Node* n, u32 local, const Gate* gate, Packet* frame) noexcept nogil:
    """A frame has arrived at a local port at `frame.time_ps`."""
    cdef i64 time_ps = frame.time_ps
    cdef u32 port = n.port_base + local
    if w.fingerprint_on:
        fingerprint_arrival(w, port, frame)
    if n.n_paused and n.settle_from_ps <= time_ps:
        settle(w, n, time_ps)
    if unlikely(gate.link.tag & (LINK_LOSES | LINK_CLOSED)) and dropped_on_arrival(w, port, frame):
        pass
    elif likely(frame.kind != PFC):
        forward(w, n, local, gate, frame, time_ps)
    elif not acts_later(w, n, port, frame):
        pfc_effect_at_switch(w, n, port, frame.traffic_class, <u8>frame.sequence, time_ps)


cdef inline void switch_timers(World* w, Node* n, i64 before_ps) noexcept nogil:
    """Lets the timers that expire before an instant act."""
    cdef Due timer
    cdef u32 id
    while n.next_timer_ps < before_ps:
        timer = timer_pop(n)
        id = <u32>timer.key
        if n.n_paused:
            settle(w, n, timer.time_ps)
        if timer.key >> 56 == TIMER_PFC_EFFECT:
            pfc_effect_at_switch(w, n, id >> 5, <u8>(id >> 2 & 7), <u8>(id & 3), timer.time_ps)
        elif runs_out(w, id >> 5, <u8>(id >> 2 & 7), timer.time_ps):
            pfc_effect_at_switch(w, n, id >> 5, <u8>(id >> 2 & 7), PFC_RESUME, timer.time_ps)


cdef inline i64 switch_window(World* w, Node* n) noexcept nogil:
    """Everything that happens at a switch in the window; returns when it is next due by itself."""
    cdef u64 count = gather_arrivals(w, n)
    cdef u64 k, tied_until = 0
    cdef u32 local
    cdef const Gate* gate
    cdef Packet* frame
    for k in range(count):
        local = next_port(w, n, k, &tied_until)
        gate = &w.gates[n.port_base + local]
        prefetch_step(w)
        frame = take_frame(gate.link)
        if unlikely(n.next_timer_ps < frame.time_ps):
            switch_timers(w, n, frame.time_ps)
        switch_arrival(w, n, local, gate, frame)
    count_arrivals(w, count)
    if unlikely(n.next_timer_ps < w.window_end_ps):
        switch_timers(w, n, w.window_end_ps)
    if n.settle_from_ps < w.window_end_ps:
        if n.n_paused:
            settle(w, n, w.window_end_ps - 1)
        else:
            catch_up(w, n, w.window_end_ps - 1)
    return sooner(n.settle_from_ps, n.next_timer_ps)
