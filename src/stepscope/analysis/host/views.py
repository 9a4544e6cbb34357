"""Ops of PyTorch that compute nothing: they look at an array in another way, or make room for one."""

from __future__ import annotations

_VIEWS = (
    "view reshape _reshape_alias _unsafe_view as_strided expand expand_as t transpose permute unsqueeze squeeze alias detach "
    "flatten unflatten narrow chunk split unbind movedim swapaxes select slice resolve_conj resolve_neg "
    "empty empty_strided empty_like resize_ result_type to lift_fresh"
)
# They compute nothing: on a device they launch nothing, either.
ONLY_VIEWS = ("detach", *(f"aten::{name}" for name in _VIEWS.split()))
