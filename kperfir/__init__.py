"""Timelines from inside Triton kernels."""
