"""97.5 % points of Student's distribution: half the width of a 95 % interval, in standard errors."""

from __future__ import annotations

# For 1, 2, .. degrees of freedom; beyond the list it is 2 to within 2 %.
_POINTS = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


def student(freedom: int) -> float:
    """The point for `freedom` degrees of freedom; NaN below 1."""
    if freedom < 1:
        return float("nan")
    return _POINTS[freedom - 1] if freedom <= len(_POINTS) else 2.0
