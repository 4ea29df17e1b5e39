"""Run a script with one thing changed: options or constexprs of its kernels. The child process of `kperfir whatif`.

python -P -m kperfir.advice.rerun '{"script": ["gemm.py"], "out": "x.kpf", "settings": {"num_stages": 3}, ...}'

The change is made at the launch, whatever the script asks for; kernels that the pattern leaves out run as they are.
"""

from __future__ import annotations

import fnmatch
import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kperfir.runtime.patches import Patches

# Options of a launch in Triton 3.9 that change what is compiled; every other name must be a parameter of the kernel.
LAUNCH_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")


def main(request: Mapping[str, Any]) -> int:
    """Run the script of `request` with its settings; the exit code is the script's."""
    from kperfir.config import resolve
    from kperfir.runtime.run import run_script

    override_launches(request["settings"], request["kernels"])
    options = resolve(
        active=True,
        out=request["out"],
        kernels=request["kernels"],
        quiet=True,  # The captures are not for the user to report on.
        **({"regions": r} if (r := request["regions"]) else {}),
    )
    return run_script(request["script"], options, cuda_as_cpu=request["cuda_as_cpu"])


def override_launches(settings: Mapping[str, Any], pattern: str) -> Patches:
    """Make kernels whose name matches launch with `settings` until the result is undone."""
    from triton.runtime.jit import JITFunction

    from kperfir.runtime.patches import Patches

    original = JITFunction.run

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if settings and fnmatch.fnmatchcase(self.__name__, pattern):
            args, kwargs = changed(list(self.arg_names), settings, args, kwargs)
        return original(self, *args, **kwargs)

    patches = Patches()
    patches.replace(JITFunction, "run", run)
    return patches


def changed(
    names: list[str], settings: Mapping[str, Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a launch with `settings` in the place of what was there.

    Args:
        names: Parameters of the kernel.
        settings: Launch options, and parameters of the kernel; names that are neither are left out.
        args: Positional arguments of the launch.
        kwargs: Its other arguments.
    """
    positional, keywords = list(args), dict(kwargs)
    for name, value in settings.items():
        place = names.index(name) if name in names else -1
        if 0 <= place < len(positional):
            positional[place] = value
        elif place >= 0 or name in LAUNCH_OPTIONS:
            keywords[name] = value
    return tuple(positional), keywords


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
