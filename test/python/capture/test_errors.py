"""Errors: four parts, a stable code, and they survive a trip between processes."""

from __future__ import annotations

import pickle

import pytest

from kperfir import errors


def test_message_has_the_parts_that_were_given() -> None:
    error = errors.CaptureError("corrupt-file", where="x.kpf, offset 32", found="CRC 1", expected="CRC 2", fix="again")
    assert str(error).splitlines() == [
        "the capture file is damaged [corrupt-file]",
        "  where: x.kpf, offset 32",
        "  found: CRC 1",
        "  expected: CRC 2",
        "  fix: again",
    ]
    assert str(errors.KPerfError("some-code", fix="do that")) == "some code [some-code]\n  fix: do that"
    assert str(errors.UsageError("some-code", what="no such thing")) == "no such thing [some-code]"


CLASSES = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, errors.KPerfError)]


@pytest.mark.parametrize("kind", CLASSES)
def test_errors_survive_pickling(kind: type[errors.KPerfError]) -> None:
    error = kind("size-mismatch", where="here", found="1", expected="2", fix="grow")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert str(copy) == str(error)
    assert copy.code == "size-mismatch"


def test_usage_errors_exit_with_2_and_the_rest_with_1() -> None:
    assert {kind.__name__ for kind in CLASSES if kind.exit_code == 2} == {"UsageError", "ConfigError"}
    assert {kind.exit_code for kind in CLASSES} == {1, 2}


def test_sentences_are_sentences() -> None:
    for code, what in errors.WHAT.items():
        assert code == code.lower().replace(" ", "-")
        assert not what.endswith(".")
