"""What ops of PyTorch do with their inputs, by name: which results are as large as an input, what is only shown or drawn at random."""

from __future__ import annotations

from stepscope.analysis.repeats.op_call import NUMBERS, Op


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Their result is as large as the first input.
LIKE_FIRST = _names(
    """to _to_copy clone contiguous detach alias view reshape _reshape_alias unsqueeze squeeze flatten unflatten transpose permute t
    movedim swapaxes view_as reshape_as type_as lift_fresh relu relu6 gelu silu mish elu selu leaky_relu hardtanh hardswish hardsigmoid sigmoid
    tanh softplus softsign logsigmoid prelu softmax log_softmax _softmax exp exp2 expm1 log log2 log10 log1p sqrt rsqrt square abs neg
    reciprocal sin cos tan atan sinh cosh erf floor ceil round trunc sign frac isnan isinf isfinite clamp clamp_min clamp_max clip cumsum cumprod
    logcumsumexp layer_norm native_layer_norm rms_norm group_norm native_group_norm batch_norm instance_norm dropout native_dropout
    feature_dropout masked_fill tril triu flip roll sort argsort fill zero copy normal uniform bernoulli scatter scatter_add scatter_reduce index_add
    index_copy index_fill index_put _index_put_impl index_reduce zeros_like ones_like empty_like full_like rand_like randn_like logical_not
    bitwise_not nan_to_num local_response_norm pixel_shuffle pixel_unshuffle channel_shuffle resolve_conj resolve_neg requires_grad
    _native_multi_head_attention _transformer_encoder_layer_fwd celu normalize renorm erfinv float half double long int bool bfloat16
    set unsafe_view _unsafe_view view_as_real view_as_complex cpu cuda"""
)
BROADCAST = _names(
    """add sub rsub mul div pow true_divide floor_divide remainder fmod where eq ne lt le gt ge maximum minimum max min lerp addcmul
    addcdiv logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor __and__ __or__ __xor__ atan2 hypot xlogy polar complex
    __lshift__ __rshift__ copysign"""
)
CREATED = _names("zeros ones full empty rand randn randint randperm eye empty_strided")
CREATED_LIKE = _names("new_zeros new_ones new_full new_empty")
COUNTED = _names("arange linspace logspace range")
# Arrays whose content needs nothing computed.
CREATES = _names(
    "zeros ones full empty arange zeros_like ones_like empty_like eye new_zeros new_ones new_empty"
)
REDUCED = _names(
    "sum mean amax amin var std logsumexp linalg_vector_norm norm prod all any argmax argmin nansum"
)
# Words in the name of an op that draws at random, in whatever way: rand_like, normal_, _standard_gamma, log_normal.
RANDOM = _names(
    """rand randn randint randperm random normal uniform bernoulli exponential multinomial cauchy geometric poisson binomial gamma
    dirichlet"""
)
DROPOUT = _names("dropout feature_dropout alpha_dropout feature_alpha_dropout native_dropout")
RECURRENT = _names("lstm gru rnn_tanh rnn_relu")
RRELU = "rrelu"
ATTENTION = "scaled_dot_product_attention"
LOSS = "loss"
VIEWS = _names(
    """to _to_copy clone contiguous detach alias view reshape _reshape_alias unsqueeze squeeze flatten unflatten transpose permute t movedim
    view_as reshape_as lift_fresh _unsafe_view requires_grad float half bfloat16 copy channels_last pin_memory"""
)
CUTS = _names("select slice narrow chunk split split_with_sizes unbind expand")
SEVERAL = _names("chunk split split_with_sizes unbind")
COMBINING = _names("add sub mul div lerp addcmul addcdiv where")
ARITHMETIC = _names("add sub rsub mul div true_divide neg clamp pow")
_FINDS_PLACES = _names(
    "argmax argmin argsort sort topk max min multinomial nonzero searchsorted bucketize bincount unique _unique2 cummax"
)
_LOOKS_UP = frozenset(("embedding", "embedding_bag"))
_PICKS = frozenset(
    ("index_select", "gather", "index", "take_along_dim")
)  # of the kind of what they pick from


def may_hold_integers(op: Op) -> bool:
    """Whether a result may be indices or counts: what is made of integers, or finds places."""
    if LOSS in op.base:
        return False
    if op.base in _FINDS_PLACES or op.base in CREATED | COUNTED | CREATED_LIKE:
        return True
    if op.base in _LOOKS_UP:
        return False
    if op.base in _PICKS:
        return op.tensors[:1] == () or op.tensors[0].kind != NUMBERS
    if op.base in ("to", "_to_copy", "long", "int", "copy"):
        return True
    return any(each.kind != NUMBERS for each in op.tensors)
