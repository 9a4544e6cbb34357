"""The page's script: all modules in it, in forms that it takes, without cycles, and asked for with one request."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from stepscope.server.http.bundle import AHEAD, imports_of, module_names, script_of, style_files
from stepscope.server.http.static import WEB, prepare_page, web_file
from tests.server.conftest import Asking

NODE = shutil.which("node")


def test_every_module_is_in_the_script_or_asked_for_apart() -> None:
    script = script_of(WEB)
    for name in module_names(WEB):
        assert script.count(f'"{name}"() {{') == 1
    apart = {path.relative_to(WEB).as_posix() for path in WEB.rglob("*.js")} - set(module_names(WEB))
    assert apart == {AHEAD, "index.js", "shell/enter.js"}


def test_modules_import_what_is_there_and_never_in_a_circle() -> None:
    needs = {name: imports_of(name, (WEB / name).read_text("utf-8")) for name in module_names(WEB)}
    needs[AHEAD] = []
    done: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        assert name in needs, f"{above[-1]} imports {name}, which is not there"
        assert name not in above, f"a circle: {' → '.join((*above, name))}"
        if name not in done:
            for each in needs[name]:
                visit(each, (*above, name))
            done.add(name)

    for name in needs:
        visit(name, ())


@pytest.mark.parametrize(
    "line",
    [
        'import "./b.js";',
        'import b from "./b.js";',
        'export * from "./b.js";',
        "export default 1;",
        "export let counted = 0;",
    ],
)
def test_other_forms_are_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.js").write_text(f"const x = 1;\n{line}\n")
    with pytest.raises(ValueError, match="does not take"):
        script_of(tmp_path)


@pytest.mark.skipif(NODE is None, reason="needs Node")
def test_the_script_does_what_the_modules_do(tmp_path: Path) -> None:
    for folder in ("shell", "ui"):
        (tmp_path / folder).mkdir()
    (tmp_path / AHEAD).write_text("export const asked = 1;\n")
    (tmp_path / "ui" / "box.js").write_text(
        "let made = 0;\nfunction box() {\n  return ++made;\n}\nexport class Lid {}\nexport { box };\n"
    )
    (tmp_path / "ui" / "late.js").write_text(
        'import { box } from "./box.js";\nexport async function late() {\n  return box();\n}\n'
    )
    (tmp_path / "shell" / "main.js").write_text(
        'import { asked } from "./ahead.js";\nimport * as all from "../ui/box.js";\nimport { box as crate } from "../ui/box.js";\n'
        "crate();\n"
        'const found = await_(import("../ui/" + "late.js"));\n'
        "async function await_(module) {\n  const { late } = await module;\n"
        "  console.log(asked, all.box(), await late(), typeof all.Lid);\n}\n"
        "export const page = found;\n"
    )
    (tmp_path / "page.mjs").write_text(script_of(tmp_path))
    (tmp_path / "package.json").write_text('{"type": "module"}')
    ended = subprocess.run([str(NODE), "page.mjs"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["1", "2", "3", "function"]


def test_the_page_asks_for_three_files_and_each_is_kept(asking: Asking) -> None:
    prepare_page()
    text = asking.get("").get_data(as_text=True)
    asked = re.findall(r'(?:src|href)="(web/[^"]+\.(?:js|css)[^"]*)"', text)
    assert [each.split("?")[0] for each in asked] == ["web/shell/ahead.js", "web/page.css", "web/page.js"]
    for address in asked[1:]:
        answer = asking.get(address, headers={"Accept-Encoding": "gzip"})
        assert answer.status_code == 200
        assert "immutable" in answer.headers["Cache-Control"]
        assert answer.headers["Content-Encoding"] == "gzip"
        old = asking.get(address.split("?")[0] + "?v=old")
        assert old.headers["Cache-Control"] == "no-cache"


def test_the_style_has_all_sheets() -> None:
    style = web_file("page.css").data.decode()
    sheets = set(WEB.rglob("*.css"))
    assert set(style_files(WEB)) == sheets
    for sheet in sheets:
        assert sheet.read_text("utf-8") in style
    assert "--paper:" in style
