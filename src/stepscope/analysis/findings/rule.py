"""A rule: one finding with its texts, and the function that finds it. Everything else about a finding derives from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Generic, TypeVar

from stepscope.analysis.findings.finding import Finding
from stepscope.lazy import dataclass

ANY = "any"  # framework
# Codes of the rules over ranks (reports/ranks), which a plug-in may not take.
RESERVED = (
    "straggler",
    "stage-imbalance",
    "slow-link",
    "expert-imbalance",
    "rank-jitter",
    "pipeline-bubble",
)
Subject = TypeVar("Subject")
Found = Finding | list[Finding] | None


@dataclass(frozen=True)
class Rule(Generic[Subject]):
    """`find` looks at its subject: a `Case` (one rank), or what is known of all ranks.

    `turn` orders the rules: each owns what is left by those before it, so the special come before the general.
    `turn_without_device`: another turn where only the host computes, and rules about the host own what the device does elsewhere.
    `certainty`: how often such a finding is the cause of the time that it owns; findings sort by saving times certainty.
    `needs_device`: it looks at what a device does, and is not asked where only the host computes.
    `fix` is by framework and needs the key `any`; `fix_without_device` overrides it where only the host computes.
    """

    code: str
    title: str
    turn: int
    owns: str  # in Markdown, for docs/report/findings.md, as the next one
    change: str
    fix: Mapping[str, str]
    find: Callable[[Subject], Found]
    class_: str = "time"
    page: str = "trace"
    certainty: float = 1.0
    title_without_device: str = ""
    fix_without_device: Mapping[str, str] = field(default_factory=dict)
    turn_without_device: int | None = None
    needs_device: bool = False

    def findings(self, subject: Subject) -> list[Finding]:
        """What it finds, as a list."""
        found = self.find(subject)
        if found is None:
            return []
        return found if isinstance(found, list) else [found]

    def turn_for(self, has_device: bool) -> int:
        """When it is asked, on a device or on the host alone."""
        return self.turn if has_device or self.turn_without_device is None else self.turn_without_device

    def fix_for(self, framework: str | None, has_device: bool = True) -> str:
        """What to change in this framework, on a device or on the host alone."""
        texts = {**self.fix, **({} if has_device else self.fix_without_device)}
        return texts.get(framework or ANY) or texts[ANY]

    def title_for(self, has_device: bool) -> str:
        """What is wrong, on a device or on the host alone."""
        return self.title if has_device else self.title_without_device or self.title

    def finding(self, detail: str, fix: str, title: str = "", **figures: Any) -> Finding:
        """A finding of this rule."""
        return Finding(
            code=self.code,
            class_=self.class_,
            title=title or self.title,
            detail=detail,
            fix=fix,
            page=self.page,
            certainty=self.certainty,
            **figures,
        )
