from stepscope.native.strings cimport Strings


cdef class Values:
    cdef const unsigned char[::1] data
    cdef Py_ssize_t at
    cdef Py_ssize_t end
    cdef Strings strings
    cdef unsigned char[::1] tags
    cdef long long[::1] values
    cdef Py_ssize_t top
    cdef unsigned char[::1] memo_tags
    cdef long long[::1] memo_values
    cdef Py_ssize_t memo_count

    cdef int _push(self, unsigned char tag, long long value) except? -9
    cdef int _push_text(self, Py_ssize_t width) except? -9
    cdef int _push_int(self, Py_ssize_t width, bint signed) except? -9
    cdef int _put(self, Py_ssize_t where) except? -9
    cdef int _get(self, Py_ssize_t where) except? -9
    cdef Py_ssize_t _number_at(self, Py_ssize_t width) except? -9
