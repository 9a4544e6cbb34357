"""What can be wrong with an address, a URL or a rank: one clear message each, and nothing lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import stepscope
from stepscope.cluster import worth
from stepscope.cluster.on_dask import address_of
from stepscope.cluster.report import report
from stepscope.cluster.worth import worth_processes
from stepscope.errors import StepscopeError
from tests.builders.ranks import document, write_ranks
from tests.cli.inside import stepscope as command


@pytest.fixture
def ranks(tmp_path: Path) -> Path:
    """Four ranks, of which rank 2 is late."""
    return write_ranks(tmp_path / "run")


class NoCredentialsError(Exception):
    """As the libraries of clouds have it: no OSError."""


class Locked(MemoryFileSystem):  # type: ignore[misc]
    """A store that lists files and gives none without credentials; `closed` does not list them either."""

    protocol = "locked"
    store: dict[str, Any] = {}  # noqa: RUF012
    closed = False

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return "/" + path.removeprefix("locked://").strip("/")

    def exists(self, path: str, **more: Any) -> bool:
        """As `ls`."""
        if Locked.closed:
            raise NoCredentialsError("Unable to locate credentials")
        return bool(super().exists(path, **more))

    def _open(self, path: str, mode: str = "rb", **more: Any) -> Any:
        if mode != "rb":
            return super()._open(path, mode, **more)
        raise NoCredentialsError("Unable to locate credentials")


@pytest.fixture
def locked() -> Iterator[str]:
    """A folder of such a store."""
    fsspec.register_implementation("locked", Locked, clobber=True)
    filesystem = Locked()
    for rank in range(2):
        place = f"/run/job_rank{rank}.pt.trace.json"
        MemoryFileSystem.pipe_file(filesystem, place, json.dumps(document(rank, 2, False)).encode())
    yield "locked://run"
    Locked.closed = False
    Locked.store.clear()


@pytest.mark.parametrize(
    "address", ["", "tcp://", "foo://host:1", "http://localhost:8786", "tcp://host", "a b:1"]
)
def test_what_is_no_address(ranks: Path, address: str) -> None:
    """Told at once, before anything is read."""
    with pytest.raises(StepscopeError, match="is not the address of a Dask scheduler") as error:
        report(ranks, where=address)
    assert "tcp://host:8786" in (error.value.fix or "")


def test_addresses(tmp_path: Path) -> None:
    file = tmp_path / "dask.json"
    file.write_text('{"address": "tcp://10.0.0.1:8786"}')
    assert address_of(str(file)) == "tcp://10.0.0.1:8786"
    assert address_of("head:8786") == "tcp://head:8786"
    assert address_of("tls://[::1]:8786") == "tls://[::1]:8786"
    for wrong in (tmp_path / "none.json", tmp_path):
        with pytest.raises(StepscopeError, match=r"not a scheduler file|not the address"):
            address_of(str(wrong))


def test_no_scheduler_on_the_command_line(ranks: Path) -> None:
    """Exit code 1, two lines, no traceback."""
    pytest.importorskip("distributed")
    ended = command("report", str(ranks), "--cluster", "foo://host:1")
    assert ended.returncode == 1 and not ended.stdout
    assert (
        ended.stderr.startswith("error: 'foo://host:1' is not the address")
        and "Traceback" not in ended.stderr
    )


def test_credentials_are_missing_to_read(locked: str) -> None:
    """The client may list the files, and whoever reads them may not open them."""
    with pytest.raises(StepscopeError, match="NoCredentialsError: Unable to locate credentials") as error:
        report(locked, where=0)
    assert "credentials" in (error.value.fix or "") and len(str(error.value).splitlines()) <= 3


def test_credentials_are_missing_to_list(locked: str) -> None:
    Locked.closed = True
    for opened in (stepscope.load, report):
        with pytest.raises(StepscopeError, match="Unable to locate credentials") as error:
            opened(locked)
        assert "credentials" in (error.value.fix or "")


def test_s3_says_what_it_wants() -> None:
    from stepscope.formats.source import access_hint

    assert "AWS_ACCESS_KEY_ID" in (access_hint("s3://bucket/x", NoCredentialsError("none")) or "")
    assert "gcloud" in (access_hint("gs://bucket/x", PermissionError("403")) or "")
    assert access_hint("s3://bucket/x", TimeoutError("too slow")) is None


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "never-stopped"),
        (b'{"schemaVersion": 1, "traceEvents": []}', "unreadable-file"),
        (b"\x00\x01 no profile", "unreadable-file"),
    ],
)
def test_a_rank_with_nothing_in_it(ranks: Path, content: bytes, code: str) -> None:
    """The others are shown and compared; it is told that one is missing, in the same words everywhere."""
    (ranks / "job_rank1.pt.trace.json").write_bytes(content)
    few = ["collectives"]
    here = stepscope.report(ranks, sections=few)
    assert here.profile.ranks == [0, 2, 3]
    assert here.collectives.straggler is not None and here.collectives.straggler.rank == 2
    codes = {problem.code for problem in here.problems}
    assert "missing-ranks" in codes and code in codes
    assert report(ranks, where=0, sections=few) == here


def test_nothing_but_broken_files(ranks: Path) -> None:
    for file in ranks.iterdir():
        file.write_bytes(b"\x00\x01 no profile")
    with pytest.raises(StepscopeError):
        report(ranks, where=0)


def test_processes_only_where_they_save_time(ranks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By bytes, of files on this machine; the report is the same."""
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    assert not worth_processes(ranks)
    assert not worth_processes(ranks / "job_rank0.pt.trace.json") and not worth_processes("memory://run")
    assert not worth_processes(ranks / "nowhere") and not worth_processes(ranks.parent / "*.none")
    monkeypatch.setattr(worth, "WORTH_BYTES", 4 * worth.LIKE_BYTES)
    assert worth_processes(ranks) and worth_processes(str(ranks / "*.json"))
    assert not worth_processes(ranks, "no such run")
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    assert not worth_processes(ranks)
