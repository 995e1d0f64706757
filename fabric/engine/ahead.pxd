# Asking for memory ahead of the walk over the nodes, so that it is there when a node is run.
#
# A fabric of thousands of hosts does not fit into the caches, and what a node touches in a window is
# known before it is run: the frames on its links, the slots that come next, its queues. Hosts are asked
# for some nodes ahead, in waves of dependent loads. A switch touches too much for one burst, so its ports
# are asked for one by one, a step with every frame that is handled elsewhere: the structures of the switch
# after the next, then what those of the next point to.

from fabric.engine.packet cimport DATA, PFC, Packet
from fabric.engine.port cimport Port
from fabric.engine.ring cimport Ring, ring_empty, ring_front, ring_slot
from fabric.engine.types cimport prefetch, prefetch_near, u32
from fabric.engine.world cimport World

cdef enum:
    FRAMES_A_WINDOW = 12        # on each link: what a window holds at full load
    FRAMES_AHEAD = 3            # with connections, their ends are asked for as many frames before


cdef inline const Ring* first_link(const World* w, u32 word) noexcept nogil:
    """The link that ends at the first port of a wake word's node."""
    return w.gates[w.node_port_base[w.wake_node[word]]].link


cdef inline void prefetch_flow(const World* w, const Ring* link) noexcept nogil:
    """Asks for both ends of the flow whose frame comes next over a link."""
    cdef u32 flow
    if not ring_empty(link):
        flow = ring_front(link).flow
        if flow < w.n_flows:
            prefetch(&w.senders[flow])
            prefetch(&w.senders[flow].cc)
            prefetch(&w.receivers[flow])
            if w.selective != NULL:
                prefetch(&w.selective[flow])
                prefetch(&w.reassembly[flow])


cdef inline void prefetch_connection(const World* w, const Ring* link) noexcept nogil:
    """Asks for the end that a frame needs which comes some frames later over a link: of many connections, each
    frame may belong to another."""
    cdef const Packet* frame
    if link.tail - link.head <= FRAMES_AHEAD:
        return
    frame = ring_slot(link, link.head + FRAMES_AHEAD)
    if frame.kind == DATA:
        prefetch(&w.receivers[frame.flow])
    elif frame.kind != PFC:
        prefetch(&w.senders[frame.flow])
        prefetch(&w.senders[frame.flow].cc)


cdef inline void prefetch_slots(const Ring* ring, u32 position) noexcept nogil:
    """Asks for the slots of a window's frames from a position on: two share a cache line."""
    cdef u32 ahead
    for ahead in range(0, <u32>FRAMES_A_WINDOW, 2):
        prefetch_near(ring_slot(ring, position + ahead))


cdef inline void prefetch_hosts(const World* w, u32 word) noexcept nogil:
    """Asks for what the next nodes are read from.

    Waves of dependent loads: the node; its port, queues and ready flows; the link that it hears;
    the frames on it; the flows of these.
    """
    cdef const Ring* link
    cdef u32 node, port, first
    if word + 8 >= w.n_wakes:
        return
    prefetch(&w.nodes[w.wake_node[word + 8]])
    prefetch(<const char*>&w.nodes[w.wake_node[word + 8]] + 64)
    node = w.wake_node[word + 6]
    port = w.node_port_base[node]
    prefetch(&w.ports[port])
    prefetch(first_link(w, word + 6))
    if node < w.n_hosts:
        first = port * w.n_classes
        prefetch(&w.ready[first])
        prefetch(&w.queues[first])
        prefetch(&w.queues[first + w.n_classes - 1])
    link = first_link(w, word + 4)
    prefetch(ring_slot(link, link.head))
    prefetch(ring_slot(link, link.head + 2))
    prefetch(ring_slot(link, link.head + 4))
    prefetch(ring_slot(link, link.head + 6))
    node = w.wake_node[word + 4]
    if node < w.n_hosts:
        prefetch(w.ready[w.node_port_base[node] * w.n_classes].slots)
        link = &w.ports[w.node_port_base[node]].link
        prefetch(ring_slot(link, link.tail))
        prefetch(ring_slot(link, link.tail + 2))
    prefetch_flow(w, first_link(w, word + 2))


cdef inline void look_ahead(World* w, u32 turn) noexcept nogil:
    """The switch of a turn begins: the next ones are asked for while it runs."""
    cdef u32 near = w.switch_turns[(turn + 1) % w.n_switches]
    cdef u32 far = w.switch_turns[(turn + 2) % w.n_switches]
    w.ahead.near = w.node_port_base[near]
    w.ahead.near_end = w.node_port_base[near + 1]
    w.ahead.far = w.node_port_base[far]
    w.ahead.far_end = w.node_port_base[far + 1]


cdef inline void prefetch_near_port(const World* w, u32 port) noexcept nogil:
    """Asks for the frames that come in at a port, the slots that it will fill, and what it has queued."""
    cdef const Port* p = &w.ports[port]
    cdef const Ring* ring = w.gates[port].link
    cdef u32 index
    if not ring_empty(ring):
        prefetch_slots(ring, ring.head)
    if not ring_empty(&p.link) or p.backlog:
        prefetch_slots(&p.link, p.link.tail)
    if p.backlog:
        for index in range(port * w.n_classes, (port + 1) * w.n_classes):
            ring = &w.queues[index].frames
            if not ring_empty(ring):
                prefetch_slots(ring, ring.head)


cdef inline void prefetch_far_port(const World* w, u32 port) noexcept nogil:
    """Asks for a port, the link that ends at it, and its classes."""
    cdef u32 index
    prefetch_near(&w.ports[port])
    prefetch_near(w.gates[port].link)
    prefetch_near(&w.ingress[port * w.n_classes])
    for index in range(port * w.n_classes, (port + 1) * w.n_classes):
        prefetch_near(&w.queues[index])


cdef inline void prefetch_step(World* w) noexcept nogil:
    """Asks for one more port of the switches that come next."""
    if w.ahead.near != w.ahead.near_end:
        prefetch_near_port(w, w.ahead.near)
        w.ahead.near += 1
    elif w.ahead.far != w.ahead.far_end:
        prefetch_far_port(w, w.ahead.far)
        w.ahead.far += 1
