# SPDX-License-Identifier: MIT
"""Unpacks a bzImage into the vmlinux inside it.

QEMU starts a vmlinux with a PVH entry directly. That spares the guest unpacking
itself, which under emulation is most of the time before the first kernel message.
"""

import lzma
import re
import struct
import subprocess
import zlib

from . import LabError

# Fields of the x86 boot header (Documentation/arch/x86/boot.rst).
SETUP_SECTS = 0x1F1
HEADER_MAGIC = 0x202
PAYLOAD_OFFSET = 0x248
PAYLOAD_LENGTH = 0x24C
SECTOR = 512
SIZE_FIELD = 4      # the payload ends with its unpacked size, which is no part of the stream

# ELF note "Xen", type 18 (XEN_ELFNOTE_PHYS32_ENTRY): the PVH entry point.
PVH_NOTE = re.compile(rb"\x04\0\0\0[\x04\x08]\0\0\0\x12\0\0\0Xen\0")


def unzstd(data):
    try:
        return subprocess.run(["zstd", "-q", "-d", "-c"], input=data[:-SIZE_FIELD],
                              stdout=subprocess.PIPE, check=True).stdout
    except FileNotFoundError:
        raise LabError("zstd is missing; run tools/setup/install-deps lab") from None
    except subprocess.CalledProcessError as err:
        raise LabError(f"zstd exited {err.returncode} on the kernel's payload") from None


UNPACK = {
    b"\xfd7zXZ": lambda data: lzma.LZMADecompressor().decompress(data),
    b"\x1f\x8b": lambda data: zlib.decompressobj(wbits=31).decompress(data),
    b"\x28\xb5\x2f\xfd": unzstd,
}


def vmlinux(bzimage):
    """The vmlinux in a bzImage's bytes if QEMU can start it directly, else None."""
    if bzimage[HEADER_MAGIC:HEADER_MAGIC + 4] != b"HdrS":
        return None
    start = (bzimage[SETUP_SECTS] + 1) * SECTOR
    offset, length = struct.unpack_from("<II", bzimage, PAYLOAD_OFFSET)
    payload = bzimage[start + offset:start + offset + length]
    unpack = next((f for magic, f in UNPACK.items() if payload.startswith(magic)), None)
    data = unpack(payload) if unpack else b""
    return data if PVH_NOTE.search(data) else None
