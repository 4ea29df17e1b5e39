"""Kernels that the tests and the benchmarks compile and run; see registry.py and workload.py."""
