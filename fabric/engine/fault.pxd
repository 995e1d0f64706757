# What changes in the fabric while it runs, as a list in order of time.
#
# Everything is worked out before the run: which links are down from when to when, and what each switch's
# next hops become once it knows. So the engine never computes a route. Entries of routing tables that a
# change replaces, and flows that it moves to another port of their host, stand in two lists of their own;
# changes that are alike share a place there.

from fabric.engine.types cimport i64, u8, u32, u64

cdef enum FaultKind:
    FAULT_DOWN = 0              # value 1: what is on the link is lost
    FAULT_UP = 1
    FAULT_RATE = 2              # value: bit/s
    FAULT_LOSS = 3              # loss and bit errors
    FAULT_PAUSE = 4             # value: class * 2 + on
    FAULT_ROUTES = 5            # value: a range of `route_base`
    FAULT_MOVES = 6             # value: a range of `move_base`
    FAULT_CUT = 7               # value: bytes after which a receiver acts on a frame; 0: the whole frame

cdef struct Fault:              # the layout of fabric.lowered.FAULT
    i64 time_ps
    i64 value
    double loss
    double ber_rate
    u32 port                    # of a link: the one that sends on it
    u8 kind

cdef struct Faults:
    i64 next_ps                 # when the next change comes; NEVER: there is none
    const Fault* changes
    u32 n_changes
    u32 next
    u64 lost_frames             # that were on a link when it went down
    const i64* route_base
    const i64* route_place      # in the routing tables of all switches
    const u32* route_value
    const i64* move_base
    const u32* move_flow
    const u32* move_port
    i64* port_rate_bps          # what changes, which is the run's own then and not the scenario's
    double* port_loss
    double* port_ber_rate
    u32* route_entry
    u32* flow_port
