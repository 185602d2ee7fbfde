#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Keys of blocks, computed a second time: hawk_key(3)'s table as Python's hashlib carries it
out gives the page's test vectors, and the library's keys for histories drawn by lot with every
kind of operation."""

import ctypes
import hashlib
import os
import pathlib
import random
import re
import struct
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "lib"))

import tap  # noqa: E402

TOP = HERE.parents[1]
LIBRARY = TOP / "build/lib/libhawk.so.0"
SEED = int(os.environ.get("HAWK_SEED", "7"))
DROP, REPOS, SPARSE = 1, 2, 3
t = tap.Tap()


class Params(ctypes.Structure):
    """struct hawk_key_params"""
    _fields_ = [("salt", ctypes.c_char_p), ("salt_len", ctypes.c_size_t),
                *((name, ctypes.c_char_p)
                  for name in ("model", "revision", "dtype", "layout", "adapter")),
                *((name, ctypes.c_uint32) for name in ("block_tokens", "shard", "shard_count"))]


class Op(ctypes.Structure):
    """struct hawk_key_op"""
    _fields_ = [(name, ctypes.c_uint32) for name in ("kind", "at", "start", "end")]
    _fields_ += [("shift", ctypes.c_int32)]


# ---- the manual page's table ----

def integer(value):
    return struct.pack("<I", value & 0xffffffff)


def text(data):
    return integer(len(data)) + data


def digest(data, key=b""):
    return hashlib.blake2b(data, digest_size=32, key=key).digest()


def root_of(p):
    salt = digest(b"HAWKKEY1SALT" + text(p.salt or b""))
    names = (p.model, p.revision, p.dtype, p.layout, p.adapter)
    numbers = (p.block_tokens, p.shard, p.shard_count)
    return digest(b"HAWKKEY1ROOT" + b"".join(text(name or b"") for name in names)
                  + b"".join(map(integer, numbers)), salt)


def key_of(root, parent, tokens, ops):
    return digest(b"HAWKKEY1BLCK" + text(parent) + integer(len(tokens))
                  + b"".join(map(integer, tokens)) + integer(len(ops))
                  + b"".join(integer(value) for op in ops for value in op), root)


# ---- the library ----

lib = ctypes.CDLL(str(LIBRARY)) if LIBRARY.exists() else tap.skip_all("libhawk is not built (make)")


def lib_root(p):
    root = ctypes.create_string_buffer(32)
    assert lib.hawk_key_root(ctypes.byref(p), root) == 0
    return root.raw


def lib_key(root, parent, tokens, ops):
    key = ctypes.create_string_buffer(32)
    lib.hawk_key_next(root, parent or None, (ctypes.c_int32 * len(tokens))(*tokens), len(tokens),
                      (Op * len(ops))(*ops), len(ops), key)
    return key.raw


def test_vectors():
    p = Params(b"tenant 7", 8, b"llama-1b", b"1", b"f16", b"lhtd avx2", None, 4, 0, 0)
    root = root_of(p)
    first = key_of(root, b"", [1, 2, 3, 4], [])
    dropped = key_of(root, first, [5, 6, 7, 8], [(DROP, 6, 1, 3, 0), (REPOS, 6, 3, 6, 2)])
    sparse = key_of(root, first, [5, 6, 7, 8], [(SPARSE, 4, 2, 3, 16)])
    page = (TOP / "libhawk/man/hawk_key.3").read_text()
    t.equal(re.findall(r"^[0-9a-f]{64}$", page, re.M),
            [key.hex() for key in (root, first, dropped, sparse)],
            "hashlib gives the test vectors of hawk_key(3)")


def test_keys_drawn_by_lot():
    rng = random.Random(SEED)
    wrong, kinds = [], set()
    for chain in range(200):
        names = [bytes(rng.choices(range(1, 256), k=rng.randrange(12))) for _ in range(5)]
        salt = bytes(rng.choices(range(1, 256), k=rng.randrange(1, 40)))
        p = Params(salt, len(salt), b"m" + names[0], *names[1:], rng.randrange(1, 1 << 32),
                   3, rng.randrange(4, 1 << 32))
        root, parent = root_of(p), b""
        if lib_root(p) != root:
            wrong.append(f"root {chain}")
        for block in range(3):
            tokens = [rng.randrange(-1 << 31, 1 << 31) for _ in range(rng.randrange(1, 600))]
            ops = [(rng.choice((DROP, REPOS, SPARSE)), *(rng.randrange(1 << 32) for _ in range(3)),
                    rng.randrange(-1 << 31, 1 << 31)) for _ in range(rng.randrange(4))]
            kinds |= {op[0] for op in ops}
            key = key_of(root, parent, tokens, ops)
            if lib_key(root, parent, tokens, ops) != key:
                wrong.append(f"block {chain}.{block}")
            parent = key
    t.equal((wrong, kinds), ([], {DROP, REPOS, SPARSE}),
            f"600 keys of the library are those that hashlib computes (HAWK_SEED={SEED})")


t.run(test_vectors)
t.run(test_keys_drawn_by_lot)
t.done()
