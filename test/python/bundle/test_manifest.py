"""`bundle.json`: what is written is read, and what is damaged is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kperfir.bundle.manifest import FILE_NAME, read_bundle, write_bundle
from kperfir.errors import BundleError
from support.bundles import toy_bundle


def test_written_bundle_is_read_again(tmp_path: Path) -> None:
    bundle = toy_bundle(tmp_path)
    assert read_bundle(tmp_path) == bundle


def test_folder_that_is_no_bundle_is_told(tmp_path: Path) -> None:
    with pytest.raises(BundleError) as raised:
        read_bundle(tmp_path)
    assert raised.value.code == "no-bundle"
    assert "bundle create" in raised.value.fix


@pytest.mark.parametrize(
    ("change", "code", "found"),
    [
        ({"version": 7}, "bundle-version", "version 7"),
        ({"format": "zip"}, "bad-bundle", "another kind"),
        ({"launches": [{}]}, "bad-bundle", "KeyError"),
        ({"kernels": []}, "bad-bundle", "launch 0 of kernel 0, of 0"),
        ({"kernels": 3}, "bad-bundle", "TypeError"),
    ],
)
def test_damaged_manifest_is_told(tmp_path: Path, change: dict[str, object], code: str, found: str) -> None:
    toy_bundle(tmp_path)
    path = tmp_path / FILE_NAME
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(BundleError) as raised:
        read_bundle(tmp_path)
    assert raised.value.code == code
    assert found in raised.value.found


def test_text_that_is_no_json_is_told(tmp_path: Path) -> None:
    toy_bundle(tmp_path)
    (tmp_path / FILE_NAME).write_text("{")
    with pytest.raises(BundleError, match="bad-bundle"):
        read_bundle(tmp_path)


def test_file_that_is_missing_or_cut_is_told(tmp_path: Path) -> None:
    bundle = toy_bundle(tmp_path)
    data = tmp_path / bundle.launches[0].arrays[0].before
    data.write_bytes(data.read_bytes()[:-1])
    with pytest.raises(BundleError) as raised:
        read_bundle(tmp_path)
    assert "255 bytes for 256 of x" in raised.value.found
    data.unlink()
    with pytest.raises(BundleError) as raised:
        read_bundle(tmp_path)
    assert "1 files are not there" in raised.value.found
    assert data.name in raised.value.found


@pytest.mark.parametrize(
    ("field", "value", "found"),
    [("array", 5, "launch 0 has array 5, of 1"), ("kind", "texture", "launch 0 has a parameter of kind texture")],
)
def test_parameter_that_cannot_be_passed_is_told(tmp_path: Path, field: str, value: object, found: str) -> None:
    bundle = toy_bundle(tmp_path)
    write_bundle(tmp_path, bundle)
    path = tmp_path / FILE_NAME
    fields = json.loads(path.read_text())
    next(iter(fields["launches"][0]["parameters"].values()))[0][field] = value
    path.write_text(json.dumps(fields))
    with pytest.raises(BundleError) as raised:
        read_bundle(tmp_path)
    assert raised.value.found == found


def test_variant_without_parameters_is_told(tmp_path: Path) -> None:
    bundle = toy_bundle(tmp_path)
    path = tmp_path / FILE_NAME
    fields = json.loads(path.read_text())
    missing = bundle.kernels[0].variants[0].id
    del fields["launches"][0]["parameters"][missing]
    path.write_text(json.dumps(fields))
    with pytest.raises(BundleError) as raised:
        read_bundle(tmp_path)
    assert raised.value.found == f"launch 0 has no parameters for {missing}"
