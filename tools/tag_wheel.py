"""Give a freshly built wheel the platform tag that its libraries really need.

    python tools/tag_wheel.py build/wheelhouse/kperfir-0.1.0-cp311-cp311-linux_x86_64.whl

The floor is the newest symbol version of glibc, libstdc++ and libgcc that any library
in the wheel refers to, so it follows the machine that built it. libtriton.so is left to
the triton wheel, whose own tag has a lower floor.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

# First glibc whose manylinux policy allows the symbol version (PEP 600, from the
# distributions that introduced each); a version that is missing here is an error.
GLIBC_FLOOR = {
    "GLIBCXX": {"3.4.24": (2, 27), "3.4.25": (2, 28), "3.4.28": (2, 31), "3.4.29": (2, 34),
                "3.4.30": (2, 35), "3.4.31": (2, 38), "3.4.32": (2, 38), "3.4.33": (2, 39)},
    "CXXABI": {"1.3.11": (2, 27), "1.3.12": (2, 31), "1.3.13": (2, 34), "1.3.14": (2, 38),
               "1.3.15": (2, 39)},
    "GCC": {"7.0.0": (2, 27), "12.0.0": (2, 35), "13.0.0": (2, 38), "14.0.0": (2, 39)},
}  # fmt: skip

ALLOWED_LIBRARIES = {
    "libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1",
    "libstdc++.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2",
    "libtriton.so",  # Loaded by triton before the plugin; never by its path.
}  # fmt: skip

Version = tuple[int, ...]


def parse(version: str) -> Version:
    return tuple(int(part) for part in version.split("."))


def floor_of(symbol_version: str) -> Version:
    """The oldest glibc with which `symbol_version`, such as GLIBCXX_3.4.30, resolves."""
    name, _, version = symbol_version.partition("_")
    if name == "GLIBC":
        return parse(version)
    if name not in GLIBC_FLOOR or not version[:1].isdigit():
        raise SystemExit(f"tag_wheel: no manylinux floor known for {symbol_version}")
    for known, floor in GLIBC_FLOOR[name].items():
        if parse(version) <= parse(known):
            return floor
    raise SystemExit(f"tag_wheel: {symbol_version} is newer than the table; extend GLIBC_FLOOR")


def needs(library: Path) -> tuple[set[str], set[str]]:
    """Libraries and symbol versions that `library` refers to."""
    text = subprocess.run(["objdump", "-p", library], text=True, capture_output=True, check=True)
    _, _, references = text.stdout.partition("Version References:")
    return (
        set(re.findall(r"NEEDED +(\S+)", text.stdout)),
        set(re.findall(r"0x[0-9a-f]+ 0x[0-9a-f]+ \d+ (\S+)", references)),
    )


def platform_tag(wheel: Path) -> str:
    floor: Version = (2, 17)
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if not name.endswith(".so"):
                continue
            libraries, symbol_versions = needs(Path(archive.extract(name, folder)))
            if foreign := libraries - ALLOWED_LIBRARIES:
                raise SystemExit(f"tag_wheel: {name} needs {', '.join(sorted(foreign))}")
            floor = max([floor, *map(floor_of, symbol_versions)])
    return f"manylinux_{floor[0]}_{floor[1]}_x86_64"


def main() -> None:
    wheel = Path(sys.argv[1])
    tag = platform_tag(wheel)
    command = [sys.executable, "-m", "wheel", "tags", "--remove", "--platform-tag", tag, wheel]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
