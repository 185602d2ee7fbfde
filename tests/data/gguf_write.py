# SPDX-License-Identifier: MIT
"""A small GGUF version 3 writer: metadata, F32 and Q8_0 tensors. Needs numpy.

A file is, in little-endian order:
  "GGUF", u32 version, u64 number of tensors, u64 number of metadata pairs;
  per pair: string key, u32 type, value (a string is u64 length + bytes; an array
  is u32 element type, u64 count, elements);
  per tensor: string name, u32 number of dimensions, u64 each (fastest first),
  u32 type, u64 offset into the data;
  padding to 32, then the data of the tensors, each padded to 32.
"""

import struct

import numpy as np

VERSION, ALIGN = 3, 32
U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
TENSOR_F32, TENSOR_Q8_0 = 0, 8
Q8_BLOCK = 32


def quantize_q8_0(rows):
    """Blocks of 32 weights: one fp16 scale, then 32 int8. Rows must be multiples of 32."""
    if rows.shape[-1] % Q8_BLOCK:
        raise ValueError(f"row of {rows.shape[-1]} is not a multiple of {Q8_BLOCK}")
    blocks = rows.astype(np.float32).reshape(-1, Q8_BLOCK)
    scale = (np.abs(blocks).max(axis=1) / 127).astype(np.float16)
    safe = np.where(scale > 0, scale, 1).astype(np.float32)
    out = np.zeros(len(blocks), dtype=[("d", "<f2"), ("q", "i1", Q8_BLOCK)])
    out["d"] = scale
    # The scale was rounded to fp16, so the largest weight may land just past 127.
    out["q"] = np.clip(np.rint(blocks / safe[:, None]), -127, 127)
    return out.tobytes()


def string(text):
    raw = text.encode("utf-8")
    return struct.pack("<Q", len(raw)) + raw


def scalar(kind, value):
    if kind == STRING:
        return string(value)
    return struct.pack({U32: "<I", I32: "<i", F32: "<f", BOOL: "<?"}[kind], value)


def padded(data):
    return data + bytes(-len(data) % ALIGN)


class Writer:
    def __init__(self):
        self.pairs, self.tensors = [], []

    def add(self, key, kind, value):
        self.pairs.append(string(key) + struct.pack("<I", kind) + scalar(kind, value))

    def add_array(self, key, kind, values):
        self.pairs.append(string(key) + struct.pack("<IIQ", ARRAY, kind, len(values))
                          + b"".join(scalar(kind, v) for v in values))

    def add_tensor(self, name, array):
        """Matrices are stored as Q8_0, vectors (norm weights) as F32."""
        if array.ndim == 1:
            kind, data = TENSOR_F32, array.astype("<f4").tobytes()
        else:
            kind, data = TENSOR_Q8_0, quantize_q8_0(array)
        self.tensors.append((name, array.shape[::-1], kind, data))

    def write(self, path):
        head = [b"GGUF", struct.pack("<IQQ", VERSION, len(self.tensors), len(self.pairs))]
        head += self.pairs
        offset = 0
        for name, dims, kind, data in self.tensors:
            head.append(string(name) + struct.pack("<I", len(dims))
                        + struct.pack(f"<{len(dims)}QIQ", *dims, kind, offset))
            offset += len(padded(data))
        with open(path, "wb") as out:
            out.write(padded(b"".join(head)))
            for *_, data in self.tensors:
                out.write(padded(data))
