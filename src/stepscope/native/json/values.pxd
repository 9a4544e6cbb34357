cdef class Values:
    cdef const unsigned char[::1] buf
    cdef const unsigned long long[::1] words
    cdef Py_ssize_t end
    # The last string or text; the place of the last thing that is not JSON; strings with quotes that were not escaped.
    cdef Py_ssize_t lo
    cdef Py_ssize_t hi
    cdef bint escaped
    cdef bint is_null
    cdef Py_ssize_t bad_at
    cdef Py_ssize_t repaired

    cdef Py_ssize_t bad(self, Py_ssize_t p) noexcept nogil
    cdef Py_ssize_t space(self, Py_ssize_t p) noexcept nogil
    cdef Py_ssize_t space_and_commas(self, Py_ssize_t p) noexcept nogil
    cdef Py_ssize_t member(self, Py_ssize_t p) noexcept nogil
    cdef Py_ssize_t key(self, Py_ssize_t p) noexcept nogil
    cdef unsigned long long packed(self, Py_ssize_t lo, Py_ssize_t hi) noexcept nogil
    cdef Py_ssize_t string(self, Py_ssize_t p) noexcept nogil
    cdef Py_ssize_t text(self, Py_ssize_t p) noexcept nogil
    cdef Py_ssize_t skip(self, Py_ssize_t p) noexcept nogil
    cdef Py_ssize_t _close(self, Py_ssize_t p, bint nested) noexcept nogil
    cdef bint _closes(self, Py_ssize_t p, bint nested) noexcept nogil
    cdef Py_ssize_t _mend(self, Py_ssize_t p, bint nested) noexcept nogil
    cdef Py_ssize_t _mark(self, Py_ssize_t p) noexcept nogil
    cdef Py_ssize_t _skip_nested(self, Py_ssize_t p) noexcept nogil
    cdef Py_ssize_t _skip_word(self, Py_ssize_t p) noexcept nogil
