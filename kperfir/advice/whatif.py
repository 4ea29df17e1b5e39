"""Try a change on the device at hand, and set what it gains against what the advisor expected.

    outcomes = what_if(Request(["gemm.py"], {"num_stages": 3}), folder)

The script runs three times, each in a process of its own: recorded, for the advice; then as it is and with the change,
with no more records than the start and end of kernels and loops, so that recording hardly counts.
"""

from __future__ import annotations

import fnmatch
import json
import subprocess
import sys
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from kperfir.errors import CaptureError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from kperfir.advice.finding import Finding
    from kperfir.timeline import Timeline

LIGHT = "minimal"


@dataclass(frozen=True, slots=True)
class Request:
    """What to try.

    Attributes:
        script: The script and its arguments, or ``-m``, a module and its arguments.
        settings: Launch options and constexprs; if empty, those of the finding that promises most.
        kernels: Pattern of the kernels that are changed and compared.
        cuda_as_cpu: As for `kperfir run`.
    """

    script: list[str]
    settings: Mapping[str, Any]
    kernels: str = "*"
    cuda_as_cpu: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a change did to a kernel.

    Attributes:
        kernel: The kernel.
        settings: What was changed.
        before_cycles, after_cycles: Its launches' cycles together, without and with the change.
        achieved: The first over the second; None if either is 0, as where no CTA recorded and the device counts no
            cycles.
        rule: Rule whose finding proposes this change, empty if none does.
        expected, bound: What that finding said; None without one.
        dropped: Records that were dropped in the runs: with any, what was expected may be wrong.
    """

    kernel: str
    settings: dict[str, Any]
    before_cycles: int
    after_cycles: int
    achieved: float | None
    rule: str = ""
    expected: float | None = None
    bound: float | None = None
    dropped: int = 0

    @property
    def error(self) -> float | None:
        """Expected / achieved - 1; None if either is not known."""
        return None if self.expected is None or self.achieved is None else self.expected / self.achieved - 1

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready data."""
        return {**asdict(self), "error": self.error}


def what_if(request: Request, folder: Path) -> list[Outcome]:
    """Run the script with and without the change; captures go into `folder`.

    Raises:
        UsageError: ``nothing-to-try``: no settings are given and no finding has any; ``setting-not-taken``: no kernel
            was launched with it; ``run-time-argument``; ``no-launch``.
        CaptureError: ``script-failed``.
    """
    from kperfir.advice.advise import advise

    recorded = _run(request, {}, folder / "recorded.kpf", "")
    findings = advise(recorded).findings
    settings = dict(request.settings) or _most_promising(findings)
    check_settings(recorded, settings, request.kernels)
    before = _run(request, {}, folder / "before.kpf", LIGHT)
    after = _run(request, settings, folder / "after.kpf", LIGHT)
    dropped = sum(int(timeline.launches["dropped"].sum()) for timeline in (recorded, before, after))
    return [replace(outcome, dropped=dropped) for outcome in compare(before, after, settings, findings)]


def compare(
    before: Timeline, after: Timeline, settings: Mapping[str, Any], findings: tuple[Finding, ...]
) -> list[Outcome]:
    """An outcome for each kernel of both captures that took the settings, in the order of their first launch.

    Raises:
        UsageError: ``setting-not-taken``.
    """
    taken = {record.name for capture in after.captures for record in capture.kernels if _took(record.facts, settings)}
    cycles = [
        timeline.launches.groupby("kernel", observed=True, sort=False)["cycles"].sum() for timeline in (before, after)
    ]
    outcomes = []
    for kernel in dict.fromkeys(before.launches["kernel"].astype(str)):
        if kernel not in taken or kernel not in cycles[1].index:
            continue
        was, now = int(cycles[0][kernel]), int(cycles[1][kernel])
        finding = next((f for f in findings if f.kernel == kernel and f.change.settings == dict(settings)), None)
        achieved = was / now if was and now else None
        told = (finding.rule, finding.speedup, finding.bound) if finding else ("", None, None)
        outcomes.append(Outcome(kernel, dict(settings), was, now, achieved, *told))
    if not outcomes:
        raise UsageError(
            "setting-not-taken",
            what="no kernel was launched with the change",
            where="kperfir whatif",
            found=", ".join(f"{name}={value}" for name, value in settings.items()),
            expected="launch options (num_warps, num_stages, num_ctas, maxnreg) or constexpr parameters of a kernel",
            fix="see `kperfir inspect` for the constants of each kernel, and --kernel for which are changed",
        )
    return outcomes


def check_settings(recorded: Timeline, settings: Mapping[str, Any], pattern: str) -> None:
    """Refuse what only changes the work of the kernels whose name matches.

    Raises:
        UsageError: ``run-time-argument``.
    """
    kernels = [r for capture in recorded.captures for r in capture.kernels if fnmatch.fnmatchcase(r.name, pattern)]
    for name in settings:
        kinds = {record.facts.get("signature", {}).get(name, "") for record in kernels}
        if kinds - {"", "constexpr"} and "constexpr" not in kinds:
            raise UsageError(
                "run-time-argument",
                what=f"{name} is a run-time argument: another value is other work, not another way to do it",
                where=f"kperfir whatif --set {name}={settings[name]}",
                found=f"{name}: {', '.join(sorted(kinds - {''}))}",
                expected="launch options, such as num_warps, or constexpr parameters of a kernel",
                fix="change it in the script, and compare two captures with `kperfir compare`",
            )


def _took(facts: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    known = {
        **facts.get("constants", {}),
        **{name: facts.get(name) for name in ("num_warps", "num_stages", "num_ctas")},
    }
    return all(known.get(name, value if name == "maxnreg" else None) == value for name, value in settings.items())


def _most_promising(findings: tuple[Finding, ...]) -> dict[str, Any]:
    for finding in sorted(findings, key=lambda finding: -finding.speedup):
        if finding.change.settings:
            return dict(finding.change.settings)
    raise UsageError(
        "nothing-to-try",
        what="the advisor proposes no change that is a setting",
        where="kperfir whatif",
        expected="a finding with settings, or --set",
        fix="say what to change, in front of the script: kperfir whatif --set num_stages=4 script.py",
    )


def _run(request: Request, settings: Mapping[str, Any], out: Path, regions: str) -> Timeline:
    from kperfir.timeline import load

    asked = {
        "script": list(request.script), "settings": dict(settings), "kernels": request.kernels, "out": str(out),
        "regions": regions, "cuda_as_cpu": request.cuda_as_cpu,
    }  # fmt: skip
    command = [sys.executable, "-P", "-m", "kperfir.advice.rerun", json.dumps(asked)]
    # What the script prints is not what `kperfir whatif` has to say.
    done = subprocess.run(command, check=False, stdout=sys.stderr)
    if done.returncode != 0:
        changed = ", ".join(f"{name}={value}" for name, value in settings.items())
        raise CaptureError(
            "script-failed",
            what="the script failed" + (f" with {changed}" if changed else ""),
            where=" ".join(request.script),
            found=f"exit code {done.returncode}",
            fix="see its message above" + ("; the kernel may not work with this setting" if changed else ""),
        )
    if not out.exists():
        raise UsageError(
            "no-launch",
            what="the script launched no kernel that could be recorded",
            where=" ".join(request.script),
            expected=f"a launch of a kernel whose name matches {request.kernels}",
            fix="check --kernel, and that the script launches Triton kernels itself",
        )
    return load(out)
