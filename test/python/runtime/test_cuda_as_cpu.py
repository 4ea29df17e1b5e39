"""Scripts that ask torch for CUDA run on the CPU's memory, and nothing of that is left behind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kperfir.cuda_as_cpu import cuda_as_cpu, to_cpu
from kperfir.runtime.chip import load_chip

torch = pytest.importorskip("torch")


@pytest.fixture
def pretended(chip_file: str) -> Iterator[None]:
    with cuda_as_cpu(load_chip(chip_file)):
        yield


def on_cpu(tensor: Any) -> bool:
    return bool(tensor.untyped_storage().device.type == "cpu")


def test_to_cpu_changes_cuda_devices_only() -> None:
    assert [to_cpu(device) for device in ("cuda", "cuda:1", torch.device("cuda", 0))] == ["cpu"] * 3
    assert [to_cpu(value) for value in ("cpu", None, 3, "cudax")] == ["cpu", None, 3, "cudax"]


@pytest.mark.usefixtures("pretended")
class TestInside:
    def test_torch_says_there_is_a_gpu(self) -> None:
        assert torch.cuda.is_available()
        assert torch.cuda.device_count() == 1
        assert torch.cuda.get_device_capability() == (8, 0)
        assert torch.cuda.get_device_properties("cuda").multi_processor_count == 2
        assert "SIMT" in torch.cuda.get_device_name(0)

    @pytest.mark.parametrize(
        "make",
        [
            lambda: torch.rand(4, device="cuda"),
            lambda: torch.zeros(2, 3, dtype=torch.half, device="cuda:0"),
            lambda: torch.empty(4, device=torch.device("cuda")),
            lambda: torch.tensor([1.0], device=0),
            lambda: torch.randn_like(torch.ones(3), device="cuda"),
            lambda: torch.ones(3).to("cuda"),
            lambda: torch.ones(3).to(0),
            lambda: torch.ones(3).to("cuda", torch.float16),
            lambda: torch.ones(3).to(device="cuda", dtype=torch.float16),
            lambda: torch.ones(3).cuda(),
            lambda: torch.ones(3, pin_memory=True).cuda(non_blocking=True),
            lambda: torch.ones(3).new_empty(4, device="cuda"),
            lambda: torch.nn.Linear(2, 2, device="cuda").weight,
            lambda: torch.nn.Linear(2, 2).cuda().weight,
            lambda: torch.nn.Linear(2, 2).to("cuda").weight,
            lambda: torch.nn.Linear(2, 2).to(0).weight,
            lambda: torch.rand(3, generator=torch.Generator(device="cuda").manual_seed(0), device="cuda"),
        ],
    )
    def test_what_is_made_on_cuda_is_on_the_cpu(self, make: Any) -> None:
        tensor = make()
        assert on_cpu(tensor)
        assert tensor.is_cuda
        assert tensor.get_device() == 0

    def test_seeds_make_numbers_repeat(self) -> None:
        numbers = []
        for seed in (torch.manual_seed, torch.cuda.manual_seed, torch.cuda.manual_seed_all):
            seed(7)
            numbers.append(torch.rand(4, device="cuda").tolist())
        assert numbers[0] == numbers[1] == numbers[2]

    def test_default_device_and_device_block(self) -> None:
        with torch.device("cuda"):
            assert on_cpu(torch.empty(3))
        torch.set_default_device("cuda")
        try:
            assert on_cpu(torch.empty(3))
        finally:
            torch.set_default_device(None)

    def test_streams_events_and_synchronize_do_nothing(self) -> None:
        stream = torch.cuda.Stream()
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        with torch.cuda.stream(stream), torch.cuda.device(0):
            start.record()
            end.record()
        torch.cuda.synchronize()
        assert start.elapsed_time(end) > 0

    def test_autocast_and_autograd_work(self) -> None:
        x = torch.ones(4, 4, device="cuda", requires_grad=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            y = x @ x
        assert y.dtype == torch.bfloat16
        y.sum().backward()
        assert x.grad is not None

    def test_saved_tensors_load(self, tmp_path: Any) -> None:
        torch.save(torch.ones(3), tmp_path / "x.pt")
        assert on_cpu(torch.load(tmp_path / "x.pt", map_location="cuda"))


def test_everything_is_undone(chip_file: str) -> None:
    names = ["to", "cuda", "is_cuda", "get_device", "pin_memory", "record_stream"]

    def state() -> list[Any]:
        return [dict(vars(torch.cuda)), [vars(torch.Tensor).get(name) for name in names], torch.load, torch.Generator]

    before = state()
    with cuda_as_cpu(load_chip(chip_file)):
        assert state() != before
    assert state() == before
    assert not torch.ones(1).is_cuda
    with pytest.raises((AssertionError, RuntimeError)):
        torch.ones(1, device="cuda")
