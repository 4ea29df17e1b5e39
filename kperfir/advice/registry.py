"""All rules of the advisor by name, in the order in which docs/advice.md explains them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from kperfir.advice.rules.layouts import convert_layout

if TYPE_CHECKING:
    from kperfir.advice.case import Case
    from kperfir.advice.finding import Finding

Rule = Callable[["Case"], Iterable["Finding"]]

RULES: dict[str, Rule] = {
    "convert-layout": convert_layout,
}
