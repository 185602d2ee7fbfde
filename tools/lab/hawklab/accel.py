# SPDX-License-Identifier: MIT
"""Chooses between KVM and QEMU's emulator.

A /dev/kvm that opens is no proof. Inside some virtual machines running a vCPU
fails, so a vCPU is made to execute one HLT instruction; in others KVM has no
hardware behind it (the CPU shows neither vmx nor svm) and runs only guest
kernels adapted to it, while an ordinary one hangs.
"""

import ctypes
import fcntl
import mmap
import os
import re
import signal
import struct
from pathlib import Path

from . import LabError

KVM_CREATE_VM = 0xAE01
KVM_GET_VCPU_MMAP_SIZE = 0xAE04
KVM_CREATE_VCPU = 0xAE41
KVM_SET_TSS_ADDR = 0xAE47
KVM_SET_USER_MEMORY_REGION = 0x4020AE46
KVM_RUN = 0xAE80
KVM_EXIT_HLT = 5

PAGE = 4096
RESET_PAGE = 0xFFFFF000     # holds the reset vector, 0xFFFFFFF0
TSS_ADDR = 0x10000          # three pages that Intel's real mode needs, anywhere free
RUN_EXIT_REASON = 8         # offset of exit_reason in struct kvm_run
PROBE_LIMIT_S = 3


def _run_one_hlt(kvm):
    """Returns the exit reason of a vCPU whose first instruction is HLT."""
    vm = fcntl.ioctl(kvm, KVM_CREATE_VM, 0)
    vcpu = -1
    try:
        fcntl.ioctl(vm, KVM_SET_TSS_ADDR, TSS_ADDR)
        code = mmap.mmap(-1, PAGE)
        code[0xFF0] = 0xF4
        anchor = (ctypes.c_char * PAGE).from_buffer(code)
        region = struct.pack("IIQQQ", 0, 0, RESET_PAGE, PAGE, ctypes.addressof(anchor))
        fcntl.ioctl(vm, KVM_SET_USER_MEMORY_REGION, region)
        vcpu = fcntl.ioctl(vm, KVM_CREATE_VCPU, 0)
        state = mmap.mmap(vcpu, fcntl.ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0))
        fcntl.ioctl(vcpu, KVM_RUN, 0)
        return struct.unpack_from("I", state, RUN_EXIT_REASON)[0]
    finally:
        if vcpu >= 0:
            os.close(vcpu)
        os.close(vm)


def kvm_problem():
    """Why KVM cannot be used, or None when it works."""
    def stuck(signum, frame):
        raise TimeoutError("a vCPU did not finish one instruction")

    if not re.search(r"(?m)^flags\b.*\b(vmx|svm)\b", Path("/proc/cpuinfo").read_text()):
        return "the CPU shows no hardware virtualization (neither vmx nor svm)"
    try:
        kvm = os.open("/dev/kvm", os.O_RDWR | os.O_CLOEXEC)
    except OSError as err:
        return f"/dev/kvm: {err.strerror}"
    previous = signal.signal(signal.SIGALRM, stuck)
    signal.alarm(PROBE_LIMIT_S)
    try:
        reason = _run_one_hlt(kvm)
    except OSError as err:      # TimeoutError is an OSError too
        return f"/dev/kvm opens but does not run a vCPU: {err.strerror or err}"
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
        os.close(kvm)
    return None if reason == KVM_EXIT_HLT else f"/dev/kvm runs a vCPU wrongly (exit {reason})"


def choose(wanted):
    """"kvm" or "tcg" for a wanted kvm, tcg or auto."""
    if wanted == "tcg":
        return "tcg"
    problem = kvm_problem()
    if problem is None:
        return "kvm"
    if wanted == "kvm":
        raise LabError(f"KVM was asked for but cannot be used: {problem}; try --accel tcg")
    return "tcg"
