from stepscope.native.json.event_arguments cimport Arguments
from stepscope.native.json.event_rows cimport Rows
from stepscope.native.json.gaps cimport Gaps
from stepscope.native.json.numbers cimport Numbers
from stepscope.native.json.values cimport Values
from stepscope.native.strings cimport Strings

cdef class EventReader:
    cdef const unsigned char[::1] buf
    cdef Py_ssize_t end
    cdef Values values
    cdef Numbers numbers
    cdef Strings strings
    cdef Arguments arguments
    cdef Rows rows
    # The last category that was a string, as it stands; -1 for none.
    cdef Py_ssize_t plain_category
    # Gaps by the key before them and the event's phase: their numbers and one more, 0 for none.
    cdef Gaps gaps
    cdef unsigned int[::1] expected_gaps
    # Names by the one before them: their codes and one more, 0 for none.
    cdef unsigned int[::1] expected
    cdef Py_ssize_t last_name

    cdef Py_ssize_t read(self, Py_ssize_t p) except? -9 nogil
    cdef bint is_key(self, Py_ssize_t p) except? -9 nogil
    cdef Py_ssize_t _members(self, Py_ssize_t p) except? -9 nogil
    cdef int _key(self, unsigned long long key) except? -9 nogil
    cdef Py_ssize_t _value(self, int key, Py_ssize_t p) except? -9 nogil
    cdef Py_ssize_t _end_of(self, Py_ssize_t code, Py_ssize_t p) except? -9 nogil
    cdef Py_ssize_t _category(self, Py_ssize_t p) except? -9 nogil
    cdef Py_ssize_t _name(self, Py_ssize_t p) except? -9 nogil
    cdef Py_ssize_t _unknown(self, Py_ssize_t lo, Py_ssize_t p) except? -9 nogil
    cdef Py_ssize_t _phase(self, Py_ssize_t p) except? -9 nogil
    cdef Py_ssize_t _start(self, Py_ssize_t p) except? -9 nogil
    cdef Py_ssize_t _duration(self, Py_ssize_t p) except? -9 nogil
    cdef Py_ssize_t _identity(self, Py_ssize_t p) except? -9 nogil
    cdef Py_ssize_t _code(self, Py_ssize_t p, Py_ssize_t guess) except? -9 nogil
