"""Replace attributes of foreign objects, and put them back."""

from __future__ import annotations

from typing import Any

_ABSENT = object()


class Patches:
    """A set of replaced attributes that is undone as one."""

    def __init__(self) -> None:
        self._undo: list[tuple[Any, str, Any, Any]] = []

    def replace(self, owner: Any, name: str, value: Any) -> None:
        """Set `owner.name` to `value` until `undo`."""
        # What the object itself holds: an attribute that it inherits must not be copied onto it by undoing.
        previous = vars(owner).get(name, _ABSENT)
        setattr(owner, name, value)
        self._undo.append((owner, name, vars(owner).get(name, value), previous))

    def undo(self) -> None:
        """Put everything back, newest first. What somebody else has replaced since stays theirs."""
        while self._undo:
            owner, name, ours, previous = self._undo.pop()
            if vars(owner).get(name, _ABSENT) is not ours:
                continue
            if previous is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, previous)
