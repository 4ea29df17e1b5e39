"""Run workloads on Triton's own interpreter, and print a JSON object: name -> "" or what failed.

    TRITON_INTERPRET=1 python -m support.interpret NAME...

A process of its own: Triton decides at import whether functions are compiled or interpreted.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from kernels.cases import WORKLOADS

if TYPE_CHECKING:
    from kernels.workload import Workload


def failure(workload: Workload) -> str:
    """What went wrong when `workload` was interpreted, or nothing."""
    arguments = workload.arguments()
    passed = {name: value for name, value in arguments.items() if not name.startswith("_")}
    constexprs = dict(workload.case.constexprs) | dict(workload.constexprs)
    try:
        workload.case.kernel[workload.grid](**passed, **constexprs)
        workload.verify(arguments)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def main() -> None:
    """Interpret the workloads named as arguments."""
    print(json.dumps({name: failure(WORKLOADS[name]) for name in sys.argv[1:]}))


if __name__ == "__main__":
    main()
