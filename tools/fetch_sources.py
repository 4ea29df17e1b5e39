"""Fetch what the build and the tests need and pip does not install.

    python tools/fetch_sources.py llvm        # MLIR headers -> .deps/llvm/{include,bin/mlir-tblgen}
    python tools/fetch_sources.py googletest  # its sources  -> .deps/googletest
    python tools/fetch_sources.py libtriton   # each audited build -> .deps/libtriton/<wheel tag>.so
    python tools/fetch_sources.py llvm --archive llvm.tar.xz --sha256 HEX
    python tools/fetch_sources.py pack llvm.tar.xz

The first two are Debian packages that are downloaded and unpacked, never installed.
This module owns where they come from: a private apt configuration whose archive
address is the one that this machine's own apt uses. It works without privileges,
leaves the system untouched, and repeats no download whose file is still intact.
The last are taken out of Triton's wheels, so that a machine with one Python can
audit the libraries of all of them; pip fetches the wheels and checks them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEPS = Path(os.environ.get("KPERFIR_DEPS", ROOT / ".deps"))
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")

LLVM_MAJOR = "23"
LLVM_SERIES = f"{LLVM_MAJOR}.1."  # The ABI audit holds for this series only.
LLVM_PACKAGES = (f"libmlir-{LLVM_MAJOR}-dev", f"llvm-{LLVM_MAJOR}-dev", f"mlir-{LLVM_MAJOR}-tools")
# mlir-tblgen is linked against a newer libc than a stable system has; it runs on these.
TBLGEN_RUNTIME = (
    "libc6", "libstdc++6", "libgcc-s1", "libz3-4", "zlib1g", "libzstd1", "libtinfo6",
)  # fmt: skip
# Tried in turn; the first is the only one that has the series at present.
LLVM_SUITES = ("unstable", "testing", "stable-backports", "stable")

AUDITED = ROOT / "kperfir" / "compile" / "audited_libtriton.json"
LIBTRITON = "triton/_C/libtriton.so"
# What Triton's wheels are built for; pip takes the first that fits.
WHEEL_PLATFORMS = ("manylinux_2_27_x86_64", "manylinux_2_28_x86_64")

TBLGEN_LAUNCHER = """\
#!/bin/sh
# Starts mlir-tblgen on the C library that it was linked against.
here=$(dirname "$(readlink -f "$0")")/../libexec
exec "$here/ld-linux-x86-64.so.2" --library-path "$here" "$here/mlir-tblgen" "$@"
"""


class FetchError(Exception):
    """What failed, what was found, and what the user can do about it."""


@dataclass(frozen=True, slots=True)
class Deb:
    """One package file as apt announces it."""

    file_name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Apt:
    """An apt configuration that reads and writes only below `state`."""

    state: Path
    sources: str | None  # None: the machine's own sources.

    def options(self) -> list[str]:
        settings = {
            "Dir::State::lists": self.state / "lists",
            "Dir::State::status": self.state / "status",
            "Dir::Cache": self.state / "cache",
            "APT::Architecture": "amd64",
            "APT::Architectures": "amd64",
            "APT::Sandbox::User": "",
            "Acquire::Languages": "none",
            "Acquire::Retries": "3",
            "APT::Update::Post-Invoke-Success::": "",
        }
        if self.sources is not None:
            settings |= {
                "Dir::Etc::sourcelist": self.state / "sources.list",
                "Dir::Etc::sourceparts": "-",
                "Dir::Etc::preferences": "-",
                "Dir::Etc::preferencesparts": "-",
            }
        return [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]

    def run(self, *arguments: str, cwd: Path | None = None) -> str:
        result = subprocess.run(
            ["apt-get", *self.options(), *arguments],
            cwd=cwd, text=True, capture_output=True, check=False,
        )  # fmt: skip
        if result.returncode:
            raise FetchError(f"apt-get {' '.join(arguments)} failed:\n{result.stderr.strip()}")
        return result.stdout

    def update(self) -> None:
        for part in ("lists/partial", "cache/archives/partial"):
            (self.state / part).mkdir(parents=True, exist_ok=True)
        (self.state / "status").touch()
        if self.sources is not None:
            (self.state / "sources.list").write_text(self.sources)
        self.run("update", "-qq")

    def debs(self, packages: tuple[str, ...]) -> list[Deb]:
        """The files of `packages`, or FetchError if the suite lacks one."""
        found = []
        for line in self.run("download", "--print-uris", *packages).splitlines():
            if not line.startswith("'"):
                continue
            _, file_name, size, digest = line.rsplit(" ", 3)
            kind, _, value = digest.partition(":")
            if kind != "SHA256":
                raise FetchError(f"{file_name}: apt offers a {kind} digest; expected SHA256")
            found.append(Deb(file_name, int(size), value))
        if len(found) != len(packages):
            raise FetchError(f"apt offers {len(found)} of {len(packages)} packages: {packages}")
        return found

    def download(self, packages: tuple[str, ...], into: Path) -> list[Path]:
        """Fetch what is not already in `into`; apt checks each file against the signed index."""
        into.mkdir(parents=True, exist_ok=True)
        debs = self.debs(packages)
        for package, deb in zip(packages, sorted_like(debs, packages), strict=True):
            if is_intact(into / deb.file_name, deb):
                continue
            print(f"  {deb.file_name} ({deb.size / 1e6:.0f} MB)", file=sys.stderr, flush=True)
            self.run("download", "-qq", package, cwd=into)
            if not is_intact(into / deb.file_name, deb):
                raise FetchError(f"{into / deb.file_name}: digest differs from the signed index")
        return [into / deb.file_name for deb in debs]


def sorted_like(debs: list[Deb], packages: tuple[str, ...]) -> list[Deb]:
    """`debs` in the order of `packages`: a Debian file name starts with its package."""
    by_package = {deb.file_name.partition("_")[0]: deb for deb in debs}
    return [by_package[package] for package in packages]


def is_intact(path: Path, deb: Deb) -> bool:
    return path.is_file() and path.stat().st_size == deb.size and sha256(path) == deb.sha256


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def require_tools() -> None:
    missing = [tool for tool in ("apt-get", "dpkg-deb") if shutil.which(tool) is None]
    if missing or not KEYRING.exists():
        raise FetchError(
            f"missing: {', '.join(missing) or KEYRING}. On Debian: apt-get install apt dpkg "
            "debian-archive-keyring. Elsewhere: give an LLVM 23.1 installation with "
            "KPERFIR_LLVM_DIR=<prefix>, or a packed one with --archive PATH --sha256 HEX"
        )
    if sys.maxsize <= 2**32 or os.uname().machine != "x86_64":
        raise FetchError(f"found {os.uname().machine}; Triton's plugins exist on x86_64 Linux only")


def archive_address() -> tuple[str, str]:
    """Address and suite of the Debian archive that this machine's apt uses."""
    rows = debian_targets(["apt-get"])
    if not rows:  # A machine that never ran `apt-get update`, such as a fresh container.
        machine = Apt(DEPS / "apt" / "machine", None)
        machine.update()
        rows = debian_targets(["apt-get", *machine.options()])
    if rows:
        return rows[0]
    raise FetchError(
        "no Debian archive in this machine's apt sources. "
        "Set KPERFIR_LLVM_DIR to an LLVM 23.1 installation, or use --archive PATH --sha256 HEX"
    )


def debian_targets(apt_get: list[str]) -> list[tuple[str, str]]:
    """(address, suite) of each main index of Debian proper, in the order of the sources."""
    query = ["indextargets", "--format", "$(SITE)|$(CODENAME)|$(COMPONENT)|$(ORIGIN)|$(LABEL)"]
    text = subprocess.run([*apt_get, *query], text=True, capture_output=True, check=False).stdout
    rows = [line.split("|") for line in text.splitlines()]
    return [
        (site, suite)
        for site, suite, component, origin, label in rows
        if (component, origin, label) == ("main", "Debian", "Debian")
    ]


def archive_apt(site: str, suite: str) -> Apt:
    """An Apt for one suite of the archive, its lists up to date."""
    apt = Apt(DEPS / "apt" / suite, f"deb [signed-by={KEYRING}] {site} {suite} main\n")
    apt.update()
    return apt


def find_suite(site: str) -> tuple[str, Apt, str]:
    """First suite that offers the LLVM series: its name, its Apt, the version."""
    tried = []
    for suite in LLVM_SUITES:
        try:
            apt = archive_apt(site, suite)
            name = apt.debs(LLVM_PACKAGES)[0].file_name
        except FetchError as error:
            tried.append(f"{suite}: {str(error).splitlines()[-1]}")
            continue
        version = name.split("_")[1].replace("%3a", ":").rpartition(":")[2]
        if version.startswith(LLVM_SERIES):
            return suite, apt, version
        tried.append(f"{suite}: {version}")
    raise FetchError(
        f"no suite of this machine's Debian archive offers LLVM {LLVM_SERIES}x: "
        + "; ".join(tried)
        + ". Set KPERFIR_LLVM_DIR to an LLVM 23.1 installation, or use --archive PATH --sha256 HEX"
    )


def unpack(deb: Path, into: Path, members: str, strip: int) -> None:
    """Extract what matches the `members` wildcard, less `strip` leading folders."""
    into.mkdir(parents=True, exist_ok=True)
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE) as reader:
        tar = subprocess.run(
            ["tar", "-x", "-C", into, f"--strip-components={strip}", "--wildcards", members],
            stdin=reader.stdout, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    if reader.returncode:
        raise FetchError(f"{deb}: dpkg-deb could not read it; delete the file and run again")
    if tar.returncode:
        raise FetchError(f"{deb}: expected {members} in it: {tar.stderr.strip()}")


def replace(built: Path, target: Path) -> None:
    """Put the finished folder in place at once: an interrupted run leaves no half of it."""
    if target.exists():
        shutil.rmtree(target)
    built.rename(target)


def fetch_llvm() -> None:
    site, _ = archive_address()
    suite, apt, version = find_suite(site)
    print(f"LLVM and MLIR {version} headers from Debian {suite}", file=sys.stderr)
    files = apt.download(LLVM_PACKAGES + TBLGEN_RUNTIME, DEPS / "debs")
    by_package = {file.name.partition("_")[0]: file for file in files}
    built = DEPS / "llvm.partial"
    shutil.rmtree(built, ignore_errors=True)
    mlir, llvm, tools = (by_package[package] for package in LLVM_PACKAGES)
    unpack(mlir, built / "include", f"./usr/lib/llvm-{LLVM_MAJOR}/include/mlir/*", 5)
    unpack(llvm, built / "include", f"./usr/include/llvm-{LLVM_MAJOR}/llvm/*", 4)
    unpack(llvm, built / "include", f"./usr/include/llvm-c-{LLVM_MAJOR}/llvm-c/*", 4)
    unpack(tools, built / "libexec", f"./usr/lib/llvm-{LLVM_MAJOR}/bin/mlir-tblgen", 5)
    for package in TBLGEN_RUNTIME:
        unpack(by_package[package], built / "libexec", "./usr/lib/x86_64-linux-gnu/*.so*", 4)
    launcher = built / "bin" / "mlir-tblgen"
    launcher.parent.mkdir()
    launcher.write_text(TBLGEN_LAUNCHER)
    launcher.chmod(0o755)
    (built / "VERSION").write_text(f"{version}\n")
    check_llvm(built)
    replace(built, DEPS / "llvm")


def check_llvm(prefix: Path) -> None:
    for part in ("include/mlir/IR/Operation.h", "include/llvm/Config/abi-breaking.h", "include/llvm-c/DataTypes.h"):
        if not (prefix / part).is_file():
            raise FetchError(f"{prefix}: {part} is missing")
    tblgen = [prefix / "bin" / "mlir-tblgen", "--version"]
    text = subprocess.run(tblgen, text=True, capture_output=True, check=False).stdout
    if f"version {LLVM_SERIES}" not in text:
        raise FetchError(f"{tblgen[0]}: expected version {LLVM_SERIES}x, found {text.strip()!r}")


def fetch_llvm_archive(archive: Path, digest: str) -> None:
    found = sha256(archive)
    if found != digest.lower():
        raise FetchError(f"{archive}: sha256 is {found}; expected {digest}")
    built = DEPS / "llvm.partial"
    shutil.rmtree(built, ignore_errors=True)
    with tarfile.open(archive) as tar:
        tar.extractall(built)  # Trusted: the digest is that of the user's own archive.
    check_llvm(built)
    replace(built, DEPS / "llvm")


def pack_llvm(archive: Path) -> None:
    """Write the unpacked tree as an archive for machines without a Debian archive."""
    check_llvm(DEPS / "llvm")
    with tarfile.open(archive, "w:xz") as tar:
        for part in sorted((DEPS / "llvm").iterdir()):
            tar.add(part, part.name)
    print(f"{sha256(archive)}  {archive}")


def fetch_googletest() -> None:
    (deb,) = archive_apt(*archive_address()).download(("googletest",), DEPS / "debs")
    built = DEPS / "googletest.partial"
    shutil.rmtree(built, ignore_errors=True)
    unpack(deb, built, "./usr/src/googletest/*", 4)
    (built / "VERSION").write_text(deb.name.split("_")[1] + "\n")
    replace(built, DEPS / "googletest")


def fetch_libtriton() -> None:
    audited = json.loads(AUDITED.read_text(encoding="utf-8"))
    for build in audited["builds"]:
        target = DEPS / "libtriton" / f"{build['wheel']}.so"
        if not target.exists():
            print(f"  triton {audited['triton_version']} {build['wheel']}", file=sys.stderr, flush=True)
            fetch_library(f"triton=={audited['triton_version']}", build["wheel"], target)


def fetch_library(requirement: str, tag: str, target: Path) -> None:
    """Take libtriton.so out of the wheel of `requirement` that is tagged `tag`."""
    python, _, abi = tag.partition("-")
    wanted = ["--implementation", "cp", "--python-version", python.removeprefix("cp"), "--abi", abi]
    platforms = [word for platform in WHEEL_PLATFORMS for word in ("--platform", platform)]
    folder = target.with_suffix(".partial")
    shutil.rmtree(folder, ignore_errors=True)
    download = ["download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:"]
    command = [sys.executable, "-m", "pip", *download, *wanted, *platforms, "--dest", str(folder), requirement]
    result = subprocess.run(command, text=True, capture_output=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if result.returncode or len(wheels) != 1:
        raise FetchError(f"pip has no wheel {tag} of {requirement}:\n{result.stderr.strip()}")
    with zipfile.ZipFile(wheels[0]) as wheel, wheel.open(LIBTRITON) as library, (folder / "library").open("wb") as file:
        shutil.copyfileobj(library, file)
    (folder / "library").rename(target)
    shutil.rmtree(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    llvm = commands.add_parser("llvm")
    llvm.add_argument("--archive", type=Path)
    llvm.add_argument("--sha256", default="")
    commands.add_parser("googletest")
    commands.add_parser("libtriton")
    commands.add_parser("pack").add_argument("archive", type=Path)
    options = parser.parse_args()
    try:
        if options.command == "pack":
            pack_llvm(options.archive)
        elif options.command == "libtriton":
            fetch_libtriton()
        elif options.command == "llvm" and options.archive:
            fetch_llvm_archive(options.archive, options.sha256)
        else:
            require_tools()
            fetch_llvm() if options.command == "llvm" else fetch_googletest()
    except FetchError as error:
        print(f"fetch_sources: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
