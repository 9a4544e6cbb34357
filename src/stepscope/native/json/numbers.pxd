from stepscope.native.json.values cimport Values

cdef class Numbers:
    cdef Values values
    cdef const unsigned char[::1] buf
    cdef Py_ssize_t end
    cdef unsigned long long[::1] powers
    # As written, and as read: a whole number and millionths.
    cdef unsigned long long mantissa
    cdef Py_ssize_t exponent
    cdef bint has_digits
    cdef bint has_lost  # digits that the mantissa cannot hold, other than zeros
    cdef bint negative
    cdef long long value
    cdef long long fraction
    cdef Py_ssize_t unread

    cdef Py_ssize_t integer(self, Py_ssize_t p) except? -9 nogil
    cdef Py_ssize_t scaled(self, Py_ssize_t p, int power) except? -9 nogil
    cdef Py_ssize_t _plain(self, Py_ssize_t p, int power) noexcept nogil
    cdef unsigned long long _word(self, Py_ssize_t p) noexcept nogil
    cdef unsigned long long _eight(self, unsigned long long w) noexcept nogil
    cdef int _signed(self) noexcept nogil
    cdef int _scale(self, int power) except? -9 nogil
    cdef Py_ssize_t _number(self, Py_ssize_t p) noexcept nogil
    cdef Py_ssize_t _digits(self, Py_ssize_t p, int step) noexcept nogil
    cdef Py_ssize_t _digits_too_many(self, Py_ssize_t p, int step) noexcept nogil
    cdef Py_ssize_t _power(self, Py_ssize_t p) noexcept nogil
    cdef bint _ends_value(self, Py_ssize_t p) noexcept nogil
