"""The shape of the project: imports point downwards, files stay small, and nothing names the machine it was written on."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from stepscope import native
from tests.shared.sources import parsed

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "stepscope"

# Lowest first: a module imports from its own package and from those before it.
LAYERS = (
    "lazy",
    "errors",
    "units",
    "safe",
    "plugins",
    "markdown",
    "registers",
    "names",
    "problems",
    "ring_layout",
    "native",
    "trace",
    "formats",
    "profiles",
    "statistics",
    "analysis",
    "ranks",
    "reports",
    "diffs",
    "gate",
    "doctor",
    "calibrate",
    "cluster",
    "server",
    "web",
    "tensorboard",
    "notebook",
    "assistant",
    "trial",
    "cli",
    "testing",
)
# Lives inside other people's training jobs: the bottom layer, itself, and nothing that must be installed.
CAPTURE = "capture"
CAPTURE_MAY_IMPORT = ("errors", "units", "safe", "problems", "ring_layout", CAPTURE)
USERS_OF_CAPTURE = ("doctor", "server", "notebook", "trial", "cli")
TOP = ("__init__", "__main__")
LONGEST_FILE = 500
MOST_FILES = 25  # in a folder: beyond that it wants sub-folders

SOURCES = sorted(PACKAGE.rglob("*.py"))
ALL_PYTHON = [
    path
    for folder in ("src", "tests", "benchmarks", "docs")
    for path in sorted((ROOT / folder).rglob("*.py"))
]
TEXTS = [
    *ALL_PYTHON,
    *sorted(path for path in (ROOT / "docs").rglob("*.md")),
    *sorted(ROOT.glob("*.md")),
    *(ROOT / name for name in ("Makefile", "pyproject.toml", "setup.py")),
]
FORBIDDEN = ("/".join(("..", "shared")), "/".join(("", "work", "")), "/".join(("", "opt", "w", "")))


def short(path: Path) -> str:
    """The path as seen from the root of the project."""
    return str(path.relative_to(ROOT))


def module_of(path: Path) -> list[str]:
    """The names that lead to the module, stepscope first; a package's __init__ counts as a name, so that '.' works."""
    return ["stepscope", *path.relative_to(PACKAGE).with_suffix("").parts]


@cache
def import_statements(source: str) -> list[ast.Import | ast.ImportFrom]:
    """At its top or inside a function."""
    return [node for node in ast.walk(parsed(source)) if isinstance(node, ast.Import | ast.ImportFrom)]


def imports(source: str, module: list[str]) -> Iterator[tuple[int, str]]:
    """The line and the full name of everything that the module imports."""
    for node in import_statements(source):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        else:
            base = module[: -node.level] if node.level else []
            start = ".".join([*base, *([node.module] if node.module else [])])
            # `from stepscope import trace` names a package only in its last word.
            names = [f"{start}.{alias.name}" for alias in node.names] if start == "stepscope" else [start]
            yield from ((node.lineno, name) for name in names)


def layer_of(name: str) -> str | None:
    """The first name below stepscope, or None for a module that is not ours or for stepscope itself."""
    parts = name.split(".")
    return parts[1] if parts[0] == "stepscope" and len(parts) > 1 else None


def below(home: str) -> tuple[str, ...]:
    """The layers that a module of this one may use."""
    if home == CAPTURE:
        return CAPTURE_MAY_IMPORT
    lower = LAYERS[: LAYERS.index(home) + 1]
    return (*lower, CAPTURE) if home in USERS_OF_CAPTURE else lower


def wrong_imports(source: str, module: list[str]) -> list[str]:
    """What the module imports from above, in words."""
    home = module[1]
    if home in TOP:
        return []
    return [
        f"line {line}: {home} must not import {name}, only from {', '.join(below(home))}"
        for line, name in imports(source, module)
        if layer_of(name) in (*LAYERS, CAPTURE) and layer_of(name) not in below(home)
    ]


def test_imports_point_downwards() -> None:
    found = {short(path): wrong_imports(path.read_text("utf-8"), module_of(path)) for path in SOURCES}
    assert [f"{path}, {fault}" for path, faults in found.items() for fault in faults] == []


def modules() -> dict[tuple[str, ...], Path]:
    """Every module and package by the names that lead to it."""
    names = {path: tuple(module_of(path)) for path in SOURCES}
    return {name[:-1] if name[-1] == "__init__" else name: path for path, name in names.items()}


def circles(uses: dict[str, set[str]]) -> list[list[str]]:
    """Groups of names that reach each other."""

    def reached(start: str) -> set[str]:
        found: set[str] = set()
        todo = [start]
        while todo:
            new = uses.get(todo.pop(), set()) - found
            found |= new
            todo += new
        return found

    reach = {name: reached(name) for name in uses}
    groups = {
        tuple(sorted(other for other in reach[name] if name in reach.get(other, set())))
        for name in uses
        if name in reach[name]
    }
    return [list(group) for group in sorted(groups)]


def uses_inside(package: tuple[str, ...]) -> dict[str, set[str]]:
    """Which modules and sub-packages of the package import which others of it."""
    known, depth = modules(), len(package)
    uses: dict[str, set[str]] = {}
    for name, path in known.items():
        if name[:depth] != package or len(name) == depth:
            continue
        home = uses.setdefault(name[depth], set())
        for target in targets(path, known):
            if target[:depth] == package and len(target) > depth and target[depth] != name[depth]:
                home.add(target[depth])
    return uses


def targets(path: Path, known: dict[tuple[str, ...], Path]) -> set[tuple[str, ...]]:
    """The modules that a file imports; `from package import module` names the module."""
    found = set()
    for node in import_statements(path.read_text("utf-8")):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            start = tuple(node.module.split("."))
            found |= {
                (*start, alias.name) if (*start, alias.name) in known else start for alias in node.names
            }
        elif isinstance(node, ast.Import):
            found |= {tuple(alias.name.split(".")) for alias in node.names}
    return found


def test_sub_packages_form_no_circles() -> None:
    packages = {name for name in modules() if (PACKAGE.joinpath(*name[1:]) / "__init__.py").exists()}
    found = {".".join(name): circles(uses_inside(name)) for name in sorted(packages) if len(name) > 1}
    assert {name: rings for name, rings in found.items() if rings} == {}


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [["b", "c"]]
    assert circles({"a": {"b"}, "b": {"c"}, "c": set()}) == []


def test_folders_stay_small() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "src", "tests", "benchmarks"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    folders = Counter(str(Path(line).parent) for line in listed.stdout.splitlines() if "fixtures" not in line)
    assert {folder: count for folder, count in folders.items() if count > MOST_FILES} == {}


def test_every_module_has_a_layer() -> None:
    homes = {module_of(path)[1] for path in SOURCES}
    assert sorted(homes - {*LAYERS, CAPTURE, *TOP}) == [], "say in LAYERS where these belong"


@pytest.mark.parametrize(
    ("module", "source", "wrong"),
    [
        ("trace.schema", "import stepscope.profiles.load", True),
        ("trace.schema", "from stepscope.formats import read", True),
        ("trace.schema", "from stepscope import formats", True),
        ("trace.schema", "from ..formats import read", True),
        ("trace.schema", "def f():\n    from stepscope.cli import main", True),
        ("trace.schema", "from stepscope.native import intervals", False),
        ("trace.schema", "from . import columns", False),
        ("capture.writer", "from stepscope.trace import schema", True),
        ("capture.writer", "from stepscope.errors import StepscopeError", False),
        ("analysis.steps", "from stepscope.capture import writer", True),
    ],
)
def test_the_direction_is_really_checked(module: str, source: str, wrong: bool) -> None:
    assert bool(wrong_imports(source, ["stepscope", *module.split(".")])) is wrong


def test_every_hot_loop_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """What setup.py compiles is what `info` and `doctor` look at when they say that something runs interpreted."""
    sources = sorted((PACKAGE / "native").rglob("*.py"))
    hot = [path for path in sources if "cython.compiled" in path.read_text("utf-8")]
    compiled = [".".join(module_of(path)[2:]) for path in hot]
    for name in compiled:
        monkeypatch.setattr(import_module(f"stepscope.native.{name}"), "COMPILED", False)
    assert sorted(native.interpreted()) == sorted(compiled)


def test_capture_needs_nothing_installed() -> None:
    outside = []
    for path in (path for path in SOURCES if module_of(path)[1] == CAPTURE):
        body = parsed(path.read_text("utf-8")).body
        source = "\n".join(
            ast.unparse(node) for node in body if isinstance(node, ast.Import | ast.ImportFrom)
        )
        names = {name.split(".")[0] for _, name in imports(source, module_of(path))}
        outside += [f"{short(path)}: {name}" for name in names - {"stepscope", *sys.stdlib_module_names}]
    assert outside == []


def test_the_server_knows_neither_tensorboard_nor_notebooks() -> None:
    homes = {"server": ("tensorboard", "IPython"), "tensorboard": ("IPython",), "notebook": ("tensorboard",)}
    found = [
        f"{short(path)}: {name}"
        for path in SOURCES
        for _, name in imports(path.read_text("utf-8"), module_of(path))
        if name.split(".")[0] in homes.get(module_of(path)[1], ())
    ]
    assert found == []


def test_what_tensorboard_imports_at_its_start_imports_nothing_of_ours() -> None:
    """An import that fails there would keep TensorBoard from starting."""
    path = PACKAGE / "tensorboard" / "loader.py"
    body = [
        node for node in parsed(path.read_text("utf-8")).body if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    names = {name.split(".")[0] for _, name in imports("\n".join(map(ast.unparse, body)), module_of(path))}
    assert names - set(sys.stdlib_module_names) == {"tensorboard"}


def test_importing_stepscope_imports_nothing_that_must_be_installed() -> None:
    script = "import sys; before = set(sys.modules); import stepscope; print(*set(sys.modules) - before)"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    names = {name.split(".")[0] for name in ended.stdout.split()}
    assert names - {"stepscope", *sys.stdlib_module_names} == set()


def test_files_stay_small() -> None:
    lengths = {short(path): len(path.read_text("utf-8").splitlines()) for path in ALL_PYTHON}
    assert {path: length for path, length in lengths.items() if length > LONGEST_FILE} == {}


def test_no_file_names_the_machine_it_was_written_on() -> None:
    found = [(short(path), word) for path in TEXTS for word in FORBIDDEN if word in path.read_text("utf-8")]
    assert found == []


def test_every_module_says_what_it_is_for() -> None:
    trees = {short(path): parsed(path.read_text("utf-8")) for path in SOURCES}
    assert [path for path, tree in trees.items() if tree.body and not ast.get_docstring(tree)] == []
