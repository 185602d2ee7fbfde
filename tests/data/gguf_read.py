# SPDX-License-Identifier: MIT
"""Read a GGUF file: metadata into a dict, tensors into float32 arrays. Needs numpy.

Types F32, F16, BF16 and Q8_0. Written apart from gguf_write.py on purpose: an
error in one of them shows as a disagreement.
"""

import struct

import numpy as np

SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?",
           10: "<Q", 11: "<q", 12: "<d"}
STRING, ARRAY = 8, 9


class Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def scalar(self, fmt):
        value, = struct.unpack_from(fmt, self.data, self.at)
        self.at += struct.calcsize(fmt)
        return value

    def string(self):
        size = self.scalar("<Q")
        raw = self.data[self.at:self.at + size]
        self.at += size
        return raw.decode("utf-8")

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            kind = self.scalar("<I")
            return [self.value(kind) for _ in range(self.scalar("<Q"))]
        return self.scalar(SCALARS[kind])


def dequantize(kind, raw, count):
    """@count weights of GGML type @kind as float32."""
    if kind == 0:
        return np.frombuffer(raw, "<f4", count)
    if kind == 1:
        return np.frombuffer(raw, "<f2", count).astype(np.float32)
    if kind == 30:
        return (np.frombuffer(raw, "<u2", count).astype(np.uint32) << 16).view(np.float32)
    if kind == 8:
        blocks = np.frombuffer(raw, [("d", "<f2"), ("q", "i1", 32)], count // 32)
        return (blocks["d"].astype(np.float32)[:, None] * blocks["q"]).reshape(-1)
    raise ValueError(f"tensor type {kind} is none of F32, F16, BF16, Q8_0")


def read(path):
    """(metadata, tensors) of the file at @path."""
    with open(path, "rb") as file:
        cur = Cursor(file.read())
    if cur.data[:4] != b"GGUF":
        raise ValueError(f"{path}: not a GGUF file")
    cur.at = 4
    version, n_tensors, n_pairs = (cur.scalar(f) for f in ("<I", "<Q", "<Q"))
    if version != 3:
        raise ValueError(f"{path}: GGUF version {version}, only 3 is read")
    meta = {}
    for _ in range(n_pairs):
        key = cur.string()
        meta[key] = cur.value(cur.scalar("<I"))
    infos = []
    for _ in range(n_tensors):
        name = cur.string()
        dims = [cur.scalar("<Q") for _ in range(cur.scalar("<I"))]
        infos.append((name, dims, cur.scalar("<I"), cur.scalar("<Q")))
    align = meta.get("general.alignment", 32)
    base = (cur.at + align - 1) // align * align
    tensors = {}
    for name, dims, kind, offset in infos:
        flat = dequantize(kind, memoryview(cur.data)[base + offset:], int(np.prod(dims)))
        tensors[name] = flat.reshape(dims[::-1])
    return meta, tensors
