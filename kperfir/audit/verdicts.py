"""What an audit may find of a region."""

from __future__ import annotations

OK = "ok"
REMOVED = "removed"  # The compiler found that it is never executed.
MOVED = "moved"
LOST = "lost"
EMPTY = "empty"

# Verdicts after which its times are not, or not only, those of what it is named after, and how to say so.
FAILED = {
    MOVED: "does not hold what it is named after, or holds more",
    LOST: "has lost records in the machine code",
    EMPTY: "holds no instruction of its kind",
}
