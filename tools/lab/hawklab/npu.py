# SPDX-License-Identifier: MIT
"""The model of an NPU (firmware-models/npu) beside the guest: a process of ours."""

import os
import subprocess

from . import LabError
from .paths import REPO_DIR

PROGRAM = REPO_DIR / "build" / "bin" / "hawk-npu"


def memory(size):
    """A node's memory as a file, which QEMU and the model map."""
    item = os.fdopen(os.memfd_create("mem"), "w+b", buffering=0)
    item.truncate(size)
    return item


def start(mib, sock, monitor, mem_fds, pieces, args, preexec):
    """The model with mib of memory, whose QEMU is at the other ends of sock and monitor."""
    if not PROGRAM.exists():
        raise LabError(f"{PROGRAM} is not built; run make {PROGRAM.relative_to(REPO_DIR)}")
    cmd = [str(PROGRAM), "--size", str(mib), "--qemu", str(sock), "--qmp", str(monitor),
           "--faults", *args]
    for node, offset, address, size in pieces:
        cmd += ["--ram", f"{mem_fds[node]}:{offset}:{address}:{size}"]
    return subprocess.Popen(cmd, pass_fds=[sock, monitor, *mem_fds], stdin=subprocess.DEVNULL,
                            preexec_fn=preexec)
