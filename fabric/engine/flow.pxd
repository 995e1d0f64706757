# A flow's two ends: what the sender and the receiver remember.
#
# The sender is two cache lines: the first is all that sending and an ACK need, the second belongs to
# congestion control, whatever it is; its first field is the rate. Both ends come to life when first
# used (`alive`); a flow that has not started costs no memory beyond its row in the scenario.

from fabric.engine.sequence_set cimport SequenceSet
from fabric.engine.types cimport i64, u8, u16, u32

cdef enum SenderFlag:
    SENDER_CONNECTION = 1   # has messages, is never complete
    SENDER_READY = 2        # in the ready heap of its port and class
    SENDER_COMPLETE = 4     # every frame acknowledged
    SENDER_RTO_ARMED = 8    # a retransmission timer is set
    SENDER_LISTENS = 16     # congestion control hears every ACK, not only those with a mark
    SENDER_LOGS = 32        # frames sent for the first time are remembered
    SENDER_SELECTIVE = 64   # selective repeat
    SENDER_SPREADS = 128    # more than one path hash

cdef enum ReceiverKind:     # `alive` of a receiver; 0: it starts, or looks for the next message, when a frame comes
    RECEIVER_PLAIN = 1      # go-back-N, ACKs by number of frames
    RECEIVER_SPECIAL = 2    # selective repeat or delayed ACKs: has a `Reassembly`

cdef enum CongestionFlag:
    CC_ACTIVE = 1           # congestion control has a rate of its own; until then, line rate
    CC_ALPHA = 2            # vendor form: marked since the last alpha update
    CC_CUT = 4              # vendor form: marked since the last cut
    CC_INCREASING = 8       # vendor form: the increase timer runs
    CC_REDUCED = 16         # DCTCP: cut in this window
    CC_COUNTING = 32        # DCTCP: the first window has begun
    CC_MOVED = 64           # HPCC: the instant from which the flow may send has moved

cdef struct DcqcnState:
    double rate             # bit/s
    double target           # bit/s
    double alpha
    i64 alpha_base_ps       # the last update of alpha
    i64 increase_base_ps    # the last increase event of the timer, or the last cut
    i64 cut_base_ps         # vendor form: where the cut clock stands
    i64 cut_mark_ps         # vendor form: the first mark since the last cut; paper form: bytes counted
    u32 timer_events        # paper form: T; vendor form: stage
    u32 byte_events         # paper form: B

cdef struct HpccState:
    double rate
    double reference        # the rate at the last full update
    double utilisation      # U, averaged over a base round trip
    u32 last                # an ACK beyond this frame is the next full update
    u32 stage               # full updates since the last multiplicative one
    i64 sent_ps             # the frame sent last: its start, how long it takes, and its size
    i64 sent_serialisation_ps
    u32 sent_wire_bytes

cdef struct DctcpState:
    double rate
    double alpha
    u32 last                # an ACK beyond this frame begins a new window
    u32 high                # an ACK beyond this frame ends the time after a cut
    u32 marked              # frames of this window whose ACK carried a mark
    u32 batch               # frames of this window

cdef struct TimelyState:
    double rate
    double difference       # averaged change of the round-trip time, in ps
    i64 rtt_ps              # the sample of the last update
    u32 last                # an ACK beyond this frame is the next update
    u32 rises               # increases in a row

cdef union CongestionState:
    double rate             # bit/s; the first field of every member
    DcqcnState dcqcn
    HpccState hpcc
    DctcpState dctcp
    TimelyState timely

cdef struct Sender:
    u32 next                # number of the next frame to send (selective repeat: a lost one, or `high`)
    u32 acked               # frames before this one have arrived
    u32 frames              # 0 before the start; of a connection: those up to the end of the message that `next` is in
    u32 window_frames       # 0: none
    u32 high                # frames before this one have been sent at least once
    u32 destination
    u32 path_hash
    u32 port
    i64 next_time_ps        # pacing: not before
    i64 progress_ps         # what the retransmission time-out counts from
    u32 retransmitted
    u32 timeouts
    u16 last_frame_bytes
    u16 transport
    u8 traffic_class
    u8 flags                # SenderFlag
    u8 cc_flags             # CongestionFlag
    u8 record
    CongestionState cc

cdef struct Receiver:
    u32 expected            # next frame in order
    u32 frames              # of a connection: those up to the end of the message that `expected` is in
    u32 source
    u32 path_hash
    u32 nacked_for          # 1 + the value of `expected` that the last NACK carried; 0: none yet
    u32 last_out_of_order
    i64 last_nack_ps
    i64 last_cnp_ps
    u32 cnps
    u32 nacks
    u32 marked
    u16 transport
    u8 alive                # ReceiverKind
    u8 mark_to_echo

cdef struct Resent:         # a frame that was sent again
    u32 frame
    u32 base                # `high` at that time

cdef struct Selective:      # what selective repeat adds to a sender
    SequenceSet arrived     # of the frames from `acked` on, those known to have arrived
    Resent* resent          # ring, in the order of sending
    u32 resent_capacity     # a power of two, or 0
    u32 resent_head
    u32 resent_tail
    u32 top                 # one more than the highest frame known to have arrived
    u32 scan                # frames before this one are in `resent`, or need not be sent again
    u32 limit               # frames before this one are lost unless they are known to have arrived

cdef struct Reassembly:     # what selective repeat and delayed ACKs add to a receiver
    SequenceSet arrived     # of the frames beyond `expected`, those that are here
    i64 ack_due_ps          # an ACK is due then; 0: none
    u32 ack_port            # where the frame came in that it is due for
    u8 timer_set
