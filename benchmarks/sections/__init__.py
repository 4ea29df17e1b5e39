"""Sections of the benchmark report: each has `run() -> (markdown, exit status)`."""
