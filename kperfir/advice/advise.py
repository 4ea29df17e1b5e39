"""Run the rules of the advisor over a timeline.

    advice = advise(kperfir.load("out.kpf"))
    for finding in advice.findings: print(finding.title, finding.speedup, finding.change.what)

What a rule is: a pure function of a `Case` that returns its findings, none if it does not apply.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kperfir.advice.case import cases
from kperfir.advice.finding import Advice
from kperfir.advice.registry import RULES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from kperfir.advice.case import Case
    from kperfir.advice.finding import Finding
    from kperfir.timeline import Timeline

# What gains less than a hundredth is within what recording itself changes.
LEAST_SPEEDUP = 1.01


def advise(timeline: Timeline, kernels: Collection[str] | None = None) -> Advice:
    """The findings of all rules on a timeline.

    Args:
        timeline: Of one or more captures.
        kernels: Names of the kernels to look at; all if None.
    """
    names = [str(name) for name in dict.fromkeys(timeline.launches["kernel"])]
    chosen = [name for name in names if kernels is None or name in kernels]
    findings = [finding for case in cases(timeline, chosen) for finding in findings_of(case)]
    return Advice(
        files=tuple(timeline.metadata["files"]),
        notes=(*sample_note(timeline), *timeline.notes),
        dropped=int(timeline.launches["dropped"].sum()),
        kernels=tuple(chosen),
        findings=tuple(findings),
    )


def sample_note(timeline: Timeline) -> list[str]:
    """What a reader of findings on this timeline has to know, if single spans are those of some CTAs."""
    sample = timeline.details.sample
    if sample is None:
        return []
    return [
        f"findings rest on {sample.described}, as there are so many records; counts and how CTAs fill the device are "
        "of all"
    ]


def findings_of(case: Case) -> list[Finding]:
    """The findings on one kernel that gain `LEAST_SPEEDUP` or more, those of most gain first."""
    found: Iterable[Finding] = (finding for rule in RULES.values() for finding in rule(case))
    return sorted(
        (finding for finding in found if finding.speedup >= LEAST_SPEEDUP),
        key=lambda finding: (-finding.speedup, finding.rule, finding.title),
    )
