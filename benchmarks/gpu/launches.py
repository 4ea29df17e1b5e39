"""The launches of the GPU kit: kernels of test/kernels on problems that fill a GPU, for `kperfir bundle create`.

    PYTHONPATH=test kperfir bundle create -o kit --chip h100 --targets sm_90 benchmarks/gpu/launches.py hopper

With the word `ampere` it keeps to what sm_80 has.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
import triton
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor as GluonDescriptor

from kernels.cases import CASES
from kernels.workloads.hopper import SWIZZLED

F16 = torch.float16
SMS = 132


def normal(*shape: int) -> torch.Tensor:
    """The same values for the same shape, so that the kit holds them once."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(F16)


def launch(name: str, grid: tuple[int, ...], arguments: dict[str, Any], **constexprs: Any) -> None:
    case = CASES[name]
    case.kernel[grid](**arguments, **(dict(case.constexprs) | constexprs), **case.options)


def matmul(name: str, m: int, n: int, k: int) -> None:
    sizes = {"M": m, "N": n, "K": k, "sam": k, "sak": 1, "sbk": n, "sbn": 1, "scm": n, "scn": 1}
    tensors = {"A": normal(m, k), "B": normal(k, n), "C": torch.zeros(m, n, dtype=F16)}
    launch(name, (triton.cdiv(m, 128) * triton.cdiv(n, 128),), tensors | sizes)


def persistent_matmul(name: str, m: int, n: int, k: int) -> None:
    tensors = {"A": normal(m, k), "B": normal(n, k), "C": torch.zeros(m, n, dtype=F16)}
    launch(name, (SMS,), tensors | {"M": m, "N": n, "K": k}, NS=SMS)


def softmax(rows: int, columns: int) -> None:
    x = normal(rows, columns).float()
    sizes = {"sx": columns, "so": columns, "n": columns}
    launch("softmax_fp32", (rows,), {"o": torch.zeros_like(x), "x": x} | sizes, B=triton.next_power_of_2(columns))


def attention(batch: int, heads: int, steps: int) -> None:
    tensors = {name: normal(batch, heads, steps, 64) for name in "QKV"}
    tensors |= {"O": torch.zeros(batch, heads, steps, 64, dtype=F16), "L": torch.zeros(batch, heads, steps)}
    sizes = {"sc": 0.18, "sz": heads * steps * 64, "sh": steps * 64, "T": steps, "H": heads}
    launch("fa_fwd_fp16", (triton.cdiv(steps, 128), batch * heads), tensors | sizes)


def attention_by_roles(heads: int, steps: int) -> None:
    tensors = {name: normal(heads * steps, 64) for name in ("qd", "kd", "vd")}
    tensors["od"] = torch.zeros(heads * steps, 64, dtype=F16)
    described = {name: GluonDescriptor.from_tensor(tensor, [64, 64], SWIZZLED) for name, tensor in tensors.items()}
    launch("g_attention_ws", (steps // 64, heads), described | {"scale": 0.18, "T": steps})


def main(words: list[str]) -> None:
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.uint8))
    softmax(1024, 1024)
    matmul("matmul_fp16", 2048, 2048, 1024)
    attention(1, 16, 1024)
    persistent_matmul("matmul_persistent_tma", 2048, 2048, 1024)
    if words[:1] == ["hopper"]:
        persistent_matmul("matmul_persistent_tma_ws", 2048, 2048, 1024)
        attention_by_roles(16, 1024)


if __name__ == "__main__":
    main(sys.argv[1:])
