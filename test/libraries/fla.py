"""Operations of flash-linear-attention (fla-core), forward and backward, on small inputs.

B, T, H, D: batch, tokens, heads, width of a head. Two chunks of 64 tokens are enough to go through every loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from libraries.operation import Maker, Operation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

B, T, H, D = 1, 128, 2, 64
# The modules that publish operations; `op` looks a name up in the first one of the path given.
OPS = "fla.ops"

# What an argument that is called so holds: a method of Maker and the shape. Operations override what differs.
KINDS: dict[str, tuple[str, tuple[int, ...]]] = {
    "q": ("normal", (B, T, H, D)),
    "k": ("normal", (B, T, H, D)),
    "v": ("normal", (B, T, H, D)),
    "r": ("normal", (B, T, H, D)),
    "s": ("normal", (B, T, H, D)),
    "g": ("log_gate", (B, T, H)),
    "gk": ("log_gate", (B, T, H, D)),
    "beta": ("unit", (B, T, H)),
}
KEY = ("direction", (B, T, H, D))
VECTOR_GATE = ("log_gate", (B, T, H, D))
VECTOR_UNIT = ("unit", (B, T, H, D))


def op(
    path: str, arguments: str, *, dtype: torch.dtype = torch.bfloat16, backward: bool = True, **overrides: Any
) -> Operation:
    """Describe ``fla.ops.<path>``: names of its arguments, kinds or values that differ from `KINDS`."""
    module, _, name = path.rpartition(".")

    def inputs(make: Maker) -> Mapping[int | str, Any]:
        made: dict[int | str, Any] = {}
        for argument in arguments.split():
            kind = overrides.get(argument, KINDS.get(argument))
            if isinstance(kind, tuple) and isinstance(kind[0], str):
                method, shape = kind
                made[argument] = getattr(make, method)(*shape, dtype=torch.float32 if "gate" in method else dtype)
            elif callable(kind):
                made[argument] = kind(make)
            else:
                made[argument] = kind
        return made

    return Operation(name, f"{OPS}.{module}:{name}", inputs, backward)


def call(function: str, inputs: Callable[[Maker], Mapping[int | str, Any]]) -> Operation:
    """Describe a function of another module of fla."""
    return Operation(function.rpartition(":")[2], function, inputs)


def channel(make: Maker) -> torch.Tensor:
    return make.normal(H * D)


def sequence(make: Maker) -> torch.Tensor:
    return make.normal(B, T, H * D, dtype=torch.bfloat16)


OPERATIONS = (
    op("abc.chunk_abc", "q k v s"),
    op("attn.parallel_attn", "q k v g"),
    op("based.fused_chunk_based", "q k v", q=("normal", (B, T, H, 16)), k=("normal", (B, T, H, 16))),
    op("based.parallel_based", "q k v", q=("normal", (B, T, H, 16)), k=("normal", (B, T, H, 16))),
    op("comba.chunk.chunk_comba", "q k v p g beta", k=KEY, p=KEY),
    op("delta_rule.chunk_delta_rule", "q k v beta", k=KEY),
    op("delta_rule.fused_recurrent_delta_rule", "q k v beta", k=KEY),
    op("forgetting_attn.parallel_forgetting_attn", "q k v g"),
    op("gated_delta_rule.chunk.chunk_gated_delta_rule", "q k v g beta", k=KEY),
    op("gated_delta_rule.fused_recurrent.fused_recurrent_gated_delta_rule", "q k v g beta", k=KEY, backward=False),
    op(
        "gated_delta_product.chunk.chunk_gated_delta_product", "q k v g beta num_householder", num_householder=2,
        k=("direction", (B, 2 * T, H, D)), v=("normal", (B, 2 * T, H, D)), beta=("unit", (B, 2 * T, H)),
    ),
    op("gated_oja_rule.chunk.chunk_gated_oja_rule", "q k v gv beta", k=KEY, v=KEY, gv=VECTOR_GATE),
    op("gated_oja_rule.fused_recurrent.fused_recurrent_gated_oja_rule", "q k v gv beta", k=KEY, v=KEY, gv=VECTOR_GATE,
       backward=False),
    op("gdn2.chunk.chunk_gdn2", "q k v g b w", k=KEY, g=VECTOR_GATE, b=VECTOR_UNIT, w=VECTOR_UNIT),
    op("gdn2.fused_recurrent.fused_recurrent_gdn2", "q k v g b w", k=KEY, g=VECTOR_GATE, b=VECTOR_UNIT, w=VECTOR_UNIT),
    op("generalized_delta_rule.chunk_dplr_delta_rule", "q k v a b gk", a=KEY, b=KEY),
    op("generalized_delta_rule.chunk_iplr_delta_rule", "q k v a b", a=KEY, b=KEY, backward=False),
    op("generalized_delta_rule.fused_recurrent_dplr_delta_rule", "q k v a b gk", a=KEY, b=KEY, backward=False),
    op("generalized_delta_rule.fused_recurrent_iplr_delta_rule", "q k v a b", a=KEY, b=KEY),
    op("gla.chunk_gla", "q k v g", g=VECTOR_GATE),
    op("gla.fused_recurrent_gla", "q k v gk"),
    op("gsa.chunk_gsa", "q k v s g", g=VECTOR_GATE),
    op("gsa.fused_recurrent_gsa", "q k v s g", g=VECTOR_GATE),
    op("hgrn.chunk_hgrn", "x g", x=("normal", (B, T, H * D)), g=("log_gate", (B, T, H * D))),
    op("hgrn.fused_recurrent_hgrn", "x g", x=("normal", (B, T, H * D)), g=("log_gate", (B, T, H * D))),
    op("kda.chunk.chunk_kda", "q k v g beta", k=KEY, g=VECTOR_GATE),
    op("kda.fused_recurrent.fused_recurrent_kda", "q k v g beta", k=KEY, g=VECTOR_GATE),
    op("lightnet.chunk_lightnet", "q k v"),
    op("lightnet.fused_recurrent_lightnet", "q k v"),
    op("lightning_attn.chunk_lightning_attn", "q k v layer_idx num_layers", layer_idx=1, num_layers=4),
    op("lightning_attn.fused_recurrent_lightning_attn", "q k v layer_idx num_layers", layer_idx=1, num_layers=4),
    op("linear_attn.chunk_linear_attn", "q k v"),
    op("linear_attn.fused_chunk_linear_attn", "q k v"),
    op("linear_attn.fused_recurrent_linear_attn", "q k v"),
    op("mesa_net.chunk_mesa_net", "q k v g beta lamb", k=KEY, q=KEY, lamb=lambda make: make.unit(H, D)),
    op("nsa.parallel_nsa", "q k v g_cmp g_slc g_swa block_counts block_size window_size",
       q=("normal", (B, T, 16, D)), k=("normal", (B, T, 1, D)), v=("normal", (B, T, 1, D)),
       g_cmp=("unit", (B, T, 16)), g_slc=("unit", (B, T, 16)), g_swa=None, block_counts=2, block_size=32,
       window_size=0),
    op("parallax.parallel_parallax", "q r k v"),
    op("path_attn.parallel_path_attn", "q k v w beta g", w=lambda make: make.direction(B, T, H, D),
       beta=lambda make: make.unit(B, T, H)),
    op("rebased.parallel_rebased", "q k v", q=("normal", (B, T, H, 16)), k=("normal", (B, T, H, 16))),
    op("retention.chunk_retention", "q k v"),
    op("retention.fused_chunk_retention", "q k v"),
    op("retention.fused_recurrent_retention", "q k v"),
    op("retention.parallel_retention", "q k v"),
    op("rwkv6.chunk_rwkv6", "r k v w u", w=VECTOR_GATE, u=lambda make: make.normal(H, D)),
    op("rwkv6.fused_recurrent_rwkv6", "r k v w u", w=VECTOR_GATE, u=lambda make: make.normal(H, D)),
    op("rwkv7.chunk_rwkv7", "r w k v a b", w=VECTOR_GATE, a=KEY, b=KEY),
    op("rwkv7.fused_recurrent_rwkv7", "r w k v a b", w=VECTOR_GATE, a=KEY, b=KEY, backward=False),
    op("simple_gla.chunk_simple_gla", "q k v g"),
    op("simple_gla.fused_chunk_simple_gla", "q k v g"),
    op("simple_gla.fused_recurrent_simple_gla", "q k v g"),
    op("simple_gla.parallel_simple_gla", "q k v g"),
    op("stickbreaking_attn.parallel_stickbreaking_attn", "q k v"),
    op("ttt.chunk_ttt_linear", "q k v w b eta chunk_size", chunk_size=16,
       w=lambda make: make.normal(H, D, dtype=torch.bfloat16),
       b=lambda make: make.normal(H, D, dtype=torch.bfloat16), eta=("unit", (B, T, H, 1))),
    op("wall_attn.parallel_wall_attn", "q k v g", g=VECTOR_GATE),
    op("utils.pooling.mean_pooling", "x chunk_size", x=("normal", (B, T, H, D)), chunk_size=32),
    op("utils.cumsum.chunk_global_cumsum", "s", s=("normal", (B, T, H))),
    op("common.gate.fused_beta_sigmoid", "x", x=("normal", (B, T, H))),
    call("fla.modules.norm.layernorm:layer_norm", lambda make: {0: sequence(make), 1: channel(make), 2: channel(make)}),
    call("fla.modules.norm.layernorm:rms_norm", lambda make: {0: sequence(make), 1: channel(make), 2: None}),
    call("fla.modules.norm.layernorm:group_norm", lambda make: {
        0: sequence(make), 1: channel(make), 2: channel(make), "num_groups": H}),
    call("fla.modules.norm.fused_norm_gate:rms_norm_gated", lambda make: {
        0: sequence(make), 1: sequence(make), 2: channel(make), 3: None}),
    call("fla.modules.norm.fused_norm_gate:layer_norm_gated", lambda make: {
        0: sequence(make), 1: sequence(make), 2: channel(make), 3: channel(make)}),
    call("fla.modules.norm.l2norm:l2norm", lambda make: {0: sequence(make)}),
    call("fla.modules.rotary.ops:rotary_embedding", lambda make: {
        0: make.normal(B, T, H, D, dtype=torch.bfloat16),
        1: make.unit(T, D // 2, dtype=torch.bfloat16, grad=False),
        2: make.unit(T, D // 2, dtype=torch.bfloat16, grad=False)}),
    call("fla.modules.fused_cross_entropy.ops:cross_entropy_loss", lambda make: {
        0: make.normal(T, 200), 1: make.indices(200, T)}),
    call("fla.modules.fused_kl_div.ops:fused_kl_div_loss", lambda make: {
        0: make.normal(T, D, dtype=torch.bfloat16), 1: make.normal(T, D, dtype=torch.bfloat16, grad=False),
        2: make.scaled(96, D, dtype=torch.bfloat16), 3: make.scaled(96, D, dtype=torch.bfloat16, grad=False)}),
    call("fla.modules.fused_linear_cross_entropy.ops:fused_linear_cross_entropy_loss", lambda make: {
        0: make.normal(T, D, dtype=torch.bfloat16), 1: make.indices(96, T),
        2: make.scaled(96, D, dtype=torch.bfloat16)}),
    call("fla.modules.causal_conv1d.ops:causal_conv1d", lambda make: {
        "x": sequence(make), "weight": make.normal(H * D, 4), "bias": channel(make), "activation": "silu"}),
    call("fla.modules.activations.ops:swiglu_linear", lambda make: {
        0: sequence(make), 1: sequence(make), 2: make.scaled(64, H * D, dtype=torch.bfloat16), 3: None}),
    call("fla.modules.activations.ops:powglu", lambda make: {0: sequence(make), 1: sequence(make)}),
    call("fla.modules.activations.ops:logsigmoid", lambda make: {0: sequence(make)}),
    call("fla.modules.token_shift:token_shift", lambda make: {0: sequence(make)}),
)  # fmt: skip
