#!/bin/sh
# Names every missing prerequisite of the build and how to get it, all at once.
# Usage: check_prerequisites.sh PYTHON CXX
python=$1
cxx=$2
missing=0

need() { # need WHAT FIX
  echo "missing: $1" >&2
  echo "    fix: $2" >&2
  missing=1
}

command -v git >/dev/null || need "git" "apt-get install git"
if [ "$(uname -sm)" != "Linux x86_64" ]; then
  need "Linux on x86_64 (found $(uname -sm))" "Triton's plugins exist on no other platform"
fi

if ! command -v "$cxx" >/dev/null; then
  need "$cxx, a C++20 compiler" "apt-get install g++, or CXX=<compiler>"
elif ! echo '#include <bit>
static_assert(std::bit_floor(5u) == 4);' | "$cxx" -std=c++20 -fsyntax-only -x c++ - 2>/dev/null; then
  need "C++20 in $cxx ($("$cxx" -dumpfullversion 2>/dev/null))" "g++ 12 or newer, or CXX=<compiler>"
fi

if ! command -v "$python" >/dev/null; then
  need "$python" "apt-get install python3, or PYTHON=<Python 3.11 or newer>"
elif ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  need "Python 3.11 or newer (found $("$python" -V))" "PYTHON=<Python 3.11 or newer>"
else
  "$python" -c 'import ensurepip, venv' 2>/dev/null ||
    need "the venv module of $python" "apt-get install python3-venv"
  "$python" -c 'import os, sysconfig as s, sys
sys.exit(not os.path.exists(os.path.join(s.get_path("include"), "Python.h")))' ||
    need "Python.h of $python" "apt-get install python3-dev"
fi
exit $missing
