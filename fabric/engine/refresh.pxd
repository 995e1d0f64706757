# Switches say PAUSE again before it runs out.
#
# All do so at multiples of one period, for every ingress that has paused its peer, before anything that nodes
# do at that instant. Repetitions alone keep no run going: it is over when nothing else can happen any more.

from fabric.engine.node cimport Node
from fabric.engine.packet cimport PFC_REPEAT
from fabric.engine.pfc cimport queue_pfc
from fabric.engine.port cimport ODD_DOWN
from fabric.engine.touch cimport touch
from fabric.engine.types cimport u8, u32
from fabric.engine.world cimport World


cdef inline void repeat_pauses(World* w) noexcept nogil:
    """Repeats every PAUSE that stands, at `now_ps`."""
    cdef u32 node, local, port
    cdef u8 c
    cdef Node* n
    w.quanta.next_ps += w.quanta.refresh_ps
    for node in range(w.n_hosts, w.n_nodes):
        n = &w.nodes[node]
        if n.n_paused == 0:
            continue
        for local in range(n.n_ports):
            port = n.port_base + local
            if w.ports[port].odd & ODD_DOWN:
                continue
            for c in range(<u8>w.n_classes):
                if w.ingress[port * w.n_classes + c].paused:
                    w.quanta.repeated += 1
                    queue_pfc(w, n, local, c, PFC_REPEAT, w.now_ps)
            touch(w, port, w.now_ps)
