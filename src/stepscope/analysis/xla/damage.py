"""Compiled programs in the profile that cannot be read as a whole: what their code would tell of the work is missing.

Only where messages begin and end is looked at, and the name of each instruction: enough to see damage, and a small part
of what the analyses read anyway.
"""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.analysis.xla.hlo_module import messages, name_of
from stepscope.formats.protobuf import fields
from stepscope.registers.policy.tables import XLA_DAMAGE_BYTES, XLA_DAMAGED_NAMES
from stepscope.trace.problems import Problem, Problems, problem
from stepscope.trace.trace import Trace


def program_problems(trace: Trace) -> Iterator[Problem]:
    """One problem for all programs that are damaged."""
    left, damaged, names = XLA_DAMAGE_BYTES, 0, []
    for name, hlo in trace.modules.drop_nulls("hlo").select("name", "hlo").iter_rows():
        left -= len(hlo)
        if left < 0:
            break
        if _is_damaged(hlo):
            damaged += 1
            names.append(name or "one without a name")
    if damaged:
        more = " …" if damaged > XLA_DAMAGED_NAMES else ""
        yield problem(
            "damaged-program",
            f"{{count}} compiled programs: {', '.join(names[:XLA_DAMAGED_NAMES])}{more}.",
            count=damaged,
        )


def _is_damaged(hlo: bytes) -> bool:
    seen = Problems()
    whole = [value for _, value in fields(memoryview(hlo), seen) if not isinstance(value, int)]
    if not whole or len(seen):
        return True
    return any(_is_bad_computation(body, seen) for body in messages(whole[0], 3, seen)) or len(seen) > 0


def _is_bad_computation(message: memoryview, seen: Problems) -> bool:
    return any(not name_of(instruction) for instruction in messages(message, 2, seen))
