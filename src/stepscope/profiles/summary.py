"""A profile in a few lines, for prompts and notebooks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import polars as pl

from stepscope.lazy import dataclass
from stepscope.profiles.ranks import spans
from stepscope.trace.trace import Trace
from stepscope.units import count

PROBLEMS_SHOWN = 5


@dataclass(frozen=True)
class Summary:
    """What a profile shows of itself."""

    name: str
    traces: Sequence[Trace]
    ranks: Sequence[int]
    problems: pl.DataFrame
    other_runs: int

    def framework(self) -> str:
        """The frameworks and formats, as a rule one of each."""
        infos = [trace.info for trace in self.traces]
        frameworks = sorted({info.framework or "unknown framework" for info in infos})
        return f"{', '.join(frameworks)} ({', '.join(sorted({info.format for info in infos}))})"

    def devices(self) -> str:
        """How many of which. All ranks of a machine list all of its devices."""
        distinct = {
            (info.host, device.get("id"), str(device.get("name") or device.get("kind") or "unknown"))
            for info in (trace.info for trace in self.traces)
            for device in info.devices
        }
        named = Counter(sorted(name for _, _, name in distinct))
        return (
            ", ".join(f"{times} × {name}" if times > 1 else name for name, times in named.items())
            or "none recorded"
        )

    def steps(self) -> int:
        """Steps with a marker on any rank, each once."""
        found: set[int] = set()
        for trace in self.traces:
            marked = trace.events.filter(pl.col("role") == "step")["step"]
            found.update(marked.drop_nulls().unique())
        return len(found)

    def events(self) -> int:
        """Events of all ranks."""
        return sum(len(trace.events) for trace in self.traces)


def as_text(summary: Summary) -> str:
    """One line."""
    ranks = f"rank {summary.ranks[0]}" if len(summary.ranks) == 1 else f"{len(summary.ranks)} ranks"
    parts = [
        summary.framework(),
        ranks,
        f"{count(summary.events())} events",
        "1 problem" if len(summary.problems) == 1 else f"{len(summary.problems)} problems",
    ]
    return f"<Profile {summary.name}: {', '.join(parts)}>"


def as_html(summary: Summary) -> str:
    """A small table. Everything in it comes from files, so everything is escaped."""
    from html import escape

    rows = [
        ("framework", summary.framework()),
        ("devices", summary.devices()),
        ("ranks", spans(summary.ranks)),
        ("steps", count(summary.steps())),
        ("events", count(summary.events())),
    ]
    if summary.other_runs:
        rows.append(("other runs here", count(summary.other_runs)))
    rows += [(f"{row['severity']}: {row['title']}", row["detail"]) for row in _shown(summary.problems)]
    if len(summary.problems) > PROBLEMS_SHOWN:
        rows.append(("more problems", count(len(summary.problems) - PROBLEMS_SHOWN)))
    cells = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in rows)
    return f'<table class="stepscope-profile"><caption>{escape(summary.name)}</caption>{cells}</table>'


def _shown(problems: pl.DataFrame) -> list[dict[str, str]]:
    return problems.sort("severity").head(PROBLEMS_SHOWN).rows(named=True)
