#!/bin/sh
# The GPU kit. Without arguments, where kperfir is built: makes build/gpu-kit. With a folder, where the GPU is: runs it.
#
#   benchmarks/gpu/run.sh                 makes the kit (about two minutes)
#   benchmarks/gpu/run.sh build/gpu-kit   runs it (Python, NumPy and the CUDA driver; less than two minutes)
#   kperfir bundle answer build/gpu-kit   answers from what came back, where kperfir is
#
# Answers: are results equal, does a warp-specialised kernel end, are buffers where the decoder looks for them, what do
# records and recording cost, how do clocks fit the global timer, and how near are the simulated times of regions.
# docs/gpu-findings.md keeps them.
set -eu
cd "$(dirname "$0")/../.."
if [ $# -eq 0 ]; then
  kit=build/gpu-kit
  rm -rf "$kit"
  TRITON_DEFAULT_FP_FUSION=1 PYTHONPATH=test .venv/bin/kperfir bundle create -o "$kit" --proton --chip h100 \
    --targets sm_90,sm_100 benchmarks/gpu/launches.py hopper
  TRITON_DEFAULT_FP_FUSION=1 PYTHONPATH=test .venv/bin/kperfir bundle create -o "$kit-sm80" --proton --chip a100 \
    --targets sm_80 benchmarks/gpu/launches.py ampere
  echo "next, where the GPU is: benchmarks/gpu/run.sh $kit (sm_80: $kit-sm80)"
else
  exec "${PYTHON:-python3}" "$1/run.pyz" "$1"
fi
