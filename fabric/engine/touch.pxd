# A port that something between two windows may have let go on: a failure, a watchdog, a PAUSE that is repeated.
#
# Nothing is begun there. The port is free no earlier than that instant, and starts by itself in the order of
# all starts.

from fabric.engine.egress cimport may_start
from fabric.engine.node cimport SWITCH, Node
from fabric.engine.pfc cimport note_backlog
from fabric.engine.port cimport ODD_TURNS, Port
from fabric.engine.types cimport i64, later, sooner, u32
from fabric.engine.world cimport World


cdef inline void touch(World* w, u32 port, i64 time_ps) noexcept nogil:
    """A port may be able to start a frame from this instant on."""
    cdef Port* p = &w.ports[port]
    cdef Node* n = &w.nodes[w.port_node[port]]
    cdef i64* due_ps = &w.wakes[n.first_wake].due_ps
    p.busy_ps = later(p.busy_ps, time_ps)
    if n.kind == SWITCH:
        if may_start(p):
            note_backlog(n, port - n.port_base, p)
            due_ps[0] = sooner(due_ps[0], n.settle_from_ps)
    elif p.backlog:
        due_ps[0] = sooner(due_ps[0], time_ps)
        if p.odd & ODD_TURNS:
            w.turn_ports[port].wake_ps = time_ps
