"""What an operation of a kernel library is, and how its inputs are made."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch


@dataclass(frozen=True, slots=True)
class Operation:
    """A function of a library and how to call it.

    Attributes:
        name: What the tables call it; unique within its library.
        function: Where it is, as ``package.module:name`` or ``package.module:Class.apply``.
        inputs: Makes the arguments from a seeded generator: positional ones under their position, named ones under
            their name. Tensors of a floating type that ask for a gradient get one.
        backward: Whether the gradient runs too; without it only what the function returns is compared.
    """

    name: str
    function: str
    inputs: Callable[[Maker], Mapping[int | str, Any]]
    backward: bool = True

    def run(self) -> list[torch.Tensor]:
        """Call the function and its gradient; return every tensor that came out, gradients last."""
        arguments = dict(self.inputs(Maker()))
        positional = [arguments[index] for index in range(sum(isinstance(key, int) for key in arguments))]
        named = {key: value for key, value in arguments.items() if isinstance(key, str)}
        result = self.resolve()(*positional, **named)
        outputs = [tensor for tensor in tensors(result) if tensor.numel()]
        differentiable = [tensor for tensor in outputs if tensor.requires_grad]
        kept = [tensor.detach().clone() for tensor in outputs]  # Some backward passes write over their inputs.
        if not self.backward or not differentiable:
            return kept
        generator = torch.Generator().manual_seed(1)
        upstream = [torch.randn(out.shape, generator=generator).to(out.dtype) for out in differentiable]
        torch.autograd.backward(differentiable, upstream)
        leaves = [tensor for tensor in tensors(list(arguments.values())) if tensor.grad is not None]
        return kept + [leaf.grad.detach().clone() for leaf in leaves]

    def resolve(self) -> Callable[..., Any]:
        """Import the function."""
        module, _, path = self.function.partition(":")
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
        return found  # type: ignore[no-any-return]


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors in nested tuples, lists and mappings, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from tensors(item)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            yield from tensors(item)


@dataclass(slots=True)
class Maker:
    """Makes the inputs of one call; the same ones every time."""

    generator: torch.Generator = field(default_factory=lambda: torch.Generator().manual_seed(0))

    def normal(self, *shape: int, dtype: torch.dtype = torch.float32, grad: bool = True) -> torch.Tensor:
        """Standard normal values."""
        return self._leaf(torch.randn(shape, generator=self.generator), dtype, grad=grad)

    def unit(self, *shape: int, dtype: torch.dtype = torch.float32, grad: bool = True) -> torch.Tensor:
        """Values between 0 and 1, as a sigmoid gives."""
        return self._leaf(torch.rand(shape, generator=self.generator) * 0.9 + 0.05, dtype, grad=grad)

    def log_gate(self, *shape: int, dtype: torch.dtype = torch.float32, grad: bool = True) -> torch.Tensor:
        """Logarithms of decays: negative, small."""
        values = torch.nn.functional.logsigmoid(torch.randn(shape, generator=self.generator) + 2)
        return self._leaf(values, dtype, grad=grad)

    def direction(self, *shape: int, dtype: torch.dtype = torch.float32, grad: bool = True) -> torch.Tensor:
        """Vectors of length 1 along the last axis, as keys of delta rules are."""
        values = torch.nn.functional.normalize(torch.randn(shape, generator=self.generator), dim=-1)
        return self._leaf(values, dtype, grad=grad)

    def scaled(self, *shape: int, dtype: torch.dtype = torch.float32, grad: bool = True) -> torch.Tensor:
        """Weights of a linear layer: normal, of variance 1 / last axis."""
        values = torch.randn(shape, generator=self.generator) / math.sqrt(shape[-1])
        return self._leaf(values, dtype, grad=grad)

    def probabilities(self, *shape: int, grad: bool = False) -> torch.Tensor:
        """Distributions along the last axis."""
        return self._leaf(torch.randn(shape, generator=self.generator).softmax(-1), torch.float32, grad=grad)

    def indices(self, limit: int, *shape: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
        """Integers from 0 to below `limit`."""
        return torch.randint(0, limit, shape, generator=self.generator).to(dtype)

    def _leaf(self, values: torch.Tensor, dtype: torch.dtype, *, grad: bool) -> torch.Tensor:
        return values.to(dtype).requires_grad_(grad)
