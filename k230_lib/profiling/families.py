"""Names and families of operator types, for people and for colours."""

from __future__ import annotations

_CONVOLUTIONS = {
    "pointwise": "1x1 convolution",
    "depthwise": "depthwise convolution",
    "dense": "dense convolution",
    "grouped": "grouped convolution",
}
# ExecuTorch's inference-only batch norm has a name that no table has room for.
_LONG_NAMES = {"_native_batch_norm_legit_no_training": "batch_norm"}
# The first family whose word is in the operator's name; the order matters.
_FAMILIES = (
    ("norm", ("norm",)),
    ("matmul", ("mm", "linear", "matmul")),
    ("activation", ("hardtanh", "relu", "clamp", "sigmoid", "silu", "gelu", "tanh", "hardswish")),
    ("pooling", ("mean", "pool")),
    ("arithmetic", ("add", "mul", "sub", "div")),
    ("movement", ("copy", "view", "cat", "slice", "permute", "expand", "pad")),
)
FAMILIES = ("pointwise", "depthwise", "dense", "convolution", *(f[0] for f in _FAMILIES), "other")


def type_name(operator: str, kind: str = "") -> str:
    """Short name of an operator type: ``1x1 convolution``, ``hardtanh``."""
    if kind in _CONVOLUTIONS:
        return _CONVOLUTIONS[kind]
    parts = operator.split(".")
    # Operators are name space, name and overload; kernels have no name space.
    name = parts[1] if len(parts) > 2 or parts[0] == "aten" else parts[0]
    return _LONG_NAMES.get(name, name)


def family(operator: str, kind: str = "") -> str:
    """One of :data:`FAMILIES`."""
    if kind in ("pointwise", "depthwise", "dense"):
        return kind
    name = type_name(operator)
    if "conv" in name:
        return "convolution"
    return next((known for known, words in _FAMILIES if any(w in name for w in words)), "other")
