"""A flame graph of both runs at once: ops below their scopes, each node with its time per step in A and in B."""

from __future__ import annotations

from stepscope.diffs.data.model import Flame, FlameNode
from stepscope.diffs.data.samples import Samples
from stepscope.registers.policy.diffs import DIFF_FLAME_DEPTH, DIFF_FLAME_NODES

NO_SCOPE = "(no scope)"
Path = tuple[str, ...]


def build_flame(a: Samples, b: Samples, measure: str) -> Flame:
    """The largest nodes in either run; an ancestor is never smaller, so no node loses its parent."""
    own = _measure_own(a, measure), _measure_own(b, measure)
    totals = _sum_below(own[0]), _sum_below(own[1])
    paths = {**totals[0], **totals[1]}
    by_size = sorted(paths, key=lambda path: (-max(each.get(path, 0.0) for each in totals), len(path), path))
    largest = sorted(by_size[:DIFF_FLAME_NODES])
    place = {path: number for number, path in enumerate(largest)}
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
        for path in largest
    ]
    return Flame(measure=measure, names=list(names), nodes=nodes, left_out=len(paths) - len(largest))


def fold_stacks(flame: Flame) -> str:
    """The format of tools for differential flame graphs: `scope;op A B`, times in ns per step."""
    paths: list[Path] = []
    lines = []
    for node in flame.nodes:
        word = flame.names[node.name].replace(";", ",").replace(" ", "_")
        paths.append((*(paths[node.parent] if node.parent >= 0 else ()), word))
        if node.a_self_ns or node.b_self_ns:
            lines.append(f"{';'.join(paths[-1])} {node.a_self_ns:.0f} {node.b_self_ns:.0f}\n")
    return "".join(lines)


def _measure_own(samples: Samples, measure: str) -> dict[Path, float]:
    """By path, the op's own time per step."""
    steps = max(1, len(samples.cells))
    times: dict[Path, float] = {}
    rows = samples.ops.select("scope", "name", f"{measure}_ns").iter_rows()
    for scope, name, ns in rows:
        if ns:
            path = (*(scope.split("/")[:DIFF_FLAME_DEPTH] if scope else [NO_SCOPE]), name or "")
            times[path] = times.get(path, 0.0) + ns / steps
    return times


def _sum_below(own: dict[Path, float]) -> dict[Path, float]:
    """By path, the time of the node and of all nodes below it."""
    times: dict[Path, float] = {}
    for path, ns in own.items():
        for depth in range(1, len(path) + 1):
            times[path[:depth]] = times.get(path[:depth], 0.0) + ns
    return times
