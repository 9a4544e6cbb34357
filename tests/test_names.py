"""Names as people say them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.names import cut_middle, cut_path, name_place, short_name


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("<built-in method acquire of _thread.lock object at 0x7f8a90b1c2d0>", "lock.acquire"),
        ("<built-in method acquire of _thread.lock object>", "lock.acquire"),
        ("<method 'acquire' of '_thread.lock' objects>", "lock.acquire"),
        ("<built-in method read of _io.BufferedReader object>", "BufferedReader.read"),
        ("<built-in method stack of type object>", "stack"),
        ("<built-in method  of PyCapsule object>", "native code"),
        ("<built-in function open>", "open"),
        ("torch/cuda/__init__.py(975): synchronize", "synchronize (torch/cuda/__init__.py:975)"),
        ("$api.py:3154 block_until_ready", "block_until_ready (api.py:3154)"),
        ("$numpy asarray", "numpy.asarray"),
        ("$npz.py savez", "savez (npz.py)"),
        ("$<unknown> astype", "astype"),
        ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "DataLoader.__next__"),
        (
            "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
            "DataLoader.__next__ (with workers)",
        ),
        ("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bLi256EEEvPT0_", "add_rmsnorm_quant_kernel"),
        ("_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_4xxxxEEEEEvv", "kentry<Rmsnorm2dFwd>"),
        ("_Z3addPf", "add"),
        ("ncclKernel_AllReduce(ncclDevComm*, ncclWork*)", "ncclKernel_AllReduce"),
        ("PjitFunction(train_step)", "PjitFunction(train_step)"),
        ("void at::native::tile<at::native::Functor<float>, 4>(int, float*)", "tile<Functor<float>, 4>"),
        ("aten::mm", "aten::mm"),
        ("Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD (Pinned -> Device)"),
        ("_Z", "_Z"),
        ("", ""),
    ],
)
def test_a_name_as_a_colleague_would_say_it(name: str, said: str) -> None:
    assert short_name(name) == said


def test_paths_are_cut_in_the_middle() -> None:
    path = "/srv/jobs/2026/projects/vision/training/loops/train.py"
    assert name_place("step", path, 12) == "step (/srv/…/vision/training/loops/train.py:12)"
    assert len(cut_path(path, 30)) <= 30
    assert cut_path(path, 30).endswith("/train.py")
    assert cut_path("train.py") == "train.py"


def test_the_ends_of_a_long_text_stay() -> None:
    assert cut_middle("abcdefghij", 5) == "ab…ij"
    assert cut_middle("abc", 5) == "abc"


@given(st.text(max_size=200))
def test_no_name_is_too_odd(name: str) -> None:
    assert isinstance(short_name(name), str)
    assert isinstance(short_name(f"_ZN{name}"), str)


def test_a_name_of_megabytes_is_left_alone() -> None:
    long = "void " + "a::" * 100_000
    assert short_name(long) == long
