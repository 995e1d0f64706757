# The books of a run, checked whenever it stops: whatever a switch has taken in and not sent on is in a
# queue, and is charged to an ingress.
#
# Holds at the end of every window, when all ports have caught up. It is looked at in every build, for a
# look at all ports costs nothing beside a run; the tests of single steps (`check`) only in checked ones.

from fabric.engine.buffer cimport pool_share, profile_of
from fabric.engine.node cimport SWITCH, Node
from fabric.engine.types cimport i64, u32
from fabric.engine.world cimport World


cdef inline bint switch_balanced(const World* w, const Node* n) noexcept nogil:
    cdef i64 queued = 0, charged = 0, pooled = 0
    cdef u32 port, c, index
    for port in range(n.port_base, n.port_base + n.n_ports):
        for c in range(w.n_classes):
            index = port * w.n_classes + c
            queued += w.queues[index].bytes
            charged += w.ingress[index].bytes + w.ingress[index].headroom_used
            pooled += pool_share(profile_of(w, port, c), w.ingress[index].bytes)
            if w.queues[index].bytes < 0 or w.ingress[index].bytes < 0:
                return False
    return queued == charged and pooled == n.shared_used and pooled <= n.shared_bytes


cdef inline bint balanced(const World* w) noexcept nogil:
    """Whether the books of every switch balance."""
    cdef u32 node
    for node in range(w.n_nodes):
        if w.nodes[node].kind == SWITCH and not switch_balanced(w, &w.nodes[node]):
            return False
    return True
