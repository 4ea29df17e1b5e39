"""Which file a kernel comes from.

The compiler and the recorder both ask here, so that a kernel is selected for both or for none.
"""

from __future__ import annotations

import re
from typing import Any

# The kernel's location, the first one that MLIR prints.
_LOCATION = re.compile(r'^#loc = loc\("(.*?)":', re.MULTILINE)


def source_file(source: Any) -> str:
    """File of a kernel's Python function, or what its IR says that it comes from; empty where neither says it.

    Args:
        source: Triton's `ASTSource` or `IRSource`.
    """
    function = getattr(source, "fn", None)
    if function is not None:
        code = getattr(getattr(function, "fn", None), "__code__", None)
        return str(code.co_filename) if code is not None else ""
    text = getattr(source, "src", "")
    found = _LOCATION.search(text) if isinstance(text, str) else None
    return found[1] if found else ""
