#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What hawkd refuses to start with, and what it says: bad models, bad memory, bad
options. Each must end with status 1 or 2 and name the cause; none may crash."""

import json
import os
import pathlib
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))

import serve  # noqa: E402
import tap  # noqa: E402

t = tap.Tap()
KV = "embed:?dram=8M"


def refused(name, status, words, *argv, wrap=()):
    got, said = serve.start_fails(*argv, wrap=wrap)
    t.ok(got == status and all(w in said for w in words), f"{name}: refused with the cause",
         f"status {got}, wanted {status} and {words}\n{said}")


def patched(data, offset, fmt, value):
    out = bytearray(data)
    struct.pack_into(fmt, out, offset, value)
    return bytes(out)


def hostile(data):
    """(name, words of the cause, bytes) of files that are no model. Header: magic, u32
    version, u64 tensors, u64 keys; the first key's length follows at byte 24."""
    key_len, = struct.unpack_from("<Q", data, 24)
    first_type = 32 + key_len
    yield "an empty file", "empty", b""
    yield "four bytes", "truncated", data[:4]
    yield "a header cut short", "truncated", data[:20]
    yield "metadata cut short", "truncated", data[:2000]
    yield "half a file", "truncated", data[:len(data) // 2]
    yield "the last byte missing", "truncated", data[:-1]
    yield "not a GGUF file", "not a GGUF", b"\x7fELF" + data[4:]
    yield "a version from the future", "version 99", patched(data, 4, "<I", 99)
    yield "2^60 tensors", "1152921504606846976 tensors", patched(data, 8, "<Q", 1 << 60)
    yield "2^64 - 1 keys", "18446744073709551615 keys", patched(data, 16, "<Q", (1 << 64) - 1)
    yield "a key of 2^63 bytes", "9223372036854775808", patched(data, 24, "<Q", 1 << 63)
    yield "a value of an unknown type", "unknown value type 77", patched(data, first_type, "<I", 77)
    yield "no keys", "corrupt", patched(data, 16, "<Q", 0)
    at = data.index(b"token_embd.weight") + len("token_embd.weight")
    yield "a tensor with 2^31 dimensions", "dimensions", patched(data, at, "<I", 1 << 31)
    yield ("a dimension whose size overflows", "overflows",
           patched(data, at + 4, "<Q", (1 << 62) + 1))
    dims, = struct.unpack_from("<I", data, at)
    yield "a tensor of an unknown type", "type 999", patched(data, at + 4 + 8 * dims, "<I", 999)
    yield ("a tensor beyond the file", "truncated or corrupt",
           patched(data, at + 8 + 8 * dims, "<Q", 1 << 50))


def test_models(folder):
    data = pathlib.Path(serve.MODEL).read_bytes()
    for i, (name, words, content) in enumerate(hostile(data)):
        path = pathlib.Path(folder, f"bad{i}.gguf")
        path.write_bytes(content)
        refused(name, 1, [path.name, words], "--model", str(path), "--kv", KV)
    refused("no such file", 1, ["none.gguf", "No such file"], "--model", f"{folder}/none.gguf")
    refused("a folder", 1, [folder], "--model", folder)


def test_memory(folder):
    model = ("--model", serve.MODEL, "--listen", "127.0.0.1:0")
    flash = f"embed:?dram=8M&flash={folder}/kv"
    refused("a flash file too small", 1, ["flash_size", "2097152"],
            *model, "--kv", f"{flash}&flash_size=1M")
    refused("flash in a folder that is not there", 1, ["nodir/kv", "No such file"],
            *model, "--kv", f"embed:?flash={folder}/nodir/kv&flash_size=8M")
    refused("a folder as flash", 1, ["neither a block device nor a regular file"],
            *model, "--kv", f"embed:?flash={folder}&flash_size=8M")
    refused("no device", 1, ["/dev/no-hawk", "No such file"], *model, "--kv", "dev:/dev/no-hawk")
    refused("not a KV URL", 1, ["redis:"], *model, "--kv", "redis://x")
    refused("an unknown option in the URL", 1, ["colour"], *model, "--kv", "embed:?colour=red")
    refused("a block larger than a chunk", 1, ["--block-tokens"],
            *model, "--kv", KV, "--block-tokens", "1024", "--kv-dtype", "f32")


def in_mount(options, command):
    """argv that runs a command with a tmpfs mounted on /mnt, in a namespace of its own."""
    return ["unshare", "-m", "sh", "-ec", f"mount -t tmpfs {options} none /mnt; "
            f"{command}; exec \"$@\"", "sh"]


def test_file_systems(_):
    if subprocess.run(in_mount("", ":") + ["true"], capture_output=True, check=False).returncode:
        raise tap.Skip("mounting a file system needs root")
    model = ("--model", serve.MODEL, "--listen", "127.0.0.1:0")
    kv = "embed:?dram=8M&flash=/mnt/kv&flash_size=16M"
    refused("flash on a read-only file system", 1, ["/mnt/kv", "Read-only"], *model, "--kv", kv,
            wrap=in_mount("-o size=32m", "mount -o remount,ro /mnt"))
    refused("flash on a full file system", 1, ["/mnt/kv", "No space"], *model, "--kv", kv,
            wrap=in_mount("-o size=4m", ":"))


def test_options(folder):
    model = ("--model", serve.MODEL, "--kv", KV)
    refused("no model", 2, ["--model"])
    refused("an unknown option", 2, ["--colour"], "--colour")
    refused("a stray argument", 2, ["stray"], *model, "stray")
    refused("--threads 0", 2, ["--threads"], *model, "--threads", "0")
    refused("--ctx as text", 2, ["--ctx"], *model, "--ctx", "many")
    refused("a step too small for its sequences", 2, ["--batch-tokens", "--max-seqs"], *model,
            "--batch-tokens", "8", "--max-seqs", "8")
    refused("a context beyond the model's", 1, ["--ctx"], *model, "--ctx", "1000000")
    refused("an instruction set that is not", 1, ["mmx"], *model, "--isa", "mmx")
    refused("an address that is none", 1, ["nonsense"], *model, "--listen", "nonsense")
    refused("no key file", 1, ["nokeys", "No such file"], *model, "--listen", "127.0.0.1:0",
            "--api-key-file", f"{folder}/nokeys")
    pathlib.Path(folder, "empty").write_text("# none\n")
    refused("a key file without keys", 1, ["no API key"], *model, "--listen", "127.0.0.1:0",
            "--api-key-file", f"{folder}/empty")
    with serve.start(KV) as server:
        refused("an address in use", 1, ["Address already in use"], *model, "--listen",
                f"127.0.0.1:{server.port}")
    for argv, word in ((["--help"], "Usage: hawkd"), (["--version"], "hawkd ")):
        done = subprocess.run([serve.HAWKD, *argv], capture_output=True, text=True, check=False)
        t.ok(done.returncode == 0 and done.stdout.startswith(word), f"{argv[0]} prints its text")


def test_unix_socket(folder):
    path = os.path.join(folder, "sock")
    daemon = subprocess.Popen([serve.HAWKD, "--model", serve.MODEL, "--kv", KV, "--listen",
                               f"unix:{path}"], stderr=subprocess.PIPE, text=True)
    for line in daemon.stderr:
        if "listening on" in line:
            break
    done = subprocess.run(["curl", "-s", "--unix-socket", path, "http://x/health"],
                          capture_output=True, text=True, check=False)
    t.equal(json.loads(done.stdout)["status"], "ok", "a UNIX socket serves")
    daemon.terminate()
    daemon.communicate()
    t.equal((daemon.returncode, os.path.exists(path)), (0, False), "and is gone at the end")


def ctl(*argv):
    return subprocess.run([serve.HAWKCTL, *argv], capture_output=True, text=True, check=False)


def test_hawkctl(folder):
    url = f"embed:?dram=8M&flash={folder}/ctl&flash_size=16M"
    tiers = json.loads(ctl("--kv", url, "--json", "tier", "list").stdout)
    t.equal([(x["kind"], x["bytes"]) for x in tiers], [("host", 8 << 20), ("blk", 16 << 20)],
            "hawkctl lists the tiers")
    info = json.loads(ctl("--kv", url, "--json", "info").stdout)
    t.equal(info["backend"], "embed", "hawkctl info names the backend")
    t.equal(json.loads(ctl("--kv", url, "--json", "tier", "add-host", "4M").stdout), {"tier": 2},
            "hawkctl adds a tier")
    t.equal(ctl("--kv", url, "tier", "del", "1").returncode, 0, "hawkctl removes one")
    for argv, word in ((["tier", "add-host", "1Q"], "1Q"), (["tier", "del", "9"], "9"),
                       (["stats", "nobody"], "nobody"), (["frobnicate"], "unknown command"),
                       (["tier", "add-blk", "/nonexistent"], "/nonexistent")):
        done = ctl("--kv", url, *argv)
        t.ok(done.returncode in (1, 2) and word in done.stderr,
             f"hawkctl {' '.join(argv)}: refused with the cause", done)


def main():
    if not os.path.exists(serve.MODEL):
        tap.skip_all(f"no model {serve.MODEL}")
    with serve.scratch() as folder:
        for test in (test_models, test_memory, test_file_systems, test_options,
                     test_unix_socket, test_hawkctl):
            t.run(test, folder)
    t.done()


if __name__ == "__main__":
    main()
