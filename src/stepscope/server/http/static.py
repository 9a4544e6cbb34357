"""The files of the page, its script and style, and Plotly's JavaScript out of the installed package."""

from __future__ import annotations

import gzip
import re
import threading
from dataclasses import dataclass
from functools import cache, cached_property
from html import escape
from importlib.util import find_spec
from pathlib import Path
from zlib import crc32

from stepscope.reports.figures.style import theme_style
from stepscope.server.http.bundle import script_of, style_files
from stepscope.server.http.request import Refused

WEB = Path(__file__).resolve().parents[2] / "web"
THEME = "style/theme.css"  # no file: the report has the same colours
SCRIPT, STYLE = "page.js", "page.css"  # no files either: see bundle.py
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".json": "application/json",
    ".ico": "image/x-icon",
    ".md": "text/markdown; charset=utf-8",
}
_TOKEN = re.compile(rb'(<meta\s+name="stepscope-token"\s+content=")[^"]*(")')
_NAME = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")


@dataclass(frozen=True)
class StaticFile:
    """A file as it is sent."""

    data: bytes
    content_type: str
    tag: str

    @cached_property
    def packed(self) -> bytes:
        """With gzip, compressed once."""
        return gzip.compress(self.data, 1)


_read: dict[tuple[Path, int, int], StaticFile] = {}
_made: dict[str, tuple[tuple[tuple[Path, int], ...], StaticFile]] = {}
_lock = threading.Lock()


def page(token: str) -> StaticFile:
    """index.html with the token that its POSTs must carry, and the present state of its script and style in their addresses."""
    found = web_file("index.html")
    data = _TOKEN.sub(rb"\g<1>" + escape(token).encode() + rb"\g<2>", found.data)
    for name in (SCRIPT, STYLE):
        data = data.replace(f'"web/{name}"'.encode(), f'"web/{name}?v={web_file(name).tag}"'.encode(), 1)
    return StaticFile(data, found.content_type, _tag(data))


def prepare_page() -> None:
    """Make the script and the style of the page before they are asked for."""
    for name in (SCRIPT, STYLE):
        _ = web_file(name).packed


def web_file(path: str) -> StaticFile:
    """A file below web/: plain names only, so that no path leads elsewhere."""
    if path == THEME:
        return _theme()
    if path in (SCRIPT, STYLE):
        return _joined(path)
    parts = path.split("/")
    if len(parts) > 6 or not all(_NAME.fullmatch(part) for part in parts):
        raise _missing()
    found = WEB.joinpath(*parts)
    if found.suffix not in TYPES:
        raise _missing()
    return _file(found, TYPES[found.suffix])


@cache
def _theme() -> StaticFile:
    data = theme_style().encode()
    return StaticFile(data, TYPES[".css"], _tag(data))


def _joined(name: str) -> StaticFile:
    """The script or the style; made again when one of its files has changed, which happens where the page is developed."""
    paths = sorted(WEB.rglob("*.js")) if name == SCRIPT else style_files(WEB)
    state = tuple((path, path.stat().st_mtime_ns) for path in paths)
    with _lock:
        known = _made.get(name)
        if known is None or known[0] != state:
            text = script_of(WEB) if name == SCRIPT else _style_text()
            data = text.encode()
            known = _made[name] = state, StaticFile(data, TYPES[Path(name).suffix], _tag(data))
        return known[1]


def _style_text() -> str:
    return "\n".join([theme_style(), *(path.read_text("utf-8") for path in style_files(WEB))])


def plotly() -> StaticFile:
    """Plotly's JavaScript."""
    found = _plotly_path()
    if found is None:
        raise Refused("Plotly is not installed.", status=404, fix="Try: pip install plotly")
    return _file(found, TYPES[".js"])


@cache
def _plotly_path() -> Path | None:
    spec = find_spec("plotly")  # importing it would take longer than reading the file
    places = spec.submodule_search_locations if spec is not None else None
    found = [Path(place) / "package_data" / "plotly.min.js" for place in places or ()]
    return next((path for path in found if path.is_file()), None)


def _file(path: Path, content_type: str) -> StaticFile:
    try:
        facts = path.stat()
        key = (path, facts.st_mtime_ns, facts.st_size)
        with _lock:
            if key not in _read:
                data = path.read_bytes()
                _read[key] = StaticFile(data, content_type, _tag(data))
            return _read[key]
    except OSError:
        raise _missing() from None


def _tag(data: bytes) -> str:
    return f"{crc32(data):08x}-{len(data):x}"


def _missing() -> Refused:
    return Refused("There is no such page.", status=404)
