from stepscope.native.json.event_arguments cimport Arguments
from stepscope.native.json.event_tracks cimport Tracks

cdef class Event:
    cdef int phase
    cdef unsigned int name
    cdef unsigned int category
    cdef long long pid
    cdef long long tid
    cdef long long id
    # In ns, with millionths.
    cdef long long start
    cdef long long start_part
    cdef long long dur
    cdef long long dur_part
    cdef bint has_start
    cdef bint has_dur
    cdef bint is_out_of_range
    cdef bint binds_enclosing
    cdef Py_ssize_t members

    cdef int clear(self) noexcept nogil
    cdef long long start_ns(self) noexcept nogil
    cdef long long end_ns(self) noexcept nogil

cdef class Rows:
    cdef const unsigned char[::1] buf
    cdef Event event
    cdef Arguments arguments
    cdef Tracks tracks
    cdef Py_ssize_t count
    cdef Py_ssize_t capacity
    cdef unsigned char[::1] phases
    cdef unsigned int[::1] names
    cdef unsigned int[::1] categories
    cdef unsigned int[::1] event_tracks
    cdef long long[::1] starts
    cdef long long[::1] durations
    cdef long long[::1] flows
    cdef Py_ssize_t flow_count
    cdef long long[::1] metas
    cdef Py_ssize_t meta_count
    cdef long long[::1] asyncs
    cdef Py_ssize_t async_count
    # What no column holds: JSON text by event, and how much of it there was before the current event.
    cdef unsigned char[::1] rest
    cdef long long[::1] rest_events
    cdef long long[::1] rest_offsets
    cdef Py_ssize_t rest_count
    cdef Py_ssize_t rest_before
    # What was wrong.
    cdef Py_ssize_t untimed
    cdef Py_ssize_t out_of_range
    cdef Py_ssize_t without_duration
    cdef Py_ssize_t without_phase
    cdef Py_ssize_t empty

    cdef int begin(self) noexcept nogil
    cdef int drop(self) noexcept nogil
    cdef int finish(self) except? -9 nogil
    cdef int set_aside(self, Py_ssize_t event, Py_ssize_t lo, Py_ssize_t hi, bint bare) except? -9 nogil
    cdef bint _can_be_placed(self) noexcept nogil
    cdef int _add_event(self) except? -9 nogil
    cdef int _add_flow(self) except? -9 nogil
    cdef int _add_meta(self) except? -9 nogil
    cdef int _add_async(self) except? -9 nogil
