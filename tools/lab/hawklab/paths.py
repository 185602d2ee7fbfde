# SPDX-License-Identifier: MIT
"""Where the lab finds its own files and keeps what it downloads."""

import os
from pathlib import Path

LAB_DIR = Path(__file__).resolve().parent.parent
REPO_DIR = LAB_DIR.parent.parent


def cache_dir():
    """The cache folder, outside the source tree: $HAWK_CACHE or ~/.cache/hawk."""
    path = os.environ.get("HAWK_CACHE") or os.path.join(Path.home(), ".cache", "hawk")
    return Path(path).absolute()


def module_path(kernel):
    """Where tools/lab/build-module leaves the module built for a kernel."""
    return REPO_DIR / "build" / f"kmod-{kernel}" / "hawk.ko"
