"""Operations of liger-kernel, forward and backward, on small inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from libraries.operation import Maker, Operation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ROWS, WIDTH, VOCABULARY = 32, 256, 384
BF16 = torch.bfloat16


def op(
    name: str,
    function: str,
    inputs: Callable[[Maker], Mapping[int | str, Any] | tuple[Any, ...]],
    *,
    backward: bool = True,
) -> Operation:
    """Describe ``liger_kernel.ops.<module>:<Class>.apply``, called with a tuple of positional arguments."""

    def numbered(make: Maker) -> Mapping[int | str, Any]:
        made = inputs(make)
        return dict(enumerate(made)) if isinstance(made, tuple) else made

    return Operation(name, f"liger_kernel.ops.{function}.apply", numbered, backward)


def rows(make: Maker, dtype: torch.dtype = BF16) -> torch.Tensor:
    return make.normal(2, ROWS // 2, WIDTH, dtype=dtype)


def rotary(make: Maker) -> tuple[torch.Tensor, torch.Tensor]:
    return make.unit(1, 16, 64, grad=False), make.unit(1, 16, 64, grad=False)


OPERATIONS = (
    op("rms_norm", "rms_norm:LigerRMSNormFunction", lambda m: (
        rows(m), m.normal(WIDTH), 1e-6, 0.0, "llama", False, None)),
    op("rms_norm gemma", "rms_norm:LigerRMSNormFunction", lambda m: (
        rows(m), m.normal(WIDTH), 1e-6, 1.0, "gemma", False, None)),
    op("fused_add_rms_norm", "fused_add_rms_norm:LigerFusedAddRMSNormFunction", lambda m: (
        rows(m), rows(m), m.normal(WIDTH), 1e-6, 0.0, "llama", False)),
    op("layer_norm", "layer_norm:LigerLayerNormFunction", lambda m: (rows(m), m.normal(WIDTH), m.normal(WIDTH), 1e-6)),
    op("group_norm", "group_norm:LigerGroupNormFunction", lambda m: (
        m.normal(2, 8, 64), m.normal(8), m.normal(8), 8, 4, 1e-6)),
    op("poly_norm", "poly_norm:LigerPolyNormFunction", lambda m: (
        rows(m, torch.float32), m.normal(3), m.normal(), 1e-6, False)),
    op("dyt", "dyt:LigerDyTFunction", lambda m: (rows(m), m.normal(1), m.normal(WIDTH), m.normal(WIDTH))),
    op("swiglu", "swiglu:LigerSiLUMulFunction", lambda m: (rows(m), rows(m))),
    op("geglu", "geglu:LigerGELUMulFunction", lambda m: (rows(m), rows(m))),
    op("relu_squared", "relu_squared:LigerReLUSquaredFunction", lambda m: (rows(m),)),
    op("softmax", "softmax:LigerSoftmaxFunction", lambda m: (rows(m, torch.float32),)),
    op("softmax wide", "softmax:LigerSoftmaxFunction", lambda m: (m.normal(2, 9000),)),
    op("sparsemax", "sparsemax:LigerSparsemaxFunction", lambda m: (rows(m, torch.float32), -1)),
    op("rope", "rope:LigerRopeFunction", lambda m: (
        m.normal(1, 4, 16, 64, dtype=BF16), m.normal(1, 2, 16, 64, dtype=BF16), *rotary(m))),
    op("qwen2vl_mrope", "qwen2vl_mrope:LigerQwen2VLMRopeFunction", lambda m: (
        m.normal(1, 4, 16, 64), m.normal(1, 2, 16, 64),
        m.unit(3, 1, 16, 64, grad=False), m.unit(3, 1, 16, 64, grad=False),
        [8, 12, 12])),
    op("llama4_rope", "llama4_rope:LigerLlama4RopeFunction", lambda m: (
        m.normal(1, 16, 4, 64), m.normal(1, 16, 2, 64),
        torch.view_as_complex(m.normal(16, 32, 2, grad=False).contiguous()))),
    op("cross_entropy", "cross_entropy:LigerCrossEntropyFunction", lambda m: (
        m.normal(ROWS, VOCABULARY), m.indices(VOCABULARY, ROWS), None)),
    op("cross_entropy smoothed", "cross_entropy:LigerCrossEntropyFunction", lambda m: (
        m.normal(ROWS, VOCABULARY), m.indices(VOCABULARY, ROWS), m.unit(VOCABULARY, grad=False), -100, 1e-4, 0.1,
        "mean", 30.0)),
    op("fused_linear_cross_entropy", "fused_linear_cross_entropy:LigerFusedLinearCrossEntropyFunction", lambda m: (
        m.normal(ROWS, 64), m.scaled(VOCABULARY, 64), m.indices(VOCABULARY, ROWS))),
    op("kl_div", "kl_div:LigerKLDivLossFunction", lambda m: (
        m.normal(ROWS, VOCABULARY), m.probabilities(ROWS, VOCABULARY))),
    op("jsd", "jsd:LigerJSDFunction", lambda m: (m.normal(ROWS, VOCABULARY), m.normal(ROWS, VOCABULARY, grad=False))),
    op("tvd", "tvd:LigerTVDLossFunction", lambda m: (
        m.probabilities(ROWS, VOCABULARY, grad=True), m.probabilities(ROWS, VOCABULARY))),
    op("fused_linear_jsd", "fused_linear_jsd:LigerFusedLinearJSDFunction", lambda m: (
        m.normal(ROWS, 64), m.scaled(VOCABULARY, 64), m.normal(ROWS, 64, grad=False),
        m.scaled(VOCABULARY, 64, grad=False))),
    op("fused_linear_kl_div", "fused_linear_kl_div:LigerFusedLinearKLDivFunction", lambda m: (
        m.normal(ROWS, 64), m.scaled(VOCABULARY, 64), m.probabilities(ROWS, VOCABULARY))),
    op("grpo", "grpo_loss:GrpoLossFunction", lambda m: (
        m.normal(2, 17, VOCABULARY), None, None, m.indices(VOCABULARY, 2, 16), m.normal(2, grad=False), None, 0.9, 0.0,
        0.2, 0.2, False)),
    op("multi_token_attention", "multi_token_attention:LigerMultiTokenAttentionFunction", lambda m: (
        m.normal(1, 2, 32, 32), m.normal(2, 2, 3, 3), None, 1, 1, 1, 1, False)),
    op("neighborhood_attention", "fused_neighborhood_attention:LigerFusedNeighborhoodAttentionFunction", lambda m: (
        m.normal(1, 2, 32, 32), m.normal(1, 2, 32, 32), m.normal(1, 2, 32, 32), 5, 1, None)),
    op("attn_res", "attn_res:LigerAttnResFunction", lambda m: (
        m.normal(4, 2, 16, 64), m.normal(64), m.normal(64), 1e-6)),
    op("fused_moe", "fused_moe:LigerFusedMoEFunction", lambda m: (
        m.normal(16, 64, dtype=BF16), m.scaled(4, 128, 64, dtype=BF16), m.scaled(4, 64, 64, dtype=BF16),
        m.indices(4, 16, 2, dtype=torch.int32), m.unit(16, 2))),
    op("mhc_pre", "mhc:LigerMHCPreFunction", lambda m: (m.normal(16, 4, 64, dtype=BF16), m.unit(16, 4))),
    op("mhc_post_res", "mhc:LigerMHCPostResFunction", lambda m: (
        m.normal(16, 4, 64, dtype=BF16), m.normal(16, 64, dtype=BF16), m.unit(16, 4), m.unit(16, 4, 4))),
    op("modulated_rms_norm", "modulated_rms_norm:LigerModulatedRMSNormFunction", lambda m: (
        rows(m), m.normal(WIDTH), m.normal(2, WIDTH, dtype=BF16), m.normal(2, WIDTH, dtype=BF16),
        1e-6, 0.0, "llama", False)),
)  # fmt: skip
