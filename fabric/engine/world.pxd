# `World`: everything that one run owns. One pointer is passed everywhere; there are no globals.
#
# Arrays are indexed by the entity's number. Per-class arrays are indexed by port * n_classes + class.
# Pointers to const belong to the NumPy arrays of the `Lowered` that the run was built from.

from fabric.engine.choice cimport Paths
from fabric.engine.deadlock cimport Deadlocks
from fabric.engine.fault cimport Faults
from fabric.engine.flow cimport Reassembly, Receiver, Selective, Sender
from fabric.engine.flow_list cimport FlowList
from fabric.engine.frame_log cimport FrameLog
from fabric.engine.heap cimport Heap
from fabric.engine.message cimport Connection
from fabric.engine.node cimport Node, Wake
from fabric.engine.packet cimport Packet
from fabric.engine.port cimport ClassQueue, Gate, Ingress, IngressQueues, PauseStat, Port
from fabric.engine.profile cimport TransportProfile
from fabric.engine.program cimport Program
from fabric.engine.quanta cimport Quanta
from fabric.engine.ring cimport Ring
from fabric.engine.turn cimport TurnPort, TurnQueue
from fabric.engine.types cimport i64, u8, u16, u32, u64
from fabric.engine.watchdog cimport Watchdog

cdef enum WorldError:
    ERROR_NONE = 0
    ERROR_MEMORY = 1
    ERROR_INVARIANT = 2
    ERROR_FRAMES = 3            # a connection has more than its frame numbers can count

cdef enum StopReason:
    STOP_FINISHED = 0
    STOP_STALLED = 1
    STOP_UNTIL = 2
    STOP_BUDGET = 3
    STOP_ERROR = 4
    STOP_DEADLOCK = 5

cdef enum:
    N_STREAMS = 8
    STREAM_QUEUE = 0
    STREAM_THROUGHPUT = 1
    STREAM_PAUSE = 2
    STREAM_RATE = 3
    STREAM_MARK = 4
    STREAM_DROP = 5
    STREAM_PACKET = 6
    STREAM_WATCHDOG = 7
    RECORD_PAUSES = 1           # bits of `record`
    RECORD_MARKS = 2
    RECORD_DROPS = 4
    N_REASONS = 8
    NO_WINDOW = 0xFFFFFFFF

cdef struct Row:                # the layout of fabric.lowered.ROW
    i64 time_ps
    i64 value
    double aux
    u32 port
    u32 flow
    u32 sequence
    u8 kind
    u8 traffic_class
    u8 mark
    u8 pad

cdef struct Stream:             # a growing column of rows
    Row* rows
    u64 count
    u64 capacity

cdef struct QueueWatch:         # what the queue recorder remembers of one (port, class)
    i64 changed_ps
    i64 value
    i64 recorded

cdef struct LinkWatch:          # what the throughput recorder remembers of one port
    i64 interval
    i64 bytes

cdef struct ArrivalKeys:        # scratch of the arrival sort
    u32* keys
    u32* sorted
    u64* ties
    u64 capacity

cdef struct Ahead:              # ports whose memory is asked for next
    u32 near                    # of the next switch: what its structures point to
    u32 near_end
    u32 far                     # of the one after it: its structures
    u32 far_end

cdef struct World:
    # what there is
    u32 n_nodes
    u32 n_hosts
    u32 n_ports
    u32 n_host_ports
    u32 n_classes
    u32 n_flows
    u32 n_wakes
    Node* nodes
    Port* ports
    ClassQueue* queues
    Ingress* ingress
    Gate* gates                         # by port
    PauseStat* pauses
    IngressQueues** ingress_queues      # NULL where no switch uses the per-ingress arbiter
    Ring* mac                           # PFC frames that wait, by port
    u8* dwrr_current                    # 1 + class served last, by port * 8 + level; 0: none yet
    Heap* ready                         # flows that may send, by host port and class
    Sender* senders
    Receiver* receivers
    Wake* wakes
    u32* wake_node
    # parameters
    TransportProfile* transports
    const u32* port_node
    const u32* port_peer
    const i64* port_rate_bps
    const i64* port_line_bps            # as built; `port_rate_bps` is less while a link is degraded
    const double* port_loss
    const double* port_ber_rate
    const u32* host_edge
    u16* host_exit                      # local port at the switch of a host with one port, else NO_EXIT
    const u32* node_port_base
    const u32* flow_source
    const u32* flow_destination
    const u32* flow_port
    const u8* flow_class
    const u16* flow_transport
    const u32* flow_frames
    const u32* flow_last_frame_bytes
    const i64* flow_start_ps
    const u32* flow_hash
    const u32* dep_base
    const u32* dep_flow
    const i64* dep_delay_ps
    const u8* dep_on
    const u8* flow_record
    u32* flow_waits                     # predecessors that have not ended
    i64* flow_ready_ps                  # earliest start by those that have
    u16 pfc_frame_bytes
    u8 ties_by_start                    # within a nanosecond: arrivals by start of transmission, then ports, then flows
    u64 key_ecn
    u64 key_loss
    # the clock
    i64 now_ps                          # every event before this instant has happened
    i64 window_ps
    u32 port_bits                       # of an arrival key
    u32 port_mask
    i64 window_end_ps                   # of the window being run
    u32 window_cursor                   # its next wake word; NO_WINDOW between windows
    u32 n_switches
    u32* switch_turns                   # switches in the order in which a window visits them
    Ahead ahead
    u8 window_used                      # some node was due in it
    i64 halt_ps                         # the next window ends here at the latest
    u8 exhausted                        # nothing is left to happen
    Deadlocks deadlocks
    Watchdog watchdog
    Quanta quanta
    # recording
    u8 fingerprint_on
    u8 record
    i64 queue_interval_ps
    i64 queue_delta
    i64 throughput_interval_ps
    Stream streams[8]
    QueueWatch* queue_watch
    LinkWatch* link_watch
    # results
    i64* flow_started_ps
    i64* flow_delivered_ps
    i64* flow_completed_ps
    u64 fingerprint
    u64 hops
    u64 frames_started
    u64 delivered_flows
    u64 completed_flows
    i64 end_ps                          # the last arrival
    u64 drops_by_reason[8]
    # failure
    u8 error
    u8 out_of_memory
    Packet scratch                      # where a push goes when memory has run out
    ArrivalKeys arrivals
    FrameLog* logs                      # by flow; NULL where no congestion control looks back
    # path choice, selective repeat, delayed ACKs: NULL where no flow or switch has them
    u64 key_path
    i64 flowlet_gap_ps
    u8 ttl_bits                         # the TTL of the frames that hosts make, where their `mark_ttl` has it; 0: no limit
    const u32* host_address             # with `flow_ports` where switches hash them
    const u32* flow_ports               # source port, and destination port in the upper half
    Paths* paths                        # by node
    u32* no_routes                      # an empty routing table
    # flows that wait for flows of other hosts to complete, and start in no time (`elsewhere.pxd`)
    u8 waits_elsewhere                  # there are some
    FlowList watched                    # delivered, and not complete, with such flows waiting
    FlowList due_elsewhere              # such flows that start at the window's last instant
    TurnPort* turn_ports                # by host port; NULL: flows of no port take turns
    TurnQueue* turn_queues              # by host port and class
    Selective* selective                # by flow
    Reassembly* reassembly              # by flow
    # a program of collectives
    u32 first_connection                # the first flow that is a connection; n_flows: none is
    Connection* connections             # by flow from there on, then those within hosts; NULL: no program
    Program program
    Faults faults


cdef extern from *:
    """
    #if FABRIC_CHECKS
    #define FABRIC_CHECKED_BUILD 1
    #else
    #define FABRIC_CHECKED_BUILD 0
    #endif
    """
    const bint CHECKED_BUILD "FABRIC_CHECKED_BUILD"


cdef inline void check(World* w, bint holds) noexcept nogil:
    """An invariant, looked at in checked builds only."""
    if CHECKED_BUILD and not holds:
        w.error = ERROR_INVARIANT
