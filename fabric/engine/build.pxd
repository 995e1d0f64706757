# Building and freeing a `World`: memory for what there is, and the static part of nodes and ports.
#
# Nodes are given their wake words in the order in which a window visits them: each switch that has
# hosts right after its hosts, so that what a host has just sent is still in the cache; then the rest.

from libc.stdlib cimport calloc, free

from fabric.engine.choice cimport CHOICE_ADAPTIVE, CHOICE_FLOWLET, CHOICE_ROUND_ROBIN, FLOWLET_SLOT_BITS, Flowlet, Paths
from fabric.engine.deadlock cimport free_deadlocks
from fabric.engine.heap cimport Heap
from fabric.engine.message cimport Connection
from fabric.engine.node cimport HOST, SWITCH, Node, Wake
from fabric.engine.link cimport set_loss
from fabric.engine.port cimport ODD_TURNS, ClassQueue, Gate, Ingress, IngressQueues, PauseStat, Port
from fabric.engine.program cimport TaskState
from fabric.engine.queues cimport ingress_queues_free
from fabric.engine.routing cimport NO_EXIT
from fabric.engine.quanta cimport free_quanta
from fabric.engine.ring cimport Ring, ring_free
from fabric.engine.turn cimport TurnPort, TurnQueue
from fabric.engine.turns cimport NEVER_IDLE
from fabric.engine.types cimport NEVER, u8, u16, u32, u64
from fabric.engine.watchdog cimport free_watchdog
from fabric.engine.flow cimport Reassembly, Receiver, Selective, Sender
from fabric.engine.frame_log cimport FrameLog, log_free
from fabric.engine.sequence_set cimport set_free
from fabric.engine.world cimport (
    N_STREAMS,
    LinkWatch,
    QueueWatch,
    World,
)


cdef inline bint allocate(
    World* w, bint per_ingress, bint watch_queues, bint watch_links, bint log_frames
) noexcept nogil:
    """Zeroed arrays; memory that nothing touches stays the system's. False when there is none."""
    cdef u64 pairs = <u64>w.n_ports * w.n_classes
    w.nodes = <Node*>calloc(w.n_nodes, sizeof(Node))
    w.ports = <Port*>calloc(w.n_ports + 1, sizeof(Port))
    w.queues = <ClassQueue*>calloc(pairs + 1, sizeof(ClassQueue))
    w.ingress = <Ingress*>calloc(pairs + 1, sizeof(Ingress))
    w.pauses = <PauseStat*>calloc(pairs + 1, sizeof(PauseStat))
    w.mac = <Ring*>calloc(w.n_ports + 1, sizeof(Ring))
    w.dwrr_current = <u8*>calloc(8 * <u64>w.n_ports + 8, 1)
    w.gates = <Gate*>calloc(w.n_ports + 1, sizeof(Gate))
    w.host_exit = <u16*>calloc(w.n_hosts + 1, sizeof(u16))
    w.ready = <Heap*>calloc(<u64>w.n_host_ports * w.n_classes + 1, sizeof(Heap))
    w.senders = <Sender*>calloc(w.n_flows + 1, sizeof(Sender))
    w.receivers = <Receiver*>calloc(w.n_flows + 1, sizeof(Receiver))
    w.wakes = <Wake*>calloc(w.n_wakes + 1, sizeof(Wake))
    w.wake_node = <u32*>calloc(w.n_wakes + 1, sizeof(u32))
    w.switch_turns = <u32*>calloc(w.n_nodes - w.n_hosts + 1, sizeof(u32))
    if (
        w.nodes == NULL or w.ports == NULL or w.queues == NULL or w.ingress == NULL or w.pauses == NULL
        or w.host_exit == NULL or w.mac == NULL or w.dwrr_current == NULL or w.gates == NULL or w.ready == NULL
        or w.senders == NULL or w.receivers == NULL or w.wakes == NULL or w.wake_node == NULL
        or w.switch_turns == NULL
    ):
        return False
    if per_ingress:
        w.ingress_queues = <IngressQueues**>calloc(pairs + 1, sizeof(IngressQueues*))
        if w.ingress_queues == NULL:
            return False
    if watch_queues:
        w.queue_watch = <QueueWatch*>calloc(pairs + 1, sizeof(QueueWatch))
        if w.queue_watch == NULL:
            return False
    if watch_links:
        w.link_watch = <LinkWatch*>calloc(w.n_ports + 1, sizeof(LinkWatch))
        if w.link_watch == NULL:
            return False
    if log_frames:
        w.logs = <FrameLog*>calloc(w.n_flows + 1, sizeof(FrameLog))
        if w.logs == NULL:
            return False
    return True


cdef inline bint allocate_paths(World* w, u32 n_edges, bint some_special_switch, bint some_special_flow) noexcept nogil:
    """What only some runs need: path choice of switches; selective repeat, delayed ACKs. False without memory."""
    if some_special_switch:
        w.paths = <Paths*>calloc(w.n_nodes, sizeof(Paths))
        w.no_routes = <u32*>calloc(n_edges + 1, sizeof(u32))
        if w.paths == NULL or w.no_routes == NULL:
            return False
    if some_special_flow:
        w.selective = <Selective*>calloc(w.n_flows + 1, sizeof(Selective))
        w.reassembly = <Reassembly*>calloc(w.n_flows + 1, sizeof(Reassembly))
        if w.selective == NULL or w.reassembly == NULL:
            return False
    return True


cdef inline bint allocate_program(World* w) noexcept nogil:
    """Connections and the places of tasks' states; False without memory."""
    w.connections = <Connection*>calloc(<u64>w.program.n_connections + w.program.n_local + 1, sizeof(Connection))
    w.program.states = <TaskState**>calloc(<u64>w.program.n_tasks + 1, sizeof(TaskState*))
    return w.connections != NULL and w.program.states != NULL


cdef inline void free_program(World* w) noexcept nogil:
    cdef u32 k
    if w.connections != NULL:
        for k in range(w.program.n_connections + w.program.n_local):
            free(w.connections[k].ring)
    if w.program.states != NULL:
        for k in range(w.program.n_tasks):
            free(w.program.states[k])
    free(w.connections)
    free(w.program.states)


cdef inline bint allocate_turns(World* w) noexcept nogil:
    """What host ports need whose flows take turns. False without memory."""
    cdef u32 port
    w.turn_ports = <TurnPort*>calloc(w.n_host_ports + 1, sizeof(TurnPort))
    w.turn_queues = <TurnQueue*>calloc(<u64>w.n_host_ports * w.n_classes + 1, sizeof(TurnQueue))
    if w.turn_ports == NULL or w.turn_queues == NULL:
        return False
    for port in range(w.n_host_ports):
        w.turn_ports[port].wake_ps = NEVER
        w.ports[port].odd |= ODD_TURNS
        w.ports[port].backlog = NEVER_IDLE
    return True


cdef inline bint prepare_choice(World* w, u32 node, u8 choice, u32 pool_ports) noexcept nogil:
    """Gives a switch what its choice remembers; `pool_ports` bounds the places of its groups."""
    cdef Paths* paths = &w.paths[node]
    cdef Node* n = &w.nodes[node]
    n.paths = paths
    paths.route_entry = n.route_entry
    n.route_entry = w.no_routes
    paths.choice = choice
    if choice == CHOICE_ROUND_ROBIN:
        paths.turns = <u32*>calloc(<u64>pool_ports * w.n_classes + 1, sizeof(u32))
        return paths.turns != NULL
    if choice == CHOICE_ADAPTIVE or choice == CHOICE_FLOWLET:
        paths.tied = <u16*>calloc(<u64>pool_ports + 1, sizeof(u16))
        if paths.tied == NULL:
            return False
    if choice == CHOICE_FLOWLET:
        paths.flowlets = <Flowlet*>calloc(<u64>1 << FLOWLET_SLOT_BITS, sizeof(Flowlet))
        return paths.flowlets != NULL
    return True


cdef inline void free_paths(World* w) noexcept nogil:
    cdef u32 k
    if w.paths != NULL:
        for k in range(w.n_nodes):
            free(w.paths[k].turns)
            free(w.paths[k].tied)
            free(w.paths[k].flowlets)
    if w.selective != NULL:
        for k in range(w.n_flows):
            set_free(&w.selective[k].arrived)
            free(w.selective[k].resent)
    if w.reassembly != NULL:
        for k in range(w.n_flows):
            set_free(&w.reassembly[k].arrived)
    if w.turn_queues != NULL:
        for k in range(w.n_host_ports * w.n_classes):
            free(w.turn_queues[k].list.flows)
    free(w.watched.flows)
    free(w.due_elsewhere.flows)
    free(w.turn_ports)
    free(w.turn_queues)
    free(w.paths)
    free(w.no_routes)
    free(w.selective)
    free(w.reassembly)


cdef inline void place_node(World* w, u32 node, u32* next_wake) noexcept nogil:
    """Gives a node its wake words, and their bits to the links that end there."""
    cdef Node* n = &w.nodes[node]
    cdef Port* sender
    cdef u32 k, port
    n.n_wakes = (n.n_ports + 63) // 64
    if n.n_wakes == 0:
        n.n_wakes = 1
    n.first_wake = next_wake[0]
    next_wake[0] += n.n_wakes
    if n.kind == SWITCH:
        n.turn = w.n_switches
        w.switch_turns[n.turn] = node
        w.n_switches += 1
    for k in range(n.n_wakes):
        w.wake_node[n.first_wake + k] = node
        w.wakes[n.first_wake + k].due_ps = NEVER
    for k in range(n.n_ports):
        port = w.port_peer[n.port_base + k]
        sender = &w.ports[port]
        sender.link.tag = n.first_wake * 64 + k
        set_loss(sender, w.port_loss[port], w.port_ber_rate[port])
        w.gates[n.port_base + k].link = &sender.link
        w.gates[n.port_base + k].classes = &w.ingress[(n.port_base + k) * w.n_classes]


cdef inline bint place_nodes(World* w) noexcept nogil:
    """Lays the wake words out, and links to where they end. False without memory."""
    cdef u8* placed = <u8*>calloc(w.n_nodes + 1, 1)
    cdef u32 node, k, peer_node, next_wake = 0
    cdef Node* n
    if placed == NULL:
        return False
    w.gates[w.n_ports].link = &w.ports[w.n_ports].link      # for a look at the first port of a node without ports
    for node in range(w.n_nodes):
        n = &w.nodes[node]
        if n.kind == HOST:
            continue
        for k in range(n.n_ports):
            peer_node = w.port_node[w.port_peer[n.port_base + k]]
            if w.nodes[peer_node].kind == HOST and not placed[peer_node]:
                placed[peer_node] = 1
                place_node(w, peer_node, &next_wake)
        placed[node] = 1
        place_node(w, node, &next_wake)
    for node in range(w.n_nodes):
        if not placed[node]:
            place_node(w, node, &next_wake)
    free(placed)
    for node in range(w.n_nodes):
        n = &w.nodes[node]
        n.next_timer_ps = NEVER
        if n.kind == HOST:
            w.host_exit[node] = NO_EXIT
            if n.n_ports == 1:
                k = w.port_peer[n.port_base]
                w.host_exit[node] = <u16>(k - w.node_port_base[w.port_node[k]])
        n.settle_from_ps = NEVER
        if n.kind == SWITCH:
            n.backlog = <u64*>calloc(n.n_wakes, sizeof(u64))
            if n.backlog == NULL:
                return False
    return True


cdef inline void free_world(World* w) noexcept nogil:
    """Frees all that the world owns; safe on one that was only half built."""
    cdef u64 pairs = <u64>w.n_ports * w.n_classes
    cdef u64 k
    free_paths(w)
    free_program(w)
    free_deadlocks(&w.deadlocks)
    free_watchdog(&w.watchdog, w.n_ports)
    free_quanta(&w.quanta)
    if w.nodes != NULL:
        for k in range(w.n_nodes):
            free(w.nodes[k].backlog)
            free(w.nodes[k].timers.slots)
    if w.ports != NULL:
        for k in range(w.n_ports):
            ring_free(&w.ports[k].link)
    if w.mac != NULL:
        for k in range(w.n_ports):
            ring_free(&w.mac[k])
    if w.queues != NULL:
        for k in range(pairs):
            ring_free(&w.queues[k].frames)
    if w.ingress_queues != NULL:
        for k in range(pairs):
            ingress_queues_free(w.ingress_queues[k])
    if w.ready != NULL:
        for k in range(<u64>w.n_host_ports * w.n_classes):
            free(w.ready[k].slots)
    if w.logs != NULL:
        for k in range(w.n_flows):
            log_free(&w.logs[k])
    for k in range(<u64>N_STREAMS):
        free(w.streams[k].rows)
    free(w.nodes)
    free(w.ports)
    free(w.queues)
    free(w.ingress)
    free(w.pauses)
    free(w.ingress_queues)
    free(w.mac)
    free(w.dwrr_current)
    free(w.gates)
    free(w.ready)
    free(w.senders)
    free(w.receivers)
    free(w.wakes)
    free(w.wake_node)
    free(w.switch_turns)
    free(w.queue_watch)
    free(w.link_watch)
    free(w.arrivals.keys)
    free(w.arrivals.sorted)
    free(w.arrivals.ties)
    free(w.host_exit)
    free(w.logs)
