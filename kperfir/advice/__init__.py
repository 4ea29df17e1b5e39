"""Advice from timelines: what to change in a kernel, why, and by how much it should gain. Free of Triton and torch.

from kperfir.advice.advise import advise
"""
