"""Bundles that no compiler has seen, for tests of everything around the kernels."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from kperfir.bundle.manifest import (
    PLAIN,
    Array,
    Bundle,
    Kernel,
    Launch,
    Parameter,
    Scratch,
    Variant,
    write_bundle,
)  # fmt: skip

if TYPE_CHECKING:
    from pathlib import Path

TENSOR_MAP = {
    "swizzle": 3, "element_bytes": 2, "element_type": 6, "box": [8, 16], "shape": [4, 32], "strides": [64, 1],
    "padding": 1,
}  # fmt: skip


def toy_bundle(folder: Path, **changes: Any) -> Bundle:
    """Write a bundle of one launch of one kernel in two variants of sm_90; `changes` are fields of the variants.

    Its array of 256 bytes is not changed by the launch, so a device that computes nothing is right.
    """
    for name in ("code", "data"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "data" / "x.bin").write_bytes(bytes(range(256)))
    variants = []
    for kind, profile in ((PLAIN, Scratch()), ("kperf", Scratch(64, 128))):
        files = {}
        for extension, content in (("cubin", b"\x7fELF" + bytes(60)), ("ptx", b".version 8.0")):
            files[extension] = f"code/{kind}.{extension}"
            (folder / files[extension]).write_bytes(content)
        variant = Variant(
            id=f"toy-{kind}", kind=kind, arch=90, entry="toy", threads=128, shared_bytes=1024, cluster=1,
            cooperative=False, dependent=False, global_scratch=Scratch(), profile_scratch=profile,
            layout="" if kind == PLAIN else "{}", **files,
        )  # fmt: skip
        variants.append(dataclasses.replace(variant, **changes))
    parameters = (
        Parameter("pointer", array=0, offset=16),
        Parameter("tensormap", array=0, tensor_map=TENSOR_MAP),
        Parameter("bytes", value="2a000000"),
        Parameter("global_scratch"),
        Parameter("profile_scratch"),
    )
    launch = Launch(
        0, (2, 3, 1), (Array("x", "i32", 256, "data/x.bin", ""),), {variant.id: parameters for variant in variants}
    )
    bundle = Bundle({"kperfir": "0"}, (Kernel("toy", tuple(variants)),), (launch,))
    write_bundle(folder, bundle)
    return bundle
