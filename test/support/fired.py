"""Run the advisor on a timeline and keep what one rule says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kperfir.advice.advise import advise
from kperfir.advice.registry import RULES

if TYPE_CHECKING:
    from kperfir.advice.finding import Finding
    from support.hand_made import HandMade


def fired(timeline: HandMade, rule: str) -> list[Finding]:
    """The findings of `rule`."""
    assert rule in RULES
    return [finding for finding in advise(timeline).findings if finding.rule == rule]
