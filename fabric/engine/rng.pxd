# Keyed, counter-based randomness: a draw is a hash of (key, a, b), never the state of a generator.
#
# So a draw depends on what it is for and on nothing else that happens; adding a flow leaves every
# other flow's draws alone, and any order of evaluation gives the same bits. `mix64` is the finaliser
# of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), `fmix32` that of MurmurHash3 (A. Appleby, public domain).

from fabric.engine.types cimport i64, u32, u64

cdef inline u64 mix64(u64 x) noexcept nogil:
    x ^= x >> 30
    x *= <u64>0xBF58476D1CE4E5B9
    x ^= x >> 27
    x *= <u64>0x94D049BB133111EB
    x ^= x >> 31
    return x


cdef inline u32 fmix32(u32 x) noexcept nogil:
    x ^= x >> 16
    x *= <u32>0x85EBCA6B
    x ^= x >> 13
    x *= <u32>0xC2B2AE35
    x ^= x >> 16
    return x


cdef inline u32 entropy_hash(u32 path_hash, u32 number) noexcept nogil:
    """The path hash of a flow's entropy with this number; 0 is the flow's own."""
    return path_hash + number * <u32>0x9E3779B9


cdef inline u32 entropy_number(u32 path_hash, u32 hash_of_number) noexcept nogil:
    """The number that `entropy_hash` made a hash of: the factor is odd and has an inverse."""
    return (hash_of_number - path_hash) * <u32>0x144CBC89


cdef inline u64 draw(u64 key, u64 a, u64 b) noexcept nogil:
    return mix64(mix64(key ^ a) + b)


cdef inline double unit_interval(u64 x) noexcept nogil:
    """A draw as a number in [0, 1) with 53 bits."""
    return <double>(x >> 11) * 1.1102230246251565e-16


cdef inline u64 frame_key(i64 time_ps, u32 flow, u32 sequence) noexcept nogil:
    """What tells one frame at one instant from every other at the same port."""
    return <u64>time_ps ^ mix64((<u64>flow << 32) | sequence)


cdef inline u64 tie_break(u64 node_key, i64 time_ps, u32 local_port) noexcept nogil:
    """16 bits that order the arrivals of one instant at one node, so that no port always wins."""
    return mix64((<u64>time_ps ^ node_key) + (<u64>local_port + 1) * <u64>0x9E3779B97F4A7C15) >> 48
