"""Options: which arguments and variables there are, and what is said of bad ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kperfir import config
from kperfir.errors import ConfigError, KPerfWarning


def test_resolve_prefers_arguments_then_environment_then_defaults() -> None:
    environment = {"TRITON_KPERF_LAUNCHES": "3", "TRITON_KPERF_KERNELS": "a*, b", "TRITON_KPERF_OUT": "x.kpf"}
    options = config.resolve(environment, launches=5)
    assert options.launches == 5
    assert options.kernels == ("a*", "b")
    assert options.out == "x.kpf"
    assert options.strategy == "saturate"


def test_resolve_ignores_arguments_that_are_none() -> None:
    assert config.resolve({"TRITON_KPERF_STRATEGY": "ring"}, strategy=None).strategy == "ring"


@pytest.mark.parametrize(
    ("text", "expected"), [("4096", 4096), ("64KiB", 65536), ("2m", 2 << 20), ("1 GiB".replace(" ", ""), 1 << 30)]
)
def test_resolve_reads_sizes_with_units(text: str, expected: int) -> None:
    assert config.resolve({"TRITON_KPERF_FILE_BYTES": text}).file_bytes == expected


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("TRITON_KPERF", "maybe"),
        ("TRITON_KPERF_LAUNCHES", "-1"),
        ("TRITON_KPERF_FILE_BYTES", "12 parsecs"),
        ("TRITON_KPERF_DEVICE", "tpu"),
        ("TRITON_KPERF_STRATEGY", "first"),
        ("TRITON_KPERF_KERNELS", " , "),
        ("TRITON_KPERF_REGIONS", "load,nonsense"),
        ("TRITON_KPERF_REGIONS", "auto,launch"),
    ],
)
def test_resolve_names_variable_value_and_choices_when_a_value_is_bad(variable: str, value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config.resolve({variable: value})
    assert caught.value.code == "bad-option"
    assert variable in caught.value.where
    assert value in caught.value.found
    assert caught.value.expected


def test_resolve_suggests_a_name_when_an_argument_is_unknown() -> None:
    with pytest.raises(ConfigError, match="did you mean kernels"):
        config.resolve({}, kernel="x")


def test_resolve_warns_with_a_suggestion_when_a_variable_is_unknown() -> None:
    with pytest.warns(KPerfWarning, match="TRITON_KPERF_KERNEL; did you mean TRITON_KPERF_KERNELS"):
        config.resolve({"TRITON_KPERF_KERNEL": "x"})


def test_resolve_does_not_warn_of_the_mark_that_processes_leave() -> None:
    config.resolve({config.OWNER_VARIABLE: "1"})


def test_environment_of_options_resolves_to_them_again() -> None:
    options = config.resolve(
        {}, out="d/x.kpf", kernels="a,b*", device="simt", launches=0, file_bytes="1MiB", quiet="yes", strategy="ring",
        regions="mma,load", budget=8, ctas="4::2", sms="0:4", warps="0,3", granularity="cta",
    )  # fmt: skip
    assert config.resolve(options.to_environment()) == options


def test_variables_all_have_a_meaning() -> None:
    assert all(name.startswith("TRITON_KPERF") and meaning for name, meaning in config.variables().items())


def test_folder_that_does_not_exist_yet_keeps_its_slash() -> None:
    from kperfir.runtime.file_names import capture_path

    out = config.resolve({}, out="new/").out
    assert capture_path(out, Path("/w"), child=False).parent == Path("/w/new")


def test_kinds_of_regions_are_those_of_the_compiler() -> None:
    enums = (Path(__file__).parents[3] / "lib" / "Dialect" / "KPerf" / "KPerfEnums.td").read_text()
    cases = enums.partition("def KPerf_Kind")[2].partition("}")[0]
    assert tuple(re.findall(r'I32EnumAttrCase<"\w+", \d+, "(\w+)">', cases)) == config.KINDS


def test_user_guide_lists_every_variable() -> None:
    guide = (Path(__file__).parents[3] / "docs" / "user-guide.md").read_text()
    assert [name for name in config.variables() if f"`{name}`" not in guide] == []


@pytest.mark.parametrize(("text", "expected"), [("0:8", (0, 8, 1)), ("4:", (4, 0, 1)), ("::10", (0, 0, 10))])
def test_ranges_are_written_as_in_python(text: str, expected: tuple[int, int, int]) -> None:
    assert config.resolve({}, ctas=text).ctas == expected


@pytest.mark.parametrize(
    "bad", [{"ctas": "3"}, {"ctas": "8:4"}, {"ctas": "0:4:0"}, {"ctas": "a:b"}, {"warps": "0,-1"}, {"regions": "mmm"}]
)
def test_selections_that_select_nothing_are_refused(bad: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="bad-option"):
        config.resolve({}, **bad)


def test_policies_are_those_of_the_compiler() -> None:
    source = (Path(__file__).parents[3] / "passes" / "RegionPolicy.cpp").read_text()
    assert tuple(sorted(re.findall(r'\.Case\("(\w+)", k', source))) == tuple(sorted(config.POLICIES))
