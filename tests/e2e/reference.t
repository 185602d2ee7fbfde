#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The reference pages are complete: hawk(4) and hawk_ioctl(4) name every call, structure and
constant of uapi/hawk.h, and every function that libhawk exports has a manual page."""

import pathlib
import re
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "lib"))

import abi  # noqa: E402
import tap  # noqa: E402

TOP = HERE.parents[1]
MAP = TOP / "libhawk/libhawk.map"
# Pages of a section name functions so
PAGE_NAME = re.compile(r"^\.Nm (\w+)", re.M)

t = tap.Tap()


def device_page():
    pages = [(TOP / "kmod/man" / page).read_text() for page in ("hawk.4", "hawk_ioctl.4")]
    words = set(re.findall(r"\w+", " ".join(pages)))
    names = {re.sub(r"^struct |\(.*", "", name) for name, _ in abi.names()
             if not name.startswith("member ")}
    t.ok(len(names) > 100, f"{len(names)} names in uapi/hawk.h")
    t.equal(sorted(names - words), [], "the pages have each of them")
    meant = {w for w in words if re.match(r"HAWK_(IOC|FEAT|BATCH|ITEM|TIER|MMAP|CQE)_\w", w)}
    t.equal(sorted(meant - names), [], "and none that is not there")


def library_pages():
    symbols = set(re.findall(r"^\t(hawk_\w+);", MAP.read_text(), re.M))
    t.ok(len(symbols) > 20, f"{len(symbols)} functions are exported")
    described, shown = set(), set()
    for page in (TOP / "libhawk/man").glob("*.3"):
        text = page.read_text()
        names = text.split(".Sh NAME", 1)[1].split(".Nd", 1)[0]
        described |= set(PAGE_NAME.findall(names))
        shown |= set(re.findall(r"^\.(?:Fn|Fo) (\w+)", text.split(".Sh DESCRIPTION")[0], re.M))
    t.equal(sorted(symbols - described), [], "each is named by a page")
    t.equal(sorted(symbols - shown), [], "with its prototype")
    t.equal(sorted(shown - symbols - static_inlines()), [], "no page shows what is not exported")
    header = headers()
    undeclared = [s for s in symbols if not re.search(rf"\b{s}\(", header)]
    t.equal(sorted(undeclared), [], "each is declared in a header of hawk/")


def headers():
    return "".join(h.read_text() for h in sorted((TOP / "libhawk/include/hawk").glob("*.h")))


def static_inlines():
    return set(re.findall(r"^static inline [\w *]*?(hawk_\w+)\(", headers(), re.M))


device_page()
library_pages()
t.done()
