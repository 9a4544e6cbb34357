"""Names for people: frames, built-ins and kernels as a colleague would call them. `web/text/names.js` does the same."""

from __future__ import annotations

import re

from stepscope.lazy import pattern
from stepscope.registers.policy.tables import LONGEST_KERNEL_NAME

# PyTorch writes `train.py(12): step`, JAX `$train.py:12 step` or `$numpy asarray`.
_FRAME = pattern(r"^([^()\n]{1,4096})\((\d{1,9})\): (.+)$")
_JAX_FRAME = pattern(r"^\$([^\s:]+):(\d{1,9}) (.+)$")
_JAX_BUILTIN = pattern(r"^\$(\S+) (.+)$")
_BUILTIN = pattern(
    r"^<built-in (?:function (\S+)|method (\S*) of (\S+) object(?: at 0x[0-9a-fA-F]+)?)>$"
    r"|^<method '(\w+)' of '(\S+)' objects>$"
)
_LOADER = pattern(r"^enumerate\(DataLoader\)#(\w+)\.__next__$")
_NO_OWNERS = pattern(r"^(type|module|PyCapsule|pybind11_\S*)$")
_LAMBDA = pattern(
    r"(::)?\{lambda\([^)]*\)#\d+\}(::operator\(\)\([^)]*\))?( const)?|::operator\(\)\([^)]*\)( const)?"
)
_C_FUNCTION = pattern(r"^\w+\([^()]*[*&][^()]*\)$")  # whose parameters are pointers: `f(ncclWork*)`
_NAMESPACE = pattern(r"\(anonymous namespace\)::|\b[a-z_]\w*::(?=[\w({~])")
# Entry points of kernel libraries that say nothing of what they run.
_ENTRIES = ("Kernel", "Kernel2", "kentry", "kernel_entry", "device_kernel")
_PATH_LENGTH = 40
_NATIVE = "native code"


def short_name(name: str) -> str:
    """The name as a person would say it; one that is short already stays as it is."""
    if len(name) > LONGEST_KERNEL_NAME:
        return name
    if name.startswith("_Z"):
        return _demangle(name) or name
    for shorten in (_name_builtin, _name_frame):
        if (found := shorten(name)) is not None:
            return found
    loader = _LOADER.match(name)
    if loader is None:
        return _shorten_kernel(name)
    return f"DataLoader.__next__{' (with workers)' if 'MultiProcessing' in loader[1] else ''}"


def name_place(function: str, file: str, line: int) -> str:
    """`step (train.py:12)`."""
    return f"{function} ({cut_path(file)}:{line})"


def shorten_place(place: str) -> str:
    """`train.py:12`, without folders."""
    return place.replace("\\", "/").rsplit("/", 1)[-1]


def cut_middle(text: str, width: int) -> str:
    """At most `width` characters: long names that begin alike differ at their ends."""
    if len(text) <= width:
        return text
    end = (width - 1) // 2
    return f"{text[: width - 1 - end]}…{text[len(text) - end :]}"


def cut_path(path: str, width: int = _PATH_LENGTH) -> str:
    """The path with its first folder and as many of the last ones as fit."""
    if len(path) <= width:
        return path
    pieces = path.split("/")
    first = "/".join(pieces[: 2 if path.startswith("/") else 1])
    for kept in range(len(pieces) - 2, 0, -1):
        short = "/".join([first, "…", *pieces[len(pieces) - kept :]])
        if len(short) <= width:
            return short
    return cut_middle(pieces[-1], width)


def _name_frame(name: str) -> str | None:
    found = _FRAME.match(name) or _JAX_FRAME.match(name)
    if found is not None:
        return name_place(short_name(found[3]), found[1], int(found[2]))
    found = _JAX_BUILTIN.match(name)
    if found is None:
        return None
    if found[1] == "<unknown>":
        return found[2]
    return f"{found[2]} ({found[1]})" if found[1].endswith(".py") else f"{found[1]}.{found[2]}"


def _name_builtin(name: str) -> str | None:
    """`lock.acquire` for `<built-in method acquire of _thread.lock object at 0x7f…>`."""
    found = _BUILTIN.match(name)
    if found is None:
        return None
    if found[1]:
        return found[1]
    method, owner = found[2] or found[4] or _NATIVE, found[3] or found[5]
    return method if method == _NATIVE or _NO_OWNERS.match(owner) else f"{owner.rpartition('.')[2]}.{method}"


def _shorten_kernel(name: str) -> str:
    """A kernel's name without its return type, parameters, namespaces and lambdas, which hide what it is."""
    if "(" not in name and "::" not in name:
        return name
    if _C_FUNCTION.match(name):
        return name[: name.index("(")]
    if not name.startswith("void ") and "<" not in name:
        return name
    bare = _without_parameters(_LAMBDA.sub("", name.removeprefix("void ")))
    return _NAMESPACE.sub("", bare) or name


def _without_parameters(name: str) -> str:
    """The name up to the parenthesis that opens its last, outermost group."""
    if not name.endswith(")"):
        return name
    depth = 0
    for place in range(len(name) - 1, -1, -1):
        depth += (name[place] == ")") - (name[place] == "(")
        if depth == 0:
            return name[:place] or name
    return name


def _demangle(name: str) -> str:
    """The function of a mangled C++ name, and what it runs where it is only an entry point."""
    function, at = _last_identifier(name, 3 if name.startswith("_ZN") else 2)
    if function not in _ENTRIES:
        return function
    inner = re.compile(r"I(?:L[a-z]\d*E)*N?(?:S[0-9A-Z]*_)?").match(name, at)
    argument = _last_identifier(name, inner.end())[0] if inner is not None else ""
    return f"{function}<{argument}>" if argument else function


def _last_identifier(name: str, at: int) -> tuple[str, int]:
    """Of identifiers that follow one another, each behind its length; and where they end."""
    last, length = "", re.compile(r"\d{1,4}")
    while (found := length.match(name, at)) is not None:
        at = found.end() + int(found[0])
        last = name[found.end() : at]
    return last, at
