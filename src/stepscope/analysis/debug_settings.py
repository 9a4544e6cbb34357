"""Settings for debugging that were on while the recording was made, as the capture noted them."""

from __future__ import annotations

from stepscope.trace.trace import Trace


def noted_settings(trace: Trace) -> list[str]:
    """What the sidecar says of them; what makes no sense is left out."""
    noted = trace.info.capture.get("debug_settings")
    return [each for each in noted if isinstance(each, str)] if isinstance(noted, list) else []
