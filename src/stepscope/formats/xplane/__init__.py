"""XSpace files of TensorFlow and JAX."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.formats.reader import Format, Progress
from stepscope.formats.source import Source
from stepscope.formats.xplane.detect import SUFFIX, is_inside, matches

if TYPE_CHECKING:
    from stepscope.trace.draft import Draft


def _read(source: Source, progress: Progress) -> Draft:
    from stepscope.formats.xplane.draft import read

    return read(source, progress)


FORMAT = Format(
    name="xplane",
    summary="TensorFlow and JAX (*.xplane.pb)",
    matches=matches,
    read=_read,
    suffixes=(SUFFIX,),
    is_inside=is_inside,
    turn=30,  # before JSON: a plane of 123 bytes begins with a newline and a brace
    written_by="TensorFlow 2.2 and later, JAX, torch_xla (`*.xplane.pb`); see [TPU](formats/tpu.md)",
    versions="XSpace as of TensorFlow 2.21 and JAX 0.11; older line names included",
    verified="every event equals a decoder that shares no code, over recordings of TensorFlow on CPU and V100, JAX on H200, MI300X and TPU v6e",
)
