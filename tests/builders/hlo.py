"""Compiled programs written as text, much as XLA prints them.

double:
  x = f32[8,8] parameter(0)
  y = f32[8,8] add(x, x)
main:
  a = f32[8,8] parameter(0)
  b = f32[8,8] fusion(a) calls=double

The computation called main is the program. Settings behind an instruction: value (of a constant), calls, index, target, direction, trips, contracts,
dims (of a broadcast, a transposition or a sum), slices (where each dimension begins and ends), op_name (as the framework calls it).
"""

from __future__ import annotations

import json
import re
import struct

from tests.builders.protobuf import field, varint

ELEMENTS = {"pred": 1, "s8": 2, "s32": 4, "u32": 8, "f16": 10, "f32": 11, "f64": 12, "bf16": 16, "c64": 15}
_TUPLE = 13
_LINE = re.compile(r"\s+(\S+) = (\(.*?\)|\S+) ([\w-]+)\((.*?)\)(.*)")
_ARRAY = re.compile(r"(\w+)\[([\d,]*)\]")


def program(text: str) -> bytes:
    """The program as profiles carry it (HloProto)."""
    bodies: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith(" "):
            bodies[line.strip().rstrip(":")] = []
        elif line.strip():
            next(reversed(bodies.values())).append(line)
    numbers = {name: place for place, name in enumerate(bodies, 1)}
    computations = [_computation(name, lines, numbers) for name, lines in bodies.items()]
    return field(1, b"".join(computations) + field(6, numbers["main"]))


def _computation(name: str, lines: list[str], numbers: dict[str, int]) -> bytes:
    places: dict[str, int] = {}
    made = []
    for place, line in enumerate(lines, 1):
        found = _LINE.match(line)
        assert found is not None, line
        places[found[1]] = place
        made.append(_instruction(found, place, places, numbers))
    return field(3, field(1, name) + b"".join(made) + field(5, numbers[name]))


def _instruction(found: re.Match[str], place: int, places: dict[str, int], numbers: dict[str, int]) -> bytes:
    name, shape, opcode, given, rest = found.groups()
    settings = dict(each.split("=", 1) for each in rest.split())
    content = field(1, name) + field(2, opcode) + field(3, _shape(shape)) + field(35, place)
    operands = [each.strip() for each in given.split(",") if each.strip()]
    if opcode == "parameter":
        content += field(9, int(given))
    elif opcode != "constant":
        content += field(36, b"".join(varint(places[each]) for each in operands))
    if "op_name" in settings:
        content += field(7, field(2, settings["op_name"]))
    if "value" in settings:  # of a constant: one number
        content += field(8, field(8, struct.pack("<f", float(settings["value"]))))
    if "calls" in settings:
        content += field(38, varint(numbers[settings["calls"]]))
    if "index" in settings:
        content += field(13, int(settings["index"]))
    if "target" in settings:
        content += field(28, settings["target"])
    if "direction" in settings:
        content += field(63, settings["direction"])
    if "contracts" in settings:  # the dimension of the first operand, and that of the second
        first, second = map(int, settings["contracts"].split(","))
        content += field(30, field(1, bytes([first])) + field(2, bytes([second])))
    if "dims" in settings:
        content += field(14, b"".join(varint(int(each)) for each in settings["dims"].split(",")))
    if "slices" in settings:
        for each in settings["slices"].split(","):
            start, limit = map(int, each.split(":"))
            content += field(17, field(1, start) + field(2, limit))
    if "trips" in settings:
        content += field(43, json.dumps({"known_trip_count": {"n": settings["trips"]}}))
    return field(2, content)


def _shape(text: str) -> bytes:
    arrays = [
        field(2, ELEMENTS[element])
        + field(3, b"".join(varint(int(size)) for size in sizes.split(",") if size))
        for element, sizes in _ARRAY.findall(text)
    ]
    if not text.startswith("("):
        return arrays[0]
    return field(2, _TUPLE) + b"".join(field(4, one) for one in arrays)
