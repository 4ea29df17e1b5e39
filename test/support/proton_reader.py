"""Proton's own decoder and trace writer, on a buffer that the SIMT device has filled.

    run = run_proton(workload, chip="a100", arch=80, regions=REGIONS)
    reading = read_with_proton(run, folder, repeat=100)

Proton takes a buffer from a GPU and in no other way, so that it runs in a process of its own with a CUDA driver whose
memory is the host's (fake_cuda.cpp). What it is given is what it would copy from a GPU.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernels.workload import Workload
    from kperfir.runtime.ghost import Ghost
    from support.launch import Run


# Words before those in which Proton counts, for each warp, the words that it has made.
_HEADER_WORDS = 10
_WORDS_PER_RECORD = 2


@dataclass(frozen=True, slots=True)
class ProtonRun:
    """A launch with Proton's records. `buffer` are the bytes of all CTAs."""

    run: Run
    buffer: bytes

    @property
    def records(self) -> int:
        """How many records the warps have made; Proton keeps the last ones of those."""
        import numpy as np

        share = self.run.compiled.metadata.profile_scratch_size
        words = np.frombuffer(self.buffer, np.uint32).reshape(-1, share // 4)
        warps = self.run.launch.shape.threads // 32
        return int(words[:, _HEADER_WORDS : _HEADER_WORDS + warps].sum()) // _WORDS_PER_RECORD


@dataclass(frozen=True, slots=True)
class ProtonReading:
    """What Proton made of a buffer. Times are CPU seconds; a slice is a pair of records that it kept."""

    decode_seconds: float
    write_seconds: float
    slices: int
    trace_bytes: int


def run_proton(
    workload: Workload, *, chip: str, arch: int, regions: tuple[str, ...], ghost: Ghost | None = None
) -> ProtonRun:
    """Launch `workload` on the SIMT device with Proton's records of `regions`, in its default mode."""
    from triton.runtime import _allocation

    from kperfir.compile.proton import proton_instrumentation
    from kperfir.config import resolve
    from kperfir.runtime.device import HostBuffer
    from support.launch import run_plain

    buffers: list[HostBuffer] = []

    def allocate(size: int, alignment: int, _: object) -> HostBuffer:
        buffers.append(HostBuffer(size, alignment))
        return buffers[-1]

    before = _allocation._profile_allocator.get()
    _allocation.set_profile_allocator(allocate)
    try:
        with proton_instrumentation(resolve({}, regions=regions), arch=arch):
            run = run_plain(workload, chip=chip, ghost=ghost)
    finally:
        _allocation.set_profile_allocator(before)
    return ProtonRun(run, buffers[-1].read().tobytes())


def read_with_proton(proton: ProtonRun, folder: Path, *, repeat: int = 1) -> ProtonReading:
    """Decode a buffer in which the CTAs come `repeat` times, and write the trace of it.

    Raises:
        subprocess.CalledProcessError: If Proton fails.
    """
    from support.fake_cuda import build_fake_cuda

    metadata = proton.run.compiled.metadata._asdict()
    simple = {key: value for key, value in metadata.items() if isinstance(value, bool | int | float | str)}
    (folder / "kernel.json").write_text(json.dumps(simple), encoding="utf-8")
    (folder / "kernel.ttgir").write_text(proton.run.compiled.asm["ttgir"], encoding="utf-8")
    (folder / "buffer.bin").write_bytes(proton.buffer * repeat)
    driver = build_fake_cuda(folder)
    command = [sys.executable, "-P", __file__, str(driver), str(folder)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    trace = folder / "trace.chrome_trace"
    text = trace.read_text(encoding="utf-8")
    reading = ProtonReading(**json.loads(done.stdout), slices=text.count('"ph":"X"'), trace_bytes=trace.stat().st_size)
    trace.unlink()
    return reading


def _main(driver: str, folder: Path) -> None:
    """In a process of its own: Proton finds a CUDA driver that is there already."""
    import ctypes
    import time

    ctypes.CDLL(driver, mode=ctypes.RTLD_GLOBAL)
    import numpy as np
    from triton._C.libproton import proton as libproton
    from triton._C.libtriton import ir, nvidia, proton

    context = ir.context()
    for dialects in (ir, nvidia, proton):
        dialects.load_dialects(context)
    module = ir.parse_mlir_module(str(folder / "kernel.ttgir"), context)
    module.context = context
    buffer = np.fromfile(folder / "buffer.bin", np.uint8)
    function = 1
    session = libproton.start(str(folder / "trace"), "shadow", "trace", "instrumentation", "cuda")
    libproton.init_function_metadata(
        function, "kernel", proton.get_scope_id_names(module), proton.get_scope_id_parents(module),
        str(folder / "kernel.json"),
    )  # fmt: skip
    libproton.enter_instrumented_op(0, function, buffer.ctypes.data, buffer.nbytes)
    times = [time.process_time()]
    libproton.exit_instrumented_op(0, function, buffer.ctypes.data, buffer.nbytes)
    times.append(time.process_time())
    libproton.finalize(session, "chrome_trace")
    times.append(time.process_time())
    print(json.dumps({"decode_seconds": times[1] - times[0], "write_seconds": times[2] - times[1]}))


if __name__ == "__main__":
    _main(sys.argv[1], Path(sys.argv[2]))
