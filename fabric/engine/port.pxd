# A port: its transmitter, the link that it sends on, and its queues by traffic class.
#
# `Port` is one cache line, all that a frame needs on its way out. Queues, ingress accounting and
# statistics are separate arrays, indexed by port * n_classes + class, that stay untouched (and so cost
# no memory) where nothing happens. Ports are lazy: between events a port may lag behind the clock;
# whoever looks at it at time t first calls the `advance` of its node kind.
#
# Invariant: whenever an event at t has been handled, a port with a frame that it may send has
# busy_ps > t. So the next start of a lagging port is exactly busy_ps.

from fabric.engine.profile cimport ClassProfile
from fabric.engine.ring cimport Ring
from fabric.engine.types cimport i32, i64, u8, u16, u32, u64

cdef enum PortRecord:
    RECORD_QUEUE = 1
    RECORD_THROUGHPUT = 2
    RECORD_PACKETS = 4
    RECORD_CHOSEN_FLOWS = 8     # some flow's packets are recorded: look at each

cdef enum PortOdd:
    ODD_TIMING = 1              # cut-through, or no whole number of picoseconds a byte
    ODD_RECORDED = 2            # `record` is not 0
    ODD_TICKS = 4               # serialisation in the ticks of ns-3; with ODD_TIMING
    ODD_TURNS = 8               # a host port whose flows take turns
    ODD_DOWN = 16               # frames that start are lost; with ODD_TIMING
    ODD_TRUNK = 32              # a port of a switch to a switch, where deadlock is looked for

cdef enum LinkTag:
    LINK_WAKE_BIT = 0x3FFFFFFF  # the peer's wake bit, counted over all wake words
    LINK_CLOSED = 0x40000000    # frames of some class are dropped where it ends, by a watchdog
    LINK_LOSES = 0x80000000     # frames are lost on the link

cdef struct Port:
    i64 busy_ps             # the transmitter is free from this instant on
    Ring link               # frames in flight to the peer; tag: LinkTag
    i64 delay_ps            # propagation and the receiver's fixed latency
    i64 tx_bytes            # wire bytes whose transmission has begun
    u32 ps_per_byte         # serialisation when that is a whole number, else 0
    u32 odd                 # PortOdd bits: what most ports do not need
    u16 gap_bytes           # preamble and inter-packet gap
    u16 cut_bytes           # a cut-through receiver forwards after these; 0: store and forward
    u8 backlog              # classes with something to send
    u8 paused               # classes that the peer has paused
    u8 mac_pending          # a PFC frame waits
    u8 record               # PortRecord bits

cdef struct ClassQueue:     # one class at one egress port of a switch
    Ring frames             # FIFO arbiter, and the control frames of a host
    i64 bytes
    i64 peak_bytes
    double wait_integral    # byte picoseconds spent waiting
    u64 marks
    i32 deficit             # DWRR
    u32 drops

cdef struct Ingress:        # one class at one ingress port of a switch
    i64 bytes               # in the reserve and the shared pool
    u32 headroom_used
    u8 paused               # we have paused the peer

cdef struct Gate:           # where frames come in at a port
    Ring* link              # that of the peer, which ends here
    Ingress* classes
    const ClassProfile* profiles    # of its classes, inward and outward

cdef struct PauseStat:      # one class at one port: what PFC did
    i64 since_ps            # the peer's last PAUSE or RESUME that changed something took effect
    i64 paused_ps
    u64 pauses_sent
    i64 headroom_peak
    u64 pauses_taken        # PAUSE frames of the peer that have taken effect
    i64 released_ps         # a frame of the ingress left while it had paused the peer
    u32 cause_flow          # its frame made the ingress pause the peer

cdef struct IngressQueues:  # a class queue of the per-ingress round-robin arbiter
    Ring* by_ingress
    u32 last                # local ingress port served last
    u32 n_ports
