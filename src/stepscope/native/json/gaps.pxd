from stepscope.native.strings cimport Strings

cdef class Gaps:
    cdef Strings texts
    cdef int[::1] meaning

    cdef Py_ssize_t take(self, Py_ssize_t lo, Py_ssize_t hi, int meaning) except? -9 nogil
