"""Random structured programs, for the property tests of the encoding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.programs import If, Loop, Mark, Node, Plan, Region, Return, Role, Work, plan_program

if TYPE_CHECKING:
    import random

_KINDS = ("load", "dot", "async_wait", "store", "user")


def random_plan(rng: random.Random, *, max_gap: int = 50, gaps: bool = True) -> Plan:
    """One to three roles of one or two warps, with or without a kernel region. Work takes up to `max_gap` cycles.

    `gaps`: stamps may begin gaps, some, all or none.
    """
    whole = rng.random() < 0.8
    roles = []
    for index in range(rng.choice((1, 1, 2, 3))):
        body = random_body(rng, rng.randint(1, 4), max_gap)
        name = f"partition{index - 1}" if index else "default"
        roles.append(Role(name, rng.randint(1, 2), [Region("kernel", body)] if whole else body))
    share = rng.choice((0.0, 0.5, 1.0)) if gaps else 0.0
    return plan_program(roles, f"kernel{rng.randint(0, 9)}", lambda: rng.random() < share)


def random_body(rng: random.Random, depth: int, max_gap: int, *, returns: bool = True) -> list[Node]:
    """Up to five nodes, `depth` levels of control flow."""
    body: list[Node] = []
    for _ in range(rng.randint(0, 5)):
        choice = rng.random()
        if depth and choice < 0.25:
            selected = (rng.randint(0, 2), rng.randint(1, 3)) if rng.random() < 0.3 else (0, 1)
            returning = returns and selected == (0, 1)
            before = random_body(rng, depth - 1, max_gap, returns=returning) if rng.random() < 0.2 else []
            inner = random_body(rng, depth - 1, max_gap, returns=returning)
            iterations = rng.random() < 0.8
            body.append(Loop(inner, (0, 0, 1, 2, 3, 7), before, iterations=iterations, selected=selected))
        elif depth and choice < 0.4:
            sides = [random_body(rng, depth - 1, max_gap, returns=returns) for _ in range(2)]
            body.append(If(*sides))
        elif depth and choice < 0.43 and returns:
            body.append(If([Work(high=max_gap), Return()]))
        elif choice < 0.5:
            body.append(Mark(value=rng.choice(("", "i32", "u32", "f32", "i64", "f64"))))
        elif choice < 0.8:
            inside: list[Node] = [Work(high=max_gap)]
            if depth and rng.random() < 0.5:
                inside = random_body(rng, depth - 1, max_gap, returns=returns)
            body.append(Region(rng.choice(_KINDS), inside))
        else:
            body.append(Work(high=max_gap))
    return body
