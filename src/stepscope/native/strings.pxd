cdef class Strings:
    cdef const unsigned char[::1] buf
    cdef const unsigned long long[::1] words
    cdef unsigned char[::1] blob
    cdef long long[::1] starts
    cdef long long[::1] ends
    cdef unsigned int[::1] hashes
    cdef unsigned char[::1] flags
    cdef unsigned int[::1] slots
    cdef unsigned long long seed
    cdef Py_ssize_t count
    cdef Py_ssize_t used
    cdef Py_ssize_t mask
    cdef Py_ssize_t capacity

    cdef Py_ssize_t intern(self, Py_ssize_t lo, Py_ssize_t hi, bint escaped, Py_ssize_t guess) except? -9 nogil
    cdef Py_ssize_t find(self, Py_ssize_t lo, Py_ssize_t hi, Py_ssize_t guess) except? -9 nogil
    cdef Py_ssize_t end_at(self, Py_ssize_t code, Py_ssize_t lo) except? -9 nogil
    cdef Py_ssize_t _seek(self, Py_ssize_t lo, Py_ssize_t hi, unsigned int hashed) except? -9 nogil
    cdef Py_ssize_t _add(self, Py_ssize_t lo, Py_ssize_t hi, unsigned int hashed, bint escaped) except? -9 nogil
    cdef int _place(self, Py_ssize_t code) except? -9 nogil
    cdef unsigned int _hash(self, Py_ssize_t lo, Py_ssize_t hi) noexcept nogil
    cdef unsigned long long _word(self, Py_ssize_t p) noexcept nogil
    cdef unsigned long long _short(self, Py_ssize_t lo, Py_ssize_t hi) noexcept nogil
    cdef bint _is(self, Py_ssize_t code, Py_ssize_t lo, Py_ssize_t size) except? -9 nogil
    cdef int _keep(self, Py_ssize_t lo, Py_ssize_t hi) except? -9 nogil
