# ECMP over addresses and ports: which of a group the MurmurHash3 of a frame's socket pair names.
#
# A frame has the addresses and ports of its flow, source first; what answers it has both swapped. The
# entropies of a flow that is spread over several paths are source ports that count up from its own. The
# hash is MurmurHash3 for x86, 32 bits, of three words (A. Appleby, public domain); its seed is the switch's
# salt, and the remainder of the division by the number of next hops is the index.

from fabric.engine.node cimport Node
from fabric.engine.packet cimport DATA, Packet
from fabric.engine.rng cimport entropy_number, fmix32
from fabric.engine.types cimport u32
from fabric.engine.world cimport World

cdef enum:
    KEY_BYTES = 12


cdef inline u32 rotated(u32 value, u32 bits) noexcept nogil:
    return (value << bits) | (value >> (32 - bits))


cdef inline u32 with_word(u32 state, u32 word) noexcept nogil:
    state ^= rotated(word * <u32>0xCC9E2D51, 15) * <u32>0x1B873593
    return rotated(state, 13) * 5 + <u32>0xE6546B64


cdef inline u32 socket_index(const World* w, const Node* n, const Packet* frame, u32 count) noexcept nogil:
    cdef u32 source = w.host_address[w.flow_source[frame.flow]]
    cdef u32 destination = w.host_address[w.flow_destination[frame.flow]]
    cdef u32 ports = w.flow_ports[frame.flow]
    cdef u32 first = (ports + entropy_number(w.flow_hash[frame.flow], frame.path_hash)) & 0xFFFF
    cdef u32 second = ports >> 16
    cdef u32 state
    if frame.kind == DATA:
        state = with_word(with_word(with_word(n.salt, source), destination), first | second << 16)
    else:
        state = with_word(with_word(with_word(n.salt, destination), source), second | first << 16)
    return fmix32(state ^ KEY_BYTES) % count
