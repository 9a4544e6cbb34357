"""The differential flame graph as a drawing: the width is the longer of both times, red is more in B, blue is less."""

from __future__ import annotations

from stepscope import units
from stepscope.diffs.data.model import Flame, FlameNode
from stepscope.reports.figures.markup import Markup, lines, tag

WIDTH, ROW = 1160, 18
DEEPEST = 40
NARROWEST = 0.6
_CHARACTER = 6.2


def flame_svg(flame: Flame) -> Markup | None:
    """None where there is nothing to draw."""
    children: dict[int, list[int]] = {}
    for number, node in enumerate(flame.nodes):
        children.setdefault(node.parent, []).append(number)
    whole = sum(_measure_width(flame, children, number) for number in children.get(-1, ()))
    if not whole:
        return None
    boxes: list[Markup] = []
    depth = _draw_nodes(flame, children, children.get(-1, []), 0.0, 0, WIDTH / whole, boxes)
    return tag("svg", boxes, class_="flame", view_box=f"0 0 {WIDTH} {(depth + 1) * ROW}", role="img")


def _measure_width(flame: Flame, children: dict[int, list[int]], number: int) -> float:
    """The width of a node: its own longer time, and that of the nodes below it."""
    node = flame.nodes[number]
    own = max(node.a_self_ns, node.b_self_ns)
    return own + sum(_measure_width(flame, children, child) for child in children.get(number, ()))


def _draw_nodes(
    flame: Flame,
    children: dict[int, list[int]],
    numbers: list[int],
    left: float,
    depth: int,
    scale: float,
    boxes: list[Markup],
) -> int:
    """Draws nodes and those below them; returns the deepest row."""
    deepest = depth
    if depth >= DEEPEST:
        return depth
    for number in sorted(numbers, key=lambda each: -_measure_width(flame, children, each)):
        width = _measure_width(flame, children, number) * scale
        if width < NARROWEST:
            continue
        boxes.append(_draw_box(flame, flame.nodes[number], left, depth, width))
        below = children.get(number, [])
        deepest = max(
            deepest, _draw_nodes(flame, children, below, left, depth + 1, scale, boxes) if below else depth
        )
        left += width
    return deepest


def _draw_box(flame: Flame, node: FlameNode, left: float, depth: int, width: float) -> Markup:
    name = flame.names[node.name]
    tip = lines(name, f"A {units.duration(node.a_total_ns)}, B {units.duration(node.b_total_ns)} per step")
    room = int((width - 4) / _CHARACTER)
    label = name if len(name) <= room else name[: room - 1] + "…" if room > 3 else ""
    shape = tag(
        "rect",
        x=left,
        y=float(depth * ROW),
        width=max(width - 0.5, 0.5),
        height=float(ROW - 1),
        fill=_choose_colour(node),
    )
    words = tag("text", label, x=left + 3, y=float(depth * ROW + 13)) if label else None
    return tag("g", tag("title", tip), shape, words, data_tip=tip)


def _choose_colour(node: FlameNode) -> str:
    """From blue over grey to red, by the relative change."""
    larger = max(node.a_total_ns, node.b_total_ns)
    change = (node.b_total_ns - node.a_total_ns) / larger if larger else 0.0
    strength = min(1.0, abs(change) * 2)
    base, end = (226, 229, 234), (240, 110, 90) if change > 0 else (95, 150, 240)
    mixed = (round(low + (high - low) * strength) for low, high in zip(base, end, strict=True))
    return "#" + "".join(f"{value:02x}" for value in mixed)
