# SPDX-License-Identifier: MIT
"""The virtual machine's hardware as a QEMU command line."""

import re
import shutil

from . import LabError

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
CPU = {"kvm": "host,-arch-capabilities", "tcg": "max,la57=off"}
ACCEL = {"kvm": "kvm", "tcg": "tcg,thread=multi,tb-size=512"}


def cpu(accel, flags):
    return f"{CPU[accel]},{flags}" if flags and accel == "tcg" else CPU[accel]


def size_bytes(text):
    """Bytes in a size such as 512M or 4G (powers of 1,024)."""
    match = re.fullmatch(r"(\d+)([KMGT]?)", text.upper())
    if not match:
        raise LabError(f"bad size {text!r}: give a number and K, M, G or T, for example 4G")
    return int(match[1]) * UNITS[match[2]]


LOW_MAX = 2 << 30      # of memory below 4 GiB, where q35 has its holes; the rest is above
HIGH = 4 << 30


def nodes(mem):
    """Bytes of the two NUMA nodes."""
    return mem - mem // 2, mem // 2


def memory_pieces(mem):
    """(node, offset in the node, guest address, bytes) of all memory, piece by piece."""
    low = mem if mem < 0xB0000000 else LOW_MAX
    pieces, at = [], 0
    for node, size in enumerate(nodes(mem)):
        below = max(0, min(size, low - at))
        if below:
            pieces.append((node, 0, at, below))
        if size > below:
            pieces.append((node, below, HIGH + at + below - low, size - below))
        at += size
    return pieces


def numa(cpus, mem, mem_fds):
    """Two nodes with half the memory and the CPUs each; of one CPU, node 0 has it."""
    first = (cpus + 1) // 2
    args = ["-smp", f"{cpus},sockets=1,cores={cpus}", "-m", f"{mem >> 20}M"]
    for node, lo, hi in ((0, 0, first - 1), (1, first, cpus - 1)):
        span = f",cpus={lo}-{hi}" if lo <= hi else ""
        kind = "memory-backend-ram" if not mem_fds else \
            f"memory-backend-file,share=on,mem-path=/proc/self/fd/{mem_fds[node]}"
        args += ["-object", f"{kind},id=mem{node},size={nodes(mem)[node]}",
                 "-numa", f"node,nodeid={node},memdev=mem{node}{span}"]
    return args


def npu(fd, monitor):
    """Behind a port of its own, so that it can be pulled by the monitor, which its model has."""
    return ["-chardev", f"socket,id=npu,fd={fd}",
            "-chardev", f"socket,id=monitor,fd={monitor}", "-mon", "monitor,mode=control",
            "-device", "pcie-root-port,id=npu-port,chassis=1",
            "-device", "ivshmem-doorbell,id=npu,chardev=npu,vectors=2,bus=npu-port"]


def nvme(fd, log_fd, read_bps, write_bps):
    """The drive; with log_fd all that is written to it is logged there, in order."""
    drive = f"format=raw,file=/proc/self/fd/{fd}"
    if log_fd is not None:
        drive = (f"driver=blklogwrites,file.driver=file,file.filename=/proc/self/fd/{fd},"
                 "file.discard=unmap,log.driver=file,"
                 f"log.filename=/proc/self/fd/{log_fd},log-sector-size=512")
    drive += (f",if=none,id=nvme,cache=writeback,discard=unmap,"
              f"throttling.bps-read={read_bps},throttling.bps-write={write_bps}")
    return ["-drive", drive, "-device", "nvme,drive=nvme,serial=hawk-lab"]


def share(tag, path, readonly):
    mode = "on" if readonly else "off"
    return ["-fsdev", f"local,id={tag},path={path.replace(',', ',,')},security_model=none,"
                      f"readonly={mode},multidevs=remap",
            "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]


def link_ends(text):
    """(N, own socket, the other guest's) of --link FILE:N."""
    path, _, number = text.rpartition(":")
    if not path or number not in ("1", "2"):
        raise LabError(f"bad --link {text!r}: give FILE:1 to one guest and FILE:2 to the other")
    return int(number), f"{path}.{number}", f"{path}.{3 - int(number)}"


def link(ends):
    """A network card on a wire of datagrams: guests start and end in any order."""
    number, own, other = ends
    own, other = (path.replace(",", ",,") for path in (own, other))
    return ["-netdev", f"dgram,id=link,local.type=unix,local.path={own},"
                       f"remote.type=unix,remote.path={other}",
            "-device", f"virtio-net-pci,netdev=link,mac=52:54:00:78:00:0{number}"]


def ports(fds, shell):
    """One virtio-serial port for each (name, socket) pair; a console first for a shell."""
    args = ["-device", "virtio-serial-pci,id=serial"]
    if shell:
        args += ["-chardev", "stdio,id=tty,signal=off", "-device", "virtconsole,chardev=tty,nr=0"]
    for i, (name, fd) in enumerate(fds.items()):
        args += ["-chardev", f"socket,id={name},fd={fd}",
                 "-device", f"virtserialport,chardev={name},name=lab.{name},nr={i + 1}"]
    return args


def command(kernel, accel, opts, fds):
    """The command line; fds holds the descriptors QEMU inherits (initrd, log, nvme, nvme_log
    if the drive's writes are logged, mem and npu if there is one, ports)."""
    qemu = shutil.which("qemu-system-x86_64")
    if not qemu:
        raise LabError("qemu-system-x86_64 is missing; run tools/setup/install-deps lab")
    append = ("console=ttyS0 loglevel=4 panic=-1 oops=panic random.trust_cpu=on "
              "rdinit=/init " + " ".join(opts.append)).strip()
    args = [qemu, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-machine", "q35", "-accel", ACCEL[accel], "-cpu", cpu(accel, opts.tcg_cpu), "-nic", "none",
            "-kernel", str(kernel.image), "-initrd", f"/proc/self/fd/{fds['initrd']}",
            "-append", append, "-chardev", f"file,id=log,path=/proc/self/fd/{fds['log']}",
            "-serial", "chardev:log", "-device", "virtio-rng-pci"]
    args += numa(opts.cpus, size_bytes(opts.mem), fds.get("mem"))
    args += nvme(fds["nvme"], fds.get("nvme_log"), size_bytes(opts.nvme_bps), size_bytes(opts.nvme_write_bps))
    args += share("hostroot", "/", readonly=True)
    if opts.link:
        args += link(opts.link)
    if "npu" in fds:
        args += npu(*fds["npu"])
    if opts.out:
        args += share("hostout", opts.out, readonly=False)
    return args + ports(fds["ports"], opts.shell)
