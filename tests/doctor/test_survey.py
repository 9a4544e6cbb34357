"""The facts of a machine: read from files below a root, from variables, and by a probe inside real interpreters."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from stepscope.doctor.diagnose import diagnose_environment
from stepscope.doctor.environment.survey import Machine, survey
from stepscope.errors import StepscopeError
from tests.doctor.environments import interpreter, link_installed, shell

TENSORBOARD = {"tensorboard/__init__.py": "", "tensorboard/main.py": ""}
RESTRICTED = "RmProfilingAdminOnly: 1\n"
WITHOUT_CAPABILITIES = "Name:\tpython\nPPid:\t{parent}\nCapEff:\t0000000000000000\n"


def machine(root: Path, **variables: str) -> Machine:
    """One whose files are below the root, with nothing but these variables."""
    return Machine(root, {"PATH": "", **variables}, pid=50)


def write(root: Path, path: str, text: str = "") -> None:
    """A file below the root."""
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def codes(python: str | None, here: Machine, folder: str) -> set[str]:
    """What is told of the machine and the interpreter."""
    return {result.code for result in diagnose_environment(survey(python, folder, here)).results}


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python without any package."""
    return interpreter(tmp_path_factory.mktemp("bare"))[0]


@pytest.fixture
def nvidia(tmp_path: Path) -> Path:
    """The root of a machine with a driver and a device."""
    write(
        tmp_path,
        "proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.82.07  Wed Aug\n",
    )
    write(tmp_path, "proc/driver/nvidia/params", "RmProfilingAdminOnly: 0\n")
    write(tmp_path, "proc/self/status", "CapEff:\t000001ffffffffff\n")
    write(tmp_path, "dev/nvidia0")
    return tmp_path


def test_an_interpreter_is_seen_from_inside(bare: str, tmp_path: Path) -> None:
    found = survey(bare, str(tmp_path), machine(tmp_path)).python
    assert Path(found.executable).parent == Path(bare).parent
    assert found.version == ".".join(map(str, sys.version_info[:3]))
    assert found.modules["torch"] is None


def test_our_own_interpreter(tmp_path: Path) -> None:
    found = survey(None, str(tmp_path), Machine(tmp_path, dict(os.environ)))
    assert found.python.modules["stepscope"]
    assert found.folder.error == ""


def test_an_interpreter_that_is_none(tmp_path: Path) -> None:
    write(tmp_path, "python", "not a program")
    for python in (str(tmp_path / "gone"), str(tmp_path / "python"), "/bin/false", "/bin/echo"):
        with pytest.raises(StepscopeError, match="cannot be examined"):
            survey(python, ".", machine(tmp_path))


def test_modules_of_the_current_folder_do_not_count(
    bare: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "torch.py")
    monkeypatch.chdir(tmp_path)
    assert survey(bare, ".", machine(tmp_path)).python.modules["torch"] is None


def test_a_driver_for_administrators_only(bare: str, nvidia: Path) -> None:
    write(nvidia, "proc/driver/nvidia/params", "ResmanDebugLevel: 4294967295\n" + RESTRICTED)
    assert "profiling-restricted" not in codes(bare, machine(nvidia), str(nvidia))
    write(nvidia, "proc/self/status", WITHOUT_CAPABILITIES.format(parent=1))
    assert "profiling-restricted" in codes(bare, machine(nvidia), str(nvidia))


def test_a_container_without_its_devices(bare: str, nvidia: Path) -> None:
    (nvidia / "dev" / "nvidia0").unlink()
    assert "devices-not-visible" in codes(bare, machine(nvidia), str(nvidia))


def test_nvml_that_cannot_be_loaded(bare: str, nvidia: Path) -> None:
    found = survey(bare, str(nvidia), machine(nvidia))
    assert found.driver.version == "580.82.07"
    if found.driver.nvml_error:
        assert "nvml-missing" in codes(bare, machine(nvidia), str(nvidia))
        assert "libnvidia-ml.so.1" in found.driver.nvml_error


def test_libraries_that_cannot_be_opened(bare: str, nvidia: Path) -> None:
    assert "cupti-missing" in codes(bare, machine(nvidia), str(nvidia))
    write(nvidia, "usr/local/cuda-12.4/extras/CUPTI/lib64/libcupti.so.12", "this is no library")
    found = survey(bare, str(nvidia), machine(nvidia))
    assert "libcupti.so.12" in found.cupti[0].error
    assert "cupti-unloadable" in codes(bare, machine(nvidia), str(nvidia))


def test_two_versions_on_the_path(tmp_path: Path, nvidia: Path) -> None:
    python, place = interpreter(tmp_path / "venv")
    write(place, "nvidia/cu13/lib/libcupti.so.13", "one")
    write(nvidia, "opt/old/libcupti.so.12", "two")
    here = machine(nvidia, LD_LIBRARY_PATH=f"/nowhere:{nvidia}/opt/old")
    assert {each.found_by for each in survey(python, ".", here).cupti} == {
        "LD_LIBRARY_PATH",
        "the packages of this Python",
    }
    assert "cupti-versions" in codes(python, here, str(nvidia))


def test_a_profiler_among_the_ancestors(bare: str, tmp_path: Path) -> None:
    write(tmp_path, "proc/50/status", WITHOUT_CAPABILITIES.format(parent=40))
    write(tmp_path, "proc/40/status", WITHOUT_CAPABILITIES.format(parent=30))
    write(tmp_path, "proc/40/comm", "bash\n")
    write(tmp_path, "proc/30/status", WITHOUT_CAPABILITIES.format(parent=1))
    write(tmp_path, "proc/30/comm", "nsys\n")
    write(tmp_path, "proc/9/comm", "nv-hostengine\n")
    told = codes(bare, machine(tmp_path), str(tmp_path))
    assert {"another-profiler", "dcgm-running"} <= told
    assert "profilers-beside" not in told


def test_a_folder_that_cannot_be_written(bare: str, tmp_path: Path) -> None:
    write(tmp_path, "file")
    assert "folder-unwritable" in codes(bare, machine(tmp_path), str(tmp_path / "file" / "logs"))
    assert "folder-unwritable" not in codes(bare, machine(tmp_path), str(tmp_path / "not" / "yet"))
    assert not (tmp_path / "not").exists()


def test_tensorboard_without_a_plugin(tmp_path: Path) -> None:
    python, place = interpreter(tmp_path / "venv")
    shell(place, "tensorboard", "2.21.0", TENSORBOARD)
    assert codes(python, machine(tmp_path), str(tmp_path)) == {"no-profile-plugin", "no-framework"}


def test_a_plugin_that_cannot_be_imported(tmp_path: Path) -> None:
    """Its loader hides it, as XProf's does."""
    python, place = interpreter(tmp_path / "venv")
    shell(place, "tensorboard", "2.21.0", TENSORBOARD)
    files = {
        "xprof/__init__.py": "",
        "xprof/plugin_loader.py": "class Loader: pass\n",
        "xprof/plugin.py": "import not_there\n",
    }
    shell(place, "xprof", "2.24.1", files, "profile = xprof.plugin_loader:Loader")
    found = diagnose_environment(survey(python, str(tmp_path), machine(tmp_path)))
    (broken,) = found.failures
    assert broken.code == "plugin-broken"
    assert "No module named 'not_there'" in broken.evidence
    assert "plugin.py:1" in broken.evidence


def test_two_plugins_of_one_name(tmp_path: Path) -> None:
    python, place = interpreter(tmp_path / "venv")
    shell(place, "tensorboard", "2.21.0", TENSORBOARD)
    shell(place, "xprof", "2.24.1", {"one.py": "P = 1\n"}, "profile = one:P")
    shell(place, "tensorboard-plugin-profile", "2.15.0", {"two.py": "P = 1\n"}, "profile = two:P")
    assert "plugin-name-twice" in codes(python, machine(tmp_path), str(tmp_path))


def test_tensorboard_that_needs_pkg_resources(tmp_path: Path) -> None:
    python, place = interpreter(tmp_path / "venv")
    shell(place, "tensorboard", "2.19.0", {**TENSORBOARD, "tensorboard/main.py": "import pkg_resources\n"})
    told = codes(python, machine(tmp_path), str(tmp_path))
    assert "pkg-resources-missing" in told
    assert "tensorboard-broken" not in told


def test_tensorboard_that_does_not_start(tmp_path: Path) -> None:
    python, place = interpreter(tmp_path / "venv")
    shell(
        place,
        "tensorboard",
        "2.21.0",
        {**TENSORBOARD, "tensorboard/main.py": "import sys\nsys.exit('no luck')\n"},
    )
    assert "tensorboard-broken" in codes(python, machine(tmp_path), str(tmp_path))


def test_protobuf_that_does_not_fit(tmp_path: Path) -> None:
    python, place = interpreter(tmp_path / "venv")
    shell(place, "tensorflow", "2.21.0", {"tensorflow/__init__.py": ""}, requires="protobuf<8.0.0,>=6.31.1")
    shell(place, "protobuf", "3.20.3", {"google/protobuf/__init__.py": ""})
    assert "protobuf-version" in codes(python, machine(tmp_path), str(tmp_path))


def test_several_packages_of_one_module(tmp_path: Path) -> None:
    python, place = interpreter(tmp_path / "venv")
    shell(place, "tensorboard", "2.21.0", TENSORBOARD)
    shell(place, "tb-nightly", "2.22.0", {})
    shell(place, "tensorflow", "2.21.0", {})
    shell(place, "tensorflow-cpu", "2.20.0", {})
    told = codes(python, machine(tmp_path), str(tmp_path))
    assert {"duplicate-tensorboard", "duplicate-tensorflow", "framework-broken"} <= told


def test_a_wheel_for_windows(tmp_path: Path) -> None:
    python, place = interpreter(tmp_path / "venv")
    shell(place, "xprof", "2.22.1", {"xprof/convert/_pywrap_profiler_plugin.pyd": "MZ"})
    assert "wrong-platform-wheel" in codes(python, machine(tmp_path), str(tmp_path))


@pytest.mark.parametrize(
    "head",
    ["#!{python}\n", "#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''\n", "#!/usr/bin/env python3\n"],
)
def test_the_command_of_another_python(tmp_path: Path, bare: str, head: str) -> None:
    other, place = interpreter(tmp_path / "other venv" if "exec" in head else tmp_path / "venv")
    shell(place, "tensorboard", "2.21.0", TENSORBOARD)
    command = Path(other).parent / "tensorboard"
    command.write_text(head.format(python=other))
    command.chmod(0o755)
    here = machine(tmp_path, PATH=str(command.parent))
    assert "tensorboard-other-python" not in codes(other, here, str(tmp_path))
    assert "tensorboard-other-python" in codes(bare, here, str(tmp_path))


@pytest.fixture(scope="module")
def with_tensorboard(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python with the real TensorBoard and what it needs, and nothing else."""
    pytest.importorskip("tensorboard")
    python, place = interpreter(tmp_path_factory.mktemp("tensorboard"))
    link_installed(place, "tensorboard")
    return python


def test_the_real_tensorboard_without_a_plugin(with_tensorboard: str, tmp_path: Path) -> None:
    found = diagnose_environment(survey(with_tensorboard, str(tmp_path), machine(tmp_path)))
    assert [result.code for result in found.failures] == ["no-profile-plugin"]
    assert with_tensorboard in found.failures[0].evidence
    assert found.failures[0].fix == f"{with_tensorboard} -m pip install stepscope"


def test_the_real_tensorboard_with_a_broken_plugin(with_tensorboard: str, tmp_path: Path) -> None:
    """A plugin on PYTHONPATH is found as well: that is where the shell lies, so that the real one stays clean."""
    shell(
        tmp_path,
        "xprof",
        "2.24.1",
        {"broken_plugin.py": "import tensorboard.not_there\n"},
        "profile = broken_plugin:P",
    )
    here = machine(tmp_path, PYTHONPATH=str(tmp_path))
    assert "plugin-broken" in codes(with_tensorboard, here, str(tmp_path))
