# What a PFC watchdog remembers of the queues that it watches; `mitigation.pxd` is what it does.

from libc.stdlib cimport free

from fabric.engine.profile cimport ClassProfile
from fabric.engine.types cimport i64, u8, u32, u64

cdef enum WatchdogAction:
    WATCHDOG_ALERT = 0
    WATCHDOG_DROP = 1
    WATCHDOG_FORWARD = 2

cdef enum WatchdogEvent:        # kinds of rows of the stream
    WATCHDOG_DETECTED = 0
    WATCHDOG_RESTORED = 1

cdef struct Watched:            # one class at one egress port of a switch
    i64 changed_ps              # while mitigated: the peer's last PAUSE or RESUME that changed something
    u32 polls                   # in a row that found it stalled; while mitigated: quiet, or since then
    u8 mitigated
    u8 paused                   # while mitigated: what the peer wants

cdef struct Watchdog:
    i64 poll_ps                 # from one poll to the next; 0: there is no watchdog
    i64 next_ps                 # the next poll
    u32 detect_polls            # so many stalled polls in a row
    u32 restore_polls           # so many quiet ones in a row, or simply so many
    u8 restores_by_time
    u8 action
    u8 drops_ingress            # as well, what comes in at the port of a queue whose frames are dropped
    u32 mitigated               # queues that are
    Watched* queues             # by pair
    ClassProfile** closed       # by port: what it shows while queues of it are closed
    const ClassProfile** open   # by port: what it shows otherwise


cdef inline void free_watchdog(Watchdog* dog, u32 n_ports) noexcept nogil:
    cdef u64 k
    if dog.closed != NULL:
        for k in range(n_ports):
            free(dog.closed[k])
    free(dog.queues)
    free(dog.closed)
    free(dog.open)
