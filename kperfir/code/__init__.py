"""Reads the text of compiled kernels: PTX, and machine code as nvdisasm prints it. Imports neither Triton nor torch."""
