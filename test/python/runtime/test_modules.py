"""The same PTX is parsed once in a process."""

from __future__ import annotations

import pytest
from kperfir._native import simt

from kperfir.runtime.modules import LoadedModules
from support import ptx_lab


class Parser:
    """Notes what it is asked to parse."""

    def __init__(self) -> None:
        self.parsed: list[tuple[str, str]] = []

    def __call__(self, text: str, name: str) -> object:
        self.parsed.append((text, name))
        return object()


def test_same_text_is_parsed_once() -> None:
    parser, modules = Parser(), LoadedModules()
    first = modules.load(parser, "k", b"text")
    assert modules.load(parser, "k", b"text") is first
    assert modules.load(parser, "other", b"text") is not first
    assert modules.load(parser, "k", b"another text") is not first
    assert len(parser.parsed) == 3


def test_module_used_least_recently_goes_first() -> None:
    parser, modules = Parser(), LoadedModules(limit=2)
    for text in (b"a", b"b", b"a", b"c", b"a", b"b"):
        modules.load(parser, "k", text)
    assert [text for text, _ in parser.parsed] == ["a", "b", "c", "b"]


@pytest.mark.parametrize("prefix", ["", ".visible ", "  "])
def test_module_with_variables_starts_anew(prefix: str) -> None:
    parser, modules = Parser(), LoadedModules()
    text = f".version 8.0\n{prefix}.global .u32 count = 1;\n".encode()
    assert modules.load(parser, "k", text) is not modules.load(parser, "k", text)


def test_loads_and_stores_are_not_variables() -> None:
    modules = LoadedModules()
    text = ptx_lab.ptx("st.global.u32 [%rd0], 1;", 1).encode()
    assert modules.load(simt.Module, "k", text) is modules.load(simt.Module, "k", text)


def test_text_that_cannot_be_parsed_is_not_kept() -> None:
    modules = LoadedModules()
    for _ in range(2):
        with pytest.raises(simt.Error):
            modules.load(simt.Module, "k", b"nonsense")
