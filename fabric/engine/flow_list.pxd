# A list of flows that grows by doubling and keeps its size.

from libc.stdlib cimport realloc

from fabric.engine.types cimport u32, u64

cdef struct FlowList:
    u32* flows
    u32 count
    u32 capacity


cdef inline bint list_append(FlowList* list, u32 flow) noexcept nogil:
    """False when there is no memory for it."""
    cdef u32 capacity = 2 * list.capacity if list.capacity else 4
    cdef u32* flows
    if list.count == list.capacity:
        flows = <u32*>realloc(list.flows, <u64>capacity * sizeof(u32))
        if flows == NULL:
            return False
        list.flows = flows
        list.capacity = capacity
    list.flows[list.count] = flow
    list.count += 1
    return True
