cdef class Stacks:
    # Where each ends among the frames of all, its hash, and the table that finds it.
    cdef unsigned int[::1] frames
    cdef Py_ssize_t used
    cdef long long[::1] ends
    cdef unsigned long long[::1] hashes
    cdef unsigned int[::1] slots
    cdef Py_ssize_t mask
    cdef Py_ssize_t count

    cdef Py_ssize_t number(self, long long[::1] values, Py_ssize_t low, Py_ssize_t high) except? -9
    cdef Py_ssize_t _add(self, long long[::1] values, Py_ssize_t low, Py_ssize_t high, unsigned long long bits) except? -9
    cdef bint _is(self, Py_ssize_t number, long long[::1] values, Py_ssize_t low, Py_ssize_t count) except? -9
    cdef int _place(self, Py_ssize_t number) except? -9
