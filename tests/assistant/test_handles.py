"""Handles are short, stable, and found again."""

from __future__ import annotations

import pytest

from stepscope.assistant.handles import Handle, handle, parse_handle, short_id
from stepscope.errors import StepscopeError


def test_a_plain_name_is_its_own_id() -> None:
    assert handle("op", "aten::mm") == "op:aten::mm"
    assert parse_handle("op:aten::mm") == Handle("op", "aten::mm")


def test_a_long_name_has_a_digest_that_stays() -> None:
    name = "void at::native::reduce_kernel<128, 4>(x)" * 1_000
    assert short_id(name) == short_id(name)
    assert len(short_id(name)) <= 40
    assert short_id(name) != short_id(name + "x")
    assert parse_handle(handle("kernel", name)).means(name)
    assert not parse_handle(handle("kernel", name)).means(name + "x")
    assert parse_handle(f"kernel:{name}").means(name)


@pytest.mark.parametrize("text", ["", "finding", "nothing:1", "finding:", "\x1b[31m:1"])
def test_what_is_no_handle_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(StepscopeError, match="Not a handle") as caught:
        parse_handle(text)
    assert "\x1b" not in str(caught.value)
