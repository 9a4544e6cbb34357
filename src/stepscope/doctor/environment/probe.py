"""Looks at the interpreter that runs it. The file is handed to other interpreters: Python 3.8 and nothing installed will do.

    facts                 versions, packages, plugins of TensorBoard, modules and libraries that can be found
    import MODULE         imports it
    plugin NAME VALUE     loads an entry point the way TensorBoard does, and what its loader would import later
    load LIBRARY          opens a shared library and asks CUPTI or NVML for a version

Each prints one line: the mark, then JSON.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

MARK = "stepscope-probe:"
PACKAGES = re.compile(
    r"^(torch|torch-tb-profiler|tensorflow.*|tf-nightly.*|intel-tensorflow.*|jax.*|keras|tf-keras|tensorboard.*|tb-nightly"
    r"|xprof.*|protobuf|setuptools|numpy|grpcio|stepscope|nvidia-ml-py|pynvml|nvidia-cuda-cupti.*|nvidia-cuda-runtime.*)$"
)
MODULES = ("torch", "tensorflow", "jax", "tensorboard", "pkg_resources", "google.protobuf", "stepscope")
PLUGINS = "tensorboard_plugins"
LIBRARIES = re.compile(r"^libcupti\.so(\.|$)")


def _without_here() -> None:
    """A file of the current folder must not pass for a package."""
    sys.path[:] = [path for path in sys.path if path not in ("", str(Path.cwd()))]


def facts() -> dict[str, Any]:
    """Everything that can be known without importing a package."""
    import platform

    return {
        "executable": sys.executable,
        "prefix": sys.prefix,
        "version": platform.python_version(),
        "platform": sys.platform,
        "machine": platform.machine(),
        "libc": " ".join(platform.libc_ver()).strip(),
        "packages": _packages(),
        "plugins": _plugins(),
        "modules": {name: _origin(name) for name in MODULES},
        "cupti": _libraries(),
    }


def _packages() -> list[dict[str, Any]]:
    from importlib import metadata

    found = []
    for dist in metadata.distributions():
        name = re.sub(r"[-_.]+", "-", dist.metadata["Name"] or "").lower()
        if PACKAGES.match(name):
            place = str(dist.locate_file(""))
            found.append(
                {
                    "name": name,
                    "version": dist.version or "",
                    "location": place,
                    "requires": dist.requires or [],
                    "binaries": _binaries(dist) if name.startswith("xprof") else [],
                }
            )
    return sorted(found, key=lambda each: (each["name"], each["location"]))


def _binaries(dist: Any) -> list[str]:
    return [str(file) for file in dist.files or [] if str(file).endswith((".so", ".pyd", ".dylib"))]


def _plugins() -> list[dict[str, str]]:
    from importlib import metadata

    found = []
    for dist in metadata.distributions():
        for entry in dist.entry_points:
            if entry.group == PLUGINS:
                package = dist.metadata["Name"] or ""
                found.append({"name": entry.name, "value": entry.value, "package": package})
    return found


def _origin(name: str) -> str | None:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return None
    if spec is None:
        return None
    places = list(spec.submodule_search_locations or [])
    return spec.origin or (places[0] if places else "")


def _libraries() -> list[str]:
    """Where pip puts CUPTI: nvidia/cuda_cupti/lib, nvidia/cu13/lib, torch/lib."""
    folders = []
    for root in map(Path, sys.path):
        vendor = root / "nvidia"
        if vendor.is_dir():
            folders += [inside / "lib" for inside in sorted(vendor.iterdir())]
        folders.append(root / "torch" / "lib")
    files = [file for folder in folders if folder.is_dir() for file in sorted(folder.iterdir())]
    return [str(file) for file in files if LIBRARIES.match(file.name)]


def try_import(name: str) -> dict[str, str]:
    """Whether it can be imported, else the error and where it came from."""
    try:
        importlib.import_module(name)
    except BaseException:  # SystemExit is a way to fail, too
        return _failure()
    return {"error": "", "where": ""}


def try_plugin(name: str, value: str) -> dict[str, str]:
    """Loaders hide what fails in the module that they stand for, so that one is imported as well."""
    from importlib.metadata import EntryPoint

    try:
        EntryPoint(name, value, PLUGINS).load()
        module = value.split(":")[0]
        behind = re.sub(r"_loader$", "", module)
        if behind != module and importlib.util.find_spec(behind) is not None:
            importlib.import_module(behind)
    except BaseException:
        return _failure()
    return {"error": "", "where": ""}


def _failure() -> dict[str, str]:
    kind, error, trace = sys.exc_info()
    last = traceback.extract_tb(trace)[-1] if trace else None
    name = kind.__name__ if kind else "Error"
    text = f"{name}: {error}".strip()
    return {"error": text, "where": f"{last.filename}:{last.lineno}" if last else ""}


def load(path: str) -> dict[str, Any]:
    """Whether the library can be opened, and its version if it has one."""
    import ctypes

    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        return {"error": str(error), "version": 0}
    version = ctypes.c_uint32(0)
    try:
        library.cuptiGetVersion(ctypes.byref(version))
    except AttributeError:
        pass
    return {"error": "", "version": version.value}


def main(arguments: list[str]) -> None:
    """Run the requested probe and print the result."""
    _without_here()
    ways: dict[str, Callable[..., Any]] = {
        "facts": facts,
        "import": try_import,
        "plugin": try_plugin,
        "load": load,
    }
    answer = ways[arguments[0]](*arguments[1:])
    sys.stdout.flush()
    sys.stdout.write("\n" + MARK + json.dumps(answer) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
