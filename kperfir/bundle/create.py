"""Make a bundle: run a script on the SIMT device, compile what it launched for other devices, write it all down.

    bundle = create_bundle(["script.py"], Path("kit"), request)

Each binary for the SIMT device's own architecture is run again from the bundle alone, and must compute what the script
did: so a launch that uses memory that is no argument, which nobody could run elsewhere, is found here.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import shutil
import warnings
import zipfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kperfir.audit.builds import CALLER_OPTIONS
from kperfir.bundle.child import failure_in_child
from kperfir.bundle.execute import OK, run_launch
from kperfir.bundle.manifest import (
    FILE_NAME,
    INSTRUMENTED,
    PLAIN,
    PROTON,
    Array,
    Bundle,
    Kernel,
    Launch,
    Missing,
    Scratch,
    Variant,
    read_bundle,
    write_bundle,
)  # fmt: skip
from kperfir.bundle.record import recorded
from kperfir.bundle.simt import SimtBundleDevice
from kperfir.compile import triton_hook
from kperfir.compile.proton import proton_instrumentation
from kperfir.errors import BundleError, KPerfWarning, warn
from kperfir.runtime.kernel import describe_kernel
from kperfir.runtime.run import check_script, run_unprofiled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kperfir.bundle.record import RecordedLaunch
    from kperfir.config import Options

RUNNER = "run.pyz"
# What goes into the runner: all that a run imports.
_RUNNER_FILES = (
    "__init__.py", "errors.py", "bundle/__init__.py", "bundle/__main__.py", "bundle/cuda.py", "bundle/execute.py",
    "bundle/manifest.py", "bundle/values.py",
)  # fmt: skip
_RUNNER_MAIN = "import sys\nfrom kperfir.bundle.__main__ import main\nsys.exit(main())\n"


@dataclass(frozen=True, slots=True)
class Request:
    """What to put into a bundle.

    Attributes:
        targets: Compute capabilities times 10.
        options: Of the instrumentation; also which kernels, and how many launches of each.
        limit_bytes: Most memory of all launches together.
        cuda_as_cpu: Let a script that asks torch for CUDA run.
        proton: Compile each kernel with Proton's records too, to compare with.
    """

    targets: tuple[int, ...]
    options: Options
    limit_bytes: int = 256 << 20
    cuda_as_cpu: bool = False
    proton: bool = False

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of variants, the plain one first."""
        return (PLAIN, INSTRUMENTED, PROTON) if self.proton else (PLAIN, INSTRUMENTED)


def create_bundle(script: Sequence[str], folder: Path, request: Request) -> Bundle:
    """Run `script` and write the bundle to `folder`, which must be new, empty, or an older bundle.

    Raises:
        BundleError: ``empty-bundle`` if there is no launch that could be put in; ``folder-in-use``.
        UsageError: ``bad-option`` if there is no such script.
    """
    check_script(script, "kperfir bundle create -o FOLDER")
    _check_folder(folder)
    with recorded(request.options, limit_bytes=request.limit_bytes) as launches:
        code = run_unprofiled(script, request.options, cuda_as_cpu=request.cuda_as_cpu)
    if code:
        warn(f"the script ended with exit code {code}; the bundle holds what it launched until then")
    if not launches:
        raise BundleError(
            "empty-bundle", where=" ".join(script), found="no launch of a kernel that was asked for",
            expected="one at least", fix="see --kernels and --launches",
        )  # fmt: skip
    _make_room(folder)
    _Writer(folder, request).write(launches)
    _add_runner(folder)
    return _without_wrong_launches(folder)


def _check_folder(folder: Path) -> None:
    if folder.exists() and any(folder.iterdir()) and not (folder / FILE_NAME).exists():
        raise BundleError(
            "folder-in-use", what="the folder holds other files", where=str(folder), expected="a new folder",
            fix="give another one with -o",
        )  # fmt: skip


def _make_room(folder: Path) -> None:
    for part in ("code", "data", "results"):
        shutil.rmtree(folder / part, ignore_errors=True)
    (folder / FILE_NAME).unlink(missing_ok=True)
    for part in ("code", "data"):
        (folder / part).mkdir(parents=True)


class _Writer:
    """Writes files of a bundle, equal contents once."""

    def __init__(self, folder: Path, request: Request) -> None:
        self._folder = folder
        self._request = request

    def write(self, launches: list[RecordedLaunch]) -> None:
        by_hash: dict[str, int] = {}
        kernels: list[Kernel] = []
        metas: dict[str, list[Any]] = {}
        written = []
        for launch in launches:
            key = launch.compiled.hash
            if key not in by_hash:
                by_hash[key] = len(kernels)
                kernels.append(self._compile_all(launch, len(kernels), metas))
            written.append(self._launch(launch, by_hash[key], kernels[by_hash[key]], metas))
        made_by = {name: metadata.version(name) for name in ("kperfir", "triton")}
        write_bundle(self._folder, Bundle(made_by, tuple(kernels), tuple(written)))

    def _compile_all(self, launch: RecordedLaunch, index: int, metas: dict[str, list[Any]]) -> Kernel:
        name = launch.compiled.metadata.name
        variants, missing = [], []
        for arch in self._request.targets:
            for kind in self._request.kinds:
                compile = functools.partial(_compile, launch, arch, kind, self._request.options)
                reason = failure_in_child(compile)
                if reason:
                    missing.append(Missing(kind, arch, reason))
                    continue
                binary = compile()  # Triton finds it in its cache.
                identity = f"{index}-{name}-sm{arch}-{kind}"
                variants.append(self._variant(binary, identity, arch, kind))
                metas[identity] = list(getattr(binary.metadata, "tensordesc_meta", None) or ())
        return Kernel(name, tuple(variants), tuple(missing))

    def _variant(self, binary: Any, identity: str, arch: int, kind: str) -> Variant:
        files = {}
        for extension in ("cubin", "ptx"):
            content = binary.asm[extension]
            files[extension] = f"code/{identity}.{extension}"
            (self._folder / files[extension]).write_bytes(content if isinstance(content, bytes) else content.encode())
        about, kernel = binary.metadata, describe_kernel(binary)
        return Variant(
            id=identity, kind=kind, arch=arch, entry=about.name, threads=32 * about.num_warps,
            shared_bytes=about.shared, cluster=about.num_ctas, cooperative=bool(about.launch_cooperative_grid),
            dependent=bool(about.launch_pdl), layout=kernel.layout, facts=kernel.facts,
            global_scratch=Scratch(about.global_scratch_size, about.global_scratch_align),
            profile_scratch=Scratch(about.profile_scratch_size, about.profile_scratch_align), **files,
        )  # fmt: skip

    def _launch(self, launch: RecordedLaunch, index: int, kernel: Kernel, metas: dict[str, list[Any]]) -> Launch:
        arrays = tuple(
            Array(
                storage.name, dtype, storage.nbytes, self._data(before),
                "" if before == after else self._data(after, keep_zeros=True),
            )
            for storage, dtype, before, after in zip(
                launch.storages, launch.dtypes, launch.before, launch.after, strict=True
            )
        )  # fmt: skip
        parameters = {
            variant.id: launch.parameters(metas[variant.id], records=bool(variant.layout))
            for variant in kernel.variants
        }
        return Launch(index, launch.grid, arrays, parameters, launch.simulated)

    def _data(self, content: bytes, *, keep_zeros: bool = False) -> str:
        if not keep_zeros and not any(content):
            return ""
        name = f"data/{hashlib.sha256(content).hexdigest()[:16]}.bin"
        path = self._folder / name
        if not path.exists():
            path.write_bytes(content)
        return name


def _compile(launch: RecordedLaunch, arch: int, kind: str, options: Options) -> Any:
    """Compile a kernel again, instrumented or not. The SIMT device is no longer Triton's: it takes PTX for a binary.

    Raises:
        BundleError: If it cannot be instrumented.
    """
    import triton
    from triton.backends.compiler import GPUTarget

    chosen = {name: launch.options[name] for name in CALLER_OPTIONS if name in launch.options}
    with contextlib.ExitStack() as stack:
        caught = stack.enter_context(warnings.catch_warnings(record=True))
        if kind == INSTRUMENTED:
            stack.enter_context(triton_hook.installed(options))
        elif kind == PROTON:
            stack.enter_context(proton_instrumentation(options, arch=arch))
        binary = triton.compile(launch.compiled.src, target=GPUTarget("cuda", arch, 32), options=chosen)
    if kind == INSTRUMENTED and not getattr(binary.metadata, "kperf_layout", ""):
        reasons = [str(one.message) for one in caught if issubclass(one.category, KPerfWarning)]
        raise BundleError("not-instrumented", what="the kernel has no records", found="; ".join(reasons))
    return binary


def _add_runner(folder: Path) -> None:
    package = Path(__file__).resolve().parents[1]
    with zipfile.ZipFile(folder / RUNNER, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("__main__.py", _RUNNER_MAIN)
        for name in _RUNNER_FILES:
            archive.write(package / name, f"kperfir/{name}")


def _without_wrong_launches(folder: Path) -> Bundle:
    """Run every launch from the bundle alone; leave out those that then compute something else.

    Raises:
        BundleError: ``empty-bundle`` if none is left.
    """
    bundle = read_bundle(folder)
    device = SimtBundleDevice()
    kept, reasons = [], []
    for number, launch in enumerate(bundle.launches):
        rows = list(run_launch(folder, bundle, number, device, folder, repeat=0))
        for row in rows:
            if row.profile:
                (folder / row.profile).unlink()
        wrong = [row for row in rows if row.status != OK]
        if not wrong:
            kept.append(launch)
            continue
        reason = wrong[0].error or f"{wrong[0].beyond} elements differ from what the script computed"
        reasons.append(
            f"a launch of {wrong[0].kernel} is not in the bundle: run by itself, {wrong[0].variant}: {reason}"
        )
        warn(reasons[-1])
    if not kept:
        raise BundleError(
            "empty-bundle", where=str(folder), found="; ".join(reasons), expected="a launch that can be run by itself",
            fix="pass tensors as arguments of their own, not as addresses in memory",
        )  # fmt: skip
    result = Bundle(bundle.made_by, bundle.kernels, tuple(kept))
    if len(kept) < len(bundle.launches):
        write_bundle(folder, result)
    return result


def describe(bundle: Bundle) -> str:
    """What is in a bundle, and what is not, for a person."""
    lines = []
    for index, kernel in enumerate(bundle.kernels):
        launches = sum(launch.kernel == index for launch in bundle.launches)
        have = ", ".join(f"sm_{variant.arch} {variant.kind}" for variant in kernel.variants)
        lines.append(f"{kernel.name}: {launches} launch{'' if launches == 1 else 'es'}; {have or 'no variant'}")
        lines += [f"  not for sm_{one.arch} {one.kind}: {one.reason}" for one in kernel.missing]
    return "\n".join(lines)
