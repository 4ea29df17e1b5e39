"""What is known of values that are computed from others: sums, products, remainders."""

from __future__ import annotations

from kperfir.compile.pointers import ENDLESS, Form, Term, add, constant, join, multiply, quotient, remainder

INDEX = Form({0: Term(1, ENDLESS, 1)}, 1 << 30, 0)
COLUMN = Form({1: Term(1, ENDLESS, 1)}, 1 << 30, 0)
UNKNOWN = Form()
ALIGNED = Form({}, 16)


def test_sums_add_steps_and_keep_dimensions_apart() -> None:
    total = add(multiply(INDEX, constant(4)) or UNKNOWN, COLUMN)
    assert total is not None
    assert {d: term.step for d, term in total.terms.items()} == {0: 4, 1: 1}
    assert add(INDEX, INDEX) == Form({0: Term(2, ENDLESS, 1)}, 1 << 30, 0)
    assert add(constant(7), constant(5), -1) == Form({}, 2, 2)


def test_a_stride_that_is_not_known_sets_rows_apart() -> None:
    rows = multiply(INDEX, ALIGNED)
    assert rows is not None
    assert rows.terms[0] == Term(0, 1, 16, apart=True)
    both = add(rows, INDEX)
    assert both is None  # Where rows meet what is added to them is not known.


def test_what_is_the_same_for_all_keeps_what_it_is_a_multiple_of() -> None:
    assert multiply(UNKNOWN, constant(64)) == Form({}, 64)
    assert add(Form({}, 64), Form({}, 48)) == Form({}, 16)
    assert join(Form({}, 64), Form({}, 48)) == Form({}, 16)
    assert join(INDEX, UNKNOWN) is None


def test_a_remainder_is_known_between_two_places_where_it_may_wrap() -> None:
    wrapped = remainder(add(INDEX, Form({}, 64)) or UNKNOWN, ALIGNED)
    assert wrapped is not None
    assert wrapped.terms[0] == Term(1, 16, 16)
    anywhere = remainder(add(INDEX, UNKNOWN) or UNKNOWN, ALIGNED)
    assert anywhere is not None
    assert anywhere.terms[0].run == 1


def test_a_quotient_stays_the_same_for_as_many_as_it_is_divided_by() -> None:
    assert quotient(INDEX, constant(8)) == Form({0: Term(0, 8, 1)}, 1 << 30, 0)
    assert quotient(add(INDEX, UNKNOWN) or UNKNOWN, constant(8)) is None
    assert quotient(INDEX, constant(6)) is None
    rows = multiply(quotient(INDEX, constant(8)) or UNKNOWN, ALIGNED)
    assert rows is not None
    assert rows.terms[0] == Term(0, 8, 16, apart=True)


def test_values_that_mix_two_dimensions_are_not_followed() -> None:
    assert multiply(INDEX, COLUMN) is None
    assert remainder(add(INDEX, COLUMN) or UNKNOWN, ALIGNED) is None
