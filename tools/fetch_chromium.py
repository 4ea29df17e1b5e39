"""Provide the Chromium that the tests of the HTML report run in, as .deps/chromium/chromium.

    python tools/fetch_chromium.py                              # Debian's package, unpacked; needs no root
    KPERFIR_CHROMIUM=/opt/chromium python tools/fetch_chromium.py

An installed `chromium` is used where there is one. Otherwise this machine's own apt says which packages are missing
here, fetches them and checks them against the signed index; they are unpacked, not installed.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from fetch_sources import DEPS, Apt, FetchError, replace

FOLDER = DEPS / "chromium"
PROGRAM = "usr/lib/chromium/chromium"
# The machine's own, which runs everything else; a second one beside it would not work with its loader.
NOT_UNPACKED = ("libc6", "libc-bin")
LIBRARIES = tuple(f"{top}/x86_64-linux-gnu{sub}" for top in ("usr/lib", "lib") for sub in ("", "/pulseaudio"))
STATUS = Path("/var/lib/dpkg/status")
FIX = "install Debian's package chromium, or set KPERFIR_CHROMIUM to a Chromium or Chrome of your own"

LAUNCHER = """\
#!/bin/sh
# Starts {what}.
root=$(dirname "$(readlink -f "$0")")/root
{settings}exec {program} "$@"
"""


def provide() -> None:
    """Leave a launcher that has been seen to work."""
    given = os.environ.get("KPERFIR_CHROMIUM") or shutil.which("chromium")
    built = FOLDER.with_suffix(".partial")
    shutil.rmtree(built, ignore_errors=True)
    built.mkdir(parents=True)
    if given:
        write_launcher(built, "the machine's own", shlex.quote(given), "")
    else:
        unpack_packages(built / "root")
        write_launcher(built, "the unpacked package", f'"$root/{PROGRAM}"', settings(built / "root"))
    replace(built, FOLDER)
    (FOLDER / "VERSION").write_text(check(FOLDER / "chromium"))


def unpack_packages(root: Path) -> None:
    if missing := [tool for tool in ("apt-get", "dpkg-deb") if shutil.which(tool) is None]:
        raise FetchError(f"no Chromium, and no {' and '.join(missing)} to fetch it: {FIX}")
    apt = Apt(DEPS / "apt" / "machine", None)
    try:
        apt.update()
        # With what is installed here as the state, apt names only what lacks.
        wanted = [
            "-o", f"Dir::State::status={STATUS}", "-o", "Debug::NoLocking=1", "-y", "-qq", "--no-install-recommends",
            "install", "chromium",
        ]  # fmt: skip
        lines = apt.run(*wanted, "--print-uris").splitlines()
        files = [line.rsplit(" ", 3)[1] for line in lines if line.startswith("'")]
        print(f"  Chromium: {len(files)} packages from this machine's apt", file=sys.stderr, flush=True)
        apt.run(*wanted, "--download-only")
    except FetchError as error:
        raise FetchError(f"{error}\n{FIX}") from error
    root.mkdir()
    for file in files:
        if file.partition("_")[0] not in NOT_UNPACKED:
            deb = apt.state / "cache" / "archives" / file
            subprocess.run(["dpkg-deb", "--extract", deb, root], check=True)
            deb.unlink()


def settings(root: Path) -> str:
    """Shell lines that let the unpacked program find what was unpacked with it."""
    lines = [f'export LD_LIBRARY_PATH="{":".join(f"$root/{folder}" for folder in LIBRARIES)}"\n']
    if (root / "etc/fonts/fonts.conf").exists():  # This machine had none.
        lines += ['export FONTCONFIG_PATH="$root/etc/fonts"\n', 'export XDG_DATA_HOME="$root/usr/share"\n']
    return "".join(lines)


def write_launcher(folder: Path, what: str, program: str, settings: str) -> None:
    launcher = folder / "chromium"
    launcher.write_text(LAUNCHER.format(what=what, settings=settings, program=program))
    launcher.chmod(0o755)


def check(launcher: Path) -> str:
    """Have it render a page; its version."""
    quiet = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")
    profile = FOLDER / "profile"
    address = "data:text/html,<script>document.write(6*7)</script>"
    page = [launcher, *quiet, f"--user-data-dir={profile}", "--dump-dom", address]
    result = subprocess.run(page, text=True, capture_output=True, check=False, timeout=120)
    shutil.rmtree(profile, ignore_errors=True)
    if "42" not in result.stdout:
        raise FetchError(f"{launcher} does not render a page:\n{result.stderr.strip()[-2000:]}\n{FIX}")
    return subprocess.run([launcher, "--version"], text=True, capture_output=True, check=True).stdout


def main() -> int:
    try:
        provide()
    except (FetchError, OSError, subprocess.SubprocessError) as error:
        print(f"fetch_chromium: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
