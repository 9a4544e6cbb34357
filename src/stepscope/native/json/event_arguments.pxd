from stepscope.native.json.gaps cimport Gaps
from stepscope.native.json.numbers cimport Numbers
from stepscope.native.json.values cimport Values
from stepscope.native.strings cimport Strings

cdef class Arguments:
    cdef const unsigned char[::1] buf
    cdef Py_ssize_t end
    cdef Values values
    cdef Numbers numbers
    cdef Strings strings
    # Known arguments: a table of keys, by which slot and kind, and the values in the current event.
    cdef Strings keys
    cdef int[::1] key_slot
    cdef int[::1] key_kind
    cdef long long[::1] slot_value
    cdef long long[::1] slot_serial
    cdef long long serial
    # Arrays by what was read before them: their codes and one more, 0 for none.
    cdef unsigned int[::1] expected
    cdef Py_ssize_t before
    # Gaps by the event's name and the known argument before them, in the same way.
    cdef Gaps gaps
    cdef unsigned int[::1] expected_gaps
    # The current event: how many slots were set, whether the JSON text holds more, and where it lies.
    cdef Py_ssize_t known
    cdef bint extra
    cdef Py_ssize_t lo
    cdef Py_ssize_t hi
    # Layouts: which slots make a row, and all rows, column after column.
    cdef int[::1] layout_of_category
    cdef int[::1] layout_slots
    cdef int[::1] layout_first
    cdef long long[::1] layout_rows
    cdef Py_ssize_t capacity
    cdef long long[::1] cells
    cdef int trigger_slot
    cdef int trigger_layout
    cdef int fallback_slot
    cdef int fallback_layout

    cdef int clear(self) noexcept nogil
    cdef Py_ssize_t read(self, Py_ssize_t p, unsigned int name) except? -9 nogil
    cdef bint keep(self, Py_ssize_t event, unsigned int category) except? -9 nogil
    cdef Py_ssize_t _other(self, Py_ssize_t p) except? -9 nogil
    cdef Py_ssize_t _one(self, Py_ssize_t key, Py_ssize_t p) except? -9 nogil
    cdef Py_ssize_t _text(self, int slot, Py_ssize_t p) except? -9 nogil
    cdef Py_ssize_t _three(self, int slot, Py_ssize_t p) except? -9 nogil
    cdef int _set(self, int slot, long long value) except? -9 nogil
    cdef Py_ssize_t _add_row(self, int layout, Py_ssize_t event) except? -9 nogil
