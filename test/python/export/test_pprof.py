"""A .pprof read back with the protobuf library, by a description of profile.proto written down here."""

from __future__ import annotations

import gzip
import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

import kperfir
from kperfir.cli.main import main
from kperfir.export import pprof
from support.synthetic import CaptureShape, write_matmul_capture

if TYPE_CHECKING:
    from pathlib import Path

    from kperfir.timeline import Timeline

# Message: field: (number, type, repeated). From pprof's profile.proto.
FIELDS = {
    "ValueType": {"type": (1, "int64", False), "unit": (2, "int64", False)},
    "Label": {"key": (1, "int64", False), "str": (2, "int64", False)},
    "Sample": {"location_id": (1, "uint64", True), "value": (2, "int64", True), "label": (3, "Label", True)},
    "Line": {"function_id": (1, "uint64", False), "line": (2, "int64", False)},
    "Location": {"id": (1, "uint64", False), "line": (4, "Line", True)},
    "Function": {
        "id": (1, "uint64", False), "name": (2, "int64", False), "system_name": (3, "int64", False),
        "filename": (4, "int64", False), "start_line": (5, "int64", False),
    },
    "Profile": {
        "sample_type": (1, "ValueType", True), "sample": (2, "Sample", True), "location": (4, "Location", True),
        "function": (5, "Function", True), "string_table": (6, "string", True), "comment": (13, "int64", True),
        "default_sample_type": (14, "int64", False),
    },
}  # fmt: skip


def profile_class() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="p.proto", package="p", syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto
    for message, fields in FIELDS.items():
        described = file.message_type.add(name=message)
        for name, (number, kind, repeated) in fields.items():
            field = described.field.add(name=name, number=number)
            field.label = kinds.LABEL_REPEATED if repeated else kinds.LABEL_OPTIONAL
            if kind in FIELDS:
                field.type, field.type_name = kinds.TYPE_MESSAGE, f".p.{kind}"
            else:
                field.type = getattr(kinds, f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("p.Profile"))


def read(data: bytes) -> tuple[Any, dict[tuple[str, ...], np.ndarray[Any, Any]]]:
    """The profile, and the values of each stack, kernel first; roles are added up."""
    profile = profile_class().FromString(gzip.decompress(data))
    text = profile.string_table
    names = {function.id: text[function.name] for function in profile.function}
    places = {location.id: names[location.line[0].function_id] for location in profile.location}
    stacks: dict[tuple[str, ...], np.ndarray[Any, Any]] = {}
    for sample in profile.sample:
        stack = tuple(places[number] for number in reversed(sample.location_id))
        stacks[stack] = stacks.get(stack, 0) + np.array(sample.value)
    return profile, stacks


@pytest.fixture(scope="module")
def timeline(tmp_path_factory: pytest.TempPathFactory) -> Timeline:
    path = tmp_path_factory.mktemp("pprof") / "x.kpf"
    write_matmul_capture(path, CaptureShape(launches=2, specialised=True))
    return kperfir.load(path)


def test_stacks_add_up_to_the_summary(timeline: Timeline) -> None:
    out = io.BytesIO()
    pprof.write([timeline], out)
    profile, stacks = read(out.getvalue())
    summary = timeline.summary().set_index("name")
    totals: dict[str, np.ndarray[Any, Any]] = {}
    for stack, values in stacks.items():
        assert stack[0] == "matmul_kernel"
        totals[stack[-1]] = totals.get(stack[-1], 0) + values
    assert {name: int(values[0]) for name, values in totals.items()} == summary["count"].to_dict()
    assert {name: int(values[1]) for name, values in totals.items()} == summary["self_cycles"].to_dict()
    spans = timeline.spans
    waits = spans[spans["kind"] == "async_wait"]["duration_cycles"].sum()
    assert sum(int(values[2]) for values in stacks.values()) == waits
    roots_ns = spans[spans["parent"] < 0]["duration_ns"].sum()
    assert sum(int(values[3]) for values in stacks.values()) == pytest.approx(roots_ns, rel=1e-3)
    text = profile.string_table
    assert text[0] == ""
    assert [text[kind.type] for kind in profile.sample_type] == ["executions", "cycles", "wait", "time"]
    assert {text[label.str] for sample in profile.sample for label in sample.label} == {
        "matmul_kernel", "default", "partition0",
    }  # fmt: skip
    assert text[profile.comment[0]].startswith("simulated")


def test_nesting_is_that_of_the_spans(timeline: Timeline) -> None:
    out = io.BytesIO()
    pprof.write([timeline], out)
    _, stacks = read(out.getvalue())
    assert ("matmul_kernel", "loop kernel.py:20", "iteration kernel.py:20", "dot kernel.py:24") in stacks


def test_same_timeline_makes_the_same_file_and_several_make_one(timeline: Timeline, tmp_path: Path) -> None:
    first, second = io.BytesIO(), io.BytesIO()
    pprof.write([timeline], first)
    pprof.write([timeline, timeline], second)
    _, once = read(first.getvalue())
    _, twice = read(second.getvalue())
    assert {stack: tuple(2 * values) for stack, values in once.items()} == {s: tuple(v) for s, v in twice.items()}
    path = tmp_path / "x.pprof"
    assert main(["export", str(timeline.captures[0].path), "-o", str(path)]) == 0
    assert path.read_bytes() == first.getvalue()


def test_capture_without_a_launch_is_an_empty_profile(tmp_path: Path) -> None:
    path = tmp_path / "x.kpf"
    write_matmul_capture(path, CaptureShape(launches=0))
    out = io.BytesIO()
    pprof.write([kperfir.load(path)], out)
    assert read(out.getvalue())[1] == {}


def test_names_that_are_not_utf8_are_exported(tmp_path: Path) -> None:
    profile = pprof._Profile()
    profile.location("k", "/src/\udcff.py", 1)
    assert "/src/?.py" in profile_class().FromString(profile.serialised()).string_table
