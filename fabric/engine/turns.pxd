# A host port whose flows take turns: the NIC of the HPCC simulator (`qbb-net-device.cc`).
#
# Most host ports serve the flow that may send for longest (`nic.pxd`); this one scans a list of its flows
# whenever it could begin a frame and no control frame goes first, from the one behind the one served
# last to the first that may send. Complete flows that are met are struck, with all complete ones behind
# the first of them. If none is found, a wake-up is set for the earliest end of a pause of any flow with
# bytes left, held by its window or not, unless one is pending or that instant has passed. So it
# matters when the port is tried: at the end of each frame, at a wake-up, and at each event that may
# have made a start possible. Like others the port is lazy: `host_advance` makes up for tries.
#
# While a port is tried, the heap of a class holds the flow that was found in it; between tries it is empty.

from fabric.engine.flow cimport SENDER_COMPLETE, SENDER_READY, Sender
from fabric.engine.flow_list cimport list_append
from fabric.engine.heap cimport heap_push
from fabric.engine.link cimport FREE_PHASE_PS
from fabric.engine.nic cimport clear_if_idle, nic_advance, nic_pick, nic_try, send_control, send_data, sendable
from fabric.engine.node cimport Node
from fabric.engine.port cimport ODD_TURNS, Port
from fabric.engine.ring cimport ring_empty
from fabric.engine.turn cimport TurnPort, TurnQueue
from fabric.engine.types cimport NEVER, i64, later, likely, sooner, u8, u32, unlikely
from fabric.engine.world cimport ERROR_MEMORY, World

cdef enum:
    NO_TURN = 0xFFFFFFFF
    NEVER_IDLE = 1              # in the backlog of such a port, so that it is always made up for


cdef inline void turns_join(World* w, u32 flow, Sender* s) noexcept nogil:
    """A flow has started; it stays in the list until it is struck."""
    cdef TurnQueue* q = &w.turn_queues[s.port * w.n_classes + s.traffic_class]
    if not list_append(&q.list, flow):
        w.error = ERROR_MEMORY
        return
    s.flags |= SENDER_READY


cdef inline void turns_leave(World* w, u32 flow, Sender* s) noexcept nogil:
    """A flow goes to another port; whose turn it is stays as it is."""
    cdef TurnQueue* q = &w.turn_queues[s.port * w.n_classes + s.traffic_class]
    cdef u32 place = 0, k
    while q.list.flows[place] != flow:
        place += 1
    for k in range(place, q.list.count - 1):
        q.list.flows[k] = q.list.flows[k + 1]
    q.list.count -= 1
    if place <= q.last and q.last != NO_TURN:
        q.last -= 1             # to NO_TURN from 0, which comes next then
    s.flags &= ~SENDER_READY


cdef inline void strike_complete(World* w, TurnQueue* q, u32 first) noexcept nogil:
    """Takes the complete flows from a place on off the list."""
    cdef u32 k, kept = first
    for k in range(first, q.list.count):
        if not w.senders[q.list.flows[k]].flags & SENDER_COMPLETE:
            if k == q.chosen:
                q.chosen = kept
            q.list.flows[kept] = q.list.flows[k]
            kept += 1
    q.list.count = kept


cdef inline bint scan(World* w, TurnQueue* q, bint paused, i64 time_ps) noexcept nogil:
    """Looks for the flow of a class whose turn it is."""
    cdef u32 step, k, first_complete = NO_TURN
    cdef const Sender* s
    q.chosen = NO_TURN
    for step in range(1, q.list.count + 1):
        k = (q.last + step) % q.list.count
        s = &w.senders[q.list.flows[k]]
        if not paused and sendable(s):
            if s.next_time_ps <= time_ps:
                q.chosen = k
                break
        elif s.flags & SENDER_COMPLETE and k < first_complete:
            first_complete = k
    if first_complete != NO_TURN:
        strike_complete(w, q, first_complete)
    return q.chosen != NO_TURN


cdef inline bint startable(const World* w, const TurnQueue* q) noexcept nogil:
    """Whether any flow has something to send, now or later."""
    cdef u32 k
    for k in range(q.list.count):
        if sendable(&w.senders[q.list.flows[k]]):
            return True
    return False


cdef inline void set_wake(World* w, u32 port, i64 time_ps) noexcept nogil:
    """Nothing could be sent: sets the wake-up, by the rule of the head of this file."""
    cdef TurnPort* x = &w.turn_ports[port]
    cdef const TurnQueue* q
    cdef const Sender* s
    cdef i64 first_ps = NEVER
    cdef u32 c, k
    for c in range(w.n_classes):
        q = &w.turn_queues[port * w.n_classes + c]
        for k in range(q.list.count):
            s = &w.senders[q.list.flows[k]]
            if s.next < s.frames:
                first_ps = sooner(first_ps, s.next_time_ps)
    if x.wake_ps == NEVER and first_ps > time_ps:
        x.wake_ps = first_ps


cdef inline void begin_class(World* w, Node* n, u32 port, Port* p, u8 c, i64 time_ps) noexcept nogil:
    """Begins the next frame of a class."""
    cdef u32 index = port * w.n_classes + c
    cdef TurnQueue* q = &w.turn_queues[index]
    if not ring_empty(&w.queues[index].frames):
        send_control(w, p, index, c, time_ps)
    else:
        q.last = q.chosen
        send_data(w, n, p, index, c, time_ps)
        w.senders[q.list.flows[q.last]].flags |= SENDER_READY
    if ring_empty(&w.queues[index].frames) and not startable(w, q):
        w.queues[index].deficit = 0
    w.turn_ports[port].is_sending = True


cdef inline void turns_try(World* w, Node* n, u32 port, Port* p, i64 time_ps) noexcept nogil:
    """Begins a frame at a port between frames, if there is one to begin."""
    cdef u8 candidates = 0, c, paused
    cdef u32 index
    for c in range(<u8>w.n_classes):
        index = port * w.n_classes + c
        paused = p.paused >> c & 1
        if not ring_empty(&w.queues[index].frames) and (n.control_ignores_pause or not paused):
            candidates |= <u8>(1 << c)
        elif scan(w, &w.turn_queues[index], paused, time_ps):
            candidates |= <u8>(1 << c)
            if not heap_push(&w.ready[index], time_ps, w.turn_queues[index].list.flows[w.turn_queues[index].chosen]):
                w.error = ERROR_MEMORY
                return
    if candidates == 0:
        set_wake(w, port, time_ps)
        return
    begin_class(w, n, port, p, nic_pick(w, n, port, candidates), time_ps)
    for c in range(<u8>w.n_classes):
        index = port * w.n_classes + c
        w.ready[index].count = 0
        clear_if_idle(w, p, index, c)
    p.backlog |= NEVER_IDLE


cdef inline i64 frame_end_ps(const World* w, u32 port, const Port* p) noexcept nogil:
    """When the frame ends at whose end the port has not been tried yet; NEVER: it is between frames."""
    return p.busy_ps if w.turn_ports[port].is_sending else NEVER


cdef inline void turns_advance(World* w, Node* n, u32 port, Port* p, i64 time_ps) noexcept nogil:
    """Makes up for all tries at or before an instant; a wake-up within a frame, or at its end, is lost."""
    cdef TurnPort* x = &w.turn_ports[port]
    cdef i64 end_ps, wake_ps
    while True:
        end_ps = frame_end_ps(w, port, p)
        wake_ps = x.wake_ps
        if sooner(end_ps, wake_ps) > time_ps:
            return
        if wake_ps <= end_ps:
            x.wake_ps = NEVER
            if end_ps == NEVER:
                turns_try(w, n, port, p, wake_ps)
        else:
            x.is_sending = False
            turns_try(w, n, port, p, end_ps)
        if unlikely(w.error != 0 or w.out_of_memory != 0):
            return


cdef inline void host_advance(World* w, Node* n, u32 port, Port* p, i64 time_ps) noexcept nogil:
    """Lets a host port start everything that it starts at or before an instant."""
    if p.busy_ps <= time_ps and p.backlog:
        if unlikely(p.odd & ODD_TURNS):
            turns_advance(w, n, port, p, time_ps)
        else:
            nic_advance(w, n, port, p, time_ps)


cdef inline void host_try(World* w, Node* n, u32 port, Port* p, i64 time_ps) noexcept nogil:
    """An event at `time_ps` may have made a start possible."""
    if p.busy_ps <= time_ps and p.backlog:
        if likely(not p.odd & ODD_TURNS):
            nic_try(w, n, port, p, time_ps)
        elif frame_end_ps(w, port, p) == NEVER:
            turns_try(w, n, port, p, time_ps)


cdef inline void wake_earlier(World* w, const Sender* s, i64 time_ps) noexcept nogil:
    """A pause has been measured anew: a pending wake-up comes at its end if that is earlier."""
    cdef TurnPort* x = &w.turn_ports[s.port]
    if x.wake_ps != NEVER and s.next_time_ps < x.wake_ps:
        x.wake_ps = later(s.next_time_ps, time_ps + (FREE_PHASE_PS if w.ties_by_start else 0))


cdef inline i64 turns_due(const World* w, u32 port, const Port* p) noexcept nogil:
    """When a port has to be tried next if nothing happens before."""
    return sooner(frame_end_ps(w, port, p), w.turn_ports[port].wake_ps)


cdef inline bint turns_left(const World* w, const Node* n, u32 port, const Port* p) noexcept nogil:
    """Whether a port will be tried that has something to send which PFC does not hold."""
    cdef u32 c
    cdef bint open_
    if turns_due(w, port, p) == NEVER:
        return False
    for c in range(w.n_classes):
        open_ = not p.paused >> c & 1
        if not ring_empty(&w.queues[port * w.n_classes + c].frames) and (n.control_ignores_pause or open_):
            return True
        if open_ and startable(w, &w.turn_queues[port * w.n_classes + c]):
            return True
    return False
