"""A figure: an SVG drawing that stands alone in a notebook or a file, and takes its colours from the page in a report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stepscope.profiles.cache.atomic_files import whole_file
from stepscope.reports.figures.markup import Markup, tag
from stepscope.reports.figures.style import figure_style

WIDTH = 960


@dataclass(frozen=True)
class Figure:
    """`body`: what is inside the SVG element. `legend`: pairs of a CSS class and its meaning."""

    name: str
    title: str
    height: int
    body: Markup
    legend: tuple[tuple[str, str], ...] = ()
    note: str = ""

    def svg(self, *, alone: bool = False) -> Markup:
        """The drawing; `alone` gives it the style that a page would."""
        size = {"width": str(WIDTH), "height": str(self.height)} if alone else {}
        return tag(
            "svg",
            tag("style", Markup(figure_style())) if alone else None,
            self.body,
            class_="figure alone" if alone else "figure",
            view_box=f"0 0 {WIDTH} {self.height}",
            role="img",
            aria_label=self.title,
            xmlns="http://www.w3.org/2000/svg",
            **size,
        )

    def html(self) -> Markup:
        """The drawing with its title and legend."""
        keys = [
            tag("li", tag("i", class_=f"key {name}"), meaning, data_key=name) for name, meaning in self.legend
        ]
        caption = tag("figcaption", self.title, tag("small", self.note) if self.note else None)
        return tag("figure", caption, self.svg(), tag("ul", keys, class_="legend") if keys else None)

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the drawing as an SVG file."""
        with whole_file(Path(path), force) as file:
            file.write(self.svg(alone=True).encode())

    def _repr_html_(self) -> str:
        return tag("div", tag("style", Markup(figure_style())), self.html(), class_="stepscope piece")

    def _repr_svg_(self) -> str:
        return self.svg(alone=True)
