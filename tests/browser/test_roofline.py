"""The roofline: points below ceilings, on logarithmic axes, each a way to its kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.browser.conftest import playwright

expect = playwright.expect


def test_points_below_ceilings_lead_to_their_kernels(show: Callable[..., Any]) -> None:
    page = show("kernels", "kineto_gpu")
    chart = page.locator(".figure[data-drawn=yes]", has_text="Roofline")
    types = chart.locator(".plot").evaluate(
        "plot => [plot._fullLayout.xaxis.type, plot._fullLayout.yaxis.type]"
    )
    assert types == ["log", "log"]
    expect(chart).to_contain_text("memory: 4.8 TB/s")
    expect(chart).to_contain_text("fp16, bf16: 989 TFLOP/s")
    plot = chart.locator(".plot")
    plot.focus()
    page.keyboard.press("ArrowRight")
    said = chart.locator(".told").inner_text()
    assert "of its bound" in said and "FLOP/B" in said
    page.keyboard.press("Enter")
    page.wait_for_url("**#/trace?*")
