#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""hawkctl doctor on hosts that are made up: the way of each pair, each problem with its
remedy and gone when that is done, and files that are not what they should be."""

import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "lib"))

import tap  # noqa: E402

TOP = HERE.parents[1]
CTL = TOP / "build/bin/hawkctl"
GPU, NPU, NIC = "0000:03:00.0", "0000:04:00.0", "0000:05:00.0"

t = tap.Tap()


class Host:
    """A host with everything as it should be."""

    def __init__(self, folder):
        self.root = pathlib.Path(folder)
        self.config = {"PCI_P2PDMA": "y", "DMABUF_MOVE_NOTIFY": "y", "DEVICE_PRIVATE": "y"}
        self.write("proc/sys/kernel/osrelease", "6.1.0-test\n")
        self.boot_config()
        self.memlock("unlimited")
        self.write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n")
        self.write("sys/kernel/mm/transparent_hugepage/shmem_enabled", "[advise] never\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def boot_config(self):
        self.write("boot/config-6.1.0-test",
                   "".join(f"CONFIG_{k}={v}\n" for k, v in self.config.items()))

    def memlock(self, limit):
        self.write("proc/self/limits", "Limit                     Soft Limit  Hard Limit  Units\n"
                   f"Max locked memory         {limit}  {limit}  bytes\n")

    def pci(self, place, vendor, device, cls, driver=None):
        """A device at the end of a path through the PCI tree."""
        path = f"sys/devices/{place}"
        for name, value in (("vendor", vendor), ("device", device), ("class", cls)):
            self.write(f"{path}/{name}", f"{value:#06x}\n")
        name = place.rsplit("/", 1)[1]
        link = self.root / f"sys/bus/pci/devices/{name}"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(f"../../../devices/{place}")
        if driver:
            (self.root / path / "driver").symlink_to(f"../bus/pci/drivers/{driver}")

    def gpu(self, place, open_modules=True):
        self.pci(f"{place}/{GPU}", 0x10de, 0x2330, 0x030200, "nvidia")
        self.write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX " +
                   ("Open Kernel Module" if open_modules else "x86_64 Kernel Module") + " 550\n")

    def npu(self, place, driver="hawk_npu"):
        self.pci(f"{place}/{NPU}", 0x1af4, 0x1110, 0x050000, driver)

    def rdma(self, name, place=None, mtu=9000, gid="RoCE v2", link="Ethernet", state="up"):
        base = f"sys/class/infiniband/{name}"
        self.write(f"{base}/ports/1/link_layer", link + "\n")
        self.write(f"{base}/ports/1/gid_attrs/types/0", gid + "\n")
        self.write(f"{base}/ports/1/gid_attrs/ndevs/0", "eth7\n")
        self.write("sys/class/net/eth7/mtu", f"{mtu}\n")
        self.write("sys/class/net/eth7/operstate", state + "\n")
        if place:
            self.pci(f"{place}/{NIC}", 0x15b3, 0x101d, 0x020700, "mlx5_core")
            (self.root / base / "device").symlink_to(f"../../../devices/{place}/{NIC}")

    def tier(self, nr, kind):
        self.write("sys/module/hawk/refcnt", "0\n")
        self.write(f"sys/class/misc/hawk/tier{nr}/kind", kind + "\n")

    def ask(self, *more):
        run = subprocess.run([CTL, "--json", "--root", self.root, *more, "doctor"],
                             capture_output=True, text=True, timeout=60)
        answer = json.loads(run.stdout)
        assert run.returncode == (1 if answer["findings"] else 0), run
        return answer


def way(answer, a, b):
    for pair in answer["ways"]:
        if set(pair["between"]) == {a, b}:
            return pair["way"]
    return None


def problems(answer):
    return [f"{f['subject']}: {f['problem']}" for f in answer["findings"]]


def clean(host, name):
    answer = host.ask()
    t.equal(problems(answer), [], name)
    return answer


def mended(host, words, mend, name):
    """There is one problem with these words, and none when it has been mended."""
    got = host.ask()["findings"]
    t.ok(len(got) == 1 and all(w in " ".join(got[0].values()) for w in words), name, got)
    mend()
    t.equal(problems(host.ask()), [], f"{name}: mended")


BRIDGE = "pci0000:00"
SWITCH = f"{BRIDGE}/0000:00:01.0/0000:01:00.0"


def test_all_is_well(folder):
    host = Host(folder)
    answer = clean(host, "a host with nothing but memory")
    t.equal((answer["ways"], [d["kind"] for d in answer["devices"]]), ([], ["host"]), "is one")
    host.tier(0, "host")
    host.tier(1, "blk")
    host.tier(2, "dmabuf")
    host.tier(3, "bar")
    host.gpu(f"{SWITCH}/0000:02:00.0")
    host.npu(f"{SWITCH}/0000:02:01.0")
    host.rdma("mlx5_0", f"{SWITCH}/0000:02:02.0")
    answer = clean(host, "a host with one of each")
    t.equal(len(answer["ways"]), 8 * 7 // 2, "a way for each pair")
    for a, b, wanted in (("memory", "tier0", "mapping"), ("memory", "tier1", "direct I/O"),
                         ("memory", GPU, "copy engine"), ("memory", NPU, "mapping"),
                         ("memory", "mlx5_0", "registration"), ("tier0", "mlx5_0", "dma-buf"),
                         ("tier1", "mlx5_0", "host memory"), ("tier0", "tier1", "direct I/O"),
                         ("tier1", "tier2", "bounce pages"), (GPU, "mlx5_0", "dma-buf"),
                         ("tier1", "tier3", "bounce pages"), ("memory", "tier3", "mapping"),
                         ("tier3", "mlx5_0", "host memory"), ("tier3", NPU, "local"),
                         (NPU, "mlx5_0", "host memory"), (GPU, NPU, "host memory")):
        t.equal(way(answer, a, b), wanted, f"{a} - {b}")
    run = subprocess.run([CTL, "--root", folder, "doctor"], capture_output=True, text=True)
    t.ok(run.returncode == 0 and f"{GPU} - mlx5_0: dma-buf: a switch connects them" in run.stdout
         and "nothing to mend" in run.stdout, "in words", run.stdout)


def test_distance(folder):
    """The same two devices behind a switch, below a bridge, below two bridges."""
    places = {
        "switch": (f"{SWITCH}/0000:02:01.0", f"{SWITCH}/0000:02:02.0"),
        "root": (f"{BRIDGE}/0000:00:01.0", f"{BRIDGE}/0000:00:02.0"),
        "across": (f"{BRIDGE}/0000:00:01.0", "pci0000:80/0000:80:01.0"),
    }
    wanted = {("switch", False): "dma-buf", ("switch", True): "dma-buf",
              ("root", False): "dma-buf", ("root", True): "host memory",
              ("across", False): "host memory", ("across", True): "host memory"}
    for (where, iommu), way_wanted in wanted.items():
        host = Host(f"{folder}/{where}{iommu}")
        host.gpu(places[where][0])
        host.rdma("mlx5_0", places[where][1])
        host.write("sys/kernel/iommu_groups/0/type", "DMA-FQ\n" if iommu else "identity\n")
        answer = host.ask()
        t.equal(way(answer, GPU, "mlx5_0"), way_wanted, f"{where}, IOMMU translates: {iommu}")
        t.equal(any("iommu=pt" in f["fix"] for f in answer["findings"]), iommu, "and is told")
        t.equal(answer["host"]["iommu"], "translates" if iommu else "passthrough", "by name")


def test_kernel(folder):
    host = Host(folder)
    host.gpu(f"{SWITCH}/0000:02:00.0")
    host.rdma("mlx5_0", f"{SWITCH}/0000:02:02.0")
    for name in ("PCI_P2PDMA", "DMABUF_MOVE_NOTIFY"):
        del host.config[name]
        host.boot_config()
        host.config[name] = "y"
        if name == "PCI_P2PDMA":
            t.equal(way(host.ask(), GPU, "mlx5_0"), "host memory", "no P2PDMA, no way for peers")
        mended(host, [f"CONFIG_{name}"], host.boot_config, f"CONFIG_{name}")
    boot = host.root / "boot/config-6.1.0-test"
    text = boot.read_bytes()
    boot.unlink()
    mended(host, ["/proc/config.gz", "kernel"],
           lambda: (host.root / "proc/config.gz").write_bytes(gzip.compress(text)),
           "no configuration")
    t.equal(host.ask()["host"]["pci_p2pdma"], "yes", "the compressed one is read")


def test_limits(folder):
    host = Host(folder)
    host.memlock(8 << 20)
    mended(host, ["8192 KiB", "ulimit -l unlimited"], lambda: host.memlock(1 << 40), "memlock")
    thp = "sys/kernel/mm/transparent_hugepage/enabled"
    host.write(thp, "always madvise [never]\n")
    mended(host, ["4 KiB", "madvise"], lambda: host.write(thp, "[always] madvise never\n"),
           "huge pages")


def test_rdma(folder):
    host = Host(folder)
    host.rdma("mlx5_0", f"{SWITCH}/0000:02:02.0", mtu=1500)
    mended(host, ["1500", "mtu 9000"], lambda: host.write("sys/class/net/eth7/mtu", "9000\n"),
           "MTU")
    types = "sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/0"
    host.write(types, "IB/RoCE v1\n")
    mended(host, ["RoCE v2", "ip address add"], lambda: host.write(types, "RoCE v2\n"), "GID")
    state = "sys/class/net/eth7/operstate"
    host.write(state, "down\n")
    mended(host, ["eth7", "ip link set eth7 up"], lambda: host.write(state, "up\n"), "link")
    ib = Host(f"{folder}/ib")
    ib.rdma("mlx5_0", f"{SWITCH}/0000:02:02.0", mtu=2044, gid="IB/RoCE v1", link="InfiniBand")
    clean(ib, "InfiniBand needs none of that")
    soft = Host(f"{folder}/soft")
    soft.rdma("rxe0")
    soft.npu(f"{SWITCH}/0000:02:01.0")
    soft.tier(0, "host")
    answer = clean(soft, "soft RoCE")
    t.equal((way(answer, "tier0", "rxe0"), way(answer, NPU, "rxe0")),
            ("registration", "host memory"), "copies by the CPU")


def test_drivers(folder):
    host = Host(folder)
    host.gpu(f"{SWITCH}/0000:02:00.0", open_modules=False)
    host.rdma("mlx5_0", f"{SWITCH}/0000:02:02.0")
    host.write("sys/kernel/mm/memory_peers/README", "")
    t.equal(way(host.ask(), GPU, "mlx5_0"), "host memory", "a driver without dma-bufs")
    mended(host, ["modprobe nvidia-peermem"],
           lambda: host.write("sys/module/nvidia_peermem/refcnt", "0\n"), "nvidia-peermem")
    t.equal(way(host.ask(), GPU, "mlx5_0"), "nvidia-peermem", "and its way")
    far = Host(f"{folder}/far")
    far.gpu(f"{BRIDGE}/0000:00:01.0", open_modules=False)
    far.rdma("mlx5_0", "pci0000:80/0000:80:01.0")
    far.write("sys/module/nvidia_peermem/refcnt", "0\n")
    why = [w["why"] for w in far.ask()["ways"] if set(w["between"]) == {GPU, "mlx5_0"}]
    t.ok("peermem is loaded, but" in why[0], "nvidia-peermem does not reach everywhere", why)
    host.tier(0, "host")
    mended(host, ["modprobe hawk_peer"], lambda: host.write("sys/module/hawk_peer/refcnt", "0\n"),
           "hawk_peer")
    t.equal(way(host.ask(), "tier0", "mlx5_0"), "peer client", "and its way")
    npu = Host(f"{folder}/npu")
    npu.npu(f"{SWITCH}/0000:02:01.0", None)
    t.equal(way(npu.ask(), "memory", NPU), "none", "an NPU without a driver")
    drivers = npu.root / f"sys/devices/{SWITCH}/0000:02:01.0/{NPU}/driver"
    mended(npu, ["modprobe hawk_npu"],
           lambda: drivers.symlink_to("../bus/pci/drivers/hawk_npu"), "hawk_npu")
    gpu = Host(f"{folder}/gpu")
    gpu.pci(f"{SWITCH}/0000:02:00.0/{GPU}", 0x10de, 0x2330, 0x030200)
    mended(gpu, ["modprobe nvidia"],
           lambda: gpu.write("proc/driver/nvidia/version", "Open Kernel Module\n"), "nvidia")


def test_hostile(folder):
    """Huge files, binary ones, pipes, loops, names: an answer, and printable."""
    host = Host(folder)
    host.npu(f"{SWITCH}/0000:02:01.0")
    host.rdma("mlx5_0", f"{SWITCH}/0000:02:02.0")
    noise = bytes(range(256)) * 4096
    for name in ("proc/config.gz", "boot/config-6.1.0-test", "proc/self/limits",
                 "sys/kernel/mm/transparent_hugepage/enabled", "sys/class/net/eth7/mtu",
                 "sys/class/infiniband/mlx5_0/ports/1/link_layer",
                 f"sys/devices/{SWITCH}/0000:02:01.0/{NPU}/vendor"):
        path = host.root / name
        before = path.read_bytes() if path.exists() else None
        path.write_bytes(noise)
        t.ok(host.ask(), f"{name} is noise")
        path.write_bytes(gzip.compress(bytes(64 << 20)))
        t.ok(host.ask(), f"{name} is 64 MiB of nothing, compressed")
        path.write_bytes(b"9" * 100000)
        t.ok(host.ask(), f"{name} is a long number")
        path.unlink()
        os.mkfifo(path)
        t.ok(host.ask(), f"{name} is a pipe")
        path.unlink()
        path.symlink_to(path.name)
        t.ok(host.ask(), f"{name} is a loop")
        path.unlink()
        path.mkdir()
        t.ok(host.ask(), f"{name} is a folder")
        path.rmdir()
        if before is not None:
            path.write_bytes(before)
    host.write("proc/sys/kernel/osrelease", "../../etc/passwd\n")
    host.write("sys/class/infiniband/\x1b[31m\u00e4/ports/1/link_layer", "\x1b[2J\n")
    run = subprocess.run([CTL, "--root", folder, "doctor"], capture_output=True, timeout=60)
    t.ok(run.returncode == 1 and all(32 <= c < 127 or c == 10 for c in run.stdout),
         "no control character comes through", run.stdout)
    for i in range(300):
        host.write(f"sys/class/misc/hawk/tier{i}/kind", "host\n")
    answer = host.ask()
    t.ok(len(answer["devices"]) == 64 and any("more than" in p for p in problems(answer)),
         "too many devices", problems(answer))
    run = subprocess.run([CTL, "--root", "/" + "x" * 5000, "doctor"], capture_output=True)
    t.equal(run.returncode, 1, "a root too long: nothing is known")


def test_this_host():
    run = subprocess.run([CTL, "--json", "doctor"], capture_output=True, text=True)
    answer = json.loads(run.stdout)
    t.ok(run.returncode in (0, 1) and answer["host"]["release"] == os.uname().release,
         "this host", run.stderr)


with tempfile.TemporaryDirectory() as tmp:
    for test in (test_all_is_well, test_distance, test_kernel, test_limits, test_rdma,
                 test_drivers, test_hostile):
        t.run(test, f"{tmp}/{test.__name__}")
    t.run(test_this_host)
t.done()
