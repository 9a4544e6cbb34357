"""What the worker gives up by itself, before it sees a query: writing, the network, and at last every file.

Landlock binds a thread and those that it starts later, and importing our libraries starts some. So writing and the network
go before the imports, all files after them. The limit on open files counts for the whole process and stays in any case.
"""

from __future__ import annotations

import ctypes
import os
import sys
from types import ModuleType

resource: ModuleType | None
try:
    import resource
except ImportError:  # Windows: there, the engine's own settings are what protects
    resource = None

# The same numbers on every architecture of Linux that we know wheels for.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG = 1
_PATH_BENEATH = 1
_SET_NO_NEW_PRIVS = 38
_READ = 1 << 2 | 1 << 3  # files and folders
# What a version of Landlock can forbid: the first one 13 kinds of access to files, later ones more.
_FILE_ACCESS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
_TCP_SINCE, _TCP = 4, 0b11
_SCOPES_SINCE, _SCOPES = 6, 0b11  # abstract sockets and signals


class _Ruleset(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


def give_up_writing() -> list[str]:
    """No file can be changed and no TCP connection made, from now on; what was done, in words."""
    version = _landlock(may_read=True)
    if not version:
        return []
    network = ", no TCP" if version >= _TCP_SINCE else ""
    return [f"Landlock (version {version}): no file can be opened{network}"]


def give_up_files() -> list[str]:
    """Nothing can be opened, from now on; what was done, in words."""
    _landlock(may_read=False)
    if resource is None:
        return []
    for what in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE):
        resource.setrlimit(what, (0, 0))
    return ["process limits: no further file or socket can be opened, nothing written, no core dump"]


def _landlock(may_read: bool) -> int:
    """Bind this thread and those that it starts; the version of Landlock, 0 where there is none."""
    if not sys.platform.startswith("linux"):
        return 0
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    version = int(call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG)))
    if version < 1:
        return 0
    ruleset = _ruleset(version)
    rules = int(call(_CREATE_RULESET, ctypes.byref(ruleset), _ruleset_size(version), ctypes.c_uint32(0)))
    if rules < 0:
        return 0
    try:
        if may_read and not _allow_reading(call, rules):
            return 0
        return version if _bind(call, rules) else 0
    finally:
        os.close(rules)


def _ruleset(version: int) -> _Ruleset:
    files = _FILE_ACCESS[max(known for known in _FILE_ACCESS if known <= version)]
    tcp = _TCP if version >= _TCP_SINCE else 0
    return _Ruleset(files, tcp, _SCOPES if version >= _SCOPES_SINCE else 0)


def _ruleset_size(version: int) -> ctypes.c_size_t:
    """Older kernels know a shorter structure."""
    fields = 3 if version >= _SCOPES_SINCE else 2 if version >= _TCP_SINCE else 1
    return ctypes.c_size_t(8 * fields)


def _allow_reading(call: ctypes._NamedFuncPointer, rules: int) -> bool:
    folder = os.open("/", os.O_PATH | os.O_CLOEXEC)
    try:
        rule = _PathBeneath(_READ, folder)
        answer = call(
            _ADD_RULE,
            ctypes.c_int(rules),
            ctypes.c_int(_PATH_BENEATH),
            ctypes.byref(rule),
            ctypes.c_uint32(0),
        )
        return int(answer) == 0
    finally:
        os.close(folder)


def _bind(call: ctypes._NamedFuncPointer, rules: int) -> bool:
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    if prctl(_SET_NO_NEW_PRIVS, *map(ctypes.c_ulong, (1, 0, 0, 0))):
        return False
    return int(call(_RESTRICT_SELF, ctypes.c_int(rules), ctypes.c_uint32(0))) == 0
