"""Numbers that decide are in the registers: no threshold elsewhere in analysis, ranks and diffs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from stepscope.registers.entry import ENTRIES
from stepscope.registers.page import page
from tests.shared.sources import parsed

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "stepscope"
SEARCHED = ("analysis", "ranks", "diffs")

# Not thresholds: nothing, one, a pair, the last.
STRUCTURAL = (0, 1, -1, 2)
# Per cent, thousands of ns in a µs, FLOP/s in a TFLOP/s: only as factors.
UNITS = (100, 1_000, 10**6, 10**9, 10**12, 2**30)
# Their arguments are digits, sizes of items, numbers of fields: structure, too.
STRUCTURAL_CALLS = ("round", "bytes", "get", "messages", "_repeated")
STRUCTURAL_ARGUMENTS = ("maxsize", "digest_size")
ORDER = ("turn", "turn_without_device")  # of a rule: which comes first
LONG_BITS = 60  # shifts and powers from here on are bounds of 64-bit integers
MOST_EXCEPTIONS = 46

# Numbers that are no thresholds, by file, or by file and the function or constant that holds them.
EXCEPTIONS = {
    "analysis/snapshot/growth.py:_quarter": "quarters",
    "analysis/snapshot/kinds.py:_WORKSPACES": "sizes in the source of PyTorch",
    "analysis/account/account.py:_COPY": "an enumeration",
    "analysis/account/charge.py:_RANK": "which cause wins: an order",
    "analysis/account/charge.py:_NO_PART": "a mark",
    "analysis/compute/unused_weights.py:_MATRIX": "a matrix has two sides",
    "analysis/compute/updated_blocks.py:updated_blocks": "a grid has three sides",
    "analysis/findings/rules/copies/round_trip_copy.py:_TYPE_RATIOS": "bytes of number formats",
    "analysis/findings/rules/useless/unused_rows.py": "dimensions of matrices, and of positions",
    "analysis/replay/awaited.py:_NOTHING": "a mark",
    "analysis/xla/masks.py": "dimensions, and XLA's numbers of types",
    "analysis/xla/repeats/token_work.py": "dimensions, and XLA's numbers of types",
    "analysis/collectives/calls.py:_TYPES": "bytes of number formats",
    "analysis/collectives/xla_programs.py": "numbers of protobuf fields, and XLA's numbers of types with their bytes",
    "analysis/ops/score_shapes.py:BATCHED": "a batch of matrices has three sides",
    "analysis/findings/rules/kernels/unfused_attention.py:_WIDTHS": "bytes of number formats",
    "analysis/findings/rules/kernels/weight_casts.py:_TABLE": "a matrix has two sides",
    "analysis/findings/rules/kernels/low_occupancy.py:_blocks": "a grid has three sides",
    "analysis/kernels/names/xla.py:_ALGORITHMS": "XLA's numbers of algorithms",
    "analysis/kernels/names/xla.py:_WIDTHS": "which number format is wider: an order",
    "analysis/kernels/occupancy.py": "limits of multiprocessors, from NVIDIA's tables",
    "analysis/memory.py:_note": "a whole in per cent",
    "analysis/findings/spread.py:OF_BOUNDS": "all, and nothing",
    "analysis/formulas/constants.py": "bytes of number formats, FLOPs of formulas, places of arguments",
    "analysis/xla/hlo_module.py:TUPLE": "XLA's number of a type",
    "analysis/xla/hlo_module.py:_HIGHEST": "XLA's number of a precision",
    "analysis/repeats/results.py": "places of the inputs of ops, and sides of arrays",
    "analysis/xla/hlo_module.py:_LONGEST_VARINT": "bytes of a protobuf varint",
    "analysis/xla/hlo_module.py:_MASK": "64 bits",
    "analysis/xla/hlo_module.py:_MESSAGES": "numbers of protobuf fields",
    "analysis/xla/hlo_module.py:_NUMBERS": "numbers of protobuf fields",
    "analysis/xla/hlo_module.py:_TEXTS": "numbers of protobuf fields",
    "analysis/xla/hlo_module.py:numbers": "bits of a protobuf varint",
    "analysis/xla/instruction_cost.py:FORMATS": "XLA's numbers of types",
    "analysis/xla/sizes/array_bytes.py:BITS": "bits of XLA's types",
    "analysis/xla/instruction_cost.py:_CONV_CALLS": "places of operands",
    "analysis/xla/sizes/array_bytes.py:bytes_of": "bits in a byte",
    "analysis/xla/sizes/touched_bytes.py:_written": "bits in a byte",
    "analysis/xla/memory.py:_FLAGS": "numbers of protobuf fields",
    "analysis/xla/needs.py:WHOLE": "a place that no part of a result has",
    "diffs/render/flame_svg.py": "geometry and colours of a drawing",
    "diffs/render/text.py": "columns of a table",
    "ranks/calls/matching.py": "places that no collective has",
    "ranks/calls/unnamed_groups.py:_MIX": "a multiplier of a hash",
    "ranks/clocks/offsets.py:_one_key": "multipliers of a hash",
    "ranks/stragglers/kernel_work.py:shaped": "a grid has three sides",
}


def is_number(node: ast.AST) -> bool:
    """Whether it is a number written out; True and False are none."""
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def parents_of(tree: ast.Module) -> dict[ast.AST, ast.AST]:
    """For each node the one around it."""
    return {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}


def around(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Pairs of a node and the one around it, from the inside out."""
    while node in parents:
        yield node, parents[node]
        node = parents[node]


def scope_of(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> str:
    """The function that holds it, or the constant of the module that it is part of."""
    names = [str(each.name) for _, each in around(node, parents) if isinstance(each, ast.FunctionDef)]
    if names:
        return names[-1]
    for _, each in around(node, parents):
        if isinstance(each, ast.Assign | ast.AnnAssign):
            target = each.targets[0] if isinstance(each, ast.Assign) else each.target
            first = target.elts[0] if isinstance(target, ast.Tuple) else target
            return ast.unparse(first)
    return "<module>"


def is_in_module(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether it is (part of) a constant of the module."""
    inside = (ast.FunctionDef, ast.Lambda, ast.Subscript, ast.comprehension, ast.ClassDef)
    return not any(isinstance(each, inside) for _, each in around(node, parents))


def is_structural(node: ast.Constant, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether its place or its value says that it decides nothing."""
    parent = parents[node]
    if isinstance(parent, ast.UnaryOp):
        parent = parents[parent]
    if isinstance(parent, ast.BinOp) and is_structural_operand(node, parent):
        return True
    if isinstance(parent, ast.keyword) and parent.arg in ORDER:
        return True
    if is_in_module(node, parents):
        return node.value == 0
    return node.value in STRUCTURAL or has_structural_place(node, parents)


def is_structural_operand(node: ast.Constant, operation: ast.BinOp) -> bool:
    """A unit as a factor, a bound of 64-bit integers, the exponent of a formula."""
    if isinstance(operation.op, ast.LShift | ast.Pow) and is_long(operation):
        return True
    if isinstance(operation.op, ast.Pow) and node is operation.right and not is_number(operation.left):
        return True
    factor = isinstance(operation.op, ast.Mult | ast.Div | ast.FloorDiv | ast.Mod)
    return factor and node.value in UNITS


def has_structural_place(node: ast.Constant, parents: dict[ast.AST, ast.AST]) -> bool:
    """An index, something that is compared for equality, digits of a rounding; not the bound of a slice."""
    for inner, outer in around(node, parents):
        if isinstance(outer, ast.Subscript) and inner is outer.slice and not isinstance(inner, ast.Slice):
            return True
        if isinstance(outer, ast.Compare) and (inner is node or isinstance(inner, ast.Tuple | ast.UnaryOp)):
            equal = (ast.Eq, ast.NotEq, ast.In, ast.NotIn, ast.Is, ast.IsNot)
            return all(isinstance(op, equal) for op in outer.ops)
        if isinstance(outer, ast.keyword) and outer.arg in STRUCTURAL_ARGUMENTS:
            return True
        if isinstance(outer, ast.Call) and inner is not outer.func:
            return name_of(outer) in STRUCTURAL_CALLS
        if isinstance(outer, ast.FormattedValue):
            return inner is outer.format_spec
    return False


def is_long(node: ast.BinOp) -> bool:
    """Whether it is a bound of 64-bit integers: 1 << 62, 2**64."""
    right = node.right
    return isinstance(right, ast.Constant) and isinstance(right.value, int) and right.value >= LONG_BITS


def name_of(call: ast.Call) -> str:
    """The last word of what is called."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)


def thresholds(source: str) -> Iterator[tuple[str, int, str]]:
    """Scope, line and text of every number that may decide something."""
    tree = parsed(source)
    parents = parents_of(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and is_number(node) and not is_structural(node, parents):
            yield scope_of(node, parents), node.lineno, ast.unparse(node)


@cache
def found_in_package() -> dict[str, list[tuple[str, int, str]]]:
    """By file, as seen from the package."""
    paths = sorted(path for folder in SEARCHED for path in (PACKAGE / folder).rglob("*.py"))
    found = {str(path.relative_to(PACKAGE)): list(thresholds(path.read_text("utf-8"))) for path in paths}
    return {path: rows for path, rows in found.items() if rows}


def excepted(path: str, scope: str) -> str | None:
    """The exception that covers it."""
    return next((key for key in (path, f"{path}:{scope}") if key in EXCEPTIONS), None)


def test_no_threshold_is_outside_the_registers() -> None:
    found = [
        f"{path}, line {line}: {number} in {scope}"
        for path, rows in found_in_package().items()
        for scope, line, number in rows
        if excepted(path, scope) is None
    ]
    assert found == [], "give these a name and an origin in stepscope.registers"


def test_every_exception_is_needed() -> None:
    used = {excepted(path, scope) for path, rows in found_in_package().items() for scope, _, _ in rows}
    assert sorted(set(EXCEPTIONS) - used) == []
    assert len(EXCEPTIONS) <= MOST_EXCEPTIONS


@pytest.mark.parametrize(
    "source",
    [
        "LEAST = 0.05",
        "LEAST: float = 0.05",
        "FEWEST = 2",
        "LOW, HIGH = 0.1, 0.9",
        "LIMITS = {'a': 3}",
        "BYTES = 1 << 20",
        "ROWS = 10 if DEBUG else 20",
        "def f(x):\n    return x > 0.3",
        "def f(x):\n    return 3 <= x",
        "def f(x):\n    return x > 0.5 * len(x)",
        "def f(x):\n    return x > 1e6",
        "def f(x):\n    return x > -5",
        "def f(x):\n    return x > 2**20",
        "def f(x):\n    return max(x, 50)",
        "def f(x):\n    return x.quantile(0.9)",
        "def f(x):\n    return x.clip(0.05, 1.0)",
        "def f(x):\n    return x.filter(pl.col('ns') > 10_000)",
        "def f(x):\n    return x[:5]",
        "def f(x, least=0.05):\n    return x",
        "def f(x, *, most=7):\n    return x",
        "def f(x):\n    for _ in range(7):\n        x()",
        "def f(x):\n    y = x * 1.4826\n    return y",
        "def f(x):\n    return f'{min(x, 3)}'",
        "class A:\n    least: float = 0.03",
        "x = lambda ns: ns > 500",
    ],
)
def test_a_new_threshold_is_found(source: str) -> None:
    assert list(thresholds(source))


@pytest.mark.parametrize(
    "source",
    [
        "NAME = 'x'",
        "LEAST = registers.LEAST",
        "NONE = 0",
        "FAR = 1 << 62",
        "KEYS = (('name', lambda key: key[:2]),)",
        "def f(x):\n    return x > 0 and len(x) >= 2 and x[-1]",
        "def f(x):\n    return x > LEAST * step",
        "def f(x):\n    return 100 * x / 1e9",
        "def f(x):\n    return x[3] + x[-2]",
        "def f(x):\n    return key == 7 or key in (3, 4)",
        "def f(x):\n    return round(x, 6)",
        "def f(x):\n    return sum(y**4 for y in x)",
        "def f(x):\n    return f'{x:.3f} {100 * x:.0f} %'",
        "def f(x):\n    return x < 2**62",
        "class A:\n    count: int = 0",
        "@lru_cache(maxsize=4096)\ndef f(x):\n    return x",
    ],
)
def test_structure_is_no_threshold(source: str) -> None:
    assert list(thresholds(source)) == []


def test_a_number_is_named_by_where_it_is() -> None:
    source = "LEAST = 0.05\n\n\nclass A:\n    def f(self, x):\n        return x > 7\n"
    assert sorted(thresholds(source)) == [("LEAST", 1, "0.05"), ("f", 6, "7")]


def imported_names() -> set[str]:
    """What modules of the package import from the registers."""
    paths = [path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts[0] != "registers"]
    sources = [source for path in paths if "stepscope.registers" in (source := path.read_text("utf-8"))]
    nodes = [node for source in sources for node in ast.walk(parsed(source))]
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    return {
        alias.name
        for node in imports
        if (node.module or "").startswith("stepscope.registers")
        for alias in node.names
    }


def test_every_number_of_the_registers_is_used() -> None:
    page()  # imports all registers
    assert sorted(set(ENTRIES) - imported_names()) == []
