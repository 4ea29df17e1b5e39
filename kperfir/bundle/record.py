"""What a script launches on the SIMT device, with the memory before and after: the contents of a bundle.

    with recorded(options) as launches:
        ...                        # kernel[grid](...)

Owns what of a launch is kept. What it is compiled to for other devices is `kperfir.bundle.create`'s.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import inspect
import weakref
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kperfir._native import record

from kperfir.bundle.manifest import Parameter
from kperfir.errors import BundleError, warn
from kperfir.runtime.arguments import Parameters, TensorMapArguments, flatten
from kperfir.runtime.arrays import Storage, address_of, storage_of
from kperfir.runtime.benchmarking import BenchmarkWatch
from kperfir.runtime.launch import active_profile_device
from kperfir.runtime.memory import merged
from kperfir.runtime.patches import Patches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kperfir.config import Options

MIXED = "u8"
# Arguments between the stream and those of the kernel: function, packed metadata, launch metadata, two hooks.
_BEFORE_ARGUMENTS = 5


@dataclass(slots=True)
class RecordedLaunch:
    """One launch.

    Attributes:
        compiled: Triton's compiled kernel.
        options: What it was compiled with.
        grid: Clusters.
        arguments: The kernel's, as Triton passed them; they keep their memory alive.
        storages: Disjoint memory behind them.
        dtypes: Triton's element type of each storage, or `MIXED`.
        before: Contents of each storage before the launch.
        after: And after it.
        simulated: What the device said.
    """

    compiled: Any
    options: dict[str, Any]
    grid: tuple[int, int, int]
    arguments: tuple[Any, ...]
    storages: list[Storage]
    dtypes: list[str]
    before: list[bytes] = field(default_factory=list)
    after: list[bytes] = field(default_factory=list)
    simulated: dict[str, Any] = field(default_factory=dict)

    def parameters(self, tensordesc_meta: Sequence[Any], *, records: bool) -> tuple[Parameter, ...]:
        """Describe the parameters that a variant takes, its scratch pointers included.

        Args:
            tensordesc_meta: Its tensor descriptors.
            records: It has a profile buffer of ours, in which every CTA has room.
        """
        sink = _Describe(self.storages)
        flatten(dict(self.compiled.src.signature), tensordesc_meta, self.arguments, sink)
        profile = Parameter("profile_scratch", offset=record.EVERY_CTA_CODE if records else 0)
        return (*sink.parameters, Parameter("global_scratch"), profile)


@contextlib.contextmanager
def recorded(options: Options, *, limit_bytes: int) -> Iterator[list[RecordedLaunch]]:
    """Record the launches that are made inside.

    Args:
        options: Which kernels, and how many launches of each.
        limit_bytes: Launches that would need more memory than this together are left out, with a warning.
    """
    from triton.compiler.compiler import CompiledKernel
    from triton.runtime.jit import JITFunction

    recorder = _Recorder(options, limit_bytes)
    patches = Patches()
    recorder.benchmarks.install(patches)
    patches.replace(JITFunction, "_do_compile", recorder.wrap_compile(JITFunction._do_compile))
    run = CompiledKernel.run.fget
    patches.replace(CompiledKernel, "run", property(lambda compiled: recorder.wrap(compiled, run(compiled))))
    try:
        yield recorder.launches
    finally:
        patches.undo()


class _Recorder:
    def __init__(self, options: Options, limit_bytes: int) -> None:
        self.launches: list[RecordedLaunch] = []
        self.benchmarks = BenchmarkWatch()
        self._options = options
        self._room = limit_bytes
        self._seen: Counter[str] = Counter()
        self._compiled_with: weakref.WeakKeyDictionary[Any, dict[str, Any]] = weakref.WeakKeyDictionary()

    def wrap_compile(self, do_compile: Callable[..., Any]) -> Callable[..., Any]:
        """Remember what kernels are compiled with: the metadata of some hold what the compiler made of it."""

        @functools.wraps(do_compile)
        def wrapper(function: Any, *arguments: Any, **keywords: Any) -> Any:
            kernel = do_compile(function, *arguments, **keywords)
            bound = signature.bind(function, *arguments, **keywords).arguments
            if hasattr(kernel, "metadata"):
                self._compiled_with[kernel] = dict(bound["options"].__dict__)
            return kernel

        signature = inspect.signature(do_compile)
        return wrapper

    def wrap(self, compiled: Any, run: Callable[..., None]) -> Callable[..., None]:
        return functools.partial(self._launch, compiled, run)

    def _launch(self, compiled: Any, run: Callable[..., None], x: int, y: int, z: int, stream: int, *rest: Any) -> None:
        launch = self._begin(compiled, (x, y, z), rest[_BEFORE_ARGUMENTS:])
        run(x, y, z, stream, *rest)
        if launch is not None:
            launch.after = [_contents(storage) for storage in launch.storages]
            launch.simulated = active_profile_device().describe_last_launch()
            self.launches.append(launch)

    def _begin(self, compiled: Any, grid: tuple[int, int, int], arguments: tuple[Any, ...]) -> RecordedLaunch | None:
        name = compiled.metadata.name
        function = getattr(compiled.src, "fn", None)
        file = function.fn.__code__.co_filename if function is not None else ""
        if self.benchmarks.active or 0 in grid or not self._options.selects(name, file):
            return None
        number, self._seen[compiled.hash] = self._seen[compiled.hash], self._seen[compiled.hash] + 1
        if not self._options.first_launch <= number < self._options.first_launch + self._options.launches:
            return None
        try:
            storages, dtypes = _memory_of(dict(compiled.src.signature), compiled.metadata, arguments)
        except BundleError as error:  # The script goes on: it does not know of the bundle.
            warn(f"a launch of {name} is not in the bundle: {error}")
            return None
        size = sum(storage.nbytes for storage in storages)
        if size > self._room:
            left = f"it needs {size >> 20} MiB, {self._room >> 20} are left (--bytes)"
            warn(f"a launch of {name} is not in the bundle: {left}")
            return None
        self._room -= size
        options = self._compiled_with.get(compiled) or compiled.metadata._asdict()
        launch = RecordedLaunch(compiled, options, grid, arguments, storages, dtypes)
        launch.before = [_contents(storage) for storage in storages]
        return launch


def _memory_of(signature: dict[str, Any], metadata: Any, arguments: tuple[Any, ...]) -> tuple[list[Storage], list[str]]:
    """Disjoint memory behind `arguments`, and its element types."""
    sink = _Collect()
    flatten(signature, list(getattr(metadata, "tensordesc_meta", None) or ()), arguments, sink)
    storages = merged(storage for storage, _ in sink.found)
    dtypes = []
    for whole in storages:
        kinds = {kind for part, kind in sink.found if whole.address <= part.address < whole.end}
        dtypes.append(kinds.pop() if len(kinds) == 1 else MIXED)
    return storages, dtypes


class _Collect(Parameters):
    """Collects memory with its element type."""

    __slots__ = ("found",)

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[Storage, str]] = []

    def add_pointer(self, argument: object, kind: str, name: str) -> None:
        """Note what a pointer points to."""
        self._note(argument, kind.removeprefix("*").removeprefix("k"), name)

    def add_tensor_map(self, description: TensorMapArguments, name: str) -> None:
        """Note what a descriptor describes."""
        self._note(description.base, _element_name(description.base), name)

    def _note(self, argument: object, kind: str, name: str) -> None:
        storage = storage_of(argument, name)
        if storage is not None and storage.nbytes:
            self.found.append((storage, kind))
        elif address_of(argument, name):
            raise BundleError(
                "bad-argument", what="a launch cannot be put into a bundle", where=f"argument {name}",
                found="an address without a tensor", expected="a tensor, or a NumPy array",
                fix="pass the tensor itself, or leave the kernel out (--kernels)",
            )  # fmt: skip


def _element_name(base: object) -> str:
    from triton._utils import canonicalize_dtype

    return str(canonicalize_dtype(base.dtype))  # type: ignore[attr-defined]


class _Describe:
    """Turns parameters into what the manifest says of them."""

    def __init__(self, storages: list[Storage]) -> None:
        self.parameters: list[Parameter] = []
        self._storages = storages

    def add_value(self, value: bytes, name: str) -> None:
        """Append a scalar."""
        self.parameters.append(Parameter("bytes", value.hex()))

    def add_pointer(self, argument: object, kind: str, name: str) -> None:
        """Append a pointer into an array, or the null pointer."""
        self.parameters.append(self._place("pointer", address_of(argument, name), {}))

    def add_tensor_map(self, description: TensorMapArguments, name: str) -> None:
        """Append a tensor map."""
        fields = {
            "swizzle": description.swizzle,
            "element_bytes": description.element_bytes,
            "element_type": description.element_type,
            "box": list(description.box),
            "shape": list(description.shape),
            "strides": list(description.strides),
            "padding": description.padding,
        }
        self.parameters.append(self._place("tensormap", address_of(description.base, name), fields))

    def _place(self, kind: str, address: int, tensor_map: dict[str, Any]) -> Parameter:
        for index, storage in enumerate(self._storages):
            if storage.address <= address < storage.end:
                return Parameter(kind, "", index, address - storage.address, tensor_map)
        # Null, or the pointer of an empty tensor, which a kernel must not use.
        return Parameter("bytes", bytes(8).hex())


def _contents(storage: Storage) -> bytes:
    return ctypes.string_at(storage.address, storage.nbytes)
