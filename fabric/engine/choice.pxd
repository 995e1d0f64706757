# What a switch remembers in order to choose among next hops: turns, flowlets, pinned next hops.
#
# A plain switch (ECMP by hash, no pins, no lifetime of frames) has none of it. One that has shows the
# common path of a frame an empty routing table, and keeps its own here; so plain switches need not even
# look whether they are. Flowlets stand in a table of fixed size, as in a switch chip: flows whose
# hashes share a slot share their flowlet (CONGA, SIGCOMM 2014, section 3.4; LetFlow, NSDI 2017).

from fabric.engine.types cimport i64, u8, u16, u32, u64

cdef enum Choice:
    CHOICE_HASH = 0             # ECMP: every frame of a flow alike
    CHOICE_RANDOM = 1           # per frame, by a keyed draw
    CHOICE_ROUND_ROBIN = 2      # per frame, in turn
    CHOICE_ADAPTIVE = 3         # per frame, the shortest queue
    CHOICE_FLOWLET = 4          # the shortest queue, but only after a gap
    CHOICE_TUPLE = 5            # ECMP over addresses and ports, by MurmurHash3

cdef enum:
    FLOWLET_SLOT_BITS = 12
    PIN_FLOW = 1                # upper half of a pin's key: the lower is a flow; 0: a destination host

cdef struct Flowlet:
    i64 last_ps
    u32 index                   # in the group of next hops
    u32 used

cdef struct Paths:              # one switch
    const u32* route_entry      # by destination edge
    u8 choice
    u32 n_pins
    const u64* pin_key          # ascending
    const u16* pin_port         # local
    u32* turns                  # round robin, by (place of the group, class): 1 + the index that is next
    u16* tied                   # shortest queue: room for the candidates that are equal
    Flowlet* flowlets
