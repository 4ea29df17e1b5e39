"""Triton on a SIMT device that runs nothing (`support.fake_simt`)."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support import fake_hook, fake_simt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kperfir import session
    from kperfir.config import Options

# Triton 3.9 warns where this is unset, and warnings are errors here.
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No settings of the person who runs the tests, and no kernels of other tests."""
    for name in [name for name in os.environ if name.startswith("TRITON_KPERF")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton-cache"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def chip_file(tmp_path: Path) -> str:
    """Name of a chip file."""
    path = tmp_path / "tiny.json"
    path.write_text(fake_simt.CHIP)
    return str(path)


@pytest.fixture
def options(chip_file: str) -> Options:
    """Options that select the fake device."""
    from kperfir.config import resolve

    return resolve(device="simt", simt_chip=chip_file)


@pytest.fixture
def fake_native(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The fake in place of `kperfir._native.simt`."""
    from kperfir.runtime import select, simt

    monkeypatch.setattr(simt, "_native_simt", lambda: fake_simt)
    select._simt_driver.cache_clear()
    fake_simt.Device.created.clear()
    yield
    select._simt_driver.cache_clear()


@pytest.fixture
def fake_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler hook that gives every kernel a layout and changes no code."""
    import kperfir.compile

    monkeypatch.setattr(kperfir.compile, "triton_hook", fake_hook, raising=False)


@pytest.fixture
def simt_triton(fake_native: None, options: Options) -> Iterator[None]:
    """Triton that launches on the fake device."""
    from kperfir.runtime.select import Selection

    selection = Selection(options)
    selection.install()
    yield
    selection.uninstall()


@pytest.fixture
def profile(chip_file: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """`kperfir.profile` on the fake device, whose kernels leave records."""
    from kperfir._native import record

    import kperfir

    def act_as_kernel(launch: Any) -> None:
        address = int.from_bytes(launch.params[-1], "little")
        code = address % record.BUFFER_ALIGNMENT
        if not code:
            return
        address -= code
        records = fake_hook.records(min(launch.grid[0], 1 << code >> 1))
        size, name, _ = next(v for k, v in launch.ranges.items() if k == address)
        assert (size, name) == (len(records), "profile scratch")
        assert not any(ctypes.string_at(address, size)), "the buffer is zeroed"
        ctypes.memmove(address, records, size)

    made = fake_simt.Device.__init__

    def make(self: Any, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        self.on_launch = act_as_kernel

    monkeypatch.setattr(fake_simt.Device, "__init__", make)

    def with_device(out: str | None = None, **options: Any) -> session.Profile:
        return kperfir.profile(out, device="simt", simt_chip=chip_file, **options)

    yield with_device
    assert kperfir.session._runtime.current() is None
