"""Pass pipelines as text."""

from __future__ import annotations

import pytest

from kperfir.compile.pipeline import PassCall, parse_pipeline, plan_pipelines
from kperfir.config import resolve
from kperfir.errors import UsageError


def test_pipeline_is_a_list_of_passes_with_options():
    assert parse_pipeline(" a-b{x=1  y=p,q}, c , d{}") == [
        PassCall("a-b", ("x=1", "y=p,q")),
        PassCall("c"),
        PassCall("d"),
    ]
    assert parse_pipeline("  ") == []


@pytest.mark.parametrize("text", ["a b", "a{x=1", "a}", ",a", "a{{x}}", "A"])
def test_pipeline_that_cannot_be_read_is_a_usage_error(text: str):
    with pytest.raises(UsageError, match="bad-pipeline"):
        parse_pipeline(text)


def test_printed_calls_parse_to_themselves():
    for call in (PassCall("a"), PassCall("a", ("x=1", "y=2"))):
        assert parse_pipeline(str(call)) == [call]


def test_options_reach_the_pass_that_they_are_for():
    options = resolve({}, buffer_bytes=4096, strategy="ring", buffer="global", batch=2, regions=["load", "store"])
    pipelines = plan_pipelines(options)
    assert "regions=load,store" in pipelines.ttgir
    (plan,) = parse_pipeline(pipelines.allocation)
    assert set(plan.options) == {"buffer-bytes=4096", "strategy=ring", "buffer=global", "batch=2"}
    assert set(pipelines.lowering) == {"nvidia", "amd"}


def test_selection_reaches_the_pass_where_there_is_one():
    options = resolve({}, ctas="4:100:3", sms="0:2", warps=[0, 2], granularity="cta", budget=9)
    pipelines = plan_pipelines(options)
    assert "budget=9" in pipelines.ttgir
    (plan,) = parse_pipeline(pipelines.allocation)
    wanted = {"first-cta=4", "last-cta=100", "sample-ctas=3", "last-sm=2", "warps=0,2", "granularity=cta"}
    assert wanted <= set(plan.options)


def test_iterations_reach_the_pass_where_not_each_is_recorded():
    assert plan_pipelines(resolve({})).ttgir.endswith(",kperf-assign-frames")
    for text, wanted in {
        "::4": "{iteration-step=4}",
        "2:9": "{first-iteration=2 last-iteration=9}",
        "1::3": "{first-iteration=1 iteration-step=3}",
    }.items():
        options = resolve({"TRITON_KPERF_ITERATIONS": text})
        assert plan_pipelines(options).ttgir.endswith(f",kperf-assign-frames{wanted}")
