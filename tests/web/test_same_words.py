"""The page and the other renderings say the same: units, short names, parts and colours."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from stepscope import units
from stepscope.names import short_name
from stepscope.reports.figures import style
from stepscope.reports.wording.parts import PARTS
from stepscope.reports.wording.values import share, significant

ROOT = Path(__file__).resolve().parents[2]
WEB = ROOT / "src" / "stepscope" / "web"
NODE = shutil.which("node")
NUMBERS = [0, 1, 9.99, 12, 999, 1_000, 12_345, 99_949, 1_000_000, 12_593_248, 2.5e9, 7.3e12, 1023, 1024, 10 << 20, 3 << 40]  # fmt: skip
SHARES = [0, 0.0001, 0.0005, 0.05, 0.795408, 1.0, 1.2]
NAMES = [
    "aten::mm",
    "nvjet_sm90_tst_64x24_64x16_2x4_h_bz_NNT",
    "Memcpy HtoD (Pinned -> Device)",
    "void at::native::vectorized_elementwise_kernel<8, at::native::FillFunctor<c10::BFloat16>, std::array<char*, 1ul> >(int, at::native::FillFunctor<c10::BFloat16>, std::array<char*, 1ul>)",
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<std::multiplies<float>, float>(int)",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t<float, at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)::{lambda(float, float)#1}> > >(int)",
    "void ()",
    "<built-in method to of Tensor object>",
    "<built-in method acquire of _thread.lock object at 0x7f8a90b1c2d0>",
    "<built-in method stack of type object>",
    "<built-in method  of PyCapsule object>",
    "<method 'acquire' of '_thread.lock' objects>",
    "<built-in function open>",
    "<built-in of nothing>",
    "train.py(12): step",
    "/srv/jobs/2026/projects/vision/training/loops/train.py(12): <lambda>",
    "a_very_long_name_of_a_single_file_without_any_folder.py(3): f",
    "$api.py:3154 block_until_ready",
    "$numpy asarray",
    "$npz.py savez",
    "$<unknown> astype",
    "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
    "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
    "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi16EEEvPT0_PT_",
    "_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27Rmsnorm2dFwdPipelineOnePassEEEEEvv",
    "_Z3addPf",
    "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)",
    "PjitFunction(train_step)",
    "_Z",
    "std::pair<int, (anonymous namespace)::X>::f() const",
]
# `var(--ink)` in a rule, `colour("ink")` in a module; names that are put together, such as p- and a part, are not seen.
ASKED = r"""var\(--([\w-]*\w)\)|colour\("([\w-]+)"\)"""
SCRIPT = """
import {{ duration, shown, size, share }} from "{web}/text/format.js";
import {{ shortName }} from "{web}/text/names.js";
import {{ PARTS }} from "{web}/text/parts.js";
const {{ numbers, shares, names }} = {given};
console.log(JSON.stringify({{ durations: numbers.map(duration), sizes: numbers.map(size), rates: numbers.map((each) => shown(each, "rate")), shares: shares.map(share), names: names.map(shortName), parts: PARTS }}));
"""


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    """What the page's own modules say."""
    if NODE is None:
        pytest.skip("NO NODE: the page's modules are not tested")
    given = json.dumps({"numbers": NUMBERS, "shares": SHARES, "names": NAMES})
    script = SCRIPT.format(web=WEB.as_uri(), given=given)
    command = [NODE, "--input-type=module", "--eval", script]
    found: dict[str, Any] = json.loads(
        subprocess.run(command, capture_output=True, text=True, check=True).stdout
    )
    return found


def test_units(told: dict[str, Any]) -> None:
    assert told["durations"] == [units.duration(number) for number in NUMBERS]
    assert told["sizes"] == [units.size(number) for number in NUMBERS]


def test_rates_have_no_powers_of_ten(told: dict[str, Any]) -> None:
    whole = [number for number in NUMBERS if number < 1000 or number % 1000 == 0]
    rates = dict(zip(NUMBERS, told["rates"], strict=True))
    assert [rates[number] for number in whole] == [significant(number) for number in whole]
    assert significant(2169.4) == "2,170"
    assert told["shares"] == [share(value) for value in SHARES]


def test_short_names(told: dict[str, Any]) -> None:
    assert told["names"] == [short_name(name) for name in NAMES]


def test_parts(told: dict[str, Any]) -> None:
    assert told["parts"] == {
        name: {"title": part.title, "meaning": part.meaning, "isBusy": part.is_busy}
        for name, part in PARTS.items()
    }
    assert list(told["parts"]) == list(PARTS)


def test_every_colour_that_a_module_or_rule_asks_for_is_in_the_theme() -> None:
    light, _, dark = re.findall(r"\.stepscope[^{}]*\{([^{}]*)\}", style.theme_style())[:3]
    known = _names(light)
    assert known == _names(dark)
    files = [*WEB.rglob("*.js"), *WEB.rglob("*.css")]
    asked = {name for path in files for name in re.findall(ASKED, path.read_text("utf-8"))}
    lengths = {
        name for path in files for name in re.findall(r"--([\w-]+): *[\d.]+px", path.read_text("utf-8"))
    }
    wanted = {name or other for name, other in asked} - {""} - lengths
    assert len(wanted) > 10
    assert wanted <= known
    assert {f"p-{name}" for name in PARTS} <= known


def _names(block: str) -> set[str]:
    return set(re.findall(r"--([\w-]+):#[0-9a-f]{6}", block))


def test_modules_are_small_and_carry_no_markup() -> None:
    """Names become text in dom.js alone: no module writes HTML, or has handlers that a policy would have to allow."""
    for path in WEB.rglob("*.js"):
        text = path.read_text("utf-8")
        assert len(text.splitlines()) <= 300, path
        for forbidden in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
        ):
            assert forbidden not in text, f"{path} uses {forbidden}"
    page = (WEB / "index.html").read_text("utf-8")
    assert not re.search(r"<script(?![^>]*\ssrc=)", page), "no inline script"
    assert not re.search(r"\son\w+=", page), "no inline handlers"
    assert not re.search(r"(src|href)=\"(https?:)?//", page), "nothing from elsewhere"
