# A class queue of a switch: one FIFO, or one FIFO per ingress port served round robin.
#
# The arbiter is an explicit choice of the switch because it decides who is starved, and whether some
# cyclic patterns of pauses deadlock. Round robin serves the first non-empty ingress port after the one
# served last, in ascending order, cyclically; in the beginning that is the lowest.

from libc.stdlib cimport calloc, free

from fabric.engine.node cimport Node
from fabric.engine.packet cimport Packet
from fabric.engine.port cimport IngressQueues
from fabric.engine.ring cimport Ring, ring_empty, ring_free, ring_front, ring_pop_queue, ring_push
from fabric.engine.types cimport likely, u32
from fabric.engine.world cimport World


cdef inline IngressQueues* ingress_queues_new(u32 n_ports) noexcept nogil:
    cdef IngressQueues* queues = <IngressQueues*>calloc(1, sizeof(IngressQueues))
    if queues == NULL:
        return NULL
    queues.by_ingress = <Ring*>calloc(n_ports, sizeof(Ring))
    if queues.by_ingress == NULL:
        free(queues)
        return NULL
    queues.n_ports = n_ports
    queues.last = n_ports - 1
    return queues


cdef inline void ingress_queues_free(IngressQueues* queues) noexcept nogil:
    cdef u32 i
    if queues == NULL:
        return
    for i in range(queues.n_ports):
        ring_free(&queues.by_ingress[i])
    free(queues.by_ingress)
    free(queues)


cdef inline u32 next_ingress(const IngressQueues* queues) noexcept nogil:
    """The ingress port whose turn it is; some queue must hold a frame."""
    cdef u32 local = queues.last
    while True:
        local = 0 if local + 1 == queues.n_ports else local + 1
        if not ring_empty(&queues.by_ingress[local]):
            return local


cdef inline Packet* queue_push(World* w, const Node* n, u32 index, u32 ingress) noexcept nogil:
    """The slot for a frame at the end of a class queue."""
    if likely(not n.per_ingress_arbiter):
        return ring_push(&w.queues[index].frames, &w.scratch, &w.out_of_memory)
    if w.ingress_queues[index] == NULL:
        w.ingress_queues[index] = ingress_queues_new(n.n_ports)
        if w.ingress_queues[index] == NULL:
            w.out_of_memory = 1
            return &w.scratch
    return ring_push(&w.ingress_queues[index].by_ingress[ingress], &w.scratch, &w.out_of_memory)


cdef inline Packet* queue_front(World* w, const Node* n, u32 index) noexcept nogil:
    """The frame that leaves next; the queue must hold one."""
    cdef IngressQueues* queues
    if likely(not n.per_ingress_arbiter):
        return ring_front(&w.queues[index].frames)
    queues = w.ingress_queues[index]
    return ring_front(&queues.by_ingress[next_ingress(queues)])


cdef inline void queue_pop(World* w, const Node* n, u32 index) noexcept nogil:
    """Takes off what `queue_front` showed."""
    cdef IngressQueues* queues
    if likely(not n.per_ingress_arbiter):
        ring_pop_queue(&w.queues[index].frames)
        return
    queues = w.ingress_queues[index]
    queues.last = next_ingress(queues)
    ring_pop_queue(&queues.by_ingress[queues.last])
