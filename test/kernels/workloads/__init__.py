"""Workloads of the corpus, one module per family of kernels."""
