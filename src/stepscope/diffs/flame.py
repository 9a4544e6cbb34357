"""A flame graph of both runs at once: ops below their scopes, each node with its time per step in A and in B."""

from __future__ import annotations

from stepscope.diffs.data.model import Flame, FlameNode
from stepscope.diffs.data.samples import Samples

MOST_NODES = 2_000
NO_SCOPE = "(no scope)"
_DEEPEST = 100
Path = tuple[str, ...]


def flame(a: Samples, b: Samples, measure: str) -> Flame:
    """The largest nodes in either run; an ancestor is never smaller, so no node loses its parent."""
    own = _own(a, measure), _own(b, measure)
    totals = _totals(own[0]), _totals(own[1])
    paths = {**totals[0], **totals[1]}
    by_size = sorted(paths, key=lambda path: (-max(each.get(path, 0.0) for each in totals), len(path), path))
    kept = sorted(path for path in by_size[:MOST_NODES])
    place = {path: number for number, path in enumerate(kept)}
    names: dict[str, int] = {}
    nodes = [
        FlameNode(
            parent=place.get(path[:-1], -1),
            name=names.setdefault(path[-1], len(names)),
            a_self_ns=round(own[0].get(path, 0.0), 1),
            b_self_ns=round(own[1].get(path, 0.0), 1),
            a_total_ns=round(totals[0].get(path, 0.0), 1),
            b_total_ns=round(totals[1].get(path, 0.0), 1),
        )
        for path in kept
    ]
    return Flame(measure=measure, names=list(names), nodes=nodes, left_out=len(paths) - len(kept))


def folded(found: Flame) -> str:
    """As the tools for differential flame graphs take it: `scope;op A B`, times in ns per step."""
    paths: list[Path] = []
    lines = []
    for node in found.nodes:
        word = found.names[node.name].replace(";", ",").replace(" ", "_")
        paths.append((*(paths[node.parent] if node.parent >= 0 else ()), word))
        if node.a_self_ns or node.b_self_ns:
            lines.append(f"{';'.join(paths[-1])} {node.a_self_ns:.0f} {node.b_self_ns:.0f}\n")
    return "".join(lines)


def _own(samples: Samples, measure: str) -> dict[Path, float]:
    """By path, the time per step."""
    steps = max(1, len(samples.cells))
    found: dict[Path, float] = {}
    rows = samples.ops.select("scope", "name", f"{measure}_ns").iter_rows()
    for scope, name, ns in rows:
        if ns:
            path = (*(scope.split("/")[:_DEEPEST] if scope else [NO_SCOPE]), name or "")
            found[path] = found.get(path, 0.0) + ns / steps
    return found


def _totals(own: dict[Path, float]) -> dict[Path, float]:
    found: dict[Path, float] = {}
    for path, ns in own.items():
        for depth in range(1, len(path) + 1):
            found[path[:depth]] = found.get(path[:depth], 0.0) + ns
    return found
