"""The model that is trained: how many FLOPs and bytes a layer has, as kernels of a tensor parallel rank."""

from __future__ import annotations

from dataclasses import dataclass

FLOPS_PER_NS = 989_000.0 * 0.45  # of an H100 in bfloat16, at the share of its peak that large products reach
BYTES_PER_NS = 3_350.0 * 0.8
BACKWARD = 2.0  # times the FLOPs of forward
HEAD_SHARE = 0.06  # of a layer: embedding and head take as long; balanced jobs give the last stage less
OPTIMIZER_BYTES = 22  # read and written for each parameter by a fused Adam with fp32 master weights

GEMM = (
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
    "aten::mm",
)
GEMM_BACKWARD = (
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_nt_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
    "autograd::engine::evaluate_function: MmBackward0",
)
ATTENTION = (
    "void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, cutlass::bfloat16_t>>(Flash_fwd_params)",
    "flash_attn::_flash_attn_forward",
)
ATTENTION_BACKWARD = (
    "void flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<128, 64, 128, 8, 2, 4, 2, false, cutlass::bfloat16_t>>(Flash_bwd_params)",
    "autograd::engine::evaluate_function: FlashAttnFuncBackward",
)
ADAM = (
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4, (at::native::ADAM_MODE)1, false>>",
    "aten::_fused_adamw_",
)
COPY_IN = ("Memcpy HtoD (Pinned -> Device)", "aten::copy_")


@dataclass(frozen=True)
class Part:
    """A kernel of half a layer: its names, and how long a healthy device takes."""

    kernel: str
    op: str
    ns: float


@dataclass(frozen=True)
class Work:
    """A transformer: `batch` sequences in a micro-batch, `fine` splits a block into its products and attention."""

    hidden: int
    sequence: int
    batch: int
    layers: int  # of a stage
    tp: int
    fine: bool

    def attention(self, *, backward: bool) -> list[Part]:
        """The kernels of the attention block."""
        products = 8 * self._tokens * self.hidden**2 / self.tp
        scores = 4 * self._tokens * self.sequence * self.hidden / self.tp
        main, middle = (GEMM_BACKWARD, ATTENTION_BACKWARD) if backward else (GEMM, ATTENTION)
        if not self.fine:
            return [_part(main, products + scores, backward)]
        parts = [
            _part(main, products * 0.75, backward),
            _part(middle, scores, backward),
            _part(main, products / 4, backward),
        ]
        return parts[::-1] if backward else parts

    def feed_forward(self, *, backward: bool) -> list[Part]:
        """The kernels of the feed-forward block, or of the experts of a rank."""
        flops = 16 * self._tokens * self.hidden**2 / self.tp
        main = GEMM_BACKWARD if backward else GEMM
        return [_part(main, flops / 2, backward)] * 2 if self.fine else [_part(main, flops, backward)]

    def head(self, *, backward: bool) -> Part:
        """Embedding, or head and loss."""
        return _part(GEMM_BACKWARD if backward else GEMM, HEAD_SHARE * self.layer_flops, backward)

    def optimizer(self, shares: int) -> Part:
        """A step of Adam over the parameters of a rank, or its share of them."""
        return Part(*ADAM, OPTIMIZER_BYTES * self.layers * self.layer_parameters / shares / BYTES_PER_NS)

    @property
    def layer_flops(self) -> float:
        """Of a rank, forward."""
        return (24 * self._tokens * self.hidden**2 + 4 * self._tokens * self.sequence * self.hidden) / self.tp

    @property
    def layer_ns(self) -> float:
        """Of a rank, forward."""
        return self.layer_flops / FLOPS_PER_NS

    @property
    def layer_parameters(self) -> int:
        """Of a rank."""
        return 12 * self.hidden**2 // self.tp

    @property
    def activations(self) -> int:
        """Elements between two layers."""
        return self._tokens * self.hidden

    @property
    def _tokens(self) -> int:
        return self.batch * self.sequence


def _part(names: tuple[str, str], flops: float, backward: bool) -> Part:
    return Part(*names, flops * (BACKWARD if backward else 1.0) / FLOPS_PER_NS)
