# SPDX-License-Identifier: MIT
"""Kernels for the lab: fetched as Debian packages, unpacked into the cache, never installed.

Each kernel lives in CACHE/kernels/NAME with the packages' own layout below it
(boot/, lib/modules/, usr/src/) and a kernel.json naming the parts. A kernel is
unpacked into a temporary folder and renamed into place, so a folder that has
its final name is complete.
"""

import contextlib
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import namedtuple
from pathlib import Path

from . import LabError, image
from .paths import cache_dir

NAMES = ("6.1", "6.12", "newest", "debug")
# Suites each packaged kernel comes from, all on the host's own mirror; HOST is its release.
HOST = "host"
SUITES = {"6.1": (HOST, f"{HOST}-updates", f"{HOST}-security"), "6.12": (f"{HOST}-backports",),
          "newest": ("trixie-backports", "trixie")}
META_PACKAGES = ("linux-image-amd64", "linux-headers-amd64")
WANTED = re.compile(r"^linux-(image|headers|binary|modules|base)-\d|^linux-(kbuild|compiler)-")
# Build tools of a later release need its C library, which is unpacked beside them.
EXTRA_PACKAGES = {"newest": ("libc6",)}
UNPACKERS = ("depmod", "xz", "zstd")
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"

Kernel = namedtuple("Kernel", "name release root image modules headers")


def say(text):
    print(f"hawk-lab: {text}", file=sys.stderr, flush=True)


def kernel_root(name):
    return cache_dir() / "kernels" / name


def cached(name):
    """The kernel from the cache, or None when it has not been fetched."""
    root = kernel_root(name)
    try:
        info = json.loads((root / "kernel.json").read_text())
        return Kernel(name, info["release"], root, root / info["image"],
                      root / info["modules"], root / info["headers"])
    except (OSError, ValueError, KeyError):
        return None


def ensure(name, refresh=False):
    """The kernel, fetched first when the cache lacks it (or when refresh is set)."""
    if not refresh and (kernel := cached(name)):
        return kernel
    with locked(name):
        if not refresh and (kernel := cached(name)):
            return kernel
        for tool in UNPACKERS:      # before the download, not after it
            if not shutil.which(tool):
                raise LabError(f"{tool} is missing; run tools/setup/install-deps module lab")
        fetch = fetch_debug if name == "debug" else fetch_debian
        tmp = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=kernel_root(name).parent))
        try:
            fetch(name, tmp)
            finish(name, tmp)
        finally:
            shutil.rmtree(tmp, ignore_errors=True)
    return cached(name)


@contextlib.contextmanager
def locked(name):
    """Holds off another lab that would fetch the same kernel."""
    parent = kernel_root(name).parent
    parent.mkdir(parents=True, exist_ok=True)
    with open(parent / f".lock-{name}", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run(cmd, what, **kwargs):
    """Runs a command quietly; its output is shown only when it fails."""
    try:
        done = subprocess.run([str(c) for c in cmd], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False, **kwargs)
    except FileNotFoundError:
        raise LabError(f"cannot {what}: {cmd[0]} is missing; "
                       "run tools/setup/install-deps lab") from None
    if done.returncode:
        raise LabError(f"cannot {what}: {cmd[0]} exited {done.returncode}:\n{done.stdout.strip()}")
    return done.stdout


# --- Debian packages ---------------------------------------------------------------------------

def debian_codename():
    for line in Path("/etc/os-release").read_text().splitlines():
        if line.startswith("VERSION_CODENAME="):
            return line.split("=", 1)[1].strip('"')
    raise LabError("/etc/os-release names no VERSION_CODENAME; the lab needs Debian 12")


def host_sources(codename):
    """(uri, suite) of the host's own Debian sources for this release."""
    text = run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(ORIGIN)",
                "Created-By: Packages"], "list apt's sources")
    rows = [(line.split() + [""])[:3] for line in text.splitlines()]
    rows = [r for r in rows if re.fullmatch(re.escape(codename) + "(-updates|-security)?", r[1])]
    # Before the first "apt-get update" no origin is known and every match is taken.
    known = [r for r in rows if r[2] == "Debian"] or rows
    if not any(suite == codename for _, suite, _ in known):
        raise LabError(f"apt has no source for Debian {codename}; add one to /etc/apt first")
    return list(dict.fromkeys((uri, suite) for uri, suite, _ in known))


def private_apt(name):
    """Options that make apt use a configuration and state of the lab's own.

    The host's sources stay as they are: other suites are looked for on the host's
    mirror, and downloaded lists land in the cache.
    """
    codename = debian_codename()
    sources = host_sources(codename)
    wanted = [suite.replace(HOST, codename) for suite in SUITES[name]]
    base = cache_dir() / "apt" / name
    settings = {
        "Dir::Etc::sourcelist": base / "sources.list", "Dir::Etc::sourceparts": "/dev/null",
        "Dir::Etc::preferences": "/dev/null", "Dir::Etc::preferencesparts": "/dev/null",
        "Dir::State": base / "state", "Dir::State::status": base / "status",
        "Dir::Cache": base / "cache", "APT::Sandbox::User": "root", "APT::Architecture": "amd64",
    }
    if name != "6.1":
        mirror = next(uri for uri, suite in sources if suite == codename)
        sources = [(mirror, suite) for suite in wanted]
        settings["APT::Default-Release"] = wanted[0]    # backports count only when asked for
    for sub in ("state/lists/partial", "cache/archives/partial"):
        (base / sub).mkdir(parents=True, exist_ok=True)
    (base / "status").touch()
    (base / "sources.list").write_text("".join(
        f"deb [signed-by={KEYRING}] {uri} {suite} main\n"
        for uri, suite in sources if suite in wanted))
    return [opt for key, value in settings.items() for opt in ("-o", f"{key}={value}")]


def needed_packages(apt, extra):
    """{package: version} of the kernel, its headers and the build tools they depend on."""
    found, todo = {}, [*META_PACKAGES, *extra]
    while todo:
        package = todo.pop()
        if package in found:
            continue
        text = run(["apt-cache", *apt, "show", "--no-all-versions", package], f"find {package}")
        fields = dict(line.split(": ", 1) for line in text.splitlines()
                      if re.match(r"\w.*: ", line))
        found[package] = fields["Version"]
        for dep in re.split(r"[,|]\s*", fields.get("Depends", "")):
            if WANTED.match(dep):
                todo.append(dep.split()[0])
    return {p: v for p, v in found.items() if p not in META_PACKAGES}


def fetch_debian(name, tmp):
    apt = private_apt(name)
    say(f"fetching Debian's kernel {name} into {kernel_root(name)} (about 90 MB, once)")
    run(["apt-get", *apt, "-qq", "update"], "update the package lists")
    packages = needed_packages(apt, EXTRA_PACKAGES.get(name, ()))
    debs = tmp / "debs"
    debs.mkdir()
    for package, version in sorted(packages.items()):
        say(f"  {package} {version}")
        run(["apt-get", *apt, "-qq", "download", f"{package}={version}"], f"download {package}",
            cwd=debs)
    for deb in sorted(debs.iterdir()):
        run(["dpkg-deb", "-x", deb, tmp], f"unpack {deb.name}")
    shutil.rmtree(debs)


def fetch_debug(name, tmp):
    """Unpacks a prebuilt debug kernel: vmlinuz-* and modules-and-headers-*.tar.xz in a folder."""
    source = os.environ.get("HAWK_DEBUG_KERNEL")
    if not source:
        raise LabError("the debug kernel is not in the cache; build it with "
                       "tools/lab/build-kernel, or set HAWK_DEBUG_KERNEL to a folder with "
                       "vmlinuz-* and modules-and-headers-*.tar.* of one")
    images = sorted(Path(source).glob("vmlinuz-*"))
    archives = sorted(Path(source).glob("modules-and-headers-*.tar.*"))
    if len(images) != 1 or len(archives) != 1:
        raise LabError(f"HAWK_DEBUG_KERNEL={source} must hold exactly one vmlinuz-* and one "
                       f"modules-and-headers-*.tar.*; found {len(images)} and {len(archives)}")
    say(f"unpacking the debug kernel into {kernel_root(name)}")
    (tmp / "boot").mkdir()
    shutil.copyfile(images[0], tmp / "boot" / images[0].name)
    run(["tar", "-C", tmp, "-xf", archives[0]], "unpack the debug kernel's modules")


# --- making an unpacked kernel usable from the cache -------------------------------------------

def finish(name, tmp):
    """Indexes the modules, makes the headers relocatable, records the parts, moves it in place."""
    if not (tmp / "lib").exists():
        (tmp / "lib").symlink_to("usr/lib")
    for path in tmp.glob("lib/modules/*/vmlinuz"):      # where Linux 7 packages have it
        (tmp / "boot").mkdir(exist_ok=True)
        path.rename(tmp / "boot" / f"vmlinuz-{path.parent.name}")
    vmlinuz = only(tmp.glob("boot/vmlinuz-*"), "boot/vmlinuz-*")
    release = vmlinuz.name.split("-", 1)[1]
    modules = tmp / "lib" / "modules" / release
    run(["depmod", "-b", tmp, release], "index the modules")
    headers = only((p for p in (tmp / "usr/src").iterdir() if p.name.endswith("-" + release)),
                   "usr/src/*-" + release)
    relocate_headers(tmp)
    use_own_libc(tmp)
    for link in ("build", "source"):
        (modules / link).unlink(missing_ok=True)
    parts = {"image": bootable(vmlinuz), "modules": modules, "headers": headers}
    info = {key: str(path.relative_to(tmp)) for key, path in parts.items()}
    (tmp / "kernel.json").write_text(json.dumps({"release": release, **info}, indent=1) + "\n")
    root = kernel_root(name)
    tmp.chmod(0o755)
    if root.exists():
        shutil.rmtree(root)
    tmp.rename(root)
    tmp.mkdir()


def bootable(vmlinuz):
    """The file to boot: the vmlinux in vmlinuz where QEMU can start it, else vmlinuz itself."""
    data = image.vmlinux(vmlinuz.read_bytes())
    if data is None:
        return vmlinuz
    path = vmlinuz.with_name(vmlinuz.name.replace("vmlinuz", "vmlinux", 1))
    path.write_bytes(data)
    return path


def only(paths, what):
    paths = list(paths)
    if len(paths) != 1:
        raise LabError(f"expected one {what} in the kernel's packages, found {len(paths)}")
    return paths[0]


def relocate_headers(root):
    """Debian's header Makefiles name /usr/src/...: point them at themselves and their neighbours."""
    for makefile in root.glob("usr/src/linux-headers-*/Makefile"):
        text = makefile.read_text()
        fixed = re.sub(r"(?m)^(\s*include\s+)/usr/src/", r"\1../", text)
        fixed = re.sub(r"(?m)^KBUILD_OUTPUT=/usr/src/.*",
                       "KBUILD_OUTPUT := $(dir $(abspath $(lastword $(MAKEFILE_LIST))))", fixed)
        if fixed != text:
            makefile.write_text(fixed)
    for path in (root / "usr" / "src").glob("*/*"):
        if path.is_symlink() and os.readlink(path).startswith("/usr/"):
            target = root / os.readlink(path).lstrip("/")
            path.unlink()
            path.symlink_to(os.path.relpath(target, path.parent))


LOADER = """#!/bin/sh
# Runs the program beside it with the C library that was unpacked with it.
me=$(readlink -f "$0")
root=${me%/usr/lib/linux-kbuild-*}
lib=$root/usr/lib/x86_64-linux-gnu
exec "$lib/ld-linux-x86-64.so.2" --library-path "$lib:/usr/lib/x86_64-linux-gnu" "$me.elf" "$@"
"""


def use_own_libc(root):
    """Build tools that ask for a later C library than the host's get the one in @root."""
    for tool in root.glob("usr/lib/linux-kbuild-*/**/*"):
        if not tool.is_file() or tool.is_symlink() or tool.read_bytes()[:4] != b"\x7fELF":
            continue
        try:
            said = subprocess.run([tool], stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, errors="replace").stderr
        except OSError:     # an object file
            continue
        if "GLIBC_" in said:
            tool.rename(tool.with_name(tool.name + ".elf"))
            tool.write_text(LOADER)
            tool.chmod(0o755)
