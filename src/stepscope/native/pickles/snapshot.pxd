from stepscope.native.pickles.stacks cimport Stacks
from stepscope.native.pickles.values cimport Values


cdef class Machine(Values):
    cdef long long[::1] marks
    cdef Py_ssize_t depth
    # What each dict and each list has turned out to be, and its number among those of its kind.
    cdef unsigned char[::1] dict_kinds
    cdef unsigned int[::1] dict_numbers
    cdef Py_ssize_t dict_count
    cdef unsigned char[::1] list_kinds
    cdef unsigned int[::1] list_numbers
    cdef Py_ssize_t list_count
    cdef Stacks stacks
    # The events, and how many of them are in a list already.
    cdef unsigned int[::1] action
    cdef unsigned long long[::1] address
    cdef long long[::1] size
    cdef unsigned long long[::1] stream
    cdef long long[::1] time
    cdef unsigned int[::1] stack
    cdef Py_ssize_t count
    cdef Py_ssize_t placed
    # Everything else, as Python objects: few.
    cdef list objects
    cdef list runs
    cdef list frame_rows
    cdef dict frame_numbers
    cdef dict texts
    cdef Py_ssize_t seen[10]

    cdef int _go(self, Py_ssize_t until) except? -9
    cdef int _do(self, int op) except? -9
    cdef int _do_rare(self, int op) except? -9
    cdef int _new_dict(self) except? -9
    cdef int _new_list(self) except? -9
    cdef Py_ssize_t _unmark(self) except? -9
    cdef int _extend(self, Py_ssize_t low) except? -9
    cdef int _extend_frames(self, Py_ssize_t which, Py_ssize_t low) except? -9
    cdef int _extend_events(self, Py_ssize_t which, Py_ssize_t low) except? -9
    cdef int _fill(self, Py_ssize_t low) except? -9
    cdef int _look_for_keys(self, Py_ssize_t low) except? -9
    cdef int _make_event(self, Py_ssize_t which) except? -9
    cdef int _make_frame(self, Py_ssize_t which) except? -9
    cdef bint _is_number(self, Py_ssize_t key, bint signed) except? -9
