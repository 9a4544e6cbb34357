"""Facts that one check each must notice, and a healthy environment in which none does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stepscope.doctor.diagnose import diagnose_environment
from stepscope.doctor.environment import CHECKS
from stepscope.doctor.environment.facts import Driver, Environment, Interpreter, Library, Package
from stepscope.doctor.versions import parsed, requirement, satisfies
from tests.doctor.environments import CUPTI, HEALTHY, OTHER_CUPTI, SICK, packages

# What an old PyTorch has wrong, it has all of it.
TOGETHER = {"torch-empty-stacks": {"torch-old-clock"}, "torch-old-clock": {"torch-empty-stacks"}}


def codes(environment: Environment) -> set[str]:
    """What is told of it; no check may have broken."""
    found = diagnose_environment(environment)
    assert [each for each in found.not_looked_at if "could not be answered" in each.reason] == []
    return {result.code for result in found.results}


def test_a_healthy_environment() -> None:
    assert codes(HEALTHY) == set()


def test_nothing_installed_is_no_failure() -> None:
    found = diagnose_environment(Environment(Interpreter("/usr/bin/python3", "/usr", "3.12.1")))
    assert found.failures == []
    assert [result.code for result in found.results] == ["no-framework"]


@pytest.mark.parametrize(
    ("code", "environment"),
    [
        pytest.param(code, each, id=f"{code}-{place}")
        for code, those in SICK.items()
        for place, each in enumerate(those)
    ],
)
def test_each_sickness_is_noticed_and_no_other(code: str, environment: Environment) -> None:
    assert codes(environment) - TOGETHER.get(code, set()) == {code}


def test_every_check_is_provoked() -> None:
    assert {check.code for check in CHECKS} == set(SICK), "provoke it in SICK of tests/doctor/environments.py"


def test_fixes_name_the_interpreter() -> None:
    found = diagnose_environment(SICK["no-profile-plugin"][0])
    assert found.failures[0].fix == "/venv/bin/python -m pip install stepscope"


def test_the_same_library_twice_is_one() -> None:
    twice = (
        Library(CUPTI, "the packages of this Python", 22),
        Library("/x/libcupti.so.13", "LD_LIBRARY_PATH", 22),
    )
    assert codes(replace(HEALTHY, cupti=twice)) == set()


def test_a_toolkit_that_nobody_would_load_is_no_conflict() -> None:
    beside = replace(OTHER_CUPTI, found_by="the system")
    assert codes(replace(HEALTHY, cupti=(*HEALTHY.cupti, beside))) == set()


def test_without_a_device_nothing_is_said_of_one() -> None:
    cpu = packages(Package("torch", "2.13.0+cpu"), without=("jax-cuda13-plugin",))
    environment = replace(
        cpu, driver=Driver(), cupti=(), may_read_counters=False, variables={"CUDA_VISIBLE_DEVICES": ""}
    )
    assert codes(environment) == set()


@pytest.mark.parametrize(
    ("version", "specifier", "wanted"),
    [
        ("7.36.2", "<8.0.0,>=6.31.1", True),
        ("3.20.3", "<8.0.0,>=6.31.1", False),
        ("8.0.0", "<8.0.0", False),
        ("4.24.0", "!=4.24.0,>=3.19.6", False),
        ("3.20", "==3.20.*", True),
        ("3.20.1", "==3.20.0", False),
        ("1.4.5", "~=1.4.2", True),
        ("1.5.0", "~=1.4.2", False),
        ("2.0", "==2.0.0", True),
        ("5.0.0rc1", ">=4", True),
        ("1", "", True),
    ],
)
def test_versions(version: str, specifier: str, wanted: bool) -> None:
    assert satisfies(version, specifier) is wanted


def test_requirements() -> None:
    assert requirement("protobuf (<5,>=3.20) ; python_version > '3.8'") == ("protobuf", "<5,>=3.20")
    assert requirement("fsspec[gcs]>=2024.10.0") == ("fsspec", ">=2024.10.0")
    assert requirement("Markdown") == ("markdown", "")
    assert parsed("2.11.0+cu130") == (2, 11, 0)
    assert parsed("unknown") == ()
