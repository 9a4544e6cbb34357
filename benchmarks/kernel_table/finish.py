"""Makes the committed table of what the GPU machine gave: adds what XLA's modules say, which needs this package's reader.

python -m benchmarks.kernel_table.finish FOLDER TABLE.csv
"""

from __future__ import annotations

import base64
import gzip
import json
import sys
from pathlib import Path

from benchmarks.kernel_table import table
from stepscope.analysis.kernels.names.xla import Module


def wrapped(module: bytes) -> bytes:
    """A module as traces carry it: as the first field of a message."""
    size, length = len(module), b""
    while size > 0x7F:
        length += bytes([size & 0x7F | 0x80])
        size >>= 7
    return b"\x0a" + length + bytes([size]) + module


def said(packed: str, kernel: str) -> str:
    """`product bf16`, `plain fp32`, `product fp32 perhaps rounded`; nothing where the module is silent."""
    module = Module(wrapped(gzip.decompress(base64.b64decode(packed))))
    found = module.kernels({kernel}).get(kernel)
    if found is None:
        return ""
    words = (
        "product" if found.product else "plain",
        found.precision or "",
        "" if found.exact else "perhaps rounded",
    )
    return " ".join(word for word in words if word)


def main(folder: Path, target: Path) -> None:
    """Join the kept files, add, write."""
    modules = json.loads((folder / "outcomes.json").read_text())["jax_ncu"]["modules"]
    rows = table.distinct(table.torch_rows(folder) + table.jax_rows(folder))
    for row in rows:
        if row.case in modules:
            row.module = said(modules[row.case], row.name)
    target.parent.mkdir(parents=True, exist_ok=True)
    table.write(target, rows)
    print(f"{len(rows)} rows, {len({row.name for row in rows})} distinct kernels")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
