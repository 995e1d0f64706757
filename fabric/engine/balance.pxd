# Path choice of a switch that does more than hash a flow's number: lifetimes, pinned next hops, hashed
# sockets, spray, shortest queue, flowlets.
#
# Spraying per frame balances without regard to flows and lets frames overtake each other; the round robin
# keeps a turn per group and class, so n frames over m links leave at most ceil(n/m) on any. The adaptive
# choice compares what the candidates hold of the frame's class at this very instant; so all are first
# let to start what they start by now. A flowlet moves only when its slot was idle for the gap: with a
# gap above the difference in delay of the paths nothing is overtaken.

from fabric.engine.choice cimport (
    CHOICE_ADAPTIVE,
    CHOICE_FLOWLET,
    CHOICE_RANDOM,
    CHOICE_ROUND_ROBIN,
    CHOICE_TUPLE,
    FLOWLET_SLOT_BITS,
    PIN_FLOW,
    Flowlet,
    Paths,
)
from fabric.engine.egress cimport advance
from fabric.engine.node cimport Node
from fabric.engine.packet cimport DATA, TTL_SHIFT, Packet
from fabric.engine.port cimport Port
from fabric.engine.rng cimport fmix32, mix64
from fabric.engine.routing cimport EXPIRED, NO_PORT, ROUTE_DIRECT, destination_port, ecmp_index
from fabric.engine.sockets cimport socket_index
from fabric.engine.types cimport NEVER, i64, likely, u8, u16, u32, u64
from fabric.engine.world cimport World


cdef inline u32 drawn_index(const World* w, const Node* n, u32 local, const Packet* frame, u32 count) noexcept nogil:
    """One of `count`, by a draw that belongs to this port and instant, and so to this frame alone."""
    cdef u64 bits = mix64(
        (<u64>frame.time_ps ^ w.key_path) + (<u64>(n.port_base + local) + 1) * <u64>0x9E3779B97F4A7C15
    )
    return <u32>(((bits >> 32) * count) >> 32)


cdef inline u32 index_in_turn(const World* w, const Node* n, u32 offset, u32 count, u32 traffic_class) noexcept nogil:
    cdef u32* turn = &n.paths.turns[offset * w.n_classes + traffic_class]
    cdef u32 index = turn[0] - 1 if turn[0] else <u32>((<u64>n.salt * count) >> 32)
    turn[0] = 1 if index + 1 == count else index + 2
    return index


cdef inline i64 cost_of(World* w, Node* n, u32 local, Port* p, u32 traffic_class, i64 time_ps) noexcept nogil:
    """How unattractive a port with frames or a pause is: twice its queue of the class, and one if it cannot start."""
    cdef i64 cost
    advance(w, n, local, p, time_ps)
    cost = p.busy_ps > time_ps or p.paused >> traffic_class & 1
    if p.backlog >> traffic_class & 1:
        cost += 2 * w.queues[(n.port_base + local) * w.n_classes + traffic_class].bytes
    return cost


cdef inline u32 index_of_shortest(
    World* w, Node* n, u32 local, const u16* group, u32 count, const Packet* frame
) noexcept nogil:
    """The candidate of least cost; of several one by a draw."""
    cdef u16* tied = n.paths.tied
    cdef Port* ports = &w.ports[n.port_base]
    cdef i64 cost, least = NEVER, time_ps = frame.time_ps
    cdef u32 k, ties = 0
    cdef Port* p
    for k in range(count):
        p = ports + group[k]
        if likely(not (p.backlog | p.paused | p.mac_pending)):
            cost = p.busy_ps > time_ps
        else:
            cost = cost_of(w, n, group[k], p, frame.traffic_class, time_ps)
        if cost < least:
            least = cost
            ties = 0
        tied[ties] = <u16>k
        ties += cost == least
    return tied[drawn_index(w, n, local, frame, ties)]


cdef inline u32 index_of_flowlet(
    World* w, Node* n, u32 local, const u16* group, u32 offset, u32 count, const Packet* frame
) noexcept nogil:
    """Where the flowlet goes that the frame belongs to, or begins."""
    cdef u32 slot = fmix32((frame.path_hash ^ n.salt) + offset * <u32>0x9E3779B9) >> (32 - FLOWLET_SLOT_BITS)
    cdef Flowlet* flowlet = &n.paths.flowlets[slot]
    if not flowlet.used or frame.time_ps - flowlet.last_ps >= w.flowlet_gap_ps or flowlet.index >= count:
        flowlet.index = index_of_shortest(w, n, local, group, count, frame)
        flowlet.used = 1
    flowlet.last_ps = frame.time_ps
    return flowlet.index


cdef inline u32 pinned_port(const Paths* paths, u64 key) noexcept nogil:
    """The local port that a flow or a destination is pinned to, or NO_PORT."""
    cdef u32 low = 0, high = paths.n_pins, middle
    while low < high:
        middle = (low + high) >> 1
        if paths.pin_key[middle] < key:
            low = middle + 1
        else:
            high = middle
    if low < paths.n_pins and paths.pin_key[low] == key:
        return paths.pin_port[low]
    return NO_PORT


cdef inline u32 balanced_port(World* w, Node* n, u32 local, const Packet* frame) noexcept nogil:
    """The local egress port by the switch's choice among equal next hops, or NO_PORT."""
    cdef u32 entry = n.paths.route_entry[w.host_edge[frame.destination]]
    cdef u32 count = entry >> 16, offset = entry & 0xFFFF, index = 0
    cdef const u16* group = n.route_ports + offset
    if entry == ROUTE_DIRECT:
        return destination_port(w, n, frame)
    if count == 0:
        return NO_PORT
    if count > 1:
        if n.paths.choice == CHOICE_ROUND_ROBIN:
            index = index_in_turn(w, n, offset, count, frame.traffic_class)
        elif n.paths.choice == CHOICE_RANDOM:
            index = drawn_index(w, n, local, frame, count)
        elif n.paths.choice == CHOICE_ADAPTIVE:
            index = index_of_shortest(w, n, local, group, count, frame)
        elif n.paths.choice == CHOICE_FLOWLET:
            index = index_of_flowlet(w, n, local, group, offset, count, frame)
        elif n.paths.choice == CHOICE_TUPLE:
            index = socket_index(w, n, frame, count)
        else:
            index = ecmp_index(frame.path_hash, n.salt, count)
    return group[index]


cdef inline u32 chosen_port(World* w, Node* n, u32 local, Packet* frame) noexcept nogil:
    """The local egress port of a frame at a switch that is not plain: a port, NO_PORT or EXPIRED."""
    cdef u32 port
    cdef u8 ttl = frame.mark_ttl >> TTL_SHIFT
    if ttl:
        if ttl == 1:
            return EXPIRED
        frame.mark_ttl -= 1 << TTL_SHIFT
    if n.paths.n_pins:
        if frame.kind == DATA:
            port = pinned_port(n.paths, (<u64>PIN_FLOW << 32) | frame.flow)
            if port != NO_PORT:
                return port
        port = pinned_port(n.paths, frame.destination)
        if port != NO_PORT:
            return port
    return balanced_port(w, n, local, frame)
