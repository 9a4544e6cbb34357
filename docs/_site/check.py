"""Checks the built site: python docs/_site/check.py site. Nothing is loaded from elsewhere, links lead somewhere, all pages are reached."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

# What a browser loads by itself; a link that a reader follows may lead elsewhere.
_LOADS = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "video": "src"}
_FAILED = 1


class Page(HTMLParser):
    """Links, loaded files and names of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what the tag names."""
        values = {name: value for name, value in attrs if value}
        self.names |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in _LOADS and _LOADS[tag] in values and values.get("rel") != "canonical":
            self.loaded.append(values[_LOADS[tag]])


def check(site: Path) -> list[str]:
    """Everything that is wrong with the site."""
    pages = {path.resolve(): Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}
    reached: set[Path] = set()
    return [
        *(
            f"{path.name} loads {each}"
            for path, page in pages.items()
            for each in page.loaded
            if _is_remote(each)
        ),
        *(f"{path.name} links to {link}, which is not there" for path, link in _broken(pages)),
        *(
            f"{path.name} is not reached from the index"
            for path in _unreached(site.resolve(), pages, reached)
        ),
        *([] if (site / "search" / "search_index.js").exists() else ["the search has no index"]),
    ]


def _is_remote(address: str) -> bool:
    return address.startswith(("http:", "https:", "//"))


def _broken(pages: dict[Path, Page]) -> Iterator[tuple[Path, str]]:
    for path, page in pages.items():
        if path.name == "404.html":  # its addresses begin at the root of a server
            continue
        for link in (*page.links, *page.loaded):
            target = _target(path, link)
            if target is None:
                continue
            place, name = target
            if not place.exists() or (name and place in pages and name not in pages[place].names):
                yield path, link


def _target(path: Path, link: str) -> tuple[Path, str] | None:
    """The file of the site that a link leads to, and the name in it; None for addresses elsewhere."""
    address, name = urldefrag(link)
    if _is_remote(link) or ":" in address.split("/")[0]:
        return None
    if not address:
        return path, unquote(name)
    place = (path.parent / unquote(address)).resolve()
    return (place / "index.html" if place.is_dir() else place), unquote(name)


def _unreached(site: Path, pages: dict[Path, Page], reached: set[Path]) -> list[Path]:
    waiting = [site / "index.html"]
    while waiting:
        path = waiting.pop()
        if path in reached or path not in pages:
            continue
        reached.add(path)
        waiting += [target[0] for link in pages[path].links if (target := _target(path, link))]
    return [path for path in pages if path not in reached and path.name != "404.html"]


def main() -> int:
    """Print what is wrong; the exit code is 1 if anything is."""
    site = Path(sys.argv[1])
    wrong = check(site)
    for line in wrong:
        print(line, file=sys.stderr)
    print(f"{len(list(site.rglob('*.html')))} pages, {len(wrong)} faults")
    return _FAILED if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
