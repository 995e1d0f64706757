# The parameters of a run, as rows that ports, nodes and flows refer to.
#
# `TransportProfile` has the memory layout of the NumPy record TRANSPORT of `fabric.lowered` (aligned),
# `ClassProfile` that of PROFILE and what the engine derives from it. A fabric has few distinct rows:
# they stay in the first-level cache.

from fabric.engine.types cimport i64, u8, u32

cdef enum EcnMode:
    ECN_OFF = 0
    ECN_AT_ENQUEUE = 1
    ECN_AT_DEQUEUE = 2

cdef enum Feedback:
    FEEDBACK_NONE = 0
    FEEDBACK_CNP = 1        # congestion notification packets, at most one an interval and flow
    FEEDBACK_ECHO = 2       # the mark comes back in the ACK

cdef enum Congestion:
    CONGESTION_NONE = 0
    CONGESTION_DCQCN_PAPER = 1
    CONGESTION_DCQCN_VENDOR = 2
    CONGESTION_HPCC = 3
    CONGESTION_DCTCP = 4
    CONGESTION_TIMELY = 5

cdef enum Telemetry:
    TELEMETRY_NONE = 0
    TELEMETRY_TIME = 1      # the sender remembers when a frame left
    TELEMETRY_HOPS = 2      # and switches write down what it met

cdef enum PathMode:
    PATHS_FLOW = 0          # one path hash a flow
    PATHS_IN_TURN = 1       # frame by frame the next of `path_count`
    PATHS_RANDOM = 2        # frame by frame a drawn one

cdef struct ClassProfile:           # of one class at one kind of port
    u8 lossless
    u8 ecn_mode
    u32 alpha_q16                   # ingress threshold as a share of the free pool, 16 fractional bits; 0: static
    u32 egress_alpha_q16            # the same for the egress threshold of a lossy class
    i64 reserved_bytes              # per ingress port
    i64 limit_bytes                 # static ingress threshold (XOFF beyond the reserve)
    i64 xon_offset_bytes            # hysteresis: RESUME this far below the threshold
    i64 headroom_bytes              # per ingress port, beyond the threshold
    i64 egress_limit_bytes          # static egress threshold of a lossy class
    i64 ecn_kmin_bytes
    i64 ecn_kmax_bytes
    double ecn_pmax
    i64 easy_bytes                  # while half of the pool is free: an ingress with no more than this,
    i64 easy_egress_bytes           # and an egress queue with no more than this, are sure to have room for it;
                                    # below 0: a watchdog drops what comes for the egress
    i64 direct_bytes                # a larger frame never leaves without having been queued; -1: none does

cdef enum:
    SHARED_LEVEL = 0xFF             # several classes share the highest level with a candidate

cdef struct Scheduler:
    u8 n_levels
    u8 level_mask[8]                # classes of each level of strict priority, highest level first
    u8 shared_classes               # classes that share their level with another
    u8 first[256]                   # by set of candidates: the class to serve, or SHARED_LEVEL
    u32 quantum[8]                  # DWRR quantum in bytes, by class

cdef struct TransportProfile:
    u32 frame_bytes                 # a full data frame as charged to buffers
    u32 payload_bytes
    u32 control_bytes
    u8 control_class
    u8 feedback
    u8 congestion
    u8 nack_enabled
    u8 nack_on_rewind
    u8 clamp_target
    u32 ack_every
    u32 window_frames               # 0: no window
    u32 fast_recovery
    i64 rto_ps                      # 0: never
    i64 nack_interval_ps
    i64 cnp_interval_ps
    i64 alpha_period_ps
    i64 cut_period_ps
    i64 increase_period_ps
    i64 byte_counter
    double g
    double ai_bps
    double hai_bps
    double min_rate_bps
    double first_cut
    u8 ack_duplicates
    u8 variable_window              # the window follows the rate
    u8 telemetry                    # Telemetry
    u8 fast_reaction                # HPCC: react to every ACK
    u32 max_stage                   # HPCC: additive updates in a row; TIMELY: increases before hyper ones
    i64 window_bytes                # payload that a variable window holds at line rate
    i64 base_rtt_ps                 # HPCC: T; TIMELY: the smallest round-trip time
    i64 rtt_low_ps                  # TIMELY: below it, always faster
    i64 rtt_high_ps                 # TIMELY: above it, always slower
    double eta                      # HPCC: target utilisation
    double beta                     # TIMELY: strength of decreases
    i64 ack_delay_ps                # the latest ACK after a frame; 0: only by number
    u32 path_count                  # path hashes that a flow spreads its frames over
    u32 reorder_frames              # selective repeat: a frame is lost when one so far beyond it has arrived
    u8 path_mode
    u8 selective                    # selective repeat instead of go-back-N
    u8 whole_rates                  # rates are cut to whole bit/s, pauses to ticks of ns-3
    u32 telemetry_unit              # HPCC: the unit of compact records; 0: exact ones
    u32 least_frame_bytes           # what shorter data frames are padded to
    u8 repath                       # after a time-out another path, after a repeated frame another one back
