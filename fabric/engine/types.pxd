# Integer names, compiler hints and limits that every part of the engine uses.
#
# Times are signed 64-bit picoseconds, byte counts signed 64-bit, entities unsigned 32-bit indices.
# `check` is an assertion of an invariant: it costs nothing in a release build, and in a checked build
# (FABRIC_DEBUG or FABRIC_SANITIZE) turns a violation into an error of the run, never into an abort.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

ctypedef int32_t i32
ctypedef int64_t i64
ctypedef uint8_t u8
ctypedef uint16_t u16
ctypedef uint32_t u32
ctypedef uint64_t u64

cdef extern from *:
    """
    #include <stdint.h>
    #define FABRIC_NEVER INT64_MAX
    #define FABRIC_LIKELY(x) __builtin_expect(!!(x), 1)
    /* rare enough that the compiler keeps what follows out of the hot path instead of inlining it */
    #define FABRIC_UNLIKELY(x) __builtin_expect_with_probability(!!(x), 0, 0.9999)
    #define FABRIC_CTZ(x) __builtin_ctzll(x)
    #define FABRIC_BIT_LENGTH(x) (64 - __builtin_clzll((x) | 1))
    #define FABRIC_PREFETCH(x) __builtin_prefetch(x)
    #define FABRIC_PREFETCH_NEAR(x) __builtin_prefetch(x, 0, 2)
    """
    const i64 NEVER "FABRIC_NEVER"
    bint likely "FABRIC_LIKELY" (bint) noexcept nogil
    bint unlikely "FABRIC_UNLIKELY" (bint) noexcept nogil
    u32 trailing_zeros "FABRIC_CTZ" (u64) noexcept nogil
    u32 bit_length "FABRIC_BIT_LENGTH" (u64) noexcept nogil     # 1 of 0
    void prefetch "FABRIC_PREFETCH" (const void*) noexcept nogil
    void prefetch_near "FABRIC_PREFETCH_NEAR" (const void*) noexcept nogil      # not into the smallest cache


cdef inline i64 later(i64 a, i64 b) noexcept nogil:
    return a if a > b else b


cdef inline i64 sooner(i64 a, i64 b) noexcept nogil:
    return a if a < b else b
