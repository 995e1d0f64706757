# What is known of pauses that run out; `expiry.pxd` lets them, `refresh.pxd` sees to it that they do not.

from libc.stdlib cimport free

from fabric.engine.types cimport i64, u8, u64

cdef enum:
    NOT_PAUSED = 0              # of `until_ps`

cdef struct Held:               # one class at one port
    i64 until_ps                # the peer's PAUSE runs out; NEVER: a storm, which does not end by itself
    u8 timer                    # one is set

cdef struct Quanta:
    i64 refresh_ps              # standing PAUSEs are repeated at multiples of this; 0: they are not
    i64 next_ps                 # the next repetition; NEVER: there is none
    const i64* port_ps          # how long a PAUSE holds at a port; NULL: until the RESUME
    const u8* port_holds        # whether repetitions are sure to come to a port in time
    Held* pauses                # by pair
    u64 repeats_in_flight
    u64 repeated
    u64 ran_out


cdef inline void free_quanta(Quanta* quanta) noexcept nogil:
    free(quanta.pauses)
