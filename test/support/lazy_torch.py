"""As much of torch and torch.cuda as the adapter for GPUs calls, with streams that work only when somebody waits.

Work that is put on a stream is done when an event behind it is waited for, and with it what its stream waits for: so a
read without the right events finds bytes that nobody has written. `launch` stands for a kernel.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pytest


class Work:
    """One thing to be done on a stream."""

    def __init__(self, action: Callable[[], None]) -> None:
        self.action = action
        self.done = False


class Stream:
    """A queue of work."""

    queues: ClassVar[dict[object, list[Work]]] = {}

    def __init__(self, handle: object = None, device: object = None) -> None:
        # One that is not of the program is named by how many of these there are already.
        own = sum(isinstance(name, str) for name in Stream.queues)
        self.handle = handle = handle if handle is not None else f"own {own}"
        self.queue = Stream.queues.setdefault(handle, [])  # Two views of one stream share it.

    def put(self, action: Callable[[], None]) -> Work:
        work = Work(action)
        self.queue.append(work)
        return work

    def wait_event(self, event: Event) -> None:
        self.put(event.reach)

    def record_event(self) -> Event:
        event = Event()
        event.record(self)
        return event


class Event:
    """A place in a queue."""

    def __init__(self, *, blocking: bool = False) -> None:
        self._before: list[Work] = []

    def record(self, stream: Stream) -> None:
        self._before = list(stream.queue)

    def reach(self) -> None:
        for work in self._before:
            if not work.done:
                work.done = True
                work.action()

    def synchronize(self) -> None:
        on_call("synchronize")
        self.reach()


class Tensor:
    """Bytes in memory, whose content changes when streams work, and the streams that are known to use them."""

    def __init__(self, memory: np.ndarray[Any, Any], users: set[object]) -> None:
        self._memory = memory
        self.users = users

    def numel(self) -> int:
        return self._memory.size

    def data_ptr(self) -> int:
        return int(self._memory.ctypes.data)

    def __getitem__(self, index: slice) -> Tensor:
        return Tensor(self._memory[index], self.users)

    def copy_(self, source: Tensor, *, non_blocking: bool) -> None:
        on_call("copy_")
        assert non_blocking
        _current[-1].put(lambda: np.copyto(self._memory, source._memory))

    def view(self, form: Any) -> Tensor:
        return Tensor(self._memory.reshape(form) if isinstance(form, tuple) else self._memory.view(form), self.users)

    def storage_offset(self) -> int:
        return 0

    def as_strided(self, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Tensor:
        assert offset == self.storage_offset()
        in_bytes = tuple(stride * self._memory.itemsize for stride in strides)
        return Tensor(np.lib.stride_tricks.as_strided(self._memory, shape, in_bytes), self.users)

    def record_stream(self, stream: Stream) -> None:
        self.users.add(stream.handle)

    def numpy(self) -> np.ndarray[Any, Any]:
        return self._memory


class _Cuda:
    Event = Event
    Stream = Stream
    ExternalStream = Stream

    @contextlib.contextmanager
    def stream(self, stream: Stream) -> Iterator[None]:
        _current.append(stream)
        try:
            yield
        finally:
            _current.pop()

    def get_device_name(self) -> str:
        return "NVIDIA H200"


cuda = _Cuda()
_current: list[Stream] = []
_given: list[Tensor] = []


def on_call(name: str) -> None:
    """Hear of a call that CUDA forbids while a graph is captured, unless told otherwise."""


def launch(stream: int, address: int, data: bytes, error: Exception | None = None) -> Work:
    """Put a kernel on a stream that writes `data` at `address`, or fails."""

    def run() -> None:
        if error is not None:
            raise error
        ctypes.memmove(address, data, len(data))

    return Stream(stream).put(run)


def streams_that_use(address: int) -> set[object]:
    """Handles of the streams whose work the allocator waits for before it gives the memory to somebody else."""
    for tensor in _given:
        if tensor.data_ptr() <= address < tensor.data_ptr() + tensor.numel():
            return tensor.users
    raise AssertionError("nobody was given this memory")


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this what `import torch` gives, with nothing on any stream."""
    Stream.queues.clear()
    _given.clear()

    def zeros(size: int, *, dtype: object, device: object) -> Tensor:
        on_call("zeros")
        memory = np.full(size, 0xAA, np.uint8)
        _current[-1].put(lambda: memory.fill(0))
        _given.append(Tensor(memory, {_current[-1].handle}))
        return _given[-1]

    def empty(size: int, *, dtype: object, pin_memory: bool) -> Tensor:
        on_call("empty")
        assert pin_memory, "a copy into other memory waits for the GPU"
        return Tensor(np.full(size, 0xBB, np.uint8), set())

    def arange(start: int, end: int, step: int, *, dtype: str, device: object) -> Tensor:
        return Tensor(np.arange(start, end, step, dtype), {_current[-1].handle})

    module = ModuleType("torch")
    module.__dict__.update(zeros=zeros, empty=empty, arange=arange, uint8="uint8", int64="int64", cuda=cuda)
    monkeypatch.setitem(sys.modules, "torch", module)
