# The shared buffer of a switch: who may store a frame, and what leaves with it.
#
# Per (ingress port, class): first a private reserve, then the shared pool up to a threshold (static, or
# a share alpha of what is free: Choudhury and Hahne, IEEE/ACM ToN 1998), then, for lossless classes,
# headroom for what is still on its way after a PAUSE. Lossy classes are limited where they leave: a
# frame is dropped when its egress class queue is over the threshold.
#
# While no ingress of the switch is paused its ports lag, so the counts here are upper bounds; every
# test that passes against a bound passes against the truth. A test that fails is repeated by the
# caller after the switch has been settled. With no headroom in use the pool share of an ingress is a
# function of its bytes alone, so late releases leave the same counts as punctual ones.

from fabric.engine.node cimport Node
from fabric.engine.port cimport Ingress
from fabric.engine.profile cimport ClassProfile
from fabric.engine.types cimport i64, later, u32, unlikely
from fabric.engine.world cimport World, check


cdef inline const ClassProfile* profile_of(const World* w, u32 port, u32 traffic_class) noexcept nogil:
    return w.gates[port].profiles + traffic_class


cdef inline i64 threshold(u32 alpha_q16, i64 limit_bytes, i64 free_bytes) noexcept nogil:
    return (free_bytes * alpha_q16) >> 16 if alpha_q16 else limit_bytes


cdef inline i64 pool_share(const ClassProfile* profile, i64 ingress_bytes) noexcept nogil:
    """What of an ingress' bytes lies in the shared pool."""
    return later(0, ingress_bytes - profile.reserved_bytes)


cdef inline bint surely_roomy(
    const Node* n, const ClassProfile* inward, const ClassProfile* outward, const Ingress* ingress,
    i64 egress_bytes, i64 size_bytes
) noexcept nogil:
    """Whether a frame is `roomy`, seen from bounds that hold while half of the pool is free."""
    return (
        (n.shared_used <= n.easy_used)
        & (ingress.bytes + size_bytes <= inward.easy_bytes)
        & (egress_bytes + size_bytes <= outward.easy_egress_bytes)
    )


cdef inline bint roomy(
    const Node* n, const ClassProfile* inward, const ClassProfile* outward, const Ingress* ingress,
    i64 egress_bytes, i64 size_bytes
) noexcept nogil:
    """Whether a frame is stored in reserve and pool and causes no PAUSE; True is exact even of bounds."""
    cdef i64 share = pool_share(inward, ingress.bytes + size_bytes)
    cdef i64 free_bytes = n.shared_bytes - n.shared_used
    cdef i64 free_after = free_bytes - (share - pool_share(inward, ingress.bytes))
    if unlikely(outward.easy_egress_bytes < 0):
        return False
    if inward.lossless:
        return free_after >= 0 and share < threshold(inward.alpha_q16, inward.limit_bytes, free_after)
    return free_after >= 0 and egress_bytes + size_bytes <= threshold(
        outward.egress_alpha_q16, outward.egress_limit_bytes, free_bytes
    )


cdef inline void charge(Node* n, const ClassProfile* inward, Ingress* ingress, i64 size_bytes) noexcept nogil:
    """Stores a frame in reserve and pool."""
    cdef i64 before = pool_share(inward, ingress.bytes)
    ingress.bytes += size_bytes
    n.shared_used += pool_share(inward, ingress.bytes) - before


cdef inline bint release(
    World* w, Node* n, u32 port, u32 traffic_class, i64 size_bytes, i64 time_ps
) noexcept nogil:
    """Takes a departing frame off its ingress port, headroom first; True if that ends the ingress' pause."""
    cdef Ingress* ingress = w.gates[port].classes + traffic_class
    cdef const ClassProfile* inward = profile_of(w, port, traffic_class)
    cdef i64 before = pool_share(inward, ingress.bytes)
    cdef i64 from_headroom = 0
    cdef i64 share
    if unlikely(ingress.paused != 0):
        from_headroom = size_bytes if size_bytes < ingress.headroom_used else ingress.headroom_used
        ingress.headroom_used -= <u32>from_headroom
        w.pauses[port * w.n_classes + traffic_class].released_ps = time_ps
    ingress.bytes -= size_bytes - from_headroom
    share = pool_share(inward, ingress.bytes)
    n.shared_used -= before - share
    check(w, ingress.bytes >= 0 and n.shared_used >= 0)
    if unlikely(ingress.paused != 0) and ingress.headroom_used == 0:
        if share == 0 or share + inward.xon_offset_bytes <= threshold(
            inward.alpha_q16, inward.limit_bytes, n.shared_bytes - n.shared_used
        ):
            ingress.paused = 0
            n.n_paused -= 1
            return True
    return False
