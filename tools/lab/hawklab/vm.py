# SPDX-License-Identifier: MIT
"""One run of the guest: boot, stream the command's output, return its exit status.

The guest writes to three virtio-serial ports, which here are socket pairs, so
nothing of a run has a name in the file system and nothing can be left behind:
the initramfs and the kernel log are memory files, the drive an unlinked file.
"""

import ctypes
import os
import secrets
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import namedtuple

from . import LabError, initramfs, logcheck, npu, qemu
from .paths import LAB_DIR

EXIT_LOG = 123          # --check-log found something
EXIT_TIMEOUT = 124
EXIT_LAB = 125          # the guest did not get as far as the command's exit status
PR_SET_PDEATHSIG = 1
TAIL_LINES = 40

Result = namedtuple("Result", "status error boot_s run_s log")
libc = ctypes.CDLL(None)


class Stream:
    """Copies one output port to a file descriptor until the end mark, which it drops."""

    def __init__(self, sock, dest, mark):
        self.sock, self.dest, self.mark = sock, dest, mark
        self.held = b""
        self.done = False

    def feed(self, data):
        data = self.held + data
        before, found, _ = data.partition(self.mark)
        if found:
            self.done, keep = True, 0
        else:
            keep = next((n for n in range(min(len(data), len(self.mark) - 1), 0, -1)
                         if self.mark.startswith(data[-n:])), 0)
        self.held = data[len(data) - keep:]
        write_all(self.dest, before[:len(before) - keep])


def write_all(fd, data):
    while data:
        data = data[os.write(fd, data):]


class Guest:
    """A QEMU process with its ports; use as a context manager."""

    def __init__(self, kernel, accel, opts):
        self.kernel, self.accel, self.opts = kernel, accel, opts
        self.mark = f"hawk-lab: start {secrets.token_hex(8)}"
        self.end = f"hawk-lab-end-{secrets.token_hex(16)}"
        self.files = []
        self.process = self.npu = None
        self.npu_far = []
        self.status_text = b""
        self.up_at = None

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exc):
        self.close()

    def close(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self.npu:
            self.npu.terminate()
            self.npu.wait()
        for item in self.files:
            item.close()
        self.files = []

    def start(self):
        self.started = time.monotonic()
        initrd = self.keep(os.fdopen(os.memfd_create("initrd"), "wb", buffering=0))
        initramfs.write(initrd, self.kernel, self.job())
        self.log_file = self.keep(os.fdopen(os.memfd_create("log"), "rb"))
        drive = self.keep(self.drive())
        self.socks, far = {}, {}
        for name in ("out", "err", "status"):
            near, other = socket.socketpair()
            self.socks[name], far[name] = self.keep(near), self.keep(other)
        fds = {"initrd": initrd.fileno(), "log": self.log_file.fileno(), "nvme": drive.fileno(),
               "ports": {name: sock.fileno() for name, sock in far.items()}}
        if self.opts.nvme_log:
            fds["nvme_log"] = self.keep(open(self.opts.nvme_log, "w+b", buffering=0)).fileno()
        if self.opts.npu:
            self.start_npu(fds)
        cmd = qemu.command(self.kernel, self.accel, self.opts, fds)
        inherit = [fd for name, fd in fds.items() if name not in ("ports", "mem", "npu")]
        inherit += [*fds["ports"].values(), *fds.get("mem", []), *fds.get("npu", [])]
        parent = os.getpid()
        self.qemu_err = self.keep(tempfile.TemporaryFile(prefix="hawk-lab-"))
        self.process = subprocess.Popen(
            cmd, pass_fds=inherit, start_new_session=not self.opts.shell,
            stdin=None if self.opts.shell else subprocess.DEVNULL,
            stdout=None if self.opts.shell else self.qemu_err, stderr=self.qemu_err,
            preexec_fn=lambda: die_with(parent))
        for sock in [*far.values(), *self.npu_far]:
            sock.close()

    def start_npu(self, fds):
        """The model of an NPU, which reaches the guest's memory; it ends with QEMU."""
        mem = qemu.size_bytes(self.opts.mem)
        (near, far), (ours, monitor) = socket.socketpair(), socket.socketpair()
        self.npu_far = [near, far, ours, monitor]
        backing = [self.keep(npu.memory(size)) for size in qemu.nodes(mem)]
        fds["mem"], fds["npu"] = [item.fileno() for item in backing], \
            [far.fileno(), monitor.fileno()]
        parent = os.getpid()
        self.npu = npu.start(self.opts.npu, near.fileno(), ours.fileno(), fds["mem"],
                             qemu.memory_pieces(mem), self.opts.npu_args,
                             lambda: die_with(parent))

    def drive(self):
        """What is behind /dev/nvme0n1."""
        path = self.opts.nvme_file
        if path and os.path.exists(path):
            return open(path, "r+b", buffering=0)
        drive = open(path, "w+b", buffering=0) if path else \
            tempfile.TemporaryFile(prefix="hawk-lab-")
        drive.truncate(qemu.size_bytes(self.opts.nvme_size))
        return drive

    def keep(self, item):
        self.files.append(item)
        return item

    def job(self):
        opts, size = self.opts, shutil.get_terminal_size()
        lab = {"INIT": LAB_DIR / "guest-init", "RELEASE": self.kernel.release,
               "MODULES": self.kernel.modules, "MARK": self.mark, "END": self.end,
               "CWD": os.getcwd(), "OUT": opts.out or "", "RDMA": "1" if opts.rdma else "",
               "LINK": opts.link[0] if opts.link else "",
               "LEAKS": "1" if opts.check_log else "", "SECONDS": int(opts.timeout),
               "KO": opts.ko or "", "KO_ARGS": " ".join(opts.ko_args),
               "SHELL": "1" if opts.shell else "", "ROWS": size.lines, "COLS": size.columns}
        return {"lab": lab, "env": guest_env(opts.env), "argv": opts.argv}

    def log(self):
        """The kernel log so far."""
        size = os.fstat(self.log_file.fileno()).st_size
        return os.pread(self.log_file.fileno(), size, 0).decode(errors="replace")

    def run(self, on_up):
        """Streams until the guest reports a status or dies; returns a Result."""
        streams = {} if self.opts.shell else {
            name: Stream(self.socks[name], fd, self.end.encode())
            for name, fd in (("out", 1), ("err", 2))}
        deadline = self.started + self.opts.timeout
        with selectors.DefaultSelector() as selector:
            for name, sock in self.socks.items():
                selector.register(sock, selectors.EVENT_READ, name)
            while True:
                left = deadline - time.monotonic()
                if left <= 0:
                    return self.result(EXIT_TIMEOUT, f"timed out after {self.opts.timeout} s")
                for key, _ in selector.select(left):
                    data = key.fileobj.recv(1 << 16)
                    if not data:
                        selector.unregister(key.fileobj)
                    elif key.data == "status":
                        self.on_status(data, on_up)
                    elif key.data in streams:
                        streams[key.data].feed(data)
                status = self.status()
                if status and (status[1] or all(s.done for s in streams.values())):
                    return self.result(*status)
                if not selector.get_map():
                    return self.result(*(status or (EXIT_LAB, self.death())))

    def on_status(self, data, on_up):
        self.status_text += data
        if self.up_at is None and self.status_text.startswith(b"up\n"):
            self.up_at = time.monotonic()
            on_up(self.up_at - self.started)

    def status(self):
        """(exit status, error) once the guest has reported one."""
        for line in self.status_text.decode(errors="replace").splitlines(keepends=True):
            word, _, rest = line.partition(" ")
            if word == "exit" and line.endswith("\n"):
                return int(rest), None
            if word == "fail" and line.endswith("\n"):
                return EXIT_LAB, rest.strip()
        return None

    def death(self):
        """Why the guest ended without a status."""
        self.process.wait()
        self.qemu_err.seek(0)
        text = self.qemu_err.read().decode(errors="replace").strip()
        if self.process.returncode:
            return f"QEMU exited {self.process.returncode}: {text}"
        if "Kernel panic" in self.log():
            return "the guest's kernel panicked"
        return "the guest ended without reporting an exit status"

    def result(self, status, error):
        now = time.monotonic()
        boot = (self.up_at or now) - self.started
        return Result(status, error, boot, now - self.started - boot, self.log())


def guest_env(extra):
    """What the command's environment takes over from ours, and what the user adds."""
    keep = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TERM", "CI")
    env = {k: v for k, v in os.environ.items() if k in keep or k.startswith("HAWK_")}
    for item in extra:
        key, sep, value = item.partition("=")
        if not sep:
            raise LabError(f"bad --env {item!r}: give NAME=VALUE")
        env[key] = value
    return env


def die_with(parent):
    """In the child: end QEMU when the lab dies, however it dies."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def check(result, mark):
    """The suspicious lines of a run's kernel log, from the lab's start line on."""
    return logcheck.findings(logcheck.after_mark(result.log, mark))


def tail(log):
    return "\n".join(log.splitlines()[-TAIL_LINES:])
