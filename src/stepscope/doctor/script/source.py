"""A training script as a syntax tree in which every call knows its full name. Nothing of it is ever run."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from operator import add, floordiv, mul, sub
from pathlib import Path

from stepscope.errors import NothingFound, UnreadableFile
from stepscope.profiles.find.paths import Location, missing

LARGEST_SCRIPT = 20 << 20
_VERSIONS = re.compile(r"^tensorflow\.(compat\.v[12]|_api\.v2)\.")
_SHELL = re.compile(r"^\s*[%!]")
# What names stand for in a snippet whose imports were left out.
_USUAL = {"tf": "tensorflow", "torch": "torch", "jax": "jax", "keras": "keras", "stepscope": "stepscope"}
# Modules of TensorFlow under which a profiler can be had as well; the public ones are what the checks know.
_PRIVATE = (
    (
        re.compile(r"^tensorflow\.python\.profiler\.profiler_v2\.(Profile|ProfilerOptions|start|stop)$"),
        r"tensorflow.profiler.experimental.\1",
    ),
    (re.compile(r"^tensorflow\.python\.profiler\.trace\.Trace$"), "tensorflow.profiler.experimental.Trace"),
    (re.compile(r"^tensorflow\.python\.keras\."), "tensorflow.keras."),
)
_NAMES_FOLLOWED = 5
_ARITHMETIC: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: add,
    ast.Sub: sub,
    ast.Mult: mul,
    ast.FloorDiv: floordiv,
}
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Call:
    """A call, and the full name of what it calls: `tf.profiler.experimental.start` is tensorflow.profiler.experimental.start."""

    node: ast.Call
    name: str

    @property
    def line(self) -> int:
        """Its line."""
        return self.node.lineno

    @property
    def method(self) -> str:
        """The last part of the name, also where the rest is not known."""
        return last_part(self.node.func)

    def keyword(self, name: str) -> ast.expr | None:
        """The value given to a keyword."""
        return next((each.value for each in self.node.keywords if each.arg == name), None)

    def is_on(self, name: str) -> bool:
        """Whether a keyword is given as True."""
        return constant(self.keyword(name)) is True

    @property
    def has_unknown_keywords(self) -> bool:
        """Whether there is a **something among the arguments."""
        return any(each.arg is None for each in self.node.keywords)


def constant(node: ast.expr | None) -> object:
    """The value of a literal; None for everything else."""
    return node.value if isinstance(node, ast.Constant) else None


@dataclass
class Script:
    """The tree, and who is whose parent. `error` says why there is none."""

    path: str
    tree: ast.Module
    error: str = ""
    _parents: dict[ast.AST, ast.AST] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for node in ast.walk(self.tree):
            for child in ast.iter_child_nodes(node):
                self._parents[child] = node

    @cached_property
    def aliases(self) -> dict[str, str]:
        """What the names of imported things stand for; also of modules that were given a shorter name."""
        found: dict[str, str] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    found[alias.asname or alias.name.split(".")[0]] = (
                        alias.name if alias.asname else alias.name.split(".")[0]
                    )
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute):
                name = _dotted(node.value, found)
                for target in node.targets:
                    if name and isinstance(target, ast.Name):
                        found.setdefault(target.id, name)
        return {name: full for name, full in _USUAL.items() if name not in self._bound} | found

    @cached_property
    def _bound(self) -> set[str]:
        """Names that the script itself gives a meaning: variables, parameters, functions and classes."""
        found = {node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name) and not _is_read(node)}
        found |= {node.arg for node in ast.walk(self.tree) if isinstance(node, ast.arg)}
        definitions = (*Function.__args__, ast.ClassDef)
        return found | {node.name for node in ast.walk(self.tree) if isinstance(node, definitions)}

    @cached_property
    def _assigned(self) -> dict[str, list[ast.expr]]:
        """By name everything that is assigned to it."""
        found: dict[str, list[ast.expr]] = {}
        for node in ast.walk(self.tree):
            targets = node.targets if isinstance(node, ast.Assign) else []
            if isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr | ast.For):
                targets = [node.target]
            value = getattr(node, "value", None) or ast.Tuple([], ast.Load())
            for target in targets:
                for each in ast.walk(target):
                    if isinstance(each, ast.Name) and not _is_read(each):
                        found.setdefault(each.id, []).append(
                            value if each is target else ast.Tuple([], ast.Load())
                        )
        return found

    def meaning(self, node: ast.expr | None) -> ast.expr | None:
        """What a name was assigned, where that happens exactly once; any other expression is itself."""
        for _ in range(_NAMES_FOLLOWED):
            given = self._assigned.get(node.id, []) if isinstance(node, ast.Name) else []
            if len(given) != 1:
                break
            node = given[0]
        return node

    def number(self, node: ast.expr | None) -> int | None:
        """The value of a number that is written out, also as a name or a small sum or product of those."""
        node = self.meaning(node)
        value = constant(node)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        operation = _ARITHMETIC.get(type(node.op)) if isinstance(node, ast.BinOp) else None
        if operation is None or not isinstance(node, ast.BinOp):
            return None
        left, right = self.number(node.left), self.number(node.right)
        return (
            None
            if left is None or right is None or (not right and operation is floordiv)
            else operation(left, right)
        )

    def name_of(self, node: ast.expr) -> str:
        """The full name of a dotted expression; empty where its root was not imported."""
        return public_name(_VERSIONS.sub("tensorflow.", _dotted(node, self.aliases)))

    @cached_property
    def calls(self) -> list[Call]:
        """All calls, in the order of their lines."""
        found = [
            Call(node, self.name_of(node.func)) for node in ast.walk(self.tree) if isinstance(node, ast.Call)
        ]
        return sorted(found, key=lambda call: (call.line, call.node.col_offset))

    def calls_of(self, *names: str) -> list[Call]:
        """The calls of these functions."""
        return [call for call in self.calls if call.name in names]

    def parent(self, node: ast.AST) -> ast.AST | None:
        """What directly holds the node."""
        return self._parents.get(node)

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """Everything that holds the node, from the inside out."""
        current = self._parents.get(node)
        while current is not None:
            yield current
            current = self._parents.get(current)

    def functions_around(self, node: ast.AST) -> Iterator[Function]:
        """The functions that hold the node, the innermost first."""
        return (each for each in self.around(node) if isinstance(each, Function))

    @cached_property
    def functions(self) -> dict[str, Function]:
        """The functions of the script by name; of several with one name, the last."""
        return {node.name: node for node in ast.walk(self.tree) if isinstance(node, Function)}

    def uses(self, prefix: str) -> bool:
        """Whether anything below this module is named anywhere."""
        return any(f"{full}.".startswith(f"{prefix}.") for full in self.aliases.values()) or any(
            f"{call.name}.".startswith(f"{prefix}.") for call in self.calls
        )


def public_name(name: str) -> str:
    """The documented name of something that was imported from where TensorFlow keeps it."""
    for private, public in _PRIVATE:
        name = private.sub(public, name)
    return name


def _is_read(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load)


def _dotted(node: ast.expr, aliases: dict[str, str]) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in aliases:
        return ""
    return ".".join([aliases[node.id], *reversed(parts)])


def last_part(node: ast.AST) -> str:
    """prof for `prof`, `self.prof` and `trainer.prof`; empty for anything else."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def is_script(path: str) -> bool:
    """Whether a path is meant as a script and not as a profile."""
    return path.endswith((".py", ".ipynb", ".pyw")) and not Path(path).is_dir()


def read_script(path: str) -> Script:
    """The script at the path; a notebook's cells are one script."""
    try:
        if Path(path).stat().st_size > LARGEST_SCRIPT:
            raise UnreadableFile(f"{path} is too large to be a script.")
        text = Path(path).read_bytes().decode("utf-8-sig", "replace")
    except FileNotFoundError:
        error = missing(Location(path))
        raise NothingFound(error.what, fix=error.fix) from None
    except OSError as error:
        raise UnreadableFile(f"Cannot read {path}: {error.strerror or error}") from None
    return parse(_cells(text) if path.endswith(".ipynb") else text, path)


def parse(text: str, path: str = "train.py") -> Script:
    """The tree of a source text, or an empty one and why. Lines for IPython, as Colab leaves them in its .py files, are left out."""
    errors = []
    for attempt in (text, _without_shell(text)):
        try:
            return Script(path, ast.parse(attempt))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            errors.append(error)
    line = getattr(errors[0], "lineno", None)
    where = f"line {line}: " if line else ""
    return Script(path, ast.Module([], []), f"{where}{getattr(errors[0], 'msg', None) or errors[0]}")


def _without_shell(text: str) -> str:
    """Lines keep their numbers, and blocks of nothing else their bodies."""
    return "\n".join(
        line[: len(line) - len(line.lstrip())] + "pass" if _SHELL.match(line) else line
        for line in text.splitlines()
    )


def _cells(text: str) -> str:
    """The code of a notebook, without the lines that are meant for IPython."""
    try:
        cells = [cell for cell in json.loads(text)["cells"] if cell.get("cell_type") == "code"]
        lines = [
            line for cell in cells for line in "".join(cell["source"]).splitlines() if not _SHELL.match(line)
        ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UnreadableFile("Not a notebook.") from error
    return "\n".join(lines)
