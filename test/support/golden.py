"""Write the golden captures of the present format version; run once per version: ``python -m support.golden``."""

from __future__ import annotations

from pathlib import Path

from kperfir.capture.format import FORMAT_VERSION
from kperfir.capture.writer import ProcessInfo
from support.synthetic import CaptureShape, write_matmul_capture

FOLDER = Path(__file__).resolve().parents[1] / "golden" / "kpf"
SHAPES = {
    "saturate": CaptureShape(ctas=2, warps=2, iterations=2, launches=1, words_per_warp=24),
    "ring": CaptureShape(ctas=2, warps=1, iterations=4, strategy="ring", words_per_warp=24, specialised=True),
}


def write(path: Path, shape: CaptureShape) -> None:
    """Write a capture that tells nothing of the machine that made it."""
    process = ProcessInfo(host="golden", pid=1, device="simt:a100", simulated=True, chip="a100", clock_hz=1.41e9)
    write_matmul_capture(path, shape, process)


if __name__ == "__main__":
    for name, shape in SHAPES.items():
        write(FOLDER / f"v{FORMAT_VERSION}-{name}.kpf", shape)
