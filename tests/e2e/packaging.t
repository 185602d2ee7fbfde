#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What make install puts on a host: units, udev rule, group, module configuration. They are
whole, systemd and modprobe understand them, hawk-tiers does what its unit promises, and in
the VM the node belongs to the group hawk.

	HAWK_PACKAGING_KERNEL	lab kernel of the VM (6.1)"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "lib"))

import tap  # noqa: E402

TOP = HERE.parents[1]
ROOT = TOP / "build/packaging-root"     # the VM has a /tmp of its own
KERNEL = os.environ.get("HAWK_PACKAGING_KERNEL", "6.1")
FILES = """
lib/udev/rules.d/60-hawk.rules lib/sysusers.d/hawk.conf lib/modules-load.d/hawk.conf
lib/systemd/system/hawk-tiers.service lib/systemd/system/hawkd.service lib/hawk/hawk-tiers
share/doc/hawk/tiers.conf share/doc/hawk/modprobe.conf share/doc/hawk/hawkd.env
share/man/man4/hawk.4 share/man/man4/hawk_ioctl.4 share/man/man4/hawk_npu.4
share/man/man8/hawkd.8 share/man/man8/hawkctl.8 sbin/hawkd sbin/hawkctl
""".split()
# What systemd-analyze security may say at most, of 10; hawkd listens, so it has an address
EXPOSURE = {"hawkd.service": 2.5, "hawk-tiers.service": 5.0}
IN_GUEST = """
root=$1
cp $root/lib/udev/rules.d/60-hawk.rules /etc/udev/rules.d/
systemd-sysusers $root/lib/sysusers.d/hawk.conf
systemd_udevd=$(command -v systemd-udevd || echo /lib/systemd/systemd-udevd)
echo before $(stat -c '%G %a' /dev/hawk)
$systemd_udevd --daemon
udevadm trigger --action=add /sys/class/misc/hawk
udevadm settle
echo after $(stat -c '%G %a' /dev/hawk)
udevadm info /dev/hawk | grep -o 'TAGS=.*'
printf '# comment\\n\\nhost 8M 0\\nhost 4M\\n' >/tmp/tiers.conf
export HAWKCTL=$root/sbin/hawkctl
tiers=$root/lib/hawk/hawk-tiers
$tiers --config /tmp/tiers.conf --state /tmp/state add; echo add $?
$HAWKCTL tier list
$tiers --config /tmp/tiers.conf --state /tmp/state remove; echo remove $?
$HAWKCTL --json tier list
"""

t = tap.Tap()


def run(*argv, **kwargs):
    return subprocess.run([str(a) for a in argv], capture_output=True, text=True, cwd=TOP,
                          stdin=subprocess.DEVNULL, **kwargs)


def test_install():
    shutil.rmtree(ROOT, ignore_errors=True)
    # PREFIX is the scratch folder itself, so that paths in the units lead somewhere
    done = run("make", "-s", "install", f"PREFIX={ROOT}")
    missing = [f for f in FILES if not (ROOT / f).is_file()]
    t.ok(done.returncode == 0 and not missing, "make install", f"missing {missing}\n{done.stderr}")
    left = [str(p) for p in ROOT.rglob("*.service") if re.search(r"@[A-Z]+@", p.read_text())]
    t.equal(left, [], "no placeholder is left in a unit")


def test_systemd():
    if not shutil.which("systemd-analyze"):
        raise tap.Skip("systemd-analyze is not installed")
    for unit, limit in EXPOSURE.items():
        path = ROOT / "lib/systemd/system" / unit
        said = run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", path).stderr
        ours = [line for line in said.splitlines() if unit in line]
        t.equal(ours, [], f"systemd has nothing to say against {unit}")
        done = run("systemd-analyze", "security", "--offline=yes", "--no-pager",
                   f"--threshold={limit * 10:.0f}", path)
        level = re.search(r"exposure level for \S+: ([\d.]+)", done.stdout)
        t.ok(done.returncode == 0 and level, f"{unit}: exposure at most {limit}", done.stdout)
        t.note(f"{unit}: exposure {level[1] if level else '?'}")


def test_group():
    if not shutil.which("systemd-sysusers"):
        raise tap.Skip("systemd-sysusers is not installed")
    fake = ROOT / "fake"
    (fake / "etc").mkdir(parents=True)
    done = run("systemd-sysusers", f"--root={fake}", "--replace=/usr/lib/sysusers.d/hawk.conf",
               ROOT / "lib/sysusers.d/hawk.conf")
    groups = (fake / "etc/group").read_text() if (fake / "etc/group").exists() else ""
    t.ok(re.search(r"^hawk:x?:\d+:", groups, re.M), "systemd-sysusers makes the group hawk",
         done.stderr + groups)


def test_modprobe():
    """The example is understood, and names no parameter that the module does not have."""
    conf = ROOT / "share/doc/hawk/modprobe.conf"
    done = run("modprobe", "-C", conf, "-c")
    t.ok("softdep hawk pre: nvme" in done.stdout and not done.stderr, "modprobe reads the example",
         done.stdout[-300:] + done.stderr)
    named = re.findall(r"^#?options hawk (\w+)", conf.read_text(), re.M)
    sources = "".join(p.read_text() for p in (TOP / "kmod").glob("*.c"))
    have = re.findall(r"^module_param(?:_named)?\((\w+)", sources, re.M)
    t.equal(sorted(set(named) ^ set(have)), [], "it tells of every parameter, and of no other")


def fake_hawkctl(script):
    path = ROOT / "hawkctl-fake"
    path.write_text(f'#!/bin/sh\necho "$*" >>{ROOT}/calls\n{script}\n')
    path.chmod(0o755)
    (ROOT / "calls").unlink(missing_ok=True)
    return {**os.environ, "HAWKCTL": str(path)}


def tiers(mode, config, env):
    (ROOT / "tiers.conf").write_text(config)
    done = run(ROOT / "lib/hawk/hawk-tiers", "--config", ROOT / "tiers.conf", "--state",
               ROOT / "state", mode, env=env)
    calls = (ROOT / "calls").read_text().splitlines() if (ROOT / "calls").exists() else []
    return done.returncode, calls, done.stderr


def test_hawk_tiers():
    config = "# all\n\nhost 8G 0\nhost 1G\nblk /dev/nvme0n1\nblk /var/flash 64G\n"
    count = f'case "$*" in *add*) wc -l <{ROOT}/calls;; esac'
    status, calls, _ = tiers("add", config, fake_hawkctl(count))
    t.equal((status, calls), (0, ["--node 0 tier add-host 8G", "tier add-host 1G",
                                  "tier add-blk /dev/nvme0n1", "--size 64G tier add-blk /var/flash"]),
            "every line of the configuration becomes a tier")
    status, calls, said = tiers("add", config, fake_hawkctl(count))
    t.ok(status and not calls and "already" in said, "they are not added twice", said)
    busy = fake_hawkctl('[ "$*" != "tier del 3" ]')
    status, calls, said = tiers("remove", config, busy)
    t.equal((status, calls, "not removed: tier 3" in said),
            (1, ["tier del 4", "tier del 3", "tier del 2", "tier del 1"], True),
            "they are removed, last first; one in use stays and is named")
    status, calls, _ = tiers("remove", config, fake_hawkctl("exit 0"))
    t.equal((status, calls), (0, ["tier del 3"]), "and goes next time")
    fails = fake_hawkctl(f'case "$*" in *nvme*) exit 1;; *add*) wc -l <{ROOT}/calls;; esac')
    status, calls, said = tiers("add", config, fails)
    t.ok(status and calls[-2:] == ["tier del 2", "tier del 1"]
         and 'cannot add "blk /dev/nvme0n1"' in said, "when one fails, the others are taken back",
         f"{calls}\n{said}")
    for bad in ("disk /dev/sda\n", "host\n", "host 1G 0 extra\n"):
        status, calls, said = tiers("add", bad, fake_hawkctl("exit 0"))
        t.ok(status and not calls and "tiers.conf" in said, f"refused: {bad.strip()}", said)


def test_vm():
    """Real udev, real module, real hawkctl."""
    lab = TOP / "tools/lab/hawk-lab"
    if run(lab, "status").returncode:
        raise tap.Skip("the lab does not work here")
    if not (TOP / f"build/kmod-{KERNEL}/hawk.ko").exists():
        raise tap.Skip(f"hawk.ko is not built for {KERNEL} (tools/lab/build-module)")
    done = run(lab, "run", "--kernel", KERNEL, "--quiet", "--check-log", "--timeout", "300", "--",
               "sh", "-c", IN_GUEST, "sh", ROOT)
    out = done.stdout
    t.ok(done.returncode == 0, "the VM's run, kernel log clean", out + done.stderr)
    t.ok("before root 660" in out and "after hawk 660" in out,
         "udev gives /dev/hawk to the group hawk, mode 0660", out)
    t.ok(re.search(r"TAGS=.*systemd", out), "and shows it to systemd", out)
    t.ok("add 0" in out and out.count(" host ") == 2, "hawk-tiers adds two tiers", out)
    t.ok("remove 0" in out and out.rstrip().endswith("]")
         and '"tier"' not in out.split("remove 0")[1], "and removes them", out)


test_install()
for test in (test_systemd, test_group, test_modprobe, test_hawk_tiers, test_vm):
    t.run(test)
shutil.rmtree(ROOT, ignore_errors=True)
t.done()
