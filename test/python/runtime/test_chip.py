"""Chips by name, by architecture and by file."""

from __future__ import annotations

import pytest

from kperfir.errors import DeviceError
from kperfir.runtime.chip import chip_names, load_chip


@pytest.mark.parametrize(
    ("asked", "name", "arch"),
    [("a100", "a100", 80), ("sm_80", "a100", 80), ("h100", "h100", 90), ("sm_90", "h100", 90)],
)
def test_chip_is_found_by_name_and_by_architecture(asked: str, name: str, arch: int) -> None:
    chip = load_chip(asked)
    assert (chip.name, chip.arch) == (name, arch)
    assert chip.triton_properties()["max_shared_mem"] > 100_000


def test_packaged_chips() -> None:
    assert {"a100", "h100"} <= set(chip_names())


def test_unknown_chip_says_which_there_are() -> None:
    with pytest.raises(DeviceError, match="h100") as caught:
        load_chip("sm_12")
    assert caught.value.code == "unknown-chip"
