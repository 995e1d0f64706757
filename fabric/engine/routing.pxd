# Where a frame leaves a switch: the equal-cost next hops of its destination's edge, chosen by hash.
#
# Hosts that hang on the same switches form an edge and share next hops, so a table has a row per edge
# and not per host. ECMP per flow: the flow's path hash, salted per switch (so that consecutive tiers
# decide independently), picks one member of the group. Where a port stands in a group several times it
# gets that many shares of the flows (weighted ECMP). Other choices are in `balance.pxd`.

from fabric.engine.node cimport Node
from fabric.engine.packet cimport Packet
from fabric.engine.rng cimport fmix32
from fabric.engine.types cimport likely, u32, u64
from fabric.engine.world cimport World

cdef enum:
    NO_PORT = 0xFFFFFFFF
    EXPIRED = 0xFFFFFFFE         # the frame has passed as many switches as it may
    NO_EXIT = 0xFFFF
    ROUTE_DIRECT = 0xFFFFFFFF


cdef inline u32 ecmp_index(u32 path_hash, u32 salt, u32 count) noexcept nogil:
    return <u32>((<u64>fmix32(path_hash ^ salt) * count) >> 32)


cdef inline u32 direct_port(const World* w, const Node* n, const Packet* frame) noexcept nogil:
    """The local port to a host of several ports that hangs on this very switch."""
    cdef u32 first = w.node_port_base[frame.destination]
    cdef u32 last = w.node_port_base[frame.destination + 1]
    cdef u32 port, peer, count = 0, chosen
    for port in range(first, last):
        peer = w.port_peer[port]
        if peer >= n.port_base and peer < n.port_base + n.n_ports:
            count += 1
    chosen = ecmp_index(frame.path_hash, n.salt, count) if count > 1 else 0
    for port in range(first, last):
        peer = w.port_peer[port]
        if peer >= n.port_base and peer < n.port_base + n.n_ports:
            if chosen == 0:
                return peer - n.port_base
            chosen -= 1
    return NO_PORT


cdef inline u32 destination_port(const World* w, const Node* n, const Packet* frame) noexcept nogil:
    """The local port to a host that hangs on this very switch."""
    cdef u32 exit_port = w.host_exit[frame.destination]
    return exit_port if likely(exit_port != NO_EXIT) else direct_port(w, n, frame)


cdef inline u32 route(const World* w, const Node* n, const Packet* frame) noexcept nogil:
    """The local egress port for a frame, or NO_PORT."""
    cdef u32 entry = n.route_entry[w.host_edge[frame.destination]]
    cdef u32 count, index = 0
    if entry == ROUTE_DIRECT:
        return destination_port(w, n, frame)
    count = entry >> 16
    if count == 0:
        return NO_PORT
    if count > 1:
        index = ecmp_index(frame.path_hash, n.salt, count)
    return n.route_ports[(entry & 0xFFFF) + index]
