"""How many bytes arrays of compiled programs have."""

from __future__ import annotations

from stepscope.analysis.xla.hlo_module import Shape

LARGEST = 1 << 62
BITS = {
    1: 8, 2: 8, 3: 16, 4: 32, 5: 64, 6: 8, 7: 16, 8: 32, 9: 64, 10: 16, 11: 32, 12: 64, 15: 64, 16: 16, 18: 128,
    19: 8, 20: 8, 21: 4, 22: 4, 23: 8, 24: 8, 25: 8, 26: 2, 27: 2, 28: 8, 29: 8, 32: 4, 33: 8,
}  # fmt: skip


def shape_bytes(shape: Shape) -> int | None:
    """Bytes of an array, or of all arrays of a tuple; None where the width of their numbers is not known."""
    bits = [array_bits(array) for array in shape.arrays()]
    known = [each for each in bits if each is not None]
    return bytes_of(sum(known)) if len(known) == len(bits) else None


def array_bits(shape: Shape, elements: int | None = None) -> int | None:
    """Bits of `elements` elements of an array, by default of all."""
    size = BITS.get(shape.element)
    count = shape.elements if elements is None else elements
    return count * size if size else 0 if not shape.element else None


def bytes_of(bits: int) -> int | None:
    """Whole bytes; None of what no memory has."""
    return None if bits >= LARGEST else (bits + 7) // 8
