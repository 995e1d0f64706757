# A set of frame numbers that lie a little beyond a moving base: a ring of bits.
#
# The base is the caller's; numbers before it are never asked for, and are taken out before it passes them.
# Empty sets own no memory; the ring doubles when a number lies too far beyond the base.

from libc.stdlib cimport calloc, free

from fabric.engine.types cimport u32, u64

cdef enum:
    SEQUENCE_SET_FIRST_BITS = 64

cdef struct SequenceSet:
    u64* words
    u32 capacity            # bits: a power of two, or 0
    u32 count               # numbers in the set


cdef inline bint set_bit(const SequenceSet* numbers, u32 number) noexcept nogil:
    cdef u32 place = number & (numbers.capacity - 1)
    return numbers.words[place >> 6] >> (place & 63) & 1


cdef inline bint set_has(const SequenceSet* numbers, u32 base, u32 number) noexcept nogil:
    """Whether a number, not before the base, is in the set."""
    return numbers.count != 0 and number - base < numbers.capacity and set_bit(numbers, number)


cdef inline bint set_reserve(SequenceSet* numbers, u32 base, u32 number) noexcept nogil:
    """Makes room for numbers up to `number`; False without memory."""
    cdef u64 capacity = numbers.capacity if numbers.capacity else SEQUENCE_SET_FIRST_BITS
    cdef u64* words
    cdef u32 old, place
    while number - base >= capacity:
        capacity *= 2
    if capacity == numbers.capacity:
        return True
    words = <u64*>calloc(capacity // 64, sizeof(u64))
    if words == NULL:
        return False
    for old in range(numbers.capacity):
        if set_bit(numbers, base + old):
            place = (base + old) & <u32>(capacity - 1)
            words[place >> 6] |= <u64>1 << (place & 63)
    free(numbers.words)
    numbers.words = words
    numbers.capacity = <u32>capacity
    return True


cdef inline bint set_add(SequenceSet* numbers, u32 base, u32 number) noexcept nogil:
    """Adds a number that is not in the set; False without memory."""
    cdef u32 place
    if not set_reserve(numbers, base, number):
        return False
    place = number & (numbers.capacity - 1)
    numbers.words[place >> 6] |= <u64>1 << (place & 63)
    numbers.count += 1
    return True


cdef inline bint set_take(SequenceSet* numbers, u32 base, u32 number) noexcept nogil:
    """Takes a number out; whether it was in."""
    cdef u32 place
    if not set_has(numbers, base, number):
        return False
    place = number & (numbers.capacity - 1)
    numbers.words[place >> 6] &= ~(<u64>1 << (place & 63))
    numbers.count -= 1
    return True


cdef inline void set_free(SequenceSet* numbers) noexcept nogil:
    free(numbers.words)
    numbers.words = NULL
