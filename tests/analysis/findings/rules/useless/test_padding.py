"""Padded batches on a CPU, whose ops compute by themselves, and batches of which the capture counted the samples."""

from __future__ import annotations

import dataclasses

import pytest

from stepscope.analysis.findings.batches.padded import bucket_shares
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.rules.useless import padding
from stepscope.analysis.findings.rules.useless.padding import find
from stepscope.analysis.lengths import CountedLengths
from stepscope.trace.trace import Trace
from tests.analysis.compute.traces import compute_trace
from tests.analysis.findings.op_steps import GEMM, Op
from tests.analysis.findings.op_steps import case as case_of_ops
from tests.builders.cases import case_of

HEAD = "track  start  dur  name  kind  launches  shapes  dtypes"
PRODUCT = "[[128],[1536,128],[128,512]]"
ATTENTION = "aten::scaled_dot_product_attention"


def case(mask: str = "[8,1,1,192]", lengths: tuple[int, ...] = (192, 192, 192)) -> Case:
    """Steps of 1 ms on a CPU: a product takes 400 µs, attention 400, and the optimizer 100."""
    lines = [HEAD]
    for number, length in enumerate(lengths):
        qkv = f"[8,4,{length},32]"
        rows = [
            f"10  400  aten::addmm  op  -  {PRODUCT}  float",
            f"420  410  {ATTENTION}  op  -  [{qkv},{qkv},{qkv},{mask.replace('192', str(length))},[],[],[],[]]  float",
            f"425  400  aten::_scaled_dot_product_flash_attention_for_cpu  op  -  [{qkv},{qkv},{qkv}]  float",
            "840  120  Optimizer.step#SGD.step  annotation  -  -  -",
            "850  100  aten::addmm  op  -  [[8],[8,8],[8,8]]  float",
        ]
        lines.append(f"main  {1000 * number}  1000  ProfilerStep#{number}  annotation  -  -  -")
        for row in rows:
            start, rest = row.split("  ", 1)
            lines.append(f"main  {1000 * number + int(start)}  {rest}")
    return case_of(compute_trace("\n".join(lines), device={}))


def test_all_ops_but_the_optimizers_shrink_and_attention_by_the_square() -> None:
    made = case()
    found = find(made)
    assert found is not None
    assert found.evidence["length"] == 192
    assert found.share == pytest.approx(0.8, abs=0.02)
    most, least = (0.2 + 0.4 * left + 0.4 * left**2 for left in (0.8, 0.25))
    assert found.speedup.mid == pytest.approx(1 / (least * most) ** 0.5, rel=0.03)
    assert 1.2 < found.speedup.low < found.speedup.mid < found.speedup.high


def test_shared_masks_and_batches_of_their_own_lengths_are_not_padded() -> None:
    assert find(case("[192,192]")) is None
    assert find(case(lengths=(192, 160, 96))) is None


LENGTH = 512
SAMPLES = 32


def counted(mean: float, longest: float, of: str = "mask", length: int = LENGTH) -> dict[str, object]:
    """As the capture notes batches."""
    size = {"shape": [SAMPLES, length], "calls": 3}
    return {"framework": "torch", "of": of, **size, "mean": mean, "longest": longest}


def with_lengths(made: Case, *rows: dict[str, object], framework: str = "pytorch") -> Case:
    """The same job, of which the capture counted lengths."""
    info = dataclasses.replace(made.trace.info, capture={"lengths": list(rows)}, framework=framework)
    return case_of(Trace({**made.trace.tables, "traces": info.frame()}))


def lookups(length: int = LENGTH, table: str = "[5000,64]") -> list[Op]:
    """Ids that are looked up, a layer on all positions for 400 µs, a weight that is cast for 200, and an LSTM's loss."""
    positions = f"[[{SAMPLES * length},64],[64,256]]"
    return [
        Op("aten::embedding", f"[{table},[{SAMPLES},{length}],[],[],[]]", "indexSelectLargeIndex", 20),
        Op("aten::mm", positions, GEMM, 400),
        Op("aten::_to_copy", "[[1024,1024]]", "unrolled_elementwise_kernel", 200),
        Op("aten::_ctc_loss", f"[[{length},{SAMPLES},48],[900]]", "ctc_loss_log_alpha_gpu_kernel", 10),
    ]


def test_counted_samples_promise_what_the_longest_of_a_batch_leaves() -> None:
    """The cast of a weight stays; nothing has a mask."""
    for of in ("ids", "lengths"):
        found = find(with_lengths(case_of_ops(*[lookups()] * 4), counted(100, 160, of)))
        assert found is not None
        assert found.evidence == {
            **found.evidence,
            "length": LENGTH,
            "mean_length": 100,
            "longest_length": 160,
        }
        assert found.saves_ns_per_step == pytest.approx((1 - 1.1 * 160 / LENGTH) * 430_000, rel=0.1)
        assert found.speedup.high / found.speedup.low < 1.6
        assert found.certainty == 1.0
        assert found.title == "Batches are padded to the longest sample of all"


def test_batches_of_all_lengths_have_to_be_sorted() -> None:
    found = find(with_lengths(case_of_ops(*[lookups()] * 4), counted(160, 500, "ids")))
    assert found is not None
    assert found.title == "Batches mix samples of all lengths, and are mostly padding"
    assert found.saves_ns_per_step < 0.6 * 430_000


OWN = (512, 400, 300, 452)


def counted_alone(share: float, of: str = "ids") -> list[dict[str, object]]:
    """A row for each length, of samples with this share of it in the mean."""
    return [counted(share * length, 0.98 * length, of, length) for length in OWN]


def test_batches_of_their_own_lengths_that_are_mostly_padding() -> None:
    """Each is padded to its own longest sample, and samples of all lengths come together."""
    for of in ("ids", "mask", "lengths"):
        made = case_of_ops(*[lookups(length) for length in OWN])
        found = find(with_lengths(made, *counted_alone(0.4, of)))
        assert found is not None
        assert found.title == "Batches mix samples of all lengths, and are mostly padding"
        assert "Steps have sequences of 300 to 512." in found.detail
        assert "group_by_length" in found.fix
        assert found.evidence["mean_length"] == round(0.4 * sum(OWN) / 4)
        assert found.saves_ns_per_step == pytest.approx((1 - 0.4 * 1.25**0.5) * 430_000, rel=0.1)
        assert found.speedup.high / found.speedup.low < 1.6


def with_counts(rows: list[dict[str, object]], share: float) -> list[dict[str, object]]:
    """Of samples as long as this share of the positions, and one of 32 as long as the longest."""
    counts = [0] * 64
    counts[round(64 * share) - 1], counts[-1] = 31 * 3, 3
    return [each | {"counts": counts} for each in rows]


def saved(found: Finding | None) -> float:
    assert found is not None
    return found.saves_ns_per_step / 430_000


def test_counts_say_what_is_left_of_sorted_batches() -> None:
    """One of 32 samples fills its batch: sorted with those of 16 to 128 batches, one batch of 32 is as long as before."""
    rows = with_counts(counted_alone(0.25), 0.25)
    alone = find(with_lengths(case_of_ops(*[lookups(length) for length in OWN]), *rows))
    assert saved(alone) == pytest.approx(1 - (0.25 + 0.75 / 32), abs=0.07)
    fixed = with_counts([counted(140, 512, "ids")], 0.25)
    at_once = find(with_lengths(case_of_ops(*[lookups()] * 4), *fixed))
    assert at_once is not None
    assert at_once.title == "Batches mix samples of all lengths, and are mostly padding"
    assert saved(at_once) == pytest.approx(1 - (0.25 + 0.75 / 32), abs=0.07)


def test_a_step_with_many_batches_sorts_its_own() -> None:
    """Of four batches, the longest samples take one; where only the mean is known, nothing is said."""
    shuffled = [lookups(length) for length in OWN]
    steps = [[op for each in shuffled for op in each[:3]]] * 4
    rows = [{**each, "calls": 4} for each in counted_alone(0.25)]
    found = find(with_lengths(case_of_ops(*steps), *with_counts(rows, 0.25)))
    assert found is not None
    assert "Steps have sequences of 300 to 512." in found.detail
    assert found.evidence["mean_length"] == round(0.25 * sum(OWN) / 4)
    assert 1 / found.speedup.high < 1 - 0.45 * found.share
    assert 1.5 < found.speedup.mid < 2.6
    assert find(with_lengths(case_of_ops(*steps), *rows)) is None


def test_programs_for_several_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where each length that masks samples was counted."""
    monkeypatch.setattr(padding, "_lengths_in_programs", lambda case: {*OWN})
    made = case_of_ops(*[lookups(length) for length in OWN])
    rows = [{**each, "calls": 1} for each in with_counts(counted_alone(0.25), 0.25)]
    found = find(with_lengths(made, *rows, framework="jax"))
    assert found is not None
    assert found.title == "Batches mix samples of all lengths, and are mostly padding"
    assert "buckets" in found.fix
    assert find(with_lengths(made, *rows[:1], framework="jax")) is None
    twice = [{**each, "calls": 2} for each in rows]
    assert find(with_lengths(made, *twice, framework="jax")) is None


def test_kinds_of_texts_and_growing_texts_are_not_batches_to_be_sorted() -> None:
    """A query with passages, or a text that is a token longer with each call."""
    of_three = [lookups(length) + lookups(300) + lookups(200) for length in OWN]
    rows = [counted(0.25 * each, 0.98 * each, "ids", each) for each in (*OWN, 200)]
    assert find(with_lengths(case_of_ops(*of_three), *with_counts(rows, 0.25))) is None
    growing = [[op for length in (96, 97, 98, 99) for op in lookups(length)]] * 4
    rows = [counted(30, each, "ids", each) for each in (96, 97, 98, 99)]
    assert find(with_lengths(case_of_ops(*growing), *with_counts(rows, 0.25))) is None


def test_features_that_are_not_looked_up_are_seen_by_attention() -> None:
    """As those of speech, with a mask of which positions are there."""
    made = case(lengths=(192, 160, 96))
    rows = [{**counted(0.25 * each, each, "mask", each), "shape": [8, each]} for each in (192, 160, 96)]
    found = find(with_lengths(made, *with_counts(rows, 0.25)))
    assert found is not None
    assert found.title == "Batches mix samples of all lengths, and are mostly padding"
    full = [{**counted(0.95 * each, each, "mask", each), "shape": [8, each]} for each in (192, 160, 96)]
    assert find(with_lengths(made, *full)) is None


def test_batches_of_their_own_lengths_that_are_sorted() -> None:
    """Their samples are about as long as the longest one; or a step has texts of two lengths, of which one has the order."""
    sorted_by_length = case_of_ops(*[lookups(length) for length in OWN])
    assert find(with_lengths(sorted_by_length, *counted_alone(0.9))) is None
    assert find(with_lengths(sorted_by_length, counted_alone(0.4)[0])) is None
    of_two = case_of_ops(*[lookups(length) + lookups(length // 2) for length in OWN])
    assert find(with_lengths(of_two, *counted_alone(0.4))) is None


@pytest.mark.parametrize(
    ("by_step", "row"),
    [
        ([lookups()] * 4, counted(420, 500, "ids")),
        ([lookups()] * 4, counted(280, 420, "ids", length=500)),
        ([lookups(length) for length in (512, 400, 300, 512)], counted(100, 160, "ids")),
        ([lookups()] * 4, counted(100, 160)),
        ([lookups()] * 2, counted(100, 160, "ids")),
        ([lookups(16)] * 4, counted(4, 8, "ids", length=16)),
    ],
    ids=[
        "full",
        "of another length",
        "of their own lengths",
        "a mask that no attention gets",
        "two steps",
        "short",
    ],
)
def test_full_batches_and_those_of_other_lengths_are_not_found(
    by_step: list[list[Op]], row: dict[str, object]
) -> None:
    assert find(with_lengths(case_of_ops(*by_step), row)) is None


def test_masks_that_are_counted_to_be_full_are_no_padding() -> None:
    assert find(with_lengths(case(), {**counted(180, 192), "shape": [8, 192]})) is None
    found = find(with_lengths(case(), {**counted(48, 96), "shape": [8, 192]}))
    assert found is not None
    linear, square = (0.4 * (1.095 * 0.5) ** power for power in (1, 2))
    assert found.speedup.mid == pytest.approx(1 / (0.2 + linear + square), rel=0.05)


def test_a_recurrent_network_launches_less_for_fewer_positions() -> None:
    """The host launches two kernels for each position; where it does so for a layer alone, that stays."""

    def found(op: str) -> Finding:
        launches = tuple(Op("aten::addmm", f"[[{SAMPLES * LENGTH},64]]", GEMM, 2) for _ in range(95))
        ops = [lookups()[0], Op(op, f"[[{LENGTH},{SAMPLES},64]]", inside=launches)]
        made = find(with_lengths(case_of_ops(*[ops] * 4), counted(100, 160, "ids")))
        assert made is not None
        return made

    assert found("aten::_cudnn_rnn").speedup.mid > 1.8
    assert found("aten::linear").speedup.mid < 1.3


@pytest.mark.parametrize(
    ("longest", "least", "most"),
    [(71, 0.75 * 128, 1.2 * 128), (120, 120, 1.2 * 128), (128, 128, 1.2 * 128), (300, 384, 512)],
)
def test_compiled_lengths_are_about_the_next_power_of_two(longest: float, least: float, most: float) -> None:
    one = CountedLengths("jax", "ids", (64, 512), 3, 25.0, longest)
    assert bucket_shares(one) == pytest.approx((least / 512, most / 512))
