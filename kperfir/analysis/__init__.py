"""Answers from timelines: one analysis per file, each a pure function of data frames, free of Triton and torch."""
