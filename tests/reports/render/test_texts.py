"""The report as JSON, CSV and Markdown."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import msgspec
import pytest

from stepscope.reports.model.report import Finding
from stepscope.reports.render.csv import as_csv, csv_tables
from stepscope.reports.render.json import as_json, schema_text
from stepscope.reports.render.markdown import as_markdown, code, text
from stepscope.reports.report import Report
from stepscope.reports.tables.table import Column, Table
from stepscope.reports.tables.tables import ORDER, tables_of
from stepscope.reports.wording.summary import evidence
from tests.builders.reports import HOSTILE, KERNEL, report
from tests.reports.golden import check

SCHEMA = Path(__file__).parents[3] / "docs" / "report" / "schema.json"

# The contract: what DESIGN promises to programs.
CONTRACT = {
    "": "schema profile problems steps breakdown findings input ops kernels precision device memory collectives coverage",
    "profile": "path framework format ranks world_size devices duration_ns events files versions",
    "problems[]": "code severity title detail fix",
    "steps": "source count median_ns p90_ns inflation rows",
    "steps.rows[]": "rank device step start_ns duration_ns parts",
    "breakdown[]": "part ns share names",
    "breakdown[].names[]": "name thread ns",
    "findings[]": "code class title detail evidence share saves_ns_per_step speedup left_ns_per_step where certainty fix",
    "input": "share exposed_share stages verdict",
    "input.stages[]": "name kind total_ns self_ns calls",
    "ops.rows[]": "name scope placement execution calls host_total_ns host_self_ns device_total_ns device_self_ns memory_bytes flops bytes shapes",
    "kernels.rows[]": "name op calls total_ns mean_ns min_ns max_ns grid block registers shared_bytes occupancy precision tensor_cores eligible",
    "precision": "shares tensor_core_share unknown_share",
    "device": "busy_share mfu sm_efficiency occupancy copies queue timeline",
    "memory.devices[]": "peak_bytes peak_at_ns reserved_peak timeline at_peak growth_bytes_per_step",
    "memory.devices[].at_peak[]": "kind op scope bytes",
    "collectives": "rows exposed_share ranks",
    "coverage": "runtime device_time memory shapes stacks gaps",
    "coverage.gaps[]": "what share reason fix",
}


@pytest.mark.parametrize("place", CONTRACT)
def test_the_contract(place: str) -> None:
    found = json.loads(as_json(report()))
    for name in filter(None, place.split(".")):
        found = found[name.removesuffix("[]")]
        found = found[0] if name.endswith("[]") else found
    assert set(CONTRACT[place].split()) <= set(found)


def test_json_comes_back() -> None:
    assert msgspec.json.decode(as_json(report(hostile=HOSTILE)), type=Report) == report(hostile=HOSTILE)
    assert json.loads(as_json(report()))["schema"] == "stepscope.report/2"


def test_json_of_some_sections() -> None:
    found = json.loads(as_json(report(), sections=["ops"]))
    assert sorted(found) == ["ops", "problems", "profile", "schema", "sentence", "steps"]


def test_the_schema_is_up_to_date() -> None:
    assert SCHEMA.read_text("utf-8") == schema_text(), (
        "python -m stepscope.reports.render.json docs/report/schema.json"
    )


def test_csv_has_exact_figures() -> None:
    tables = dict(csv_tables(report()))
    [ops, other] = csv.DictReader(io.StringIO(tables["ops"]))
    assert (ops["name"], ops["device_self_ns"], ops["flops"]) == ("aten::mm", "50000000", "2000000000000")
    assert other["flops"] == ""
    [kernel] = csv.DictReader(io.StringIO(tables["kernels"]))
    assert (kernel["name"], kernel["grid"], kernel["tensor_cores"]) == (KERNEL, "[128,1,1]", "true")
    steps = list(csv.DictReader(io.StringIO(tables["steps"])))
    assert (steps[0]["start_ns"], steps[0]["note"], steps[0]["input"]) == ("20000000", "partial", "4000000")


def test_csv_keeps_names_as_they_are() -> None:
    tables = dict(csv_tables(report(hostile=HOSTILE)))
    assert list(csv.DictReader(io.StringIO(tables["ops"])))[1]["name"] == HOSTILE


def test_csv_has_no_formulas() -> None:
    """Wherever a name can stand; figures keep their signs."""
    hostile = "=cmd|' /C calc'!A0"
    tables, raw = (dict(csv_tables(report(hostile=hostile), raw=raw)) for raw in (False, True))
    cells = [cell for text in tables.values() for row in csv.reader(io.StringIO(text)) for cell in row]
    assert not [cell for cell in cells if cell.startswith("=")]
    assert cells.count(f"'{hostile}") > 5
    exact = [cell for text in raw.values() for row in csv.reader(io.StringIO(text)) for cell in row]
    assert [cell.removeprefix("'") for cell in cells] == exact


def test_csv_keeps_negative_figures() -> None:
    columns = (Column("name", "name", "name"), Column("change_ns", "change", "ns"))
    negative = Table(
        "t", "t", columns, [{"name": "-x", "change_ns": -5}, {"name": "y", "change_ns": -0.5}], 2
    )
    assert as_csv(negative) == "name,change_ns\n'-x,-5\ny,-0.5\n"


def test_every_table_has_its_own_file() -> None:
    names = [name for name, _ in csv_tables(report())]
    assert len(names) == len(set(names))
    assert {section for section in ORDER if tables_of(report(), section)} == set(ORDER)


def test_markdown() -> None:
    check("report.md", as_markdown(report()))


def test_markdown_of_one_section() -> None:
    alone = as_markdown(report(), sections=["ops"])
    assert re.findall("^#+ .*", alone, flags=re.MULTILINE)[1:] == ["## Ops"]
    assert "*2 of 412 rows; `--limit 0` gives all.*" in alone


def test_names_stay_in_their_cells() -> None:
    for line in as_markdown(report(hostile="a|b`c``d\nnew line | x")).splitlines():
        if line.startswith("|"):
            bars = len(re.findall(r"(?<!\\)\|", line))
            assert bars == len(re.findall(r"(?<!\\)\|", _header_of(line)))


def _header_of(line: str) -> str:
    page = as_markdown(report(hostile="a|b`c``d\nnew line | x")).splitlines()
    place = page.index(line)
    while not re.fullmatch(r"\|[-:|]+\|", page[place]) and page[place].startswith("|"):
        place -= 1
    return page[place] if page[place].startswith("|") else line


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a", "`a`"),
        ("a`b", "`` a`b ``"),
        ("a|b", "`a\\|b`"),
        ("``", "``` `` ```"),
        ("\x1b[31m", "`\\x1b[31m`"),
    ],
)
def test_code(name: str, shown: str) -> None:
    assert code(name) == shown


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("a_b*c", "a\\_b\\*c"),
        ("<b>", "\\<b\\>"),
        ("at 12:30:00", "at 12:30:00"),
        (":smile:", "\\:smile:"),
        ("@all", "@<!-- -->all"),
        ("x\ny", "x\\\\ny"),
    ],
)
def test_words(words: str, shown: str) -> None:
    assert text(words) == shown


def test_evidence_in_words() -> None:
    finding = Finding(
        code="x", class_="time", title="", detail="",
        evidence={"names": [{"name": "a", "ns_per_step": 2_000_000}], "kernels_per_step": 1450, "median_kernel_ns": 2530.0, "peak_bytes": 1 << 30, "steps": [3, 4], "left": None},
    )  # fmt: skip
    assert evidence(finding) == [
        ("names", "a (per step 2.00 ms)"),
        ("kernels per step", "1,450"),
        ("median kernel", "2.53 µs"),
        ("peak", "1.00 GiB"),
        ("steps", "3, 4"),
    ]
