"""Matrix products of PyTorch in every number format, and in shapes that make the libraries choose other kernels."""

from __future__ import annotations

import torch
from torch.nn import functional as nnf

from benchmarks.kernel_table.cases import Case, Run

DEVICE = "cuda"
FORMATS = {
    "fp32": torch.float32,
    "tf32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "fp64": torch.float64,
}
SHAPES = {
    "square": (1024, 1024, 1024),
    "odd": (1023, 1021, 1019),
    "even": (1022, 1030, 1026),
    "small": (64, 64, 64),
    "few_rows": (8, 4096, 4096),
    "one_row": (1, 4096, 4096),
    "long_sum": (64, 64, 16384),
    "large": (4096, 4096, 2048),
}


def randn(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    """Random numbers on the device."""
    return torch.randn(*shape, device=DEVICE, dtype=torch.float32).to(dtype)


def tf32(allowed: bool) -> None:
    """Whether fp32 matrix products and convolutions may be rounded to tf32."""
    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cudnn.allow_tf32 = allowed


def under(name: str, run: Run) -> Run:
    """The same, with tf32 allowed only where the case is about it."""

    def wrapped() -> object:
        tf32(name == "tf32")
        try:
            return run()
        finally:
            tf32(False)

    return wrapped


def _product(name: str, shape: tuple[int, int, int], left: bool, right: bool) -> Run:
    m, n, k = shape
    dtype = FORMATS[name]
    a = randn(k, m, dtype=dtype).t() if left else randn(m, k, dtype=dtype)
    b = randn(n, k, dtype=dtype).t() if right else randn(k, n, dtype=dtype)
    return under(name, lambda: a @ b)


def _batched(name: str) -> Run:
    a, b = randn(32, 128, 64, dtype=FORMATS[name]), randn(32, 64, 128, dtype=FORMATS[name])
    c = randn(32, 128, 128, dtype=FORMATS[name])
    return under(name, lambda: (torch.bmm(a, b), torch.baddbmm(c, a, b)))


def _linear(name: str) -> Run:
    x = randn(512, 1024, dtype=FORMATS[name]).requires_grad_()
    w = randn(2048, 1024, dtype=FORMATS[name]).requires_grad_()
    b = randn(2048, dtype=FORMATS[name]).requires_grad_()
    return under(name, lambda: nnf.linear(x, w, b).sum().backward())


def _gelu_epilogue(name: str) -> Run:
    x, w = randn(512, 1024, dtype=FORMATS[name]), randn(1024, 2048, dtype=FORMATS[name])
    b = randn(2048, dtype=FORMATS[name])
    return under(name, lambda: torch._addmm_activation(b, x, w, use_gelu=True))


def _vector(name: str) -> Run:
    a, x = randn(2048, 2048, dtype=FORMATS[name]), randn(2048, dtype=FORMATS[name])
    return under(name, lambda: (torch.mv(a, x), torch.dot(x, x), torch.outer(x, x)))


def _scaled(left: torch.dtype, right: torch.dtype, rowwise: bool, size: int) -> Run:
    a = randn(size, size, dtype=left)
    b = randn(size, size, dtype=right).t()
    one = torch.ones((), device=DEVICE)
    scales = (
        (torch.ones(size, 1, device=DEVICE), torch.ones(1, size, device=DEVICE)) if rowwise else (one, one)
    )
    return lambda: torch._scaled_mm(a, b, scale_a=scales[0], scale_b=scales[1], out_dtype=torch.bfloat16)


def _int8(size: int, transposed: bool) -> Run:
    a = torch.randint(-9, 9, (size, size), device=DEVICE, dtype=torch.int8)
    b = torch.randint(-9, 9, (size, size), device=DEVICE, dtype=torch.int8)
    right = b.t() if transposed else b
    return lambda: torch._int_mm(a, right)


def _complex(dtype: torch.dtype) -> Run:
    a = torch.randn(512, 512, device=DEVICE, dtype=dtype)
    return lambda: a @ a


def _grouped() -> Run:
    a, b = randn(256, 512, dtype=torch.bfloat16), randn(4, 512, 512, dtype=torch.bfloat16)
    ends = torch.tensor([64, 128, 192, 256], device=DEVICE, dtype=torch.int32)
    return lambda: torch._grouped_mm(a, b, offs=ends)


def _sparse(name: str) -> Run:
    dense = randn(256, 256, dtype=FORMATS[name])
    mask = torch.tensor([0, 0, 1, 1], device=DEVICE).tile((256, 64)).bool()
    sparse = torch.sparse.to_sparse_semi_structured(dense.masked_fill(~mask, 0))
    return lambda: torch.mm(sparse, dense)


def _products() -> list[Case]:
    plain = [
        Case(f"mm/{name}/{label}", name, lambda n=name, s=shape: _product(n, s, False, False))
        for name in FORMATS
        for label, shape in SHAPES.items()
    ]
    turned = [
        Case(
            f"mm/{name}/{'nt'[left]}{'nt'[right]}",
            name,
            lambda n=name, x=left, y=right: _product(n, SHAPES["square"], x, y),
        )
        for name in FORMATS
        for left, right in ((False, True), (True, False), (True, True))
    ]
    return plain + turned


def matmul_cases() -> list[Case]:
    """All of them."""
    e4m3, e5m2 = torch.float8_e4m3fn, torch.float8_e5m2
    cases = _products()
    for kind, build in (("bmm", _batched), ("linear", _linear), ("mv", _vector)):
        cases += [Case(f"{kind}/{name}", name, lambda n=name, b=build: b(n)) for name in FORMATS]
    cases += [Case(f"gelu/{n}", n, lambda n=n: _gelu_epilogue(n)) for n in ("bf16", "fp16", "tf32")]
    cases += [Case(f"sparse/{n}", n, lambda n=n: _sparse(n)) for n in ("bf16", "fp16")]
    return [
        *cases,
        Case("fp8/e4m3", "fp8", lambda: _scaled(e4m3, e4m3, False, 1024)),
        Case("fp8/e4m3_large", "fp8", lambda: _scaled(e4m3, e4m3, False, 4096)),
        Case("fp8/e5m2_e4m3", "fp8", lambda: _scaled(e5m2, e4m3, False, 1024)),
        Case("fp8/rowwise", "fp8", lambda: _scaled(e4m3, e4m3, True, 1024)),
        Case("int8/nn", "int8", lambda: _int8(1024, False)),
        Case("int8/nt", "int8", lambda: _int8(1024, True)),
        Case("complex/64", "fp32", lambda: _complex(torch.complex64)),
        Case("complex/128", "fp64", lambda: _complex(torch.complex128)),
        Case("grouped/bf16", "bf16", _grouped),
    ]
