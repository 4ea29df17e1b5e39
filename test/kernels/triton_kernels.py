"""All Triton kernels of the corpus."""

from __future__ import annotations

from kernels import attention, elementwise, indexing, matmuls, reductions

CASES = elementwise.CASES + reductions.CASES + indexing.CASES + matmuls.CASES + attention.CASES
