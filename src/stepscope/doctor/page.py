"""The page docs/troubleshooting.md, made from the doctor's own texts: python -m stepscope.doctor.page docs/troubleshooting.md"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from stepscope.doctor.check import GROUPS, Check, Group
from stepscope.doctor.diagnose import all_checks
from stepscope.markdown import write_page

_INTRODUCTION = """# Troubleshooting

All checks of `stepscope doctor`, in its own words. To run them:

```
stepscope doctor               # this machine: frameworks, CUPTI, driver, TensorBoard and its plugins
stepscope doctor train.py      # a training script, which is parsed and never run
stepscope doctor logs/run1     # a profile, or a folder that should hold one
```

An `error` or a `warning` makes the exit code 3; `info` is a note. This page is generated: `python -m stepscope.doctor.page docs/troubleshooting.md`.
"""
_HEADINGS: dict[Group, str] = {
    "environment": "## The environment\n\nChecked without a path. `--python PATH` examines another interpreter, `--logdir DIR` another output folder.",
    "script": "## A training script\n\nOnly the syntax of this file is examined, not what it imports; in doubt, nothing is reported.",
    "profile": "## A profile or a folder\n\nThe codes are those of the report's [problems](problems.md), which describes what happens to the events.",
}


def page() -> str:
    """The whole page."""
    checks = all_checks()
    parts = [_INTRODUCTION]
    for group in GROUPS:
        parts.append(_HEADINGS[group] + "\n")
        parts += _entries([check for check in checks if check.group == group])
    return "\n".join(parts)


def _entries(checks: Sequence[Check[Any]]) -> Iterator[str]:
    for check in checks:
        usual, *others = check.entry.examples()
        fixes = dict.fromkeys([usual.fix, *(each.fix for each in others)])
        shown = "".join(f"→ {_escaped(fix)}\n\n" for fix in fixes).rstrip("\n")
        yield f"### {usual.title}\n\n`{check.code}`, {usual.severity}. {_escaped(usual.cause)}\n\n{shown}\n"


def _escaped(text: str) -> str:
    """Angle brackets are not markup here."""
    return text.replace("<", "&lt;").replace("\n", " ")


if __name__ == "__main__":
    write_page(page(), sys.argv[1:])
