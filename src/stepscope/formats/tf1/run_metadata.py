"""TensorFlow 1's RunMetadata: what each node of the graph did on each device in one run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from stepscope.formats.protobuf import fields, signed, text
from stepscope.trace.problems import Problems

_TYPES = (
    "", "float32", "float64", "int32", "uint8", "int16", "int8", "string", "complex64", "int64", "bool", "qint8",
    "quint8", "qint32", "bfloat16", "qint16", "quint16", "uint16", "complex128", "float16", "resource", "variant",
    "uint32", "uint64", "float8_e5m2", "float8_e4m3fn",
)  # fmt: skip
_NUMBERS = frozenset((2, 3, 4, 5, 9, 10, 13, 14, 15, 16, 17))
_REFERENCE = 100  # types from here on are references to those below


@dataclass(slots=True)
class Allocation:
    """Bytes that an allocator gave (or, if negative, took back)."""

    allocator: str
    time_ns: int
    bytes: int


@dataclass(slots=True)
class Node:
    """One execution of a node. Times are nanoseconds since 1970, or 0 if the file does not say."""

    name: str = ""
    label: str = ""
    start_ns: int = 0
    dur_ns: int = 0
    thread: int = 0
    shapes: list[str] = field(default_factory=list)
    dtypes: list[str] = field(default_factory=list)
    allocations: list[Allocation] = field(default_factory=list)
    details: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class DeviceNodes:
    """The device and, one by one, what ran there."""

    device: str
    threads: dict[int, str]
    nodes: Iterator[Node]


def devices(run_metadata: memoryview, problems: Problems) -> Iterator[DeviceNodes]:
    """Each device of the run. Where the file is cut, the nodes before the cut are there."""
    for number, step_stats in fields(run_metadata, problems, keep_cut=True):
        if number != 1 or isinstance(step_stats, int):
            continue
        for inner, device in fields(step_stats, problems, keep_cut=True):
            if inner == 1 and not isinstance(device, int):
                yield _device(device, problems)


def _device(message: memoryview, problems: Problems) -> DeviceNodes:
    name = ""
    threads: dict[int, str] = {}
    # Read twice, since names may come last and nodes are many; what is wrong is counted with the nodes.
    for number, value in fields(message, Problems()):
        if number == 1:
            name = text(value)
        elif number == 3 and not isinstance(value, int):
            threads.update([_thread_name(value, Problems())])
    return DeviceNodes(name, threads, _nodes(message, problems))


def _nodes(message: memoryview, problems: Problems) -> Iterator[Node]:
    for number, value in fields(message, problems):
        if number == 2 and not isinstance(value, int):
            yield _node(value, problems)


def _thread_name(message: memoryview, problems: Problems) -> tuple[int, str]:
    key, name = 0, ""
    for number, value in fields(message, problems):
        if number == 1 and isinstance(value, int):
            key = value
        elif number == 2:
            name = text(value)
    return key, name


def _node(message: memoryview, problems: Problems) -> Node:
    node = Node()
    numbers: dict[int, int] = {}
    for number, value in fields(message, problems):
        if isinstance(value, int):
            if number in _NUMBERS:
                numbers[number] = signed(value)
        elif number == 1:
            node.name = text(value)
        elif number == 7:
            _read_output(value, node, problems)
        elif number == 8:
            node.label = text(value)
        elif number == 12:
            _read_memory_stats(value, node, problems)
    _read_times(numbers, node)
    # After the times, since old versions date allocations by them.
    for number, value in fields(message, Problems()):
        if number == 6 and not isinstance(value, int):
            _read_memory(value, node, problems)
    _add_temporary(node)
    return node


def _read_times(numbers: dict[int, int], node: Node) -> None:
    """Nanoseconds where TensorFlow wrote them (2.0 and later), else microseconds."""

    def ns(nanos: int, micros: int) -> int:
        return numbers[nanos] if nanos in numbers else numbers.get(micros, 0) * 1000

    node.start_ns, node.dur_ns = ns(13, 2), ns(16, 5)
    node.thread = numbers.get(10, 0) & 0xFFFFFFFF
    node.details |= {"op_start_ns": ns(14, 3), "op_end_ns": ns(15, 4)}
    if scheduled := ns(17, 9):
        node.details["scheduled_ns"] = scheduled
    if node.thread:
        node.details["thread_id"] = node.thread


def _read_output(message: memoryview, node: Node, problems: Problems) -> None:
    """One output: a slot and the description of its tensor."""
    for number, description in fields(message, problems):
        if number != 3 or isinstance(description, int):
            continue
        dtype, shape = "", "null"
        for inner, value in fields(description, problems):
            if inner == 1 and isinstance(value, int):
                dtype = _type_name(value)
            elif inner == 2 and not isinstance(value, int):
                shape = _shape(value, problems)
        node.dtypes.append(dtype)
        node.shapes.append(shape)


def _type_name(number: int) -> str:
    plain = number - _REFERENCE if number > _REFERENCE else number
    return _TYPES[plain] if plain < len(_TYPES) else f"type {number}"


def _shape(message: memoryview, problems: Problems) -> str:
    sizes: list[str] = []
    for number, value in fields(message, problems):
        if number == 2 and not isinstance(value, int):
            size = next((v for n, v in fields(value, problems) if n == 1 and isinstance(v, int)), 0)
            sizes.append(str(signed(size)))
        elif number == 3 and value:
            return "null"
    return f"[{', '.join(sizes)}]"


def _read_memory(message: memoryview, node: Node, problems: Problems) -> None:
    """What one allocator did for the node: each allocation, or, from old versions, only the sums."""
    allocator = ""
    numbers: dict[int, int] = {}
    records: list[tuple[int, int]] = []
    for number, value in fields(message, problems):
        if number == 1:
            allocator = text(value)
        elif isinstance(value, int):
            if number <= 5:
                numbers[number] = signed(value)
        elif number == 6:
            inner = {n: signed(v) for n, v in fields(value, problems) if n in (1, 2) and isinstance(v, int)}
            records.append((inner.get(1, 0) * 1000, inner.get(2, 0)))
    total, live = numbers.get(2, 0), numbers.get(4, 0)
    if not records and total:
        records = [(node.start_ns, total), (node.start_ns + node.dur_ns, live - total)]
    node.allocations += [Allocation(allocator, time, count) for time, count in records if count]
    if numbers.get(3):
        node.details["peak_bytes"] = max(node.details.get("peak_bytes", 0), numbers[3])
    if numbers.get(5):
        node.details["allocator_bytes_in_use"] = numbers[5]


def _read_memory_stats(message: memoryview, node: Node, problems: Problems) -> None:
    names = {1: "temp_bytes", 2: "device_temp_bytes", 3: "persistent_bytes", 4: "device_persistent_bytes"}
    for number, value in fields(message, problems):
        if number in names and isinstance(value, int) and value:
            node.details[names[number]] = signed(value)


def _add_temporary(node: Node) -> None:
    """Temporary memory lives as long as the node; where allocations are listed, it is among them.

    Persistent memory is a level that every run repeats, not an allocation of this one: it stays a detail.
    """
    temporary = node.details.get("temp_bytes", 0)
    if temporary > 0 and not node.allocations:
        node.allocations.append(Allocation("", node.start_ns, temporary))
        node.allocations.append(Allocation("", node.start_ns + node.dur_ns, -temporary))
