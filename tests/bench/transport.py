# SPDX-License-Identifier: MIT
"""KV from one soft RoCE port to the other beside perftest's ib_write_bw between the same ports.

Soft RoCE's packets are copied and checked by CPUs, so without a limit the slowest CPU is what is
measured. With one the wire is, as it is with a NIC: the queue of the port's Ethernet device
lets packets out at a rate that the CPUs can carry easily. That queue has room for all packets
that a port sends before it waits for an acknowledgement, so none is dropped."""

import json
import statistics
import subprocess
import time

DEVICES = ("lab0", "lab1")      # of the ports rxe0 and rxe1, by hawk-lab --rdma
PEER = "10.77.0.2"              # address of the second
MTU = 9000                      # packets of 4096 bytes
QUEUE = 4096                    # packets; a port has 128 under way for each connection
SIZES = (4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20)
ACK_TIMEOUT = 16                # libhawk's: 268 ms
SHARE = 4                       # the limit is this part of what the CPUs carry
MB = 1e6


class TransportError(RuntimeError):
    """It could not be measured; the message says why."""


class Link:
    """The wire between the ports, with a rate in bytes/s; 0: as fast as the CPUs are."""

    def __init__(self, bps):
        self.bps = bps

    def __enter__(self):
        for dev in DEVICES:
            subprocess.run(["ip", "link", "set", dev, "mtu", str(MTU)], check=True)
            if self.bps:
                subprocess.run(["tc", "qdisc", "replace", "dev", dev, "root", "netem", "rate",
                                f"{8 * self.bps}bit", "limit", str(QUEUE)], check=True)
        return self

    def __exit__(self, *_):
        dropped = 0
        for dev in DEVICES if self.bps else ():
            stat = subprocess.run(["tc", "-s", "qdisc", "show", "dev", dev], check=True, text=True,
                                  stdout=subprocess.PIPE).stdout
            dropped += int(stat.split("dropped ")[1].split(",")[0])
            subprocess.run(["tc", "qdisc", "del", "dev", dev, "root"], check=True)
        if dropped:
            raise TransportError(f"the limited wire has dropped {dropped} packets")


class WriteBw:
    """ib_write_bw from rxe0 to rxe1, @mib at a time."""

    def __init__(self, mib):
        self.bytes = mib << 20
        self.size = SIZES[-1]

    def choose(self, say):
        """The message size that it does best at."""
        rates = {}
        for self.size in SIZES:
            rates[self.size] = self.rate()
        self.size = max(rates, key=rates.get)
        say("  ib_write_bw by size: "
            + ", ".join(f"{s >> 10} KiB: {r:.2f} MB/s" for s, r in rates.items()))
        return rates[self.size]

    def argv(self, device):
        return ["ib_write_bw", "-F", "-d", device, "-x", "1", "-u", str(ACK_TIMEOUT),
                "-s", str(self.size), "-n", str(self.bytes // self.size)]

    def rate(self):
        """MB/s, on average."""
        with subprocess.Popen(self.argv("rxe1"), stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as server:
            for _ in range(50):     # until the server listens
                out = subprocess.run([*self.argv("rxe0"), PEER], text=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
                if not out.returncode or server.poll() is not None:
                    break
                time.sleep(0.2)
            server.terminate()
        rows = [line.split() for line in out.stdout.splitlines()
                if line.split()[:1] == [str(self.size)]]
        if not rows:
            raise TransportError(f"ib_write_bw said: {out.stdout}")
        return float(rows[-1][3]) * (1 << 20) / MB


class Transport:
    """The program, which measures what it is told to."""

    def __init__(self, path, mib):
        self.p = subprocess.Popen([path, "-s", str(mib)], text=True, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE)
        if self.p.stdout.readline() != "ready\n":
            self.close()
            raise TransportError("transport could not begin; its message is above")

    def ask(self, what, lines=1):
        """JSON lines."""
        self.p.stdin.write(what + "\n")
        self.p.stdin.flush()
        got = [self.p.stdout.readline() for _ in range(lines)]
        if not all(got):
            raise TransportError(f"transport failed at {what}; its message is above")
        return got

    def close(self):
        self.p.stdin.close()
        self.p.wait()


def rounds(path, peer, runs):
    """What was measured, lines of the program, and ib_write_bw's MB/s beside it or None."""
    ours = Transport(path, peer.bytes >> 20)
    try:
        for _ in range(runs):
            session, rate = ours.ask("session"), peer.rate()
            yield "session", session, rate
            yield "naive", ours.ask("naive"), rate
            yield "overlap", ours.ask("overlap", 2), None
    finally:
        ours.close()


def volume(rate, quick):
    """MiB that take some seconds at @rate MB/s."""
    seconds = 2 if quick else 4
    return min(max(8, int(rate * seconds) // 8 * 8), 256)


def measure(path, runs, quick, bps, say):
    """Without a limit, then with one of @bps bytes/s (None: of what the CPUs carry):
    suffix of the figures' names, lines of the program, ib_write_bw's MB/s or None, note."""
    slowest = {}
    with Link(0):
        peer = WriteBw(16)
        best = peer.choose(say)
        peer.bytes = volume(best, quick) << 20
        for what, lines, rate in rounds(path, peer, runs):
            if rate:
                slowest.setdefault(what, []).append(json.loads(lines[0])["value"])
            yield "_unlimited", lines, rate, f"{peer.size >> 10} KiB"
    if bps is None:
        carried = min(best, *(statistics.median(v) for v in slowest.values()))
        bps = max(1, int(carried / SHARE)) * 1000000
    with Link(bps):
        say(f"  the wire has {bps / MB:g} MB/s now")
        peer = WriteBw(volume(bps / MB, quick))
        peer.choose(say)
        for _, lines, rate in rounds(path, peer, runs):
            yield "", lines, rate, f"{peer.size >> 10} KiB, link of {bps / MB:g} MB/s"
