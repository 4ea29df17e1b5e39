"""The clock of a simulated device as Triton's benchmarks see it.

A simulated launch takes the same time however often it is repeated, so benchmarks run it once or twice, not for 100 ms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_NS_PER_MS = 1e6
# Benchmarks divide by times: a function that launches nothing must not take none.
_SHORTEST_MS = 1e-6


class Clock(Protocol):
    """Anything with a simulated time."""

    clock_ns: float


class SimulatedEvent:
    """Stands in for `torch.cuda.Event`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._recorded_ns = clock.clock_ns

    def record(self, stream: object = None) -> None:
        """Note the simulated time."""
        self._recorded_ns = self._clock.clock_ns

    def elapsed_time(self, later: SimulatedEvent) -> float:
        """Return the milliseconds from this event to `later`."""
        return max((later._recorded_ns - self._recorded_ns) / _NS_PER_MS, _SHORTEST_MS)

    def synchronize(self) -> None:
        pass

    def wait(self, stream: object = None) -> None:
        pass

    def query(self) -> bool:
        """Return True: launches are complete when they return."""
        return True


class SimulatedStream:
    """Stands in for `torch.cuda.Stream`; also the context of being on one."""

    cuda_stream = 0

    def __enter__(self) -> SimulatedStream:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def synchronize(self) -> None:
        pass

    def wait_stream(self, stream: object) -> None:
        pass

    def wait_event(self, event: object) -> None:
        pass

    def record_event(self, event: SimulatedEvent) -> SimulatedEvent:
        """Record `event` on this stream."""
        event.record()
        return event


class DeviceInterface:
    """What Triton asks of `torch.cuda`, answered for a simulated device."""

    def __init__(self, clock: Clock, index: int) -> None:
        self._clock = clock
        self._index = index

    def Event(self, enable_timing: bool = True, **_: object) -> SimulatedEvent:  # noqa: FBT001
        """Return a new event, as `torch.cuda.Event` does."""
        return SimulatedEvent(self._clock)

    def Stream(self, *_: object, **__: object) -> SimulatedStream:
        """Return the one stream there is."""
        return SimulatedStream()

    ExternalStream = Stream

    def stream(self, stream: SimulatedStream | None = None) -> SimulatedStream:
        """Return a context manager that does nothing."""
        return stream if stream is not None else SimulatedStream()

    def current_stream(self, device: object = None) -> SimulatedStream:
        """Return the one stream there is."""
        return SimulatedStream()

    default_stream = current_stream

    def device(self, device: object = None) -> SimulatedStream:
        """Return a context manager that does nothing."""
        return SimulatedStream()

    def current_device(self) -> int:
        """Return the index of the device."""
        return self._index

    def synchronize(self, device: object = None) -> None:
        pass


def measure_ms(clock: Clock, call: Callable[[], object]) -> float:
    """Return the simulated milliseconds that `call` takes."""
    start_ns = clock.clock_ns
    call()
    return max((clock.clock_ns - start_ns) / _NS_PER_MS, _SHORTEST_MS)


def benchmarker(clock: Clock) -> Callable[..., Any]:
    """Return what the autotuner measures a configuration with: one launch."""

    def bench(call: Callable[[], object], quantiles: Sequence[float] | None = None, **_: object) -> Any:
        milliseconds = measure_ms(clock, call)
        return [milliseconds] * len(quantiles) if quantiles else milliseconds

    return bench


def do_bench(clock: Clock, call: Callable[[], object], arguments: dict[str, Any]) -> Any:
    """Do what `triton.testing.do_bench(call, **arguments)` does, with one launch to warm up and one to measure."""
    call()
    for tensor in arguments.get("grad_to_none") or ():
        tensor.grad = None
    milliseconds = measure_ms(clock, call)
    quantiles = arguments.get("quantiles")
    if quantiles is not None:
        return milliseconds if len(quantiles) == 1 else [milliseconds] * len(quantiles)
    return [milliseconds] if arguments.get("return_mode") == "all" else milliseconds
