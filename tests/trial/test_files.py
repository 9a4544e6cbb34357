"""Which files a run changed."""

from __future__ import annotations

from pathlib import Path

from stepscope.trial.files import changed_files, snapshot


def test_written_replaced_and_deleted(tmp_path: Path) -> None:
    for name in ("same", "longer", "gone"):
        (tmp_path / name).write_text("x")
    before = snapshot(tmp_path)
    (tmp_path / "longer").write_text("xx")
    (tmp_path / "gone").unlink()
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "new").write_text("x")
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "a.pyc").write_text("x")
    assert changed_files(before, snapshot(tmp_path)) == ["gone", "longer", str(Path("sub", "new"))]
