"""The demo: a tiled matmul and a flash attention, profiled on the SIMT device.

    kperfir demo            # needs neither a GPU nor torch

Checks the results against NumPy, prints the report, and leaves a .kpf and a .pftrace.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# What fp16 inputs and results allow; the sums are taken in fp32.
_TOLERANCE = 4e-3

# Whatever the environment says: the demo shows the same everywhere.
_SETTINGS = {
    "device": "simt",
    "kernels": "*",
    "regions": "auto",
    "strategy": "saturate",
    "buffer": "auto",
    "buffer_bytes": 0,
    "launches": 16,
    "simt_chip": "a100",
    "simt_seed": 0,
}


def main(folder: Path | None = None) -> int:
    """Run the demo and return an exit code.

    Args:
        folder: Where ``demo.kpf`` and ``demo.pftrace`` go; the working directory by default.
    """
    import kperfir
    from kperfir.cli.main import main as command_line
    from kperfir.export import write_file

    folder = folder or Path()
    start = time.perf_counter()
    with kperfir.profile(folder / "demo.kpf", **_SETTINGS) as profile:
        errors = {"matmul": run_matmul(), "flash_attention": run_flash_attention()}
    seconds = time.perf_counter() - start
    wrong = {name: error for name, error in errors.items() if not error <= _TOLERANCE}
    for name, error in errors.items():
        verdict = f"differs from NumPy by more than {_TOLERANCE:g}" if name in wrong else "agrees with NumPy"
        _say(f"{name} {verdict}: largest error {error:.1e}")
    if wrong:
        return 1
    _say(f"compiled, simulated and captured in {seconds:.1f} s")
    trace = folder / "demo.pftrace"
    write_file([profile.load()], trace)
    code = command_line(["report", str(profile.path)])
    _say(f"capture:  {profile.path}")
    _say(f"timeline: {trace}   (open it in https://ui.perfetto.dev)")
    return code


def run_matmul(size: tuple[int, int, int] = (256, 256, 256), seed: int = 0) -> float:
    """Multiply two fp16 matrices of `size` (M, N, K) and return the largest error against NumPy."""
    import numpy as np

    from kperfir.demo.kernels import launch_matmul

    m, n, k = size
    random = np.random.default_rng(seed)
    a, b = _uniform(random, m, k), _uniform(random, k, n)
    c = np.zeros((m, n), np.float16)
    launch_matmul(a, b, c)
    expected = a.astype(np.float32) @ b.astype(np.float32)
    return _largest_error(c, expected)


def run_flash_attention(size: tuple[int, int, int] = (2, 256, 64), seed: int = 0) -> float:
    """Attend with fp16 queries, keys and values of `size` (heads, tokens, dims); return the largest error."""
    import numpy as np

    from kperfir.demo.kernels import launch_flash_attention

    random = np.random.default_rng(seed)
    q, k, v = (_uniform(random, *size) for _ in range(3))
    o = np.zeros(size, np.float16)
    launch_flash_attention(q, k, v, o)
    scores = np.einsum("htd,hsd->hts", q.astype(np.float32), k.astype(np.float32)) * size[2] ** -0.5
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    weights /= weights.sum(axis=2, keepdims=True)
    return _largest_error(o, np.einsum("hts,hsd->htd", weights, v.astype(np.float32)))


def _uniform(random: np.random.Generator, *shape: int) -> NDArray[np.float16]:
    import numpy as np

    return (random.random(shape, dtype=np.float32) - 0.5).astype(np.float16)


def _largest_error(result: NDArray[Any], expected: NDArray[Any]) -> float:
    return float(abs(result.astype(expected.dtype) - expected).max())


def _say(text: str) -> None:
    print(text, file=sys.stderr)
