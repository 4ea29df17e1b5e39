"""What a second host thread gains the SIMT device, beside what a second process would.

Processes that have compiled wait for their turn: in each round one of one thread runs alone, then one of two threads,
then two of one thread side by side, so that a load that comes and goes meets all three.
"""

from __future__ import annotations

import hashlib
import json
import os
import statistics
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import torch

from sections.simt import CASES
from sections.table import table
from support.launch import simt

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 7
ROUND_SECONDS = 1.5
GOAL = 0.85  # Of the gain of a second process.


class Runner:
    """A process that launches one case for a while when told to."""

    def __init__(self, case: str, threads: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "sections.simt_threads", case, str(threads)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )  # fmt: skip
        self.digest = self._answer()  # It has compiled.

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("a process that measures has failed; its error is above")
        return json.loads(line)

    def start(self) -> None:
        """Begin to launch."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def launches_per_second(self) -> float:
        """Wait for the end of what was started."""
        return float(self._answer())

    def stop(self) -> None:
        """End the process."""
        self._process.communicate()


def measure(case: str) -> tuple[list[float], bool]:
    """Launches per second of one thread, two threads and two processes; whether results and cycles are the same."""
    runners = [Runner(case, 1), Runner(case, 2), Runner(case, 1)]
    alone, threaded, second = runners
    found: list[list[float]] = [[], [], []]
    for _ in range(ROUNDS):
        for together, rates in zip(((alone,), (threaded,), (alone, second)), found, strict=True):
            for runner in together:
                runner.start()
            rates.append(sum(runner.launches_per_second() for runner in together))
    for runner in runners:
        runner.stop()
    return [statistics.median(rates) for rates in found], len({tuple(runner.digest) for runner in runners}) == 1


def run() -> tuple[str, int]:
    """Measure kernels that move data, and one that computes."""
    rows: list[list[object]] = []
    status = 0
    for case in ("softmax", "layernorm", "attention-short"):
        (one, two, processes), same = measure(case)
        status |= not same
        rows.append([case, one, two / one, processes / one, two / processes, "yes" if same else "**no**"])
    columns = ("kernel", "launches/s", "two threads", "two processes", "threads / processes", "same results and cycles")
    text = "## Host threads of the SIMT device\n\n"
    text += f"Launches per second of wall time, the median of {ROUNDS} rounds in which one thread, two threads and two "
    text += "processes of one thread have their turns; the latter two relative to one thread. "
    text += f"The goal for the last ratio is {GOAL}. Load of the machine while it measured: "
    text += f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs, of which the measurement itself is up to 2.\n\n"
    return text + table(columns, rows), status


def main(case: str, threads: str) -> None:
    """Launch `case` once and print a digest of it; then for a while at each line of the input, and print the rate."""
    torch.manual_seed(0)
    _, launch = CASES[case]()
    with simt(threads=int(threads)) as driver:
        with driver.observed() as launches:
            launch()
        print(json.dumps([int(launches[-1].result.cycles), _digest(launch)]), flush=True)
        for _ in sys.stdin:
            start, count = time.perf_counter(), 0
            while time.perf_counter() - start < ROUND_SECONDS:
                launch()
                count += 1
            print(count / (time.perf_counter() - start), flush=True)


def _digest(launch: Callable[[], Any]) -> str:
    """What the tensors hold that the launch closes over."""
    held = [cell.cell_contents for cell in launch.__closure__ or ()]
    digest = hashlib.sha256()
    for tensor in held:
        if isinstance(tensor, torch.Tensor):
            digest.update(tensor.contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


if __name__ == "__main__":
    main(*sys.argv[1:])
