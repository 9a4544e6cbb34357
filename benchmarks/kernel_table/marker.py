"""Marks where a case begins and ends on the device: an empty kernel whose grid says which case, seen by every profiler.

The driver's own interface is used, so that the same marker serves PyTorch and JAX.
"""

from __future__ import annotations

import ctypes

NAME = "stepscope_case_marker"
BEGIN, END = 1, 2
_PTX = b""".version 7.0
.target sm_70
.address_size 64
.visible .entry stepscope_case_marker() { ret; }
"""


class Marker:
    """Launches the marker, and turns the profiler's window on and off."""

    def __init__(self) -> None:
        self._driver = ctypes.CDLL("libcuda.so.1")
        self._function = ctypes.c_void_p()
        module, context, device = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
        self._call("cuInit", 0)
        self._call("cuDeviceGet", ctypes.byref(device), 0)
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._call("cuCtxSetCurrent", context)
        self._call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(_PTX))
        self._call(
            "cuModuleGetFunction", ctypes.byref(self._function), module, ctypes.c_char_p(NAME.encode())
        )

    def _call(self, name: str, *arguments: object) -> None:
        code = getattr(self._driver, name)(*arguments)
        if code:
            raise RuntimeError(f"{name} failed with error {code}")

    def launch(self, case: int, side: int) -> None:
        """One empty kernel with the grid (case + 1, side, 1), alone on the device."""
        self._call("cuCtxSynchronize")
        no = ctypes.c_void_p()
        self._call("cuLaunchKernel", self._function, case + 1, side, 1, 1, 1, 1, 0, no, no, no)
        self._call("cuCtxSynchronize")

    def start(self) -> None:
        """From here on `ncu --profile-from-start off` looks at kernels."""
        self._call("cuProfilerStart")

    def stop(self) -> None:
        """Up to here."""
        self._call("cuCtxSynchronize")
        self._call("cuProfilerStop")
