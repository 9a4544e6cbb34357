"""The old name of `tf1_session`, kept for one release."""

from __future__ import annotations

import warnings

from stepscope.capture.integrations.tf1_session import StepscopeHook as StepscopeHook

warnings.warn(
    "stepscope.capture.integrations.session has moved to stepscope.capture.integrations.tf1_session",
    DeprecationWarning,
    stacklevel=2,
)
