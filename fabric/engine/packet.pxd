# A frame, by value: 32 bytes, two to a cache line.
#
# Frames live in rings (on a link, in a class queue, in a host's control queue) and are copied from one
# to the next; there is no pool and there are no indices to chase. `time_ps` is the arrival at the far
# end while the frame is on a link, and the instant of queueing while it waits.

from fabric.engine.types cimport i64, u8, u16, u32, u64

cdef enum Kind:
    DATA = 0
    ACK = 1
    NACK = 2
    CNP = 3
    PFC = 4

cdef enum:
    NO_FLOW = 0xFFFFFFFF        # the flow of a PFC frame

cdef enum PfcWish:              # the `sequence` of a PFC frame
    PFC_RESUME = 0
    PFC_PAUSE = 1
    PFC_REPEAT = 2              # a PAUSE that stands, said again before it runs out
    PFC_STORM = 3               # on no frame: of a peer that repeats PAUSE for as long as its storm lasts

cdef enum:
    MARK = 1                    # of `mark_ttl`
    TTL_SHIFT = 1               # from here on: switches that the frame may still reach; 0: any number

cdef enum SpareBit:
    SPARE_LOGGED = 1            # its sender remembers this frame (ACK: the frame that caused it)
    SPARE_STAMPED = 2           # and switches write down what it meets
    SPARE_HOP_SHIFT = 2         # from here on: how many have, as far as that can be counted
    SPARE_MOST_HOPS = 63

cdef struct Packet:
    i64 time_ps
    u32 flow
    u32 sequence        # DATA: frame number; ACK, NACK: next frame expected; PFC: PfcWish
    u32 destination     # host
    u32 path_hash       # chooses among equal next hops; NACK of selective repeat: also names the frame that came
    u16 size_bytes      # as charged to buffers; the wire adds the port's gap
    u16 ingress         # local port at which a switch received it
    u8 kind
    u8 traffic_class
    u8 mark_ttl         # lowest bit: congestion experienced (DATA), or its echo (ACK, NACK); above it the TTL
    u8 spare            # SpareBit


cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    /* Size, kind, class and mark of a frame, from the 8 bytes that begin with its size, as one number:
       size | kind << 32 | class << 40 | mark << 48. */
    static inline uint64_t fabric_looks(const void* size_bytes)
    {
    #if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        uint64_t bytes;
        memcpy(&bytes, size_bytes, sizeof bytes);
        return bytes & 0x0001FFFF0000FFFFu;
    #else
    #error "written for little-endian machines"
    #endif
    }
    """
    u64 packed_looks "fabric_looks" (const void*) noexcept nogil


cdef inline u64 looks(const Packet* frame) noexcept nogil:
    """What the fingerprint takes of a frame beside its flow and sequence."""
    return packed_looks(&frame.size_bytes)


cdef inline u8 marked(const Packet* frame) noexcept nogil:
    return frame.mark_ttl & MARK
