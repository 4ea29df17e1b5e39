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
        return str(function.fn.__code__.co_filename)
    found = _LOCATION.search(getattr(source, "src", ""))
    return found[1] if found else ""
