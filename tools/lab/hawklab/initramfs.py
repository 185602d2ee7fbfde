# SPDX-License-Identifier: MIT
"""The initramfs: busybox, the modules that reach the host's root, our init and the job."""

import lzma
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from . import LabError
from .kernels import run
from .paths import LAB_DIR

# What the initramfs loads itself; every other module comes from the cache over 9p.
EARLY_MODULES = ("virtio_pci", "virtio_console", "9pnet_virtio", "9p", "overlay", "nvme")
DIRS = ("bin", "dev", "proc", "sys", "lower", "upper", "newroot", "modules")


def early_modules(kernel):
    """Paths of the early modules and what they depend on, in loading order."""
    paths = []
    for name in EARLY_MODULES:
        text = run(["modprobe", "-d", kernel.root, "-S", kernel.release, "--show-depends", name],
                   f"find module {name} of kernel {kernel.release}")
        for line in text.splitlines():
            kind, _, rest = line.partition(" ")
            if kind == "insmod" and rest.split()[0] not in paths:
                paths.append(rest.split()[0])
    return paths


def plain(path):
    """A module's bytes, unpacked: busybox hands compressed ones to the kernel, which objects."""
    data = Path(path).read_bytes()
    return lzma.decompress(data) if path.endswith(".xz") else data


def job_script(job):
    """The job as shell assignments; guest-init reads it with the "." command."""
    lines = [f"LAB_{key}={shlex.quote(str(value))}" for key, value in job["lab"].items()]
    lines += [f"export {key}={shlex.quote(value)}" for key, value in job["env"].items()]
    lines.append("set -- " + " ".join(shlex.quote(arg) for arg in job["argv"]))
    return "\n".join(lines) + "\n"


def write(out, kernel, job):
    """Writes the initramfs for one boot to the open file out."""
    busybox = shutil.which("busybox")
    if not busybox:
        raise LabError("busybox is missing; run tools/setup/install-deps lab")
    with tempfile.TemporaryDirectory(prefix="hawk-lab-") as tmp:
        root = Path(tmp)
        for name in DIRS:
            (root / name).mkdir()
        shutil.copy(busybox, root / "bin" / "busybox")
        shutil.copy(LAB_DIR / "initramfs-init", root / "init")
        for i, path in enumerate(early_modules(kernel)):
            name = os.path.basename(path).removesuffix(".xz")
            (root / "modules" / f"{i:02}-{name}").write_bytes(plain(path))
        (root / "job").write_text(job_script(job))
        names = "\n".join(str(p.relative_to(root)) for p in sorted(root.rglob("*")))
        done = subprocess.run(["cpio", "--quiet", "-o", "-H", "newc"], input=names.encode(),
                              stdout=out, cwd=root, check=False)
        if done.returncode:
            raise LabError(f"cpio exited {done.returncode} while packing the initramfs")
