"""What a case is run on, and what it must compute.

    workload = WORKLOADS["softmax_fp32"]          # kernels/cases.py
    arguments = workload.arguments(seed=0)
    workload.launch(arguments)                    # on whatever driver Triton has active
    workload.verify(arguments, seed=0)

Shapes are small and end inside a block, so that masks matter. Arguments are made
again from the seed wherever the untouched inputs are needed: some hold addresses of
other tensors and cannot be cloned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from kernels.registry import Case

Arguments = dict[str, Any]
Results = dict[str, "torch.Tensor"]


@dataclass(frozen=True, slots=True)
class Workload:
    """One launch of a case.

    Attributes:
        build: Makes the arguments by parameter name; names with a leading
            underscore are tensors that the kernel reaches by an address only.
        reference: Computes what the named arguments must hold afterwards, from
            untouched arguments, in torch or numpy.
        check: Raises AssertionError unless `(untouched, after)` fit, where what must
            come out is a property and not a value.
        constexprs: Replace constexprs of the case (fewer programs for a small problem).
        tolerance: (rtol, atol) where the default of the result's dtype does not fit.
    """

    case: Case
    grid: tuple[int, ...]
    build: Callable[[torch.Generator], Arguments]
    reference: Callable[[Arguments], Results] | None = None
    check: Callable[[Arguments, Arguments], None] | None = None
    constexprs: Mapping[str, Any] = field(default_factory=dict)
    tolerance: tuple[float, float] | None = None
    variant: str = ""

    @property
    def name(self) -> str:
        """Name of the case, with `@variant` for further shapes of it."""
        return f"{self.case.name}@{self.variant}" if self.variant else self.case.name

    @property
    def has_reference(self) -> bool:
        """Whether `verify` compares the results with values or properties."""
        return self.reference is not None or self.check is not None

    def arguments(self, seed: int = 0) -> Arguments:
        """Fresh arguments; the same for the same seed, addresses apart."""
        import torch

        return self.build(torch.Generator().manual_seed(seed))

    def launch(self, arguments: Arguments) -> Any:
        """Launch through Triton's JIT; returns the compiled kernel."""
        import torch
        import triton

        # Kernels that make tensor descriptors on the device need memory for them.
        triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.uint8))
        passed = {name: value for name, value in arguments.items() if not name.startswith("_")}
        constexprs = dict(self.case.constexprs) | dict(self.constexprs)
        return self.case.kernel[self.grid](**passed, **constexprs, **self.case.options)

    def verify(self, after: Arguments, seed: int = 0) -> None:
        """Raise AssertionError unless the arguments hold what they must after a launch."""
        untouched = self.arguments(seed)
        if self.reference is not None:
            for name, expected in self.reference(untouched).items():
                assert_close(after[name], expected, self.tolerance, f"{self.name}: {name}")
        if self.check is not None:
            self.check(untouched, after)


# Two units in the last place of each format, and what cancellation leaves of values near 1.
TOLERANCES = {
    "float64": (1e-12, 1e-12),
    "float32": (2e-6, 2e-6),
    "float16": (2e-3, 1e-4),
    "bfloat16": (1.6e-2, 1e-4),
}


def assert_close(found: torch.Tensor, expected: torch.Tensor, tolerance: tuple[float, float] | None, what: str) -> None:
    """Compare in the dtype of `found`; integers and 8-bit floats exactly."""
    import torch

    assert found.shape == expected.shape, f"{what}: shape {tuple(found.shape)}, expected {tuple(expected.shape)}"
    kind = str(found.dtype).removeprefix("torch.")
    if tolerance is None and kind not in TOLERANCES:
        expected = expected.to(found.dtype)
        torch.testing.assert_close(bits(found), bits(expected), rtol=0, atol=0, msg=lambda text: f"{what}: {text}")
        return
    rtol, atol = tolerance or TOLERANCES[kind]
    torch.testing.assert_close(
        found.double(), expected.double(), rtol=rtol, atol=atol, equal_nan=True, msg=lambda text: f"{what}: {text}"
    )


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of a tensor, for comparisons that NaN must not upset."""
    import torch

    return tensor.detach().contiguous().flatten().view(torch.uint8)
