"""The files of the page, and Plotly's JavaScript out of the installed package."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.util import find_spec
from pathlib import Path
from posixpath import dirname, join, normpath
from zlib import crc32

from stepscope.reports.figures.style import theme_style
from stepscope.server.http.request import Refused

WEB = Path(__file__).resolve().parents[2] / "web"
MAIN = "shell/main.js"
FIRST_PAGE = "pages/overview/overview.js"  # loaded by its name, which no import shows
THEME = "style/theme.css"  # no file: the report has the same colours
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
_IMPORTED = re.compile(r'^import .* from "(\.[\w./]+\.js)";', re.MULTILINE)
_NAME = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")


@dataclass(frozen=True)
class StaticFile:
    """A file as it is sent."""

    data: bytes
    content_type: str
    tag: str


_read: dict[tuple[Path, int, int], StaticFile] = {}
_lock = threading.Lock()


def page(token: str) -> StaticFile:
    """index.html with the token that its POSTs must carry, and all modules of the shell named at once."""
    found = web_file("index.html")
    data = _TOKEN.sub(rb"\g<1>" + escape(token).encode() + rb"\g<2>", found.data)
    data = data.replace(b"</head>", _module_links() + b"</head>", 1)
    return StaticFile(data, found.content_type, _tag(data))


@cache
def _module_links() -> bytes:
    """Without them the browser finds each module only after it has read the one that imports it."""
    names = [MAIN, FIRST_PAGE]
    todo = list(names)
    while todo:
        name = todo.pop()
        found = _IMPORTED.findall((WEB / name).read_text(encoding="utf-8"))
        paths = [normpath(join(dirname(name), path)) for path in found]
        new = [path for path in dict.fromkeys(paths) if path not in names]
        names, todo = names + new, todo + new
    return "".join(f'  <link rel="modulepreload" href="web/{name}">\n' for name in names).encode()


def web_file(path: str) -> StaticFile:
    """A file below web/: plain names only, so that no path leads elsewhere."""
    if path == THEME:
        return _theme()
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
