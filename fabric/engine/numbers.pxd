# Small arithmetic that must give the same bits as the reference engine's.

from fabric.engine.types cimport u64


cdef inline double least(double a, double b) noexcept nogil:
    return a if a < b else b


cdef inline double most(double a, double b) noexcept nogil:
    return a if a > b else b


cdef inline double pow_int(double base, u64 n) noexcept nogil:
    """base ** n by squaring, in one fixed order of multiplications."""
    cdef double result = 1.0
    while n:
        if n & 1:
            result *= base
        base *= base
        n >>= 1
    return result
