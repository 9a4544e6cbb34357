"""Names of everything that multiplies no matrices: communication, data movement, and the frameworks' own kernels."""

from __future__ import annotations

import re

from stepscope.analysis.kernels.names import dtypes
from stepscope.analysis.kernels.names.label import Context, Label
from stepscope.lazy import pattern

COLLECTIVE = pattern(
    r"nccl(Dev)?Kernel|rccl|^nccl|ncclSym|cross_device_reduce|multimem_|one_?shot_all_?reduce|two_?shot_all_?reduce"
    r"|all_?reduce_(fusion_)?kernel|allreduce_fusion|AllReduceKernel|allgather_kernel|reduce_scatter_kernel|symm_mem"
    r"|nvshmem|userbuffers_|quick_?reduce|lamport|RaggedAllToAll|low_latency::(dispatch|combine)|internode::|intranode::"
    r"|xla::gpu::AllReduce|mscclpp",
    re.IGNORECASE,
)
_MOVING = pattern(
    r"direct_copy_kernel|copy_kernel_cuda|copy_device_to_device|FillFunctor|CatArrayBatchedCopy|OpaqueType<|vectorized_gather_kernel"
    r"|_scatter_gather_elementwise_kernel\b.*TensorAssign|indexSelect|index_elementwise_kernel.*(index_kernel|index_put)"
    r"|index_(copy|fill)_kernel|nchwToNhwc|nhwcToNchw|nhwcAddPadding|nchwAddPadding|[iI]m\d?d?2[cC]ol|[cC]ol2[iI]m|[tT]ranspose_?\w{0,40}[kK]ernel"
    r"|tril|triu|arange|linspace|flip_kernel|roll_cuda|where_kernel|masked_(fill|scatter|select)|nonzero|flag_kernel"
    r"|computeOffsetsKernel|compute\w{0,40}OffsetsKernel|generateWinogradTiles|init_device_workspace|philox::unpack|memset|Memset"
    r"|write_indices|split_with_sizes|chunk_cat|_pad_|pad\d?d?_out_kernel|(page|block|slot|kv|token)_(indices|table|mapping)|reshape_and_cache|repeat_interleave|unfold|stack_kernel|eye_kernel"
)
_ORDERING = pattern(
    r"RadixSort|radixSort|radix_sort|bitonicSort|MergeSort|merge_sort|sort_kernel|SegmentedSort|gatherTopK|topk|TopK|DeviceSelect|UniqueByKey|unique_by_key"
    r"|DeviceRunLength|DeviceHistogram|histogram|DeviceScanInit|DeviceCompactInit|sort_postprocess|searchsorted|bucketize"
    r"|^sort(_\d+)*$|fill_(reverse_)?indices|bitmatrix|routing_(compute|clear)|_expt_data|moe_align|moe_sort|MoeSorting|find_long_segments|randperm|krn_partial|compute_num_of_partial"
)
_OURS = pattern(
    r"\bat::(native|cuda)|\bat_cuda_detail|\bc10::|cub::|thrust::|rocprim::|hipcub::|^void \(anonymous namespace\)|fbgemm|split_embedding|dense_embedding"
)
_TENSORFLOW = pattern(r"\bEigen::|\btensorflow::|\bxla::")
_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("optimizer", pattern(r"multi_tensor_apply|FusedAdam|FusedSgd|adagrad|fused_adam|Adam", re.IGNORECASE)),
    ("random", pattern(r"distribution_|dropout|philox|curand|bernoulli|multinomial", re.IGNORECASE)),
    ("norm", pattern(r"norm|GammaBeta|RowwiseMoments|batch_norm|welford", re.IGNORECASE)),
    ("reduction", pattern(r"reduce|soft_?max|scan|cumsum|nll_loss|Reduce|sum_and_scatter|DeviceScan", re.IGNORECASE)),
)  # fmt: skip
# PyTorch's own matrix kernels, the only ones in its namespace that may use the tensor cores.
_MAY_MULTIPLY = pattern(
    r"int4|_int_?mm|weight_only|tinygemm|(?<!fb)gemm|matmul|attention|fmha|[wh_:]mma", re.IGNORECASE
)
_WHOLE = pattern(r"\b(long|int|bool|unsigned|char|short)\b")
_DEPTHWISE = pattern(r"conv_depthwise|DepthwiseConv|depthwise_conv")


def collective(name: str, context: Context) -> Label | None:
    """Communication between devices, by any library."""
    return Label("none", False, "collective") if COLLECTIVE.search(name) else None


def moving(name: str, context: Context) -> Label | None:
    """Copies, fills, gathers, layout changes and orderings do no floating-point arithmetic."""
    if _MAY_MULTIPLY.search(dtypes.before_parameters(name)):
        return None
    if _ORDERING.search(name):
        return Label("none", False, "ordering")
    return Label("none", False, "movement") if _MOVING.search(name) else None


def framework(name: str, context: Context) -> Label | None:
    """PyTorch's and TensorFlow's own kernels: the template arguments carry the types; the tensor cores are not used."""
    if not _OURS.search(name) and not _TENSORFLOW.search(name):
        return None
    head = dtypes.before_parameters(name)
    if _DEPTHWISE.search(head):
        return Label(dtypes.of_templates(name) or "unknown", False, "depthwise")
    if _MAY_MULTIPLY.search(head):
        return Label(dtypes.of_templates(name) or context.precision or "unknown", None, "gemm")
    family = next((kind for kind, pattern in _KINDS if pattern.search(head)), "elementwise")
    precision = dtypes.of_templates(name)
    if precision is None:
        precision = "none" if _WHOLE.search(head.partition("<")[2]) else "unknown"
    return Label(precision, False, family)


_PIVOTS = pattern(r"\bipiv_|create_pivot|\bxx\w*_set_info|csr_partition_kernel")
_TRANSFORMS = pattern(r"(vector|regular|multi)_fft|[sd]pRadix|bluestein")
_SOLVERS = pattern(r"\bgetrf_|\bpotrf|trsm_|_trsm|geqrf|cusparse::|cusolver")


def scientific(name: str, context: Context) -> Label | None:
    """cuFFT is plain; cuSOLVER, cuSPARSE and triangular solves are in fp32, in other formats nobody has looked."""
    if _TRANSFORMS.search(name):
        return Label(dtypes.of_templates(name) or context.precision or "unknown", False, "elementwise")
    if _PIVOTS.search(name):
        return Label("none", False, "movement")
    if not _SOLVERS.search(name):
        return None
    precision = dtypes.of_templates(name)
    return Label(precision or "unknown", False if precision == "fp32" else None, "solver")
