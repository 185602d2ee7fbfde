# SPDX-License-Identifier: MIT
"""The parts of hawk-lab: kernels, initramfs, QEMU and the run loop."""


class LabError(Exception):
    """The lab itself cannot go on; the message tells a person what to do."""
