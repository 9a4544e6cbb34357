cdef class Tracks:
    cdef long long[::1] pids
    cdef long long[::1] tids
    cdef unsigned int[::1] slots
    cdef unsigned long long seed
    cdef Py_ssize_t count
    cdef Py_ssize_t mask
    cdef Py_ssize_t last

    cdef Py_ssize_t number(self, long long pid, long long tid) except? -9 nogil
    cdef Py_ssize_t _seek(self, long long pid, long long tid) except? -9 nogil
    cdef Py_ssize_t _add(self, long long pid, long long tid) except? -9 nogil
    cdef int _place(self, Py_ssize_t track) except? -9 nogil
    cdef Py_ssize_t _first_slot(self, long long pid, long long tid) noexcept nogil
