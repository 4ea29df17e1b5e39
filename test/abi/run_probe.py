"""Load the probe plugin into this process's libtriton and run its pass.

python run_probe.py libprobe.so   # prints the probe's JSON
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from triton._C.libtriton import ir, passes

# One operation of each kind whose interface tables the probe reads.
MODULE = """
module {
  tt.func private @callee(%a: i32) -> i32
  tt.func public @kernel(%a: i32, %p: !tt.ptr<i32>) {
    %zero = arith.constant 0 : i32
    %sum = scf.for %i = %zero to %a step %a iter_args(%x = %a) -> (i32) : i32 {
      %y = arith.addi %x, %i : i32
      scf.yield %y : i32
    }
    %loaded = tt.load %p : !tt.ptr<i32>
    %called = tt.call @callee(%a) : (i32) -> i32
    tt.return
  }
}
"""


def main() -> None:
    passes.plugin.extend_with(sys.argv[1])
    context = ir.context()
    ir.load_dialects(context)
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write(MODULE)
        file.flush()
        module = ir.parse_mlir_module(str(Path(file.name)), context)
    manager = ir.pass_manager(context)
    passes.plugin.add_kperfir_probe(manager, [])
    manager.run(module, "probe")


if __name__ == "__main__":
    main()
