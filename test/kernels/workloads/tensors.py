"""Makers of input tensors, shared by the workloads."""

from __future__ import annotations

import torch


def normal(generator: torch.Generator, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Normally distributed values."""
    return torch.randn(shape, generator=generator).to(dtype)


def half_steps(generator: torch.Generator, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Multiples of 0.5 in [-4, 4]: sums and products are exact in every float format, whatever the order."""
    return torch.randint(-8, 9, shape, generator=generator).to(torch.float32).div(2).to(dtype)


def integers(
    generator: torch.Generator, low: int, high: int, *shape: int, dtype: torch.dtype = torch.int32
) -> torch.Tensor:
    """Integers in [low, high)."""
    return torch.randint(low, high, shape, generator=generator).to(dtype)


def canary(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """An output filled with a value that no kernel writes, so that a store outside its mask shows."""
    return torch.full(shape, 77, dtype=torch.float32).to(dtype)
