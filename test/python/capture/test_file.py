"""The .kpf file: round trip, bounds, killed writers, damage, foreign and future files."""

from __future__ import annotations

import itertools
import os
import random
import signal
import struct
import subprocess
import sys
import threading
import zlib
from pathlib import Path

import numpy as np
import pytest

import kperfir
from kperfir.capture import format as kpf
from kperfir.capture.reader import Capture
from kperfir.capture.writer import OVER_FILE_BYTES, OVER_LAUNCHES, CaptureWriter, LaunchInfo, ProcessInfo
from kperfir.errors import CaptureError
from support.synthetic import CaptureShape, matmul_plan, run_launch, write_matmul_capture

SMALL = CaptureShape(ctas=2, warps=2, iterations=3, launches=3, words_per_warp=64)


def process() -> ProcessInfo:
    return ProcessInfo.of_this_process(device="simt", simulated=True)


def one_launch(shape: CaptureShape = SMALL) -> tuple[str, LaunchInfo, bytes]:
    """Layout text, launch, buffer."""
    plan = matmul_plan(shape)
    layout = plan.layout(strategy=shape.strategy, words_per_warp=shape.words_per_warp)
    runs = run_launch(plan, layout, shape, random.Random(3), 1000)
    return layout.text, LaunchInfo((shape.ctas, 1, 1), cycles=17), b"".join(run.data for run in runs)


def read_everything(path: Path) -> None:
    for launch in Capture.open(path).launches:
        launch.read()


def chunk_offsets(data: bytes) -> list[int]:
    """Where chunks begin, and the end of the file."""
    offsets = [kpf.FILE_HEADER_BYTES]
    while offsets[-1] < len(data):
        at = offsets[-1]
        header = kpf.unpack_chunk_header(data[at : at + kpf.CHUNK_HEADER_BYTES])
        assert header is not None
        offsets.append(at + kpf.CHUNK_HEADER_BYTES + header.meta_bytes + header.blob_bytes)
    return offsets


def test_read_returns_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "x.kpf"
    runs = write_matmul_capture(path, SMALL)
    capture = Capture.open(path)
    assert capture.ended
    assert capture.notes == []
    assert capture.process["simulated"] is True
    assert capture.process["bounds"] == {"launches_per_kernel": 16, "file_bytes": 256 << 20}
    assert [kernel.facts for kernel in capture.kernels] == [{"registers": 96}]
    assert [(launch.launch, launch.kernel_launch) for launch in capture.launches] == [(0, 0), (1, 1), (2, 2)]
    for launch, expected in zip(capture.launches, runs, strict=True):
        ids, data = launch.read()
        assert ids.tolist() == [0, 1]
        assert data.tobytes() == b"".join(run.data for run in expected)


def test_write_keeps_only_ctas_that_recorded(tmp_path: Path) -> None:
    text, _, data = one_launch()
    share = len(data) // 2
    sparse = bytes(share) + data[:share] + bytes(3 * share) + data[share:]
    with CaptureWriter(tmp_path / "x.kpf", process()) as writer:
        assert writer.add_launch(writer.add_kernel(text), LaunchInfo((3, 2, 1)), sparse).kept
        assert writer.add_launch(writer.add_kernel(text), LaunchInfo((1, 1, 1)), bytes(share)).kept
    first, second = Capture.open(tmp_path / "x.kpf").launches
    ids, kept = first.read()
    assert ids.tolist() == [1, 5]
    assert kept.tobytes() == data
    assert second.read()[0].tolist() == []


def test_note_about_one_launch_is_in_the_singular(tmp_path: Path) -> None:
    text, launch, data = one_launch()
    with CaptureWriter(tmp_path / "x.kpf", process(), kpf.Bounds(launches_per_kernel=1)) as writer:
        kernel = writer.add_kernel(text, {})
        writer.add_launch(kernel, launch, data)
        writer.skip(kernel, "failed")
    assert Capture.open(tmp_path / "x.kpf").notes == ["x.kpf: 1 launch of matmul_kernel was not kept (failed)"]


def test_write_keeps_compilations_apart_that_differ_only_in_facts(tmp_path: Path) -> None:
    text, launch, data = one_launch()
    with CaptureWriter(tmp_path / "x.kpf", process(), kpf.Bounds(launches_per_kernel=1)) as writer:
        kernels = [writer.add_kernel(text, {"registers": count}) for count in (32, 64, 32)]
        assert kernels == [0, 1, 0]
        assert [writer.add_launch(kernel, launch, data).kept for kernel in kernels] == [True, True, False]
        writer.skip(kernels[1])
    capture = Capture.open(tmp_path / "x.kpf")
    assert [kernel.facts["registers"] for kernel in capture.kernels] == [32, 64]
    assert capture.notes == ["x.kpf: 2 launches of matmul_kernel were not kept (launches-per-kernel, 1)"]


@pytest.mark.parametrize(
    ("untimed", "said"),
    [
        ([2, 5], "2 to 4 without"),  # As older captures have it.
        ([[2, 5]], "2 to 4 without"),
        ([[0, 1], [3, 5]], "0, 3 to 4 without"),
    ],
)
def test_note_names_the_ctas_without_time(untimed: list[object], said: str, tmp_path: Path) -> None:
    text, _, data = one_launch(CaptureShape(ctas=6))
    facts = {"untimed_ctas": untimed, "untimed_waves": 3, "cycles_per_wave": 100}
    with CaptureWriter(tmp_path / "x.kpf", process()) as writer:
        writer.add_launch(writer.add_kernel(text), LaunchInfo((6, 1, 1), cycles=17, facts=facts), data)
    assert any(
        f"3 of 6 CTAs simulated in detail, {said} time" in note for note in Capture.open(tmp_path / "x.kpf").notes
    )


def test_facts_that_are_not_utf8_come_back(tmp_path: Path) -> None:
    """The name of a file or an argument of a process may be any bytes."""
    path = tmp_path / "x.kpf"
    with CaptureWriter(path, process()) as writer:
        writer.add_kernel(one_launch()[0], {"file": "/src/\udcff \\ ä.py"})
    assert Capture.open(path).kernels[0].facts == {"file": "/src/\udcff \\ ä.py"}


def test_write_refuses_a_buffer_of_another_size(tmp_path: Path) -> None:
    text, _, data = one_launch()
    with CaptureWriter(tmp_path / "x.kpf", process()) as writer:
        kernel = writer.add_kernel(text)
        with pytest.raises(CaptureError, match="3 CTAs x") as caught:
            writer.add_launch(kernel, LaunchInfo((3, 1, 1)), data)
    assert caught.value.code == "size-mismatch"


def test_write_counts_what_the_launch_bound_leaves_out(tmp_path: Path) -> None:
    text, launch, data = one_launch()
    with CaptureWriter(tmp_path / "x.kpf", process(), kpf.Bounds(launches_per_kernel=2)) as writer:
        kernel = writer.add_kernel(text)
        wanted = []
        for _ in range(7):
            ticket = writer.reserve(kernel)
            wanted.append(ticket is not None)
            outcome = writer.add_launch(kernel, launch, data, ticket) if ticket else writer.skip(kernel)
        assert outcome == type(outcome)(kept=False, reason=OVER_LAUNCHES)
        assert wanted == [True, True, False, False, False, False, False]
    capture = Capture.open(tmp_path / "x.kpf")
    assert len(capture.launches) == 2
    assert capture.skipped == {(0, OVER_LAUNCHES): 5}
    assert capture.notes == ["x.kpf: 5 launches of matmul_kernel were not kept (launches-per-kernel, 2)"]


def test_launches_are_numbered_when_they_are_made_not_when_their_records_come(tmp_path: Path) -> None:
    text, launch, data = one_launch()
    path = tmp_path / "x.kpf"
    with CaptureWriter(path, process(), kpf.Bounds(launches_per_kernel=2)) as writer:
        kernel = writer.add_kernel(text)
        first, second = writer.reserve(kernel), writer.reserve(kernel)
        assert writer.reserve(kernel) is None  # Two are awaited.
        assert writer.add_launch(kernel, launch, data).reason == OVER_LAUNCHES
        assert writer.add_launch(kernel, launch, data, second).kept
        assert not writer.skip(kernel, "failed", first).kept
        third = writer.reserve(kernel)  # The first has failed: there is room for another one.
        assert writer.add_launch(kernel, launch, data, third).kept
    capture = Capture.open(path)
    assert [(entry.launch, entry.kernel_launch) for entry in capture.launches] == [(1, 1), (3, 3)]
    assert capture.skipped == {(0, OVER_LAUNCHES): 1, (0, "failed"): 1}


def test_write_keeps_the_file_below_its_bound(tmp_path: Path) -> None:
    text, launch, data = one_launch()
    noise = np.random.default_rng(0)
    bounds = kpf.Bounds(launches_per_kernel=1000, file_bytes=200_000)
    path = tmp_path / "x.kpf"
    with CaptureWriter(path, process(), bounds) as writer:
        kernel = writer.add_kernel(text)
        outcomes = []
        for _ in range(300):
            words = np.frombuffer(data, np.uint32).copy()
            words[20:40] = noise.integers(0, 1 << 32, 20)
            outcomes.append(writer.add_launch(kernel, launch, words.tobytes()))
    assert path.stat().st_size <= bounds.file_bytes
    assert path.stat().st_size > 100_000
    capture = Capture.open(path)
    kept = sum(outcome.kept for outcome in outcomes)
    assert 0 < kept == len(capture.launches) < 300
    assert capture.skipped == {(0, OVER_FILE_BYTES): 300 - kept}


def test_write_leaves_out_a_launch_larger_than_the_bound(tmp_path: Path) -> None:
    text, launch, data = one_launch(CaptureShape(ctas=20))
    with CaptureWriter(tmp_path / "x.kpf", process(), kpf.Bounds(file_bytes=73_000)) as writer:
        assert writer.add_launch(writer.add_kernel(text), launch, data).reason == OVER_FILE_BYTES
    assert Capture.open(tmp_path / "x.kpf").skipped == {(0, OVER_FILE_BYTES): 1}


def test_write_refuses_a_file_that_another_writer_holds(tmp_path: Path) -> None:
    with CaptureWriter(tmp_path / "x.kpf", process()), pytest.raises(CaptureError, match="another process") as caught:
        CaptureWriter(tmp_path / "x.kpf", process())
    assert caught.value.code == "file-busy"
    assert Capture.open(tmp_path / "x.kpf").ended


def test_write_names_a_folder_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="No such file") as caught:
        CaptureWriter(tmp_path / "absent" / "x.kpf", process())
    assert caught.value.code == "write-failed"


def test_write_fails_after_close_and_after_fork(tmp_path: Path) -> None:
    writer = CaptureWriter(tmp_path / "x.kpf", process())
    writer._pid += 1  # As in a child.
    with pytest.raises(CaptureError, match="process that opened it"):
        writer.add_kernel(one_launch()[0])
    writer._pid -= 1
    writer.close()
    writer.close()
    with pytest.raises(CaptureError, match="already closed"):
        writer.add_kernel(one_launch()[0])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_write_leaves_whole_chunks_when_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, launch, data = one_launch()
    path = tmp_path / "x.kpf"
    writer = CaptureWriter(path, process())
    kernel = writer.add_kernel(text)
    assert writer.add_launch(kernel, launch, data).kept
    real = os.write

    def half(fd: int, view: memoryview) -> int:
        monkeypatch.setattr(os, "write", lambda fd, view: real(os.open("/dev/full", os.O_WRONLY), view))
        return real(fd, view[: len(view) // 2])

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(CaptureError, match="No space left") as caught:
        writer.add_launch(kernel, launch, data)
    assert caught.value.code == "write-failed"
    monkeypatch.undo()
    assert writer.add_launch(kernel, launch, data).kept
    writer.close()
    capture = Capture.open(path)
    assert capture.ended
    assert len(capture.launches) == 2


def test_write_is_whole_when_threads_share_a_writer(tmp_path: Path) -> None:
    text, launch, data = one_launch()
    with CaptureWriter(tmp_path / "x.kpf", process(), kpf.Bounds(launches_per_kernel=50)) as writer:
        kernel = writer.add_kernel(text)

        def work() -> None:
            for _ in range(20):
                writer.add_launch(kernel, launch, data)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    capture = Capture.open(tmp_path / "x.kpf")
    assert len(capture.launches) == 50
    assert capture.skipped == {(0, OVER_LAUNCHES): 30}
    assert all(launch.read()[1].tobytes() == data for launch in capture.launches)


KILLED = """
import sys, threading, time, os, signal
from test_file import *
text, launch, data = one_launch(CaptureShape(ctas=40, warps=4, iterations=8))
with CaptureWriter(sys.argv[1], process(), kpf.Bounds(launches_per_kernel=10**6)) as writer:
    kernel = writer.add_kernel(text)
    print("ready", flush=True)
    while True:
        writer.add_launch(kernel, launch, data)
"""


def test_launches_without_instrumentation_are_counted_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "x.kpf"
    write_matmul_capture(path, SMALL)
    with CaptureWriter(tmp_path / "y.kpf", ProcessInfo.of_this_process(device="d", simulated=True)) as writer:
        for _ in range(3):
            writer.miss("softmax", "too large")
    assert kperfir.load(path).captures[0].uninstrumented == {}
    timeline = kperfir.load(tmp_path / "y.kpf")
    assert timeline.captures[0].uninstrumented == {("softmax", "too large"): 3}
    assert "y.kpf: 3 launches of softmax ran without instrumentation (too large)" in timeline.notes
    assert len(timeline.spans) == 0


def test_read_keeps_what_was_captured_when_the_process_is_killed(tmp_path: Path) -> None:
    import time

    path = tmp_path / "x.kpf"
    here = Path(__file__)
    folders = [here.parent, here.parents[2], *filter(None, [os.environ.get("PYTHONPATH")])]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, folders))}
    counts = []
    for delay in (0.05, 0.1, 0.17):
        with subprocess.Popen([sys.executable, "-c", KILLED, str(path)], env=env, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == b"ready\n"
            time.sleep(delay)
            child.send_signal(signal.SIGKILL)
        timeline = kperfir.load(path)
        assert not timeline.captures[0].ended
        assert any("did not finish" in note for note in timeline.notes)
        assert timeline.launches["dropped"].sum() == 0
        assert timeline.tracks.groupby("launch")["stamps"].sum().nunique() == 1
        counts.append(len(timeline.launches))
    assert max(counts) > 1


def test_read_keeps_the_chunks_before_a_cut_anywhere(tmp_path: Path) -> None:
    path = tmp_path / "x.kpf"
    write_matmul_capture(path, SMALL)
    whole = path.read_bytes()
    spans = kperfir.load(path).spans
    offsets = chunk_offsets(whole)
    near_chunks = {max(0, at + delta) for at in offsets for delta in (-33, -32, -31, -1, 0, 1, 31, 32, 33)}
    for size in sorted({*range(0, len(whole), 13), *near_chunks} - {len(whole)}):
        if size > len(whole):
            break
        path.write_bytes(whole[:size])
        chunks = sum(end <= size for end in offsets[1:])
        if chunks == 0:
            with pytest.raises(CaptureError) as caught:
                Capture.open(path)
            assert caught.value.code in ("not-a-kpf-file", "empty-capture")
            continue
        capture = Capture.open(path)
        assert not capture.ended
        assert len(capture.launches) == max(0, chunks - 2)
        assert capture.lost_bytes == size - offsets[chunks]
        if size == offsets[chunks]:
            launches = len(capture.launches)
            assert kperfir.load(path).spans.equals(spans[spans["launch"] < launches]) or launches == 0


def test_read_refuses_a_file_with_any_flipped_bit(tmp_path: Path) -> None:
    """2500 cases. Every byte is under a CRC, so no flip can be read past."""
    path = tmp_path / "x.kpf"
    write_matmul_capture(path, SMALL)
    whole = path.read_bytes()
    rng = random.Random(0)
    offsets = chunk_offsets(whole)
    places = [at + delta for at in offsets[:-1] for delta in range(kpf.CHUNK_HEADER_BYTES)]
    places += [*range(kpf.FILE_HEADER_BYTES), *(rng.randrange(len(whole)) for _ in range(2500 - len(places)))]
    assert len(places) >= 2500
    for at in places:
        damaged = bytearray(whole)
        damaged[at] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        with pytest.raises(CaptureError) as caught:
            read_everything(path)
        assert caught.value.code in ("corrupt-file", "not-a-kpf-file", "newer-format", "older-format")
        assert str(path) in caught.value.where


def test_read_refuses_chunks_that_were_moved(tmp_path: Path) -> None:
    path = tmp_path / "x.kpf"
    write_matmul_capture(path, SMALL)
    whole = path.read_bytes()
    offsets = chunk_offsets(whole)
    chunks = [whole[a:b] for a, b in itertools.pairwise(offsets)]
    head = whole[: kpf.FILE_HEADER_BYTES]
    swapped = [*chunks[:2], chunks[3], chunks[2], *chunks[4:]]
    dropped = [*chunks[:2], *chunks[3:]]
    for order in (swapped, dropped, chunks[1:], [*chunks, chunks[-1]], [*chunks, b"\0" * 64], chunks * 2):
        path.write_bytes(head + b"".join(order))
        with pytest.raises(CaptureError) as caught:
            Capture.open(path)
        assert caught.value.code == "corrupt-file"


def test_read_refuses_metadata_that_lies(tmp_path: Path) -> None:
    """Right CRCs, wrong contents: only a faulty writer makes these, and they must not pass or crash."""
    path = tmp_path / "x.kpf"
    text, _, data = one_launch()
    good = {"kernel": 0, "launch": 0, "kernel_launch": 0, "grid": [2, 1, 1], "stream": 0, "cycles": None}
    good |= {"clock_hz": None, "facts": {}, "ctas": 2, "encoding": kpf.DEFLATE}
    ids = np.arange(2, dtype="<u4").tobytes()
    lies = [
        {"kernel": 1}, {"kernel": -1}, {"kernel": "0"}, {"launch": None}, {"encoding": "zstd"}, {"facts": 3},
        {"grid": [2, 1]}, {"grid": [0, 1, 1]}, {"grid": [1, 1, 1]}, {"grid": 7},
        {"ctas": 3}, {"ctas": 1}, {"ctas": 0}, {"ctas": 1 << 60},
        {"clock_hz": 0}, {"clock_hz": "1e9"}, {"clock_hz": float("nan")}, {"cycles": -1}, {"stream": 1 << 64},
        {"grid": [1 << 31, 1 << 31, 1], "ctas": 1 << 30},
    ]  # fmt: skip
    blobs = [b"", b"junk", zlib.compress(ids + data)[:-4]]
    blobs += [zlib.compress(ids + data[:-1]), zlib.compress(ids + data + b"x")]
    blobs += [zlib.compress(np.array(pair, "<u4").tobytes() + data) for pair in ([1, 0], [0, 0], [0, 2])]
    blobs += [zlib.compress(bytes(1 << 24))]
    cases = [(good | lie, zlib.compress(ids + data)) for lie in lies] + [(good, blob) for blob in blobs]
    for meta, blob in cases:
        chunks = [
            kpf.pack_chunk(kpf.PROCESS, 0, {"simulated": True}),
            kpf.pack_chunk(kpf.KERNEL, 1, {"kernel": 0, "name": "k", "layout": text, "facts": {}}),
            kpf.pack_chunk(kpf.LAUNCH, 2, meta, blob),
        ]
        path.write_bytes(kpf.pack_file_header("1") + b"".join(chunks))
        with pytest.raises(CaptureError) as caught:
            Capture.open(path).launches[0].read()
        assert caught.value.code == "corrupt-file", meta


@pytest.mark.parametrize(
    "process", [{"pid": "x"}, {"clock_hz": -1}, {"clock_hz": []}, {"bounds": 3}, {"bounds": ["a"]}, [], "x", 3, None]
)
def test_read_refuses_a_process_chunk_that_lies(tmp_path: Path, process: object) -> None:
    path = tmp_path / "x.kpf"
    path.write_bytes(kpf.pack_file_header("1") + kpf.pack_chunk(kpf.PROCESS, 0, process))  # type: ignore[arg-type]
    with pytest.raises(CaptureError) as caught:
        Capture.open(path)
    assert caught.value.code == "corrupt-file"


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "not-a-kpf-file"),
        (b"\x7fELF\x02\x01\x01" + bytes(100), "not-a-kpf-file"),
        (b"KPF\0\n\x1a\n" + bytes(100), "not-a-kpf-file"),  # Copied in text mode.
        (kpf.MAGIC[:5], "empty-capture"),
        (kpf.pack_file_header("1.2"), "empty-capture"),
    ],
)
def test_read_refuses_what_is_not_a_capture(tmp_path: Path, content: bytes, code: str) -> None:
    path = tmp_path / "x.kpf"
    path.write_bytes(content)
    with pytest.raises(CaptureError) as caught:
        Capture.open(path)
    assert caught.value.code == code
    assert str(path) in str(caught.value)


def test_read_refuses_a_file_that_is_absent_or_a_folder(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="No such file") as caught:
        Capture.open(tmp_path / "absent.kpf")
    assert caught.value.code == "file-missing"
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(CaptureError, match="regular file") as caught:
            Capture.open(path)
        assert caught.value.code == "not-a-kpf-file"


@pytest.mark.parametrize(("version", "code"), [(2, "newer-format"), (0xFFFFFFFF, "newer-format"), (0, "older-format")])
def test_read_names_the_writer_when_the_version_differs(tmp_path: Path, version: int, code: str) -> None:
    path = tmp_path / "x.kpf"
    write_matmul_capture(path, SMALL)
    data = bytearray(path.read_bytes())
    data[8:12] = struct.pack("<I", version)
    data[12:28] = b"9.8.7".ljust(16, b"\0")
    data[28:32] = struct.pack("<I", zlib.crc32(data[:28]))
    path.write_bytes(data)
    with pytest.raises(CaptureError, match=r"kperfir 9\.8\.7") as caught:
        Capture.open(path)
    assert caught.value.code == code
