"""Wrong use of `kperfir.language` is an error of the compilation, with the line, whether kperfir is active or not."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
import triton
import triton.language as tl
from triton.compiler.errors import CompilationError

import kperfir.language as kl
from support.compiling import compile_to_texts, instrumentation


@triton.jit
def not_in_a_with(q):
    kl.scope("load")
    tl.store(q, 1.0)


@triton.jit
def name_is_no_text(q):
    with kl.scope(tl.program_id(0)):
        tl.store(q, 1.0)


@triton.jit
def name_is_empty(q):
    kl.mark("")
    tl.store(q, 1.0)


@triton.jit
def value_is_a_tensor(q):
    kl.mark("all", tl.arange(0, 32))
    tl.store(q, 1.0)


@triton.jit
def value_is_a_pointer(q):
    kl.mark("where", q)
    tl.store(q, 1.0)


@triton.jit
def returns_inside(q):
    with kl.scope("open"):
        tl.store(q, 1.0)
        return


ERRORS = {
    not_in_a_with: ('kl.scope("load")', "write `with kl.scope"),
    name_is_no_text: ("with kl.scope(tl.program_id(0))", "constant text"),
    name_is_empty: ('kl.mark("")', "constant text"),
    value_is_a_tensor: ('kl.mark("all", tl.arange(0, 32))', "scalar"),
    value_is_a_pointer: ('kl.mark("where", q)', "scalar"),
    returns_inside: ('with kl.scope("open")', "return"),
}


@pytest.mark.parametrize("active", [False, True], ids=["off", "on"])
@pytest.mark.parametrize("kernel", ERRORS, ids=lambda kernel: kernel.__name__)
def test_wrong_use_is_a_compile_time_error_with_the_line(kernel: Any, active: bool) -> None:
    line, message = ERRORS[kernel]
    with instrumentation() if active else contextlib.nullcontext(), pytest.raises(CompilationError) as caught:
        compile_to_texts(kernel, {"q": "*fp32"}, {}, 80)
    assert line in str(caught.value)
    assert message in str(caught.value)


def test_outside_of_a_kernel_it_says_so() -> None:
    with pytest.raises(ValueError, match=r"@triton\.jit"):
        kl.scope("x")
    with pytest.raises(ValueError, match=r"@triton\.jit"):
        kl.mark("x", 1)
