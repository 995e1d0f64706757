# Flows that start at the very instant at which another host's flow is complete.
#
# Nothing else acts on another node in less than a link's delay, so windows are cut for it: the ACK that
# will complete a flow is on the last link when a window begins, because what arrives in a window was
# sent before it. Of flows that have been delivered, and that flows elsewhere wait for, the first such
# arrival is looked for; the window ends with its instant. The flows that have then become due start
# when all nodes have come to that end: after everything else of the instant, at any node.

from fabric.engine.flow cimport SENDER_COMPLETE
from fabric.engine.flow_list cimport list_append
from fabric.engine.node cimport Node
from fabric.engine.packet cimport ACK, NACK, Packet
from fabric.engine.ring cimport Ring, ring_slot
from fabric.engine.types cimport i64, u32
from fabric.engine.world cimport ERROR_MEMORY, World

cdef enum:
    ON_COMPLETE_ELSEWHERE = 2


cdef inline void watch_delivered(World* w, u32 flow) noexcept nogil:
    """A flow has been delivered: its last ACK is watched if flows elsewhere wait for it."""
    cdef u32 k
    for k in range(w.dep_base[flow], w.dep_base[flow + 1]):
        if w.dep_on[k] == ON_COMPLETE_ELSEWHERE:
            if not list_append(&w.watched, flow):
                w.error = ERROR_MEMORY
            return


cdef inline bint completes(const World* w, const Packet* frame, u32 flow) noexcept nogil:
    return (
        frame.flow == flow and (frame.kind == ACK or frame.kind == NACK) and frame.sequence >= w.senders[flow].frames
    )


cdef inline i64 completion_ps(const World* w, u32 flow, i64 before_ps) noexcept nogil:
    """When the ACK arrives that completes a flow, if it is on its last link and does so before an instant."""
    cdef const Node* n = &w.nodes[w.flow_source[flow]]
    cdef const Ring* link
    cdef const Packet* frame
    cdef u32 port, position
    for port in range(n.port_base, n.port_base + n.n_ports):
        link = &w.ports[w.port_peer[port]].link
        position = link.head
        while position != link.tail:
            frame = ring_slot(link, position)
            if frame.time_ps >= before_ps:
                break
            if completes(w, frame, flow):
                before_ps = frame.time_ps
                break
            position += 1
    return before_ps


cdef inline void cut_window(World* w) noexcept nogil:
    """Ends the window that begins with the first instant at which a watched flow is completed in it."""
    cdef u32 k, kept = 0, flow
    cdef i64 first_ps = w.window_end_ps
    for k in range(w.watched.count):
        flow = w.watched.flows[k]
        if not w.senders[flow].flags & SENDER_COMPLETE:
            w.watched.flows[kept] = flow
            kept += 1
            first_ps = completion_ps(w, flow, first_ps)
    w.watched.count = kept
    if first_ps < w.window_end_ps:
        w.window_end_ps = first_ps + 1
