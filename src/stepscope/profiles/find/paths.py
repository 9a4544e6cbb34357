"""Resolve a path: on this machine or on a filesystem behind a URL; a file, a folder or a pattern."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from stepscope.errors import NothingFound, StepscopeError, UnreadableFile, no_such_path
from stepscope.lazy import dataclass

# Two letters at least before the colon: C:\logs and C:/logs are not URLs. `::` chains filesystems of fsspec.
_URL = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+(://|::)")
_MAGIC = re.compile(r"[*?[]")
_EXTRAS = {
    "s3": "s3fs",
    "s3a": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "abfs": "adlfs",
    "az": "adlfs",
    "hdfs": "pyarrow",
    "http": "'fsspec[http]'",
    "https": "'fsspec[http]'",
}


@dataclass(frozen=True)
class Location:
    """A path and the filesystem that it is on; None is this machine."""

    path: str
    filesystem: Any = None

    @property
    def is_pattern(self) -> bool:
        """Whether it has *, ? or [ in it."""
        return _MAGIC.search(self.path) is not None


def locate(path: str | os.PathLike[str]) -> Location:
    """Take a path or URL apart. Nothing is looked up yet."""
    text = os.fspath(path)
    if not text.strip():
        raise NothingFound(
            "The path is empty.", fix="Give a profile, a folder with profiles, a glob pattern or a URL."
        )
    if _URL.match(text):
        return _behind_url(text)
    if not _can_be_named(text):
        raise NothingFound(f"Invalid file name: {text!a}")
    return Location(posix(str(Path(text).expanduser())))


def _can_be_named(path: str) -> bool:
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def posix(path: str) -> str:
    """With forward slashes, which Windows takes as well."""
    return path.replace("\\", "/") if os.name == "nt" else path


def _behind_url(url: str) -> Location:
    if url.startswith(("file://", "local://")):
        return Location(_local_path(url.split("://", 1)[1]))
    import fsspec  # only for those who need it: it takes a while

    try:
        filesystem, path = fsspec.core.url_to_fs(url)
    except ImportError as error:
        package = _EXTRAS.get(url.split(":", 1)[0], "")
        fix = f"Try: pip install {package}" if package else "Install the fsspec package for this kind of URL."
        raise StepscopeError(f"Cannot open {url}: {error}", fix=fix) from None
    except Exception as error:  # every filesystem has errors of its own
        raise StepscopeError(f"Cannot open {url}: {error}") from None
    return Location(full_url(filesystem, path), filesystem)


def _local_path(rest: str) -> str:
    """The path in a file: URL, which may or may not be percent-encoded."""
    path = rest.removeprefix("localhost")
    if os.name == "nt":
        path = path.lstrip("/")
    return posix(path if Path(path).exists() else unquote(path))


def full_url(filesystem: Any, path: str) -> str:
    """The path with its protocol, as filesystems accept it too."""
    return str(filesystem.unstrip_protocol(path))


def missing(location: Location) -> StepscopeError:
    """The error for a missing path: how far it exists, and names that are similar."""
    path = location.path.rstrip("/") or "/"
    parent, _, name = path.rpartition("/")
    names = _names_in(location, parent or ("/" if path.startswith("/") else "."))
    if names is None:
        is_file = location.filesystem is None and Path(parent).is_file()
        why = f"{parent} is a file." if is_file else f"The folder {parent} does not exist either."
        return NothingFound(no_such_path(path), fix=why)
    from difflib import get_close_matches

    close = get_close_matches(name, names, n=3, cutoff=0.6)
    fix = (
        "Did you mean " + " or ".join(f"{parent}/{found}" if parent else found for found in close) + "?"
        if close
        else None
    )
    return NothingFound(no_such_path(path), fix=fix)


def _names_in(location: Location, folder: str) -> list[str] | None:
    try:
        if location.filesystem is None:
            return [found.name for found in Path(folder).iterdir()]
        listed = location.filesystem.ls(folder, detail=False)
        return [str(path).rstrip("/").rsplit("/", 1)[-1] for path in listed]
    except Exception:  # only a hint: whatever fails, there is none
        return None


def no_permission(path: str) -> UnreadableFile:
    """The error for a folder that may not be listed."""
    return UnreadableFile(
        f"No permission to read {path}", fix=f"Try: chmod u+rx '{path}', or run as its owner."
    )
