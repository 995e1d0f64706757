# What a host port remembers that serves its flows in turn; see `turns.pxd`.

from fabric.engine.flow_list cimport FlowList
from fabric.engine.types cimport i64, u8, u32

cdef struct TurnQueue:      # one (host port, class)
    FlowList list           # in the order in which they have started
    u32 last                # place of the flow that was served last
    u32 chosen              # place of the flow that the last scan has found

cdef struct TurnPort:
    i64 wake_ps             # a wake-up is pending for this instant; NEVER: none
    u8 is_sending           # the port has not been tried since its last frame began
