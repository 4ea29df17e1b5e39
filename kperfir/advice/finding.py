"""What an advisor's rule says: the form of a finding. It owns the fields and their JSON, no rule and no formula.

A finding names a fault of one kernel, shows the evidence, and says what to change, what that should gain and how to
check it. `Advice.to_dict` is the JSON of `kperfir advise --json`; docs/advice.md lists its fields.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

ADVICE_VERSION = 1


@dataclass(frozen=True, slots=True)
class Place:
    """A region that a finding is about.

    Attributes:
        region: Name of the region, as in ``Timeline.spans["name"]``; several regions of one name are one place.
        kind: Its kind.
        file: Source file, empty if unknown.
        line: Source line, 0 if unknown.
        share: The region's time as a share of the time of the kernel's warps; 1.0 is all of it.
    """

    region: str
    kind: str
    file: str
    line: int
    share: float


@dataclass(frozen=True, slots=True)
class Figure:
    """A number that a finding rests on. `unit` is ``cycles``, ``share`` (1.0 is all), ``count`` or ``bytes``."""

    name: str
    value: float
    unit: str


@dataclass(frozen=True, slots=True)
class Change:
    """What to do.

    Attributes:
        what: For people, in the imperative.
        settings: Launch options and constexprs to set, where the change is no more than that: ``{"num_stages": 4}``.
            `kperfir whatif` can try these; empty if the source has to change.
    """

    what: str
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault of a kernel, and its remedy.

    Attributes:
        rule: Stable name of the rule, such as ``deepen-pipeline``.
        kernel: The kernel.
        title: One sentence: what is wrong.
        places: Where, the costliest first.
        figures: The evidence.
        speedup: Expected time of a launch now divided by that after the change.
        bound: What `speedup` cannot exceed: all that the rule calls waste is gone, nothing else changes.
        basis: How `speedup` and `bound` follow from the figures, in a formula or a sentence.
        change: What to do.
    """

    rule: str
    kernel: str
    title: str
    places: tuple[Place, ...]
    figures: tuple[Figure, ...]
    speedup: float
    bound: float
    basis: str
    change: Change

    @property
    def verify(self) -> str:
        """Command that checks it: a change that is a setting can be tried, of another there are two captures."""
        if not self.change.settings:
            return "kperfir compare before.kpf after.kpf"
        settings = " ".join(f"--set {name}={value}" for name, value in self.change.settings.items())
        return f"kperfir whatif {settings} SCRIPT"

    def figure(self, name: str) -> float:
        """The figure of that name.

        Raises:
            KeyError: There is none.
        """
        for figure in self.figures:
            if figure.name == name:
                return figure.value
        raise KeyError(name)

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready data, fields in a fixed order; numbers that are not finite are null."""
        data: dict[str, Any] = _finite({**asdict(self), "verify": self.verify})
        return data


@dataclass(frozen=True, slots=True)
class Advice:
    """The findings of a capture, per kernel those of most gain first.

    Attributes:
        files: The captures.
        notes: What a reader has to know, as `Timeline.notes`.
        dropped: Records dropped: with any, findings may be wrong.
        kernels: The kernels that were looked at, in the order of their first launch.
        findings: Sorted by kernel, then by `speedup`, then by rule.
    """

    files: tuple[str, ...]
    notes: tuple[str, ...]
    dropped: int
    kernels: tuple[str, ...]
    findings: tuple[Finding, ...]

    def of_kernel(self, kernel: str) -> tuple[Finding, ...]:
        """The findings of one kernel, those of most gain first."""
        return tuple(finding for finding in self.findings if finding.kernel == kernel)

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready data; the order of keys and of findings is the same for the same capture."""
        return {
            "kperfir_advice": ADVICE_VERSION,
            "files": list(self.files),
            "notes": list(self.notes),
            "dropped": self.dropped,
            "kernels": [
                {"kernel": kernel, "findings": [finding.to_dict() for finding in self.of_kernel(kernel)]}
                for kernel in self.kernels
            ],
        }


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    if hasattr(data, "item"):  # A number of NumPy's, which JSON does not know.
        data = data.item()
    if isinstance(data, float) and not math.isfinite(data):
        return None
    return data
