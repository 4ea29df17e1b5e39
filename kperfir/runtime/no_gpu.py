"""What to tell someone whose script asks torch for a GPU that is not there.

Owns the recognition of torch's errors and the advice; who prints it is up to the caller.
"""

from __future__ import annotations

# What torch raises on the first use of device="cuda": its CPU build, a build for CUDA without a driver, without a GPU.
_SIGNS = ("Torch not compiled with CUDA enabled", "Found no NVIDIA driver", "No CUDA GPUs are available")


def advice(error: BaseException | None) -> str:
    """Return one line of advice if `error` is torch's for a GPU that is not there, else nothing."""
    if error is None or not any(sign in str(error) for sign in _SIGNS):
        return ""
    return (
        "kperfir: the script asks torch for a CUDA GPU, and there is none; "
        "`kperfir run --cuda-as-cpu SCRIPT` runs it on the simulated device"
    )
