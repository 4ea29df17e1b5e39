"""What instrumentation adds to the metadata that Triton keeps of a kernel, in memory and in its cache."""

from __future__ import annotations

# JSON of the profile buffer.
LAYOUT_KEY = "kperf_layout"
# What is predicted of its accesses to memory, as text of `access_shapes`.
ACCESSES_KEY = "kperf_accesses"
# Why a kernel that was to be instrumented is not.
REASON_KEY = "kperf_not_instrumented"
# What a reader of its records has to know of how it was compiled. The layout, which the code depends on, has no room
# for what is known when there is code.
NOTE_KEY = "kperf_note"
