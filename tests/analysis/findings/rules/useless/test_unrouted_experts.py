"""Mixtures of experts in which every expert computes every token."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.rules.useless.unrouted_experts import find
from stepscope.analysis.ops.experts import find_experts
from tests.analysis.findings.op_steps import Op, case

TOKENS, EXPERTS = 512, 8
LINEAR = "float,float,float"


def frame(name: str, *inside: Op) -> Op:
    return Op(f"nn.Module: {name}", kind="python", inside=inside)


def choice(chosen: int = 2, scores: str = f"[{TOKENS},{EXPERTS}]") -> Op:
    """Of the best experts for each token."""
    inputs = f'["","{chosen}","-1","True","True"]'
    return Op("aten::topk", f"[{scores},[],[],[],[]]", "topk_kernel", 2, dtypes="float,Scalar,Scalar,Scalar,Scalar", inputs=inputs)  # fmt: skip


def linear(rows: int | str, length: int = 40) -> Op:
    return Op("aten::linear", f"[[{rows},64],[64,64],[64]]", "nvjet_linear", length, dtypes=LINEAR)


def experts(count: int = EXPERTS, rows: int | str = TOKENS, kind: str = "Expert") -> list[Op]:
    return [frame(f"{kind}_{number}", linear(rows)) for number in range(count)]


def test_experts_that_all_compute_all_tokens() -> None:
    found = find(case(*[[frame("Mixture_0", choice(), *experts())]] * 3))
    assert found is not None
    assert found.evidence["experts"] == EXPERTS
    assert (found.evidence["chosen"], found.evidence["tokens"]) == (2, TOKENS)
    assert found.speedup.mid > 1.15
    assert "sort the choices" in found.fix
    batch = choice(scores=f"[4,{TOKENS // 4},{EXPERTS}]"), *experts(rows=f"4,{TOKENS // 4}")
    assert find(case(*[[frame("Mixture_0", *batch)]] * 3)) is not None


def test_a_router_that_is_a_module() -> None:
    layer = frame("Mixture_0", frame("Router_0", choice()), *experts())
    assert find(case(*[[layer]] * 3)) is not None


def test_products_with_the_weights_of_all_experts() -> None:
    for operands in (f"[8,{TOKENS},64],[8,64,64]", f"[1,{TOKENS},64],[8,64,64]"):
        assert find(case(*[[frame("Mixture_0", choice(), product(operands))]] * 3)) is not None
    full = product("[8,160,64],[8,64,64]")
    assert find(case(*[[frame("Mixture_0", choice(), full)]] * 3)) is None


def product(operands: str) -> Op:
    return Op("aten::bmm", f"[{operands}]", "nvjet_bmm", 300, dtypes="float,float")


SOFTMAX = Op("aten::_softmax", f"[[8,{TOKENS},640],[],[]]", "softmax_kernel", 2)
ATTENTION = Op("aten::scaled_dot_product_attention", kernel="flash_fwd_kernel", length=20)
HEADS = [frame(f"Head_{number}", linear(TOKENS), ATTENTION) for number in range(EXPERTS)]
PROJECTIONS = [frame(f"Linear_{number}", linear(TOKENS)) for number in range(4)]


@pytest.mark.parametrize(
    "ops",
    [
        [choice(), product(f"[8,{TOKENS},64],[8,64,{TOKENS}]")],
        [choice(), product(f"[8,{TOKENS},64],[8,64,640]"), SOFTMAX, product(f"[8,{TOKENS},640],[8,640,64]")],
        [product(f"[8,{TOKENS},64],[8,64,64]"), choice()],
        [choice(), *HEADS],
        [choice(scores=f"[{TOKENS},4]", chosen=1), *PROJECTIONS[:3], ATTENTION, PROJECTIONS[3]],
    ],
    ids=["scores of heads", "keys of a cache", "before the choice", "heads", "projections"],
)
def test_attention_is_no_mixture_of_experts(ops: list[Op]) -> None:
    assert find(case(*[[frame("Attention_0", *ops)]] * 3)) is None


def test_four_linear_layers_may_be_experts() -> None:
    ops = [choice(scores=f"[{TOKENS},4]", chosen=1), *PROJECTIONS]
    assert find(case(*[[frame("Mixture_0", *ops)]] * 3)) is not None


@pytest.mark.parametrize(
    "ops",
    [
        [frame("Mixture_0", choice(), *experts(rows=128))],  # the tokens that are sent to them
        [frame("Mixture_0", choice(6), *experts())],  # most of them are used
        [frame("Mixture_0", *experts())],  # all are
        [frame("Mixture_0", choice(), *experts(count=6))],  # layers of something else
        [frame("Mixture_0", *experts(), choice())],  # the choice is among their results
        [frame("Net_0", frame("Router_0", choice()), *experts(kind="Linear"))],  # projections behind it
        [choice(), *experts()],
    ],
)
def test_layers_that_need_all_that_they_compute(ops: list[Op]) -> None:
    assert find(case(*[ops] * 3)) is None


def test_of_few_tokens_most_experts_get_some() -> None:
    for tokens, is_found in ((1, True), (16, False), (TOKENS, True)):
        ops = [frame("Mixture_0", choice(scores=f"[{tokens},{EXPERTS}]"), *experts(rows=tokens))]
        made = case(*[ops] * 3)
        assert (find(made) is not None) is is_found
        shares = [each.share for each in find_experts(made.trace, made.ops)]
        assert shares == pytest.approx([0.25 if is_found else 0.99] * 3, abs=0.01)


def test_unreadable_inputs_say_nothing() -> None:
    broken = Op("aten::topk", "[[4,", dtypes="float", inputs='["","x"]')
    assert find(case(*[[frame("Mixture_0", broken, *experts())]] * 3)) is None
