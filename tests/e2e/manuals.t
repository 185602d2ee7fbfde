#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Every program has a manual page, pages are well formed, and what --help, the manual
and the source say of options is the same."""

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
BIN = TOP / "build/bin"
# Folders with the sources of a program's options
SOURCES = {"hawkd": "daemon", "hawk-exec": "daemon/exec", "hawkctl": "tools/hawkctl",
           "hawk-sim": "tools/hawk-sim", "hawk-npu": "firmware-models/npu"}
GUEST_ONLY = "-init"    # scripts that only the lab's VM can run
LONG_OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*)")
GETOPT = re.compile(r'\{ "([a-z-]+)", (?:no|required|optional)_argument')
CASE_LABEL = re.compile(r"^\s*--([a-z-]+)(?:=\*)?[)|]", re.M)

REFERENCE = re.compile(r"^\.Xr ((?:lib)?hawk[\w-]*) (\d)", re.M)

t = tap.Tap()


def run(*argv, **env):
    return subprocess.run([str(arg) for arg in argv], capture_output=True, text=True, cwd=TOP,
                          stdin=subprocess.DEVNULL, env=os.environ | env)


def pages():
    found = (p for p in TOP.rglob("*.[1-8]") if "build" not in p.relative_to(TOP).parts)
    return sorted(found, key=str)


def tools():
    """Programs and scripts that people start."""
    scripts = (p for p in sorted((TOP / "tools").rglob("*"))
               if p.is_file() and os.access(p, os.X_OK) and not p.name.endswith(GUEST_ONLY))
    return [*sorted(BIN.iterdir()), *scripts, TOP / "tests/bench/bench.py"]


def check_page(page):
    name = page.relative_to(TOP)
    lint = run("man", "--warnings", "-E", "UTF-8", "-l", page, MANPAGER="cat")
    t.equal(lint.stderr, "", f"man has nothing to say against {name}")
    if shutil.which("mandoc"):
        lint = run("mandoc", "-T", "lint", "-W", "warning", page)
        t.equal(lint.stdout, "", f"nor mandoc, {name}")
    else:
        t.skip(f"nor mandoc, {name}", "mandoc is not installed")


def check_references(found):
    """Names of our own that pages refer to are pages, or functions that a page describes."""
    have = {(page.stem, page.suffix[1:]) for page in found}
    for page in found:
        names = page.read_text().split(".Sh NAME", 1)[1].split(".Nd", 1)[0]
        have |= {(name, page.suffix[1:]) for name in re.findall(r"^\.Nm (\w+)", names, re.M)}
    dead = [f"{page.name}: {name}({section})" for page in found
            for name, section in REFERENCE.findall(page.read_text())
            if (name, section) not in have]
    t.equal(dead, [], "references between the pages lead somewhere")


def options_in_source(tool):
    """Options that the code takes, where that can be read from it."""
    if tool.name in SOURCES:
        files = (TOP / SOURCES[tool.name]).glob("*.c")
        return set(GETOPT.findall("".join(f.read_text() for f in files)))
    text = tool.read_text()
    return set(CASE_LABEL.findall(text)) if text.startswith("#!/bin/sh") else set()


def check_help(tool):
    name = tool.relative_to(TOP)
    answer = run(tool, "--help")
    t.ok(answer.returncode == 0 and "usage:" in answer.stdout.lower() and not answer.stderr,
         f"{name} --help", f"status {answer.returncode}\n{answer.stdout}{answer.stderr}")
    named = set(LONG_OPTION.findall(answer.stdout))
    t.equal(sorted(options_in_source(tool) - named - {"help"}), [], f"{name} names its options")
    bad = run(tool, "--no-such-option")
    t.ok(bad.returncode > 0 and bad.stderr, f"{name} refuses unknown options",
         f"status {bad.returncode}\n{bad.stdout}{bad.stderr}")
    return named


def check_manual(tool, named, manuals):
    name = tool.relative_to(TOP)
    if not t.ok(tool.name in manuals, f"{name} has a manual page"):
        return
    text = run("man", "-E", "UTF-8", "-l", manuals[tool.name], MANPAGER="cat", MANWIDTH="100",
               MAN_KEEP_FORMATTING="").stdout
    missing = named - set(LONG_OPTION.findall(text)) - {"help", "version"}
    t.equal(sorted(missing), [], f"which has the options of {name} --help")


if not BIN.is_dir():
    tap.skip_all("nothing is built; run make")
for page in pages():
    check_page(page)
check_references(pages())
manuals = {page.stem: page for page in pages()}
for tool in tools():
    named = check_help(tool)
    if tool.parent == BIN or tool.stem in manuals:
        check_manual(tool, named, manuals)
t.done()
