"""Work of the device that was done before: prefixes, calls and passes that a step computes again."""

from __future__ import annotations

from stepscope.registers.entry import policy

GROWING_PREFIXES = policy(
    "GROWING_PREFIXES",
    3,
    unit="lengths of a sequence, each one longer by the same",
    why="two lengths of different requests may differ by one",
)
GROWING_CALLS_LEAST = policy(
    "GROWING_CALLS_LEAST",
    0.8,
    unit="share of the calls whose length differs from that before",
    why="each request begins with a prompt of its own length, and gets five tokens or more",
)
PREFIX_LEAST = policy(
    "PREFIX_LEAST",
    16,
    unit="tokens",
    why="that are computed again: with fewer the weights, not the tokens, take the time",
)
PREFIX_LEAST_ON_HOST = policy(
    "PREFIX_LEAST_ON_HOST",
    8,
    unit="tokens in the mean, on a CPU",
    why="that are computed again: texts that begin with one token have few in the mean, and the time of their ops says whether these matter",
)
TOKEN_RUN_LEAST = policy(
    "TOKEN_RUN_LEAST",
    2,
    unit="× the time of one item in a run over all",
    why="that a run over one item takes at best: it starts the function and reads the weights for this one alone; chosen around one recurrent writer on a CPU, measured twice",
)
TOKEN_RUN_MOST = policy(
    "TOKEN_RUN_MOST",
    8,
    unit="× the time of one item in a run over all",
    why="the same at worst",
)
EQUAL_RUNS = policy(
    "EQUAL_RUNS",
    1.5,
    unit="× the short runs of a function that the long ones take",
    why="runs with the same ops on inputs of one size differ by what the scheduler does to them",
)
TOKEN_OF_BOUND_LEAST = policy(
    "TOKEN_OF_BOUND_LEAST",
    0.4,
    unit="share of the memory's bandwidth",
    why="at which products with few rows read their weights at worst",
)
TOKEN_OF_BOUND_MOST = policy(
    "TOKEN_OF_BOUND_MOST",
    0.8,
    unit="share of the memory's bandwidth",
    why="at which they read them at best",
)
TOKEN_KERNEL_LEAST_NS = policy(
    "TOKEN_KERNEL_LEAST_NS",
    2_000,
    unit="ns",
    why="that kernels which compute one position take at best, in the mean: sums, choices and copies of one took 1.2 to 1.9 µs on an H200, and products take more",
)
TOKEN_KERNEL_MOST_NS = policy(
    "TOKEN_KERNEL_MOST_NS",
    4_000,
    unit="ns",
    why="that it takes at worst, as a product with few rows: two jobs of JAX that got a cache took 2.7 and 3.8 µs per token for each kernel and copy of a call before, gaps and host included, without the prompt",
)
OUTSIDE_LEAST = policy(
    "OUTSIDE_LEAST",
    0.05,
    unit="share of the time",
    why="that work of a loop's small kernels needs outside of the loop at least, in a few large kernels",
)
OUTSIDE_MOST = policy(
    "OUTSIDE_MOST",
    0.4,
    unit="share of the time",
    why="that it needs at most; one job of a blind trial needed about 0.2",
)
OUTSIDE_EFFICIENCY_LEAST = policy(
    "OUTSIDE_EFFICIENCY_LEAST",
    0.3,
    unit="share of the peak",
    why="that one large product reaches at worst in place of many small ones",
)
OUTSIDE_EFFICIENCY_MOST = policy(
    "OUTSIDE_EFFICIENCY_MOST",
    0.7,
    unit="share of the peak",
    why="that it reaches at best",
)
SHARED_WEIGHTS_LEAST = policy(
    "SHARED_WEIGHTS_LEAST",
    3,
    unit="weights that a program multiplies as often",
    why="one or two may be a layer that several parts of a model share",
)
PASSES_LEFT_MOST = policy(
    "PASSES_LEFT_MOST",
    0.75,
    unit="share of the passes' time",
    why="that one pass over all inputs may take, in the middle of best and worst: beyond that the batch fills the device already",
)
UNSURE_PASSES = policy(
    "UNSURE_PASSES",
    0.8,
    unit="certainty",
    why="a profile does not show whether a program that runs several times in a row is given the same weights each time; an ensemble of models has others",
)
FLOPS_OF_ONE_INPUT = policy(
    "FLOPS_OF_ONE_INPUT",
    4,
    unit="FLOPs for each element of a program's matrices",
    why="a product and a sum use a weight for one input; a bias and an activation take little more",
)
REPEATED_CALLS_LEAST = policy(
    "REPEATED_CALLS_LEAST",
    4,
    unit="calls of a program in a step",
    why="with fewer, what the calls have in common may be one of two parts of a batch, or of two networks",
)
SMALL_ARGUMENT_BYTES = policy(
    "SMALL_ARGUMENT_BYTES",
    16,
    unit="bytes of an argument",
    why="a random key has two or four numbers of 4 bytes: programs are given another in each call, as they are given times and rates",
)
REPEATED_WORK_LEAST = policy(
    "REPEATED_WORK_LEAST",
    0.1,
    unit="share of the step",
    why="less is what masks and the keys and values of a context take, which many programs compute in each call",
)
MODEL_LEAVES_LEAST = policy(
    "MODEL_LEAVES_LEAST",
    3,
    unit="arrays of a tree that a program is given",
    why="two layers without biases, and a head; smaller trees may be the fields of a batch",
)
PICKED_WEIGHTS_MOST = policy(
    "PICKED_WEIGHTS_MOST",
    0.7,
    unit="share of the time",
    why="that a loop over layers still takes to pick the weights of a layer, once they are computed before: reading and writing 2 bytes where 4 were read and 2 written",
)
FORWARD_OF_TRAINING_LEAST = policy(
    "FORWARD_OF_TRAINING_LEAST",
    0.15,
    unit="share of the FLOPs of a program that trains",
    why="that its forward pass has at least: a third, a quarter with activations that are computed again, and less where a loss has products of its own",
)
FORWARD_OF_TRAINING_MOST = policy(
    "FORWARD_OF_TRAINING_MOST",
    0.55,
    unit="share of the FLOPs of a program that trains",
    why="that it has at most: two fifths of a network of two layers, whose input needs no gradient, and a half of one layer",
)
FORWARD_PRODUCTS_LEAST = policy(
    "FORWARD_PRODUCTS_LEAST",
    3,
    unit="products",
    why="two programs that have nothing to do with each other may have one or two products of the same size",
)
FORWARD_RUNS_LEAST = policy(
    "FORWARD_RUNS_LEAST",
    0.8,
    unit="runs for each run of the program that trains",
    why="the profiler cuts the first and the last step of a recording; what runs in fewer steps is an evaluation, as people want it",
)
FORWARD_RUNS_MOST = policy(
    "FORWARD_RUNS_MOST",
    1.25,
    unit="runs for each run of the program that trains",
    why="more are of other batches, or search for a step length",
)
UNSURE_BATCH = policy(
    "UNSURE_BATCH",
    0.8,
    unit="certainty",
    why="of arrays that were on the device before, a profile does not show whether both programs are given the same",
)
WITH_GRADIENTS = policy(
    "WITH_GRADIENTS",
    8,
    unit="× the time of a forward pass",
    why="that it takes at most with its backward pass, also where gradients of gradients are computed: calls that take so much less than what is worth showing are looked at",
)
UNSURE_NUMBERS = policy(
    "UNSURE_NUMBERS",
    0.8,
    unit="certainty",
    why="most numbers that a function computes with are constants of its code; a time, an angle or a rate differs from call to call, and a profile shows neither",
)
REPEATED_FUNCTIONS_MOST = policy(
    "REPEATED_FUNCTIONS_MOST",
    40,
    unit="modules and functions",
    why="that a step calls again, those that launch the most work: whether they return the same is looked at one by one",
)
OPS_OF_A_METRIC = policy(
    "OPS_OF_A_METRIC",
    12,
    unit="ops behind a pass of a network",
    why="among which is the comparison with labels, if the pass is for an accuracy",
)
DERIVATIVE_PASSES_LEAST = policy(
    "DERIVATIVE_PASSES_LEAST",
    3,
    unit="passes of autograd through the same layers that add up no gradients",
    why="two may be the gradients of one output by two inputs, or of two losses that a job weighs against each other",
)
EXPERTS_LEAST = policy(
    "EXPERTS_LEAST",
    4,
    unit="experts of a layer",
    why="with fewer, to sort the tokens takes about what is spared",
)
ROUTED_TOKENS_LEAST = policy(
    "ROUTED_TOKENS_LEAST",
    512,
    unit="tokens of a layer with experts",
    why="with fewer, to read the weights of an expert takes as long as to compute its tokens, and most experts get some",
)
ROUTED_MOST = policy(
    "ROUTED_MOST",
    2,
    unit="× the share of the experts that a token is sent to",
    why="that may remain of their time: smaller products are slower, tokens are gathered and results added up; chosen, not measured",
)
LENGTHS_TURN_LEAST = policy(
    "LENGTHS_TURN_LEAST",
    0.4,
    unit="share of the samples at which lengths turn from growing to shrinking, or back",
    why="in a list in no order that is two thirds of them; a text that is written grows by many tokens, and levels of a pyramid shrink, and then grow",
)
