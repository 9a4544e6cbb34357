"""All modules of the page as one script, and all style sheets as one: a browser that asks for a hundred files waits for most of them.

The modules stay what they are, ES modules that Node and the type checker read. Here each becomes a function that is called
when it is first used; tests hold them to the few forms of import and export that this takes, without cycles.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from posixpath import dirname, join, normpath

MAIN = "shell/main.js"
# Loaded by the page itself before the script: what it asks for is on its way while the script is read.
AHEAD = "shell/ahead.js"
_APART = ("index.js", AHEAD, "shell/enter.js")
STYLES = ("shell", "content", "table", "flame")
_STATEMENT = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)
_IMPORT = re.compile(r'import (?:\* as (\w+)|\{ ?([\w, ]+?),? ?\}) from "(\.[\w./]+\.js)";')
_EXPORT = re.compile(r"export ((?:async )?(?:function|class|const) (\w+).*)")
_EXPORT_LIST = re.compile(r"export \{ ?([\w, ]+?),? ?\};")
_HEAD = f"""\
import * as ahead from "./{AHEAD}";
const made = new Map([["{AHEAD}", ahead]]);
const use = (name) => {{
  if (!made.has(name)) made.set(name, modules[name]());
  return made.get(name);
}};
const later = async (from, path) => use(new URL(path, `file:///${{from}}`).pathname.slice(1));
const modules = {{
"""
_END = f'}};\nuse("{MAIN}");\n'


def script_of(web: Path) -> str:
    """The script: every module below the folder, and a call of the first one."""
    return "".join([_HEAD, *(_as_function(web, name) for name in module_names(web)), _END])


def module_names(web: Path) -> Iterator[str]:
    """Those in the script."""
    names = sorted(path.relative_to(web).as_posix() for path in web.rglob("*.js"))
    return (name for name in names if name not in _APART)


def style_files(web: Path) -> list[Path]:
    """All style sheets of the page in the order in which they count."""
    return [*(web / "style" / f"{name}.css" for name in STYLES), web / "timeline" / "timeline.css"]


def imports_of(name: str, text: str) -> list[str]:
    """The modules that this one needs, by their paths below the folder."""
    lines = _STATEMENT.findall(text)
    return [_resolved(name, found[3]) for found in map(_IMPORT.fullmatch, lines) if found is not None]


def _as_function(web: Path, name: str) -> str:
    exported: list[str] = []

    def rewritten(line: re.Match[str]) -> str:
        if found := _IMPORT.fullmatch(line[0]):
            return _use(name, found)
        if found := _EXPORT.fullmatch(line[0]):
            exported.append(found[2])
            return found[1]
        if found := _EXPORT_LIST.fullmatch(line[0]):
            exported.append(found[1])
            return ""
        raise ValueError(f"{name} has a form of import or export that the script does not take: {line[0]}")

    body = _STATEMENT.sub(rewritten, (web / name).read_text("utf-8"))
    body = body.replace("import(", f'later("{name}", ')
    return f'"{name}"() {{\n{body}\nreturn {{ {", ".join(exported)} }};\n}},\n'


def _use(name: str, found: re.Match[str]) -> str:
    taken = found[1] or "{ " + found[2].replace(" as ", ": ") + " }"
    return f'const {taken} = use("{_resolved(name, found[3])}");'


def _resolved(name: str, path: str) -> str:
    return normpath(join(dirname(name), path))
