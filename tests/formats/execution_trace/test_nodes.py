"""Execution traces: of a real job, of older schemas, and of jobs that ended before the file was whole."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stepscope.formats.execution_trace.header import process_of
from stepscope.formats.execution_trace.nodes import ExecutionTrace, read_nodes
from stepscope.formats.source import Source

REAL = Path(__file__).parents[2] / "fixtures" / "execution_trace" / "et_rank0.json.gz"


def read(folder: Path, data: bytes) -> ExecutionTrace | None:
    path = folder / "et.json"
    path.write_bytes(data)
    return read_nodes(Source(str(path)))


def document(*nodes: Any) -> bytes:
    return json.dumps({"schema": "1.1.1-chakra.0.0.4", "pid": 7, "nodes": list(nodes)}).encode()


def node(record: Any = 3, name: str = "aten::mm", **more: Any) -> dict[str, Any]:
    inputs = {
        "values": [],
        "shapes": [[2, 3], [3, 4]],
        "types": ["Tensor(float)", "Tensor(c10::Half)"],
        "strides": [],
    }
    attributes = [{"name": "rf_id", "type": "uint64", "value": record}]
    return {
        "id": 1,
        "name": name,
        "ctrl_deps": 0,
        "inputs": inputs,
        "outputs": {},
        "attrs": attributes,
        **more,
    }


def test_a_real_one() -> None:
    """PyTorch 2 with gloo, two ranks."""
    found = read_nodes(Source(str(REAL)))
    assert found is not None
    assert (len(found.nodes), found.is_cut, found.bad_nodes) == (469, False, 0)
    assert found.groups == {"0": 2}
    assert found.ranks == {"0": "[0,1]"}
    product = found.nodes.filter(pl.col("name") == "aten::addmm").sort("record").row(0, named=True)
    assert product["shapes"] == "[[128],[32,64],[64,128],[],[]]"
    assert product["dtypes"] == '["float","float","float","Scalar","Scalar"]'
    talks = found.nodes.filter(pl.col("collective").is_not_null())
    assert talks.select("collective", "dtype", "elements", "item_bytes").unique().rows() == [
        ("all_reduce", "float", 9_610, 4)
    ]


def test_the_process_is_in_the_header() -> None:
    assert process_of(gzip.decompress(REAL.read_bytes())[:512]) is not None
    assert process_of(document()) == 7
    assert process_of(b'{"schemaVersion": 1, "pid": 7}') is None
    assert process_of(b"") is None


def test_nccl_calls_name_their_group(tmp_path: Path) -> None:
    values = {
        "rf_id": 3, "collective_name": "allreduce", "dtype": "Float", "in_msg_nelems": 10, "out_msg_nelems": 10,
        "pg_name": "1", "pg_size": 4,
    }  # fmt: skip
    listed = node(
        name="record_param_comms",
        attrs=[{"name": key, "type": "", "value": value} for key, value in values.items()],
    )
    groups = json.dumps([{"pg_name": "1", "ranks": [0, 2, 4, 6], "group_size": 4}])
    start = node(
        1, "## process_group:init ##", inputs={"values": [groups], "shapes": [[]], "types": ["String"]}
    )
    found = read(tmp_path, document(start, listed))
    assert found is not None
    assert found.ranks == {"1": "[0,2,4,6]"}
    row = found.nodes.filter(pl.col("record") == 3).row(0, named=True)
    assert [row[key] for key in ("collective", "group", "group_size", "elements", "dtype")] == [
        "allreduce",
        "1",
        4,
        10,
        "Float",
    ]


def test_the_schema_before_inputs_were_objects(tmp_path: Path) -> None:
    old = {
        "id": 1, "name": "aten::mm", "rf_id": 5, "inputs": [[1, 2]], "input_shapes": [[2, 3]],
        "input_types": ["Tensor(float)"],
    }  # fmt: skip
    found = read(tmp_path, document(old))
    assert found is not None
    assert found.nodes.select("record", "shapes", "dtypes").rows() == [(5, "[[2,3]]", '["float"]')]


def test_a_file_that_was_cut_off_keeps_its_whole_nodes(tmp_path: Path) -> None:
    whole = gzip.decompress(REAL.read_bytes())
    found = read(tmp_path, whole[: len(whole) // 2])
    assert found is not None
    assert found.is_cut
    assert 100 < len(found.nodes) < 469


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{", b'{"nodes": 3}', b"\xff\xfe", b'{"nodes": [' + b"[" * 5_000]
)
def test_what_is_none(tmp_path: Path, data: bytes) -> None:
    found = read(tmp_path, data)
    assert found is None or found.nodes.is_empty()


def test_odd_nodes_cost_themselves(tmp_path: Path) -> None:
    odd = [{"id": 2}, {"name": 5}, node(-1), node("x"), node(2**70), node(name="gloo:all_reduce", attrs=[])]
    groups = [
        node(9, "## process_group:init ##", inputs={"values": [text]})
        for text in ("{", "3", '[{"group_size": "x"}]', "[4]")
    ]
    found = read(tmp_path, document(*odd, *groups, node(4)))
    assert found is not None
    assert sorted(found.nodes["record"]) == [4, 9]
    assert found.bad_nodes == 2
    assert found.groups == {}
