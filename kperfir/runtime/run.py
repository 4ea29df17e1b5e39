"""Run a script as `python script.py` would, under a profiling session.

exit_code = run_script(["train.py", "--steps", "3"], options)
"""

from __future__ import annotations

import contextlib
import os
import runpy
import sys
import traceback
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kperfir import session
from kperfir.config import OWNER_VARIABLE, variables
from kperfir.errors import UsageError
from kperfir.runtime.no_gpu import advice

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kperfir.config import Options


_INTERRUPTED = 130  # What a shell makes of SIGINT.


def run_script(argv: Sequence[str], options: Options, *, cuda_as_cpu: bool = False) -> int:
    """Run a script or module in this process and return its exit code.

    The session ends with the process, not with the script: threads and exit handlers of the script are still part of
    it.

    Args:
        argv: Script and its arguments, or ``-m``, module and its arguments.
        options: Settings; processes that the script starts get them through the environment.
        cuda_as_cpu: Let code that asks torch for CUDA run on the CPU.

    Raises:
        UsageError: ``bad-option`` if there is no such script.
    """
    import triton  # noqa: F401 - so that the session can be opened before the script's first line.

    check_script(argv, "kperfir run")
    if cuda_as_cpu:
        options = _on_simt_device(options)
    _hand_down(options)
    recorder = session.start_process_session(options)
    code = _run(argv, options, cuda_as_cpu=cuda_as_cpu)
    recorder.expects_launches = not code  # A script that failed has said enough.
    return code


def run_unprofiled(argv: Sequence[str], options: Options, *, cuda_as_cpu: bool = False) -> int:
    """Run a script as `run_script` does, on the device of `options` while it runs, without recording anything."""
    session.hold_device(options)
    try:
        return _run(argv, options, cuda_as_cpu=cuda_as_cpu)
    finally:
        session.release_device()


def check_script(argv: Sequence[str], command: str) -> None:
    """See that there is a script to run for the command line `command`.

    Raises:
        UsageError: ``bad-option`` if not.
    """
    if (argv[:1] == ["-m"] and len(argv) > 1) or (argv and Path(argv[0]).exists()):
        return
    raise UsageError(
        "bad-option",
        where=command,
        found=" ".join(argv) + (", which does not exist" if argv and argv[0] != "-m" else "") or "nothing",
        expected="a Python script, or -m and a module",
        fix=f"{command} [options] script.py [arguments of the script]",
    )


def _run(argv: Sequence[str], options: Options, *, cuda_as_cpu: bool) -> int:
    is_module = argv[0] == "-m"
    arguments = list(argv[1:] if is_module else argv)
    with _as_main_program(arguments, is_module=is_module), _pretended_cuda(options, cuda_as_cpu=cuda_as_cpu):
        return _exit_code_of(arguments[0], is_module=is_module)


def _on_simt_device(options: Options) -> Options:
    # Triton asks torch whether there is a GPU, and torch is about to say yes.
    if options.device in ("cuda", "hip"):
        raise UsageError(
            "bad-option",
            where="kperfir run --cuda-as-cpu",
            found=f"device {options.device}",
            expected="simt, or auto",
            fix="leave out one of the two options",
        )
    return replace(options, device="simt")


def _hand_down(options: Options) -> None:
    """Give child processes these options, and the knowledge that this process writes a file already."""
    for variable in variables():
        os.environ.pop(variable, None)
    if options.out is not None:
        # A child may work in another folder. A trailing slash stays.
        options = replace(options, out=os.path.join(os.getcwd(), options.out))  # noqa: PTH109, PTH118
    os.environ.update(replace(options, active=True).to_environment())
    os.environ.setdefault(OWNER_VARIABLE, str(os.getpid()))


def _exit_code_of(target: str, *, is_module: bool) -> int:
    try:
        if is_module:
            runpy.run_module(target, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(target, run_name="__main__")
    except SystemExit as exit_request:
        code = exit_request.code
        if isinstance(code, str):
            print(code, file=sys.stderr)
            return 1
        return code if isinstance(code, int) else int(code is not None)
    except (Exception, KeyboardInterrupt) as raised:
        # As the interpreter does, without the frames of this module and runpy.
        kind, error, trace = sys.exc_info()
        while trace is not None and trace.tb_frame.f_globals.get("__name__") in (__name__, "runpy"):
            trace = trace.tb_next
        traceback.print_exception(kind, error, trace)
        if hint := advice(error):
            print(hint, file=sys.stderr)
        return _INTERRUPTED if isinstance(raised, KeyboardInterrupt) else 1
    return 0


@contextlib.contextmanager
def _as_main_program(arguments: list[str], *, is_module: bool) -> Iterator[None]:
    argv, path = sys.argv[:], sys.path[:]
    sys.argv[:] = arguments
    # Where the interpreter would look first: beside the script, or here.
    sys.path.insert(0, "" if is_module else str(Path(arguments[0]).resolve().parent))
    try:
        yield
    finally:
        sys.argv[:], sys.path[:] = argv, path


def _pretended_cuda(options: Options, *, cuda_as_cpu: bool) -> contextlib.AbstractContextManager[None]:
    if not cuda_as_cpu:
        return contextlib.nullcontext()
    from kperfir import cuda_as_cpu as pretence
    from kperfir.runtime.chip import load_chip

    return pretence.cuda_as_cpu(load_chip(options.simt_chip))
