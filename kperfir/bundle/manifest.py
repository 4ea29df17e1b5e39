"""What is in a bundle: the one owner of `bundle.json`.

    bundle = read_bundle(folder)
    write_bundle(folder, bundle)

Paths are relative to the folder. Arrays are raw bytes in C order; a missing file stands for zeros.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from kperfir.errors import BundleError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FORMAT = "kperfir-bundle"
VERSION = 1
FILE_NAME = "bundle.json"
PLAIN = "plain"
# Those with records: kperfir's, and Proton's around the same regions.
INSTRUMENTED, PROTON = "kperf", "proton"
KINDS = ("bytes", "pointer", "tensormap", "global_scratch", "profile_scratch")


@dataclass(frozen=True, slots=True)
class Scratch:
    """Memory that a launcher adds per CTA; none if `nbytes` is 0."""

    nbytes: int = 0
    alignment: int = 1


@dataclass(frozen=True, slots=True)
class Variant:
    """One binary of a kernel.

    Attributes:
        id: Unique in the bundle; names the files.
        kind: ``plain``, or how it is instrumented.
        arch: Compute capability times 10.
        entry: Name of the entry function.
        cubin: File.
        ptx: File.
        threads: Per CTA.
        shared_bytes: Dynamic shared memory per CTA.
        cluster: CTAs per cluster, along x.
        cooperative: Whether all CTAs must be resident at once.
        dependent: Whether it may start before the kernel ahead of it has ended.
        global_scratch: What the kernel itself needs.
        profile_scratch: What it records into.
        layout: JSON of the profile buffer, empty if there are no records.
        facts: What a capture says about the kernel.
    """

    id: str
    kind: str
    arch: int
    entry: str
    cubin: str
    ptx: str
    threads: int
    shared_bytes: int
    cluster: int
    cooperative: bool
    dependent: bool
    global_scratch: Scratch
    profile_scratch: Scratch
    layout: str
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Missing:
    """A variant that could not be made."""

    kind: str
    arch: int
    reason: str


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel in all its variants."""

    name: str
    variants: tuple[Variant, ...]
    missing: tuple[Missing, ...] = ()


@dataclass(frozen=True, slots=True)
class Array:
    """Memory that a launch uses.

    Attributes:
        name: Of the argument.
        dtype: Triton's name of the element type, ``u8`` if it is several.
        nbytes: Size.
        before: File with the contents before the launch; empty: zeros.
        after: File with the contents after it; empty: it does not change.
    """

    name: str
    dtype: str
    nbytes: int
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an entry function.

    Attributes:
        kind: One of `KINDS`.
        value: Of bytes, in hex.
        array: Of a pointer and a tensor map: index into the arrays of the launch.
        offset: Of the same and of scratch, in bytes.
        tensor_map: Arguments of cuTensorMapEncodeTiled: swizzle, element_bytes, element_type, box, shape, strides (in
            elements), padding; dimensions outermost first.
    """

    kind: str
    value: str = ""
    array: int = -1
    offset: int = 0
    tensor_map: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch.

    Attributes:
        kernel: Index.
        grid: Clusters per dimension (CTAs, where a cluster is one CTA).
        arrays: Memory.
        parameters: Per variant id.
        simulated: What the SIMT device said about it: chip, cycles.
    """

    kernel: int
    grid: tuple[int, int, int]
    arrays: tuple[Array, ...]
    parameters: dict[str, tuple[Parameter, ...]]
    simulated: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Bundle:
    """All of it; `made_by` are versions."""

    made_by: dict[str, str]
    kernels: tuple[Kernel, ...]
    launches: tuple[Launch, ...]


def write_bundle(folder: Path, bundle: Bundle) -> None:
    """Write `bundle.json`; the files that it names are there already."""
    fields = {"format": FORMAT, "version": VERSION, **asdict(bundle)}
    (folder / FILE_NAME).write_text(json.dumps(fields, indent=1) + "\n", encoding="utf-8")


def read_bundle(folder: Path) -> Bundle:
    """Read `bundle.json` and see that every file it names is there.

    Raises:
        BundleError: ``no-bundle``, ``bad-bundle`` or ``bundle-version``.
    """
    path = folder / FILE_NAME
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BundleError(
            "no-bundle", where=str(folder), found=f"{FILE_NAME}: {error.strerror}", expected="a folder made by create",
            fix="kperfir bundle create -o FOLDER script.py",
        ) from None  # fmt: skip
    except ValueError as error:
        raise _bad(path, f"no JSON: {error}") from None
    if not isinstance(fields, dict) or fields.get("format") != FORMAT:
        raise _bad(path, "a file of another kind")
    if fields.get("version") != VERSION:
        raise BundleError(
            "bundle-version", where=str(path), found=f"version {fields.get('version')}", expected=f"version {VERSION}",
            fix="run it with the run.pyz that is in it, or create it again",
        )  # fmt: skip
    try:
        bundle = Bundle(
            dict(fields["made_by"]),
            tuple(_kernel(kernel) for kernel in fields["kernels"]),
            tuple(_launch(launch) for launch in fields["launches"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _bad(path, f"{type(error).__name__}: {error}") from None
    _check(folder, bundle)
    return bundle


def _kernel(fields: Mapping[str, Any]) -> Kernel:
    variants = (
        Variant(**{
            **variant,
            "global_scratch": Scratch(**variant["global_scratch"]),
            "profile_scratch": Scratch(**variant["profile_scratch"]),
        })
        for variant in fields["variants"]
    )  # fmt: skip
    return Kernel(fields["name"], tuple(variants), tuple(Missing(**missing) for missing in fields["missing"]))


def _launch(fields: Mapping[str, Any]) -> Launch:
    x, y, z = fields["grid"]
    return Launch(
        int(fields["kernel"]),
        (int(x), int(y), int(z)),
        tuple(Array(**array) for array in fields["arrays"]),
        {name: tuple(Parameter(**one) for one in values) for name, values in fields["parameters"].items()},
        fields["simulated"],
    )


def _check(folder: Path, bundle: Bundle) -> None:
    path = folder / FILE_NAME
    for number, launch in enumerate(bundle.launches):
        if not 0 <= launch.kernel < len(bundle.kernels):
            raise _bad(path, f"launch {number} of kernel {launch.kernel}, of {len(bundle.kernels)}")
        for variant in bundle.kernels[launch.kernel].variants:
            if variant.id not in launch.parameters:
                raise _bad(path, f"launch {number} has no parameters for {variant.id}")
            for parameter in launch.parameters[variant.id]:
                if parameter.kind not in KINDS:
                    raise _bad(path, f"launch {number} has a parameter of kind {parameter.kind}")
                if parameter.kind in ("pointer", "tensormap") and not 0 <= parameter.array < len(launch.arrays):
                    raise _bad(path, f"launch {number} has array {parameter.array}, of {len(launch.arrays)}")
    files = [file for kernel in bundle.kernels for variant in kernel.variants for file in (variant.cubin, variant.ptx)]
    files += [file for launch in bundle.launches for array in launch.arrays for file in (array.before, array.after)]
    absent = sorted({file for file in files if file and not (folder / file).is_file()})
    if absent:
        raise _bad(path, f"{len(absent)} files are not there, {absent[0]} among them")
    for launch in bundle.launches:
        for array in launch.arrays:
            for file in filter(None, (array.before, array.after)):
                size = (folder / file).stat().st_size
                if size != array.nbytes:
                    raise _bad(folder / file, f"{size} bytes for {array.nbytes} of {array.name}")


def _bad(path: Path, found: str) -> BundleError:
    return BundleError(
        "bad-bundle", where=str(path), found=found, fix="copy the whole folder again, or create it again"
    )
