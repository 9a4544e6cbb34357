"""The page about the registers is what they hold, and every entry says enough."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

import stepscope.registers
from stepscope.registers.calibration.caches import CACHES, PCIE_GB_PER_S
from stepscope.registers.calibration.devices import DEVICES
from stepscope.registers.entry import CHOSEN, ENTRIES, Entry
from stepscope.registers.page import MODULES, entries_of, page, written

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "calibration.md"
FOLDER = Path(stepscope.registers.__file__).parent
# Modules of the package that hold no numbers.
OTHERS = ("entry", "page")
# They hold tables of data sheets instead of single numbers.
TABLES = ("calibration.devices", "calibration.caches")

page()  # imports all registers


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == page(), "run: python -m stepscope.registers.page docs/calibration.md"


def test_every_register_is_on_the_page() -> None:
    files = [path.relative_to(FOLDER).with_suffix("") for path in FOLDER.rglob("*.py")]
    names = {".".join(path.parts) for path in files if path.name != "__init__"}
    assert names - set(OTHERS) == set(MODULES)


def test_every_device_has_a_source_and_rates_that_make_sense() -> None:
    """Narrower formats are not slower, and no device is listed twice."""
    assert len({device.name for device in DEVICES}) == len(DEVICES)
    for device in DEVICES:
        assert device.source
        assert device.tera["fp32"] <= device.tera.get("tf32", device.tera["fp16"]) <= device.tera["fp16"]
        assert device.tera["fp16"] <= device.tera.get("fp8", device.tera["fp16"])


def test_every_device_has_a_cache_and_links() -> None:
    """By the beginning of its name; no entry is without a device."""
    found = [next((each for each in CACHES if device.name.startswith(each.name)), None) for device in DEVICES]
    assert None not in found
    assert {each.name for each in found if each} == {each.name for each in CACHES}
    for each in CACHES:
        assert each.source
        assert each.pcie in PCIE_GB_PER_S
        assert (each.link == "") <= (each.link_gb_per_s is None)


@pytest.mark.parametrize("name", [name for name in MODULES if name not in TABLES])
def test_a_number_has_one_name_in_code_and_register(name: str) -> None:
    module = import_module(f"stepscope.registers.{name}")
    found = entries_of(module)
    assert found
    for entry in found:
        assert vars(module)[entry.name] == entry.value
        assert name.startswith(entry.register)
    constants = {each for each in vars(module) if each.isupper() and not each.startswith("_")}
    assert constants - {"CHOSEN"} == {entry.name for entry in found}


def test_every_entry_is_defined_in_a_register() -> None:
    listed = [
        entry.name for name in MODULES for entry in entries_of(import_module(f"stepscope.registers.{name}"))
    ]
    assert sorted(listed) == sorted(ENTRIES)


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=lambda entry: entry.name)
def test_every_entry_says_where_it_comes_from(entry: Entry) -> None:
    assert entry.unit
    assert entry.origin
    if entry.register == "calibration":
        assert entry.device
        by_others = ("specified", "data sheets", "read in its source")
        assert entry.when or entry.origin.startswith((CHOSEN, *by_others)), "when was it measured?"


@pytest.mark.parametrize(
    ("value", "text"), [(60_000, "60,000"), (0.015, "0.015"), (2e-5, "2e-05"), (4.0, "4")]
)
def test_numbers_are_written_as_people_write_them(value: float, text: str) -> None:
    assert written(value) == text
