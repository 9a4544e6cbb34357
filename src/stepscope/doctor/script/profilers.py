"""The profilers that a script makes: under which names it holds them, and what it does with those.

A profiler that is handed to unknown code has `escaped`: nothing is said about what is not done with it here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from stepscope.doctor.script.source import Call, Function, Script, constant, last_part

TORCH = ("torch.profiler.profile", "torch.profiler.profiler.profile", "torch.autograd.profiler.profile")
LEGACY = "torch.autograd.profiler.profile"
OURS = ("stepscope.Profiler", "stepscope.profile", "stepscope.capture.Profiler", "stepscope.capture.profile")
MAKERS = (*TORCH, *OURS)
_WRAPPERS = ("enter_context", "enter_async_context")
_TRANSPARENT = (ast.IfExp, ast.BoolOp, ast.NamedExpr)


@dataclass
class Held:
    """One profiler: the call that makes it, its names, what is asked of it, and whether it is entered by `with`."""

    made: Call
    names: set[str] = field(default_factory=set)
    asked: set[str] = field(default_factory=set)
    is_entered: bool = False
    body: list[ast.stmt] = field(default_factory=list)
    escaped: bool = False

    @property
    def is_torch(self) -> bool:
        return self.made.name in TORCH

    @property
    def line(self) -> int:
        return self.made.line

    @property
    def has_schedule(self) -> bool:
        """Whether steps decide when it records."""
        node = self.made.keyword("schedule")
        return node is not None and not (isinstance(node, ast.Constant) and constant(node) is None)

    @property
    def handler(self) -> ast.expr | None:
        """What is called with every finished trace."""
        node = self.made.keyword("on_trace_ready")
        return None if isinstance(node, ast.Constant) else node

    def does(self, *methods: str) -> bool:
        """Whether one of these is asked of it, or unknown code may do so."""
        return self.escaped or not self.asked.isdisjoint(methods)


def held_profilers(script: Script) -> list[Held]:
    """All of them, in the order of their lines."""
    found = [_held(script, call) for call in script.calls if call.name in MAKERS]
    for each in found:
        _follow(script, each)
    return found


def _held(script: Script, call: Call) -> Held:
    """How the new profiler is taken: by `with`, under a name, or by someone unknown."""
    held = Held(call)
    parent = script.parent(call.node)
    while isinstance(parent, _TRANSPARENT) or _is_wrapper(parent):
        held.is_entered = held.is_entered or _is_wrapper(parent)
        if isinstance(parent, ast.NamedExpr):
            held.names.add(last_part(parent.target))
        parent = script.parent(parent) if parent is not None else None
    if isinstance(parent, ast.withitem):
        _enter(script, held, parent)
    elif isinstance(parent, ast.Assign | ast.AnnAssign):
        targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
        held.names |= {last_part(target) for target in targets} - {""}
        held.escaped = not held.names
    elif isinstance(parent, Function):
        held.is_entered = True  # a decorator
    elif isinstance(parent, ast.Attribute):
        held.asked.add(parent.attr)
    elif not isinstance(parent, ast.Expr):
        held.escaped = not held.is_entered
    return held


def _is_wrapper(node: ast.AST | None) -> bool:
    """stack.enter_context(…) enters what it is given, and returns it."""
    return isinstance(node, ast.Call) and last_part(node.func) in _WRAPPERS


def _enter(script: Script, held: Held, item: ast.withitem) -> None:
    held.is_entered = True
    block = script.parent(item)
    if isinstance(block, ast.With | ast.AsyncWith):
        held.body = block.body
    if item.optional_vars is not None:
        held.names.add(last_part(item.optional_vars))


def _follow(script: Script, held: Held) -> None:
    """Find everything that is done under the profiler's names. A name that it is given on the way counts as well."""
    done: set[str] = set()
    while held.names - done:
        name = min(held.names - done)
        done.add(name)
        for node in _mentions(script, name):
            _use(script, held, node)


def _mentions(script: Script, name: str) -> Iterator[ast.AST]:
    return (
        node
        for node in ast.walk(script.tree)
        if last_part(node) == name and isinstance(getattr(node, "ctx", None), ast.Load)
    )


def _use(script: Script, held: Held, node: ast.AST) -> None:
    parent = script.parent(node)
    while isinstance(parent, _TRANSPARENT):
        node, parent = parent, script.parent(parent)
    if isinstance(parent, ast.Attribute):
        held.asked.add(parent.attr)
    elif isinstance(parent, ast.withitem) and parent.context_expr is node:
        _enter(script, held, parent)
    elif isinstance(parent, ast.Call):
        if _is_wrapper(parent):
            held.is_entered = True
        elif node is not parent.func:
            _hand_over(script, held, parent, node)
    elif isinstance(
        parent, ast.Compare | ast.If | ast.While | ast.UnaryOp | ast.Expr | ast.BoolOp | ast.IfExp
    ):
        return
    else:
        held.escaped = True


def _hand_over(script: Script, held: Held, call: ast.Call, node: ast.AST) -> None:
    """To a function of this script the profiler goes under the name of its parameter; other functions are unknown."""
    function = script.functions.get(last_part(call.func))
    place = next((number for number, given in enumerate(call.args) if given is node), None)
    if function is None:
        held.escaped = held.escaped or last_part(call.func) not in (
            "print",
            "isinstance",
            "bool",
            "type",
            "id",
            "str",
        )
        if last_part(call.func) in ("print", "str"):
            held.asked.add("table")
        return
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    names = names[1:] if names[:1] == ["self"] else names
    by_keyword = next((each.arg for each in call.keywords if each.value is node), None)
    taken = by_keyword or (names[place] if place is not None and place < len(names) else None)
    if taken is None:
        held.escaped = True
    else:
        held.names.add(taken)
