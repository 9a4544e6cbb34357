"""Modules and functions of PyTorch that a step calls again with the same inputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import polars as pl

from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.rules.useless.repeated_work import find
from stepscope.trace.schema import TABLES
from tests.analysis.findings.op_steps import Op, case

TOKENS, TEXT, LATENT = "[4,16]", "[4,16,64]", "[4,256,8]"
FLOATS = "float,float"


def op(name: str, shapes: str, dtypes: str = FLOATS, length: int = 0, inputs: str = "-") -> Op:
    """One that launches a kernel of so many µs."""
    kernel = f"{name.removeprefix('aten::')}_kernel" if length else ""
    return Op(name, shapes, kernel, length, dtypes=dtypes, inputs=inputs)


def frame(name: str, *inside: Op) -> Op:
    """A call of a module or a function."""
    return Op(name, kind="python", inside=inside)


def encoder(length: int = 60, *more: Op) -> Op:
    """Of the prompt."""
    return frame(
        "nn.Module: TextEncoder_0",
        op("aten::embedding", f"[[100,64],{TOKENS}]", "float,long"),
        *more,
        op("aten::linear", f"[{TEXT},[64,64],[64]]", "float,float,float", length),
    )


def denoiser() -> Op:
    return frame(
        "nn.Module: Denoiser_0",
        op("aten::linear", f"[{LATENT},[64,8],[64]]", "float,float,float", 20),
        op("aten::scaled_dot_product_attention", f"[[4,256,64],{TEXT},{TEXT}]", "float,float,float", 20),
        op("aten::linear", "[[4,256,64],[8,64],[8]]", "float,float,float", 20),
    )


UPDATE = op("aten::sub", f"[{LATENT},{LATENT}]", FLOATS, 5)


def sampler(turns: int, *between: Op, encode: Op | None = None, update: Op = UPDATE) -> list[Op]:
    """A loop that encodes the prompt in each of its turns."""
    return [each for _ in range(turns) for each in (encode or encoder(), denoiser(), update, *between)]


def found_in(*ops: Op) -> Finding | None:
    return find(case(*[ops] * 3))


def test_a_prompt_that_is_encoded_in_each_turn_of_a_sampler() -> None:
    found = found_in(*sampler(5))
    assert found is not None
    assert found.evidence["function"] == "TextEncoder_0"
    assert (found.evidence["calls_per_step"], found.evidence["needless_per_step"]) == (5, 4)
    assert found.speedup.mid > 1.2
    assert "before the loop" in found.fix
    assert "repeated-work" in [each.code for each in apply_rules(case(*[sampler(5)] * 3))]


def test_a_prompt_that_is_there_from_the_beginning_may_be_one_of_few() -> None:
    assert found_in(*sampler(3)) is None
    assert found_in(*sampler(5, encode=encoder(1))) is None


def test_a_prompt_that_the_loop_makes_anew() -> None:
    """Text that is generated, and words that are filled in."""
    chosen = op("aten::argmax", "[[4,16,100],[],[]]", "float,Scalar,Scalar", inputs='["","-1","False"]')
    assert found_in(*sampler(5, chosen)) is None
    joined = op("aten::cat", "[[[4,15],[4,1]],[]]", "TensorList,Scalar", inputs='["","1"]')
    assert found_in(*sampler(5, joined)) is None
    part = op("aten::select", f"[{TOKENS},[],[]]", "long,Scalar,Scalar", inputs='["","1","0"]')
    written = op("aten::copy_", "[[4],[4]]", "long,long")
    assert found_in(*sampler(5, part, written)) is None


def test_parts_of_a_batch_are_different() -> None:
    """A loop over them keeps no state."""
    pooled = op("aten::mean", f"[{TEXT},[]]", "float,ScalarList", 5, '["","[1]"]')
    assert found_in(*sampler(6, update=pooled)) is None


def test_a_state_beside_the_prompt() -> None:
    """As large as what the module computes with: the loop makes it of what the module has returned."""
    keeps = op("aten::add", f"[{TEXT},{TEXT}]", FLOATS, 5)
    assert found_in(*sampler(5, update=keeps)) is None
    assert found_in(*[encoder() for _ in range(6)]) is None


def test_what_is_drawn_at_random_is_another_each_time() -> None:
    drops = op("aten::dropout", f"[{TEXT},[],[]]", "float,Scalar,Scalar", inputs='["","0.1","True"]')
    assert found_in(*sampler(5, encode=encoder(60, drops))) is None
    kept = op("aten::dropout", f"[{TEXT},[],[]]", "float,Scalar,Scalar", inputs='["","0.1","False"]')
    assert found_in(*sampler(5, encode=encoder(60, kept))) is not None


IMAGES, LOGITS = "[8,3,32,32]", "[8,10]"
LOSS = op("aten::cross_entropy_loss", f"[{LOGITS},[8]]", "float,long", 5)
METRIC = (
    op("aten::argmax", f"[{LOGITS},[],[]]", "float,Scalar,Scalar", 2, '["","1","False"]'),
    op("aten::eq", "[[8],[8]]", "long,long", 2),
)
STEPS = Op("Optimizer.step#SGD.step", kind="annotation")


def network(name: str = "Net_0", *, drops: str = "False") -> Op:
    return frame(
        f"nn.Module: {name}",
        op("aten::flatten", f"[{IMAGES},[]]", "float,Scalar", inputs='["","1"]'),
        op("aten::linear", "[[8,3072],[256,3072],[256]]", "float,float,float", 100),
        op("aten::dropout", "[[8,256],[],[]]", "float,Scalar,Scalar", inputs=f'["","0.1","{drops}"]'),
        op("aten::linear", "[[8,256],[10,256],[10]]", "float,float,float", 50),
    )


def trained(ops: Sequence[Op], learned: Sequence[int]) -> Case:
    """Steps in which the backward pass computes gradients of these calls of modules, by their place in the step, and of the losses."""
    made = case(*[ops] * 3)
    events = made.trace.events
    modules = events.filter(pl.col("name").cast(pl.String).str.starts_with("nn.Module"))
    place = pl.int_range(pl.len()).over("step")
    chosen = modules.filter(place.is_in(list(learned)))["id"]
    losses = events.filter(pl.col("name").cast(pl.String).str.contains("loss$"))["id"]
    inside = events.filter(pl.col("parent").is_in(chosen.implode()))["id"]
    forward = pl.concat([inside, losses])
    links = pl.DataFrame(
        {"from": forward, "to": forward, "why": ["forward-backward"] * len(forward)}, schema=TABLES["links"]
    )
    trace = made.trace.over(
        {**made.trace.tables, "links": pl.concat([made.trace.links, links])}, made.trace.cold
    )
    return dataclasses.replace(made, trace=trace)


def test_metrics_that_a_second_pass_computes() -> None:
    for ops in (
        [network(), LOSS, network(), *METRIC],
        [network(drops="True"), LOSS, network(), *METRIC],
        [network(), LOSS, STEPS, network(), *METRIC],
    ):
        found = find(trained(ops, [0]))
        assert found is not None
        assert found.title == "A second forward pass computes what the first has returned"
        assert found.speedup.mid > 1.1
        assert "outputs.detach()" in found.fix


def test_passes_that_are_needed() -> None:
    other = op("aten::randn", "[[],[]]", "ScalarList,Scalar", 2, '["[8,3,32,32]","6"]')
    both = [network(), LOSS, network(), LOSS]
    assert find(trained(both, [0, 1])) is None  # two views of the same pictures, for example
    assert find(trained([network(), LOSS, other, network(), *METRIC], [0])) is None
    assert find(trained([network(), LOSS, network("Net_1"), *METRIC], [0])) is None
    # What follows is not compared with labels, and the weights are others.
    assert find(trained([network(), LOSS, STEPS, network()], [0])) is None
    # It comes before the loss: its result may be the target of the other pass, as that of the next observation is.
    assert find(trained([network(), network(), LOSS], [1])) is None


VIEW = op("aten::flip", f"[{IMAGES},[]]", "float,ScalarList", 5, '["","[1]"]')
TURNED = op("aten::neg", f"[{IMAGES}]", "float", 5)
DRAWN = op("aten::rand", "[[],[]]", "ScalarList,Scalar", 2, '["[8,3,32,32]","6"]')


def twice(
    *between: Op, before: Sequence[Op] = (DRAWN,), name: str = "Net_0", drops: str = "False"
) -> Finding | None:
    """Of two losses, each of which calls a network with gradients."""
    calls = (network(drops=drops), LOSS, *between, network(name, drops=drops), LOSS)
    return find(trained([*before, *calls], [0, 1]))


def test_a_network_that_two_losses_call() -> None:
    found = twice()
    assert found is not None
    assert found.title == "A second pass with gradients computes what the first has returned"
    assert "use what it returns for every term of the loss" in found.fix
    assert (found.evidence["calls_per_step"], found.evidence["needless_per_step"]) == (2, 1)
    # Another array of that size may have been there before.
    assert found.speedup.low == 1.0 and found.speedup.mid > 1.1
    assert "was on the device before" in found.detail


def test_networks_that_two_losses_need_twice() -> None:
    for before in ((), (DRAWN, DRAWN), (DRAWN, TURNED), (DRAWN, VIEW)):
        assert twice(before=before) is None  # resident or Siamese inputs, two views
    parts = op("aten::chunk", "[[16,3,32,32],[],[]]", "float,Scalar,Scalar", inputs='["","2","0"]')
    assert twice(before=(parts,)) is None
    assert twice(TURNED) is None and twice(DRAWN) is None
    assert twice(name="Net_1") is None
    assert twice(drops="True") is None
    assert twice(STEPS) is None


def test_weights_that_something_else_than_an_optimizer_changes() -> None:
    """As sharpness-aware minimisation and meta-learning do."""
    weight = "[256,3072]"
    for name in ("aten::add_", "aten::sub"):
        assert twice(op(name, f"[{weight},{weight},[]]", "float,float,Scalar", 5)) is None
    assert twice(op("aten::_foreach_add_", "[[],[],[]]", "TensorList,TensorList,Scalar", 5)) is None
    assert twice(op("aten::mul", "[[8,10],[8,10]]", FLOATS, 5)) is not None


def bias(*more: Op) -> Op:
    """A table that depends on nothing but its size."""
    return frame(
        "train.py(16): attention_bias",
        op("aten::arange", "[[],[]]", "Scalar,Scalar", inputs='["512","4"]'),
        op("aten::sub", "[[1,512],[512,1]]", "long,long", 20),
        *more,
        op("aten::mul", "[[512,512],[]]", "long,float", 20),
    )


def layers(*tables: Op) -> list[Op]:
    linear = op("aten::linear", "[[4,512,64],[64,64],[64]]", "float,float,float", 20)
    return [frame(f"nn.Module: Layer_{number}", table, linear) for number, table in enumerate(tables)]


def test_a_table_that_each_layer_computes() -> None:
    found = found_in(*layers(*[bias()] * 4))
    assert found is not None
    assert found.evidence["function"] == "attention_bias"
    assert found.evidence["needless_per_step"] == 3
    assert found.speedup.mid > 1.1


def test_tables_that_are_different() -> None:
    """Each layer has weights of its own; they are as long as the layer's; nothing is computed."""
    own = op("aten::embedding", "[[1024,12],[512,512]]", "float,long", 20)
    assert found_in(*layers(*[bias(own)] * 4)) is None
    sizes = [
        frame("train.py(16): attention_bias", op("aten::sub", f"[[1,{size}],[{size},1]]", "long,long", 20))
        for size in (512, 256, 128, 64)
    ]
    assert found_in(*layers(*sizes)) is None
    empty = frame(
        "train.py(20): new_cache",
        op("aten::zeros", "[[],[]]", "ScalarList,Scalar", 40, '["[4,512,64]","6"]'),
    )
    assert found_in(*layers(*[empty] * 4)) is None


def scaled(kind: str, inputs: str = "-") -> Op:
    """A prompt that is multiplied by a number."""
    return op("aten::mul", f"[{TEXT},[]]", f"float,{kind}", 0, inputs)


def test_numbers_that_were_not_recorded_leave_a_doubt() -> None:
    sure = found_in(*sampler(5))
    assert sure is not None and sure.speedup.low > 1 and sure.left_ns_per_step is not None
    for doubtful in (scaled("float"), scaled("double"), scaled("long"), scaled("c10::Half")):
        found = found_in(*sampler(5, encode=encoder(60, doubtful)))
        assert found is not None and found.left_ns_per_step is not None
        assert found.speedup.low == 1.0 and found.speedup.mid > 1.2
        assert found.certainty < sure.certainty
        assert found.left_ns_per_step.high > sure.left_ns_per_step.high
        assert "numbers whose values the profile does not show" in found.detail
        assert found.evidence["unknown_numbers"]


def test_numbers_that_leave_no_doubt() -> None:
    """Recorded ones, those that the call computes itself, and the constants of modules inside."""
    recorded = scaled("double", '["","0.5"]')
    inner = frame("nn.Module: Attention_0", scaled("double"))
    summed = op("aten::sum", f"[{TEXT}]", "float")
    for encode in (encoder(60, recorded), encoder(60, inner), encoder(60, summed, scaled("float"))):
        found = found_in(*sampler(5, encode=encode))
        assert found is not None and found.speedup.low > 1
        assert "unknown_numbers" not in found.evidence


def test_empty_arrays_are_no_inputs() -> None:
    """Nothing is in them that could have changed; other arrays are as many times as large as an empty one."""
    empty = op("aten::cat", f"[[{TEXT},[0,16,64]],[]]", "TensorList,Scalar", inputs='["","0"]')
    masked = op("aten::where", f"[[0],{TEXT},{TEXT}]", "bool,float,float")
    chosen = op("aten::argmax", "[[4,16,100],[],[]]", "float,Scalar,Scalar", inputs='["","-1","False"]')
    made = op("aten::zeros", "[[],[]]", "ScalarList,Scalar", inputs='["[0]","6"]')
    assert found_in(*sampler(5, made, encode=encoder(60, empty))) is not None
    assert found_in(*sampler(5, chosen, encode=encoder(60, masked))) is None


def test_noise_in_a_call_makes_each_another() -> None:
    for name, shapes in (("aten::randn_like", f"[{TEXT}]"), ("aten::exponential_", f"[{TEXT}]")):
        assert found_in(*sampler(5, encode=encoder(60, op(name, shapes, "float")))) is None
