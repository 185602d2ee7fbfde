#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The tree keeps its own rules: licences, folders, links, no trace of a machine."""

import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "lib"))

import tap  # noqa: E402

TOP = HERE.parents[1]
FOLDERS = {"uapi", "kmod", "libhawk", "daemon", "firmware-models", "tools", "tests"}
TOP_LEVEL = FOLDERS | {".ci", ".clang-format", ".editorconfig", ".gitignore", "CONTRIBUTING.md",
                       "COPYING", "Kbuild", "LICENSES", "Makefile", "README.md"}
NO_README = {".ci", "LICENSES"}
# Formats without comments, texts, licences
NO_SPDX = re.compile(r"\.(md|json|gguf)$|^COPYING$|^LICENSES/|^kmod/Documentation/ABI/")
DATA = re.compile(r"\.(json|gguf)$|^LICENSES/")
# Licences as COPYING lists them, the longest prefix counts
LICENCES = {"": "MIT", "kmod/": "GPL-2.0", "kmod/core/": "GPL-2.0 OR MIT", "Kbuild": "GPL-2.0",
            "firmware-models/": "GPL-2.0",
            "uapi/": "GPL-2.0 WITH Linux-syscall-note", "tests/kselftest/": "GPL-2.0",
            "tools/bpf/": "GPL-2.0"}
LINES_MAX = 1000
LINES_MAX_OF = {"uapi/hawk.h": 2000}  # the ABI is one header, and mostly words
# Folders of somebody's machine
HOMES = re.compile(r"(?<![\w./{}$-])/(?:root|home|Users)/[\w.]")
# Package registries and mirrors are the user's to choose: no public host is named at all
HOSTS = re.compile(r"\b(?:[a-z0-9-]+\.)+(?:org|com|net|io|cn)\b(?![\w(])")
NAMESPACES = {"www.w3.org"}  # of SVG: nothing is fetched from there
LINK = re.compile(r"\[[^]]*\]\(([^)#\s]+)[^)]*\)")
QUOTED_PATH = re.compile(rf"`((?:{'|'.join(FOLDERS)})/[\w./-]+)`")

t = tap.Tap()


def git(*args):
    try:
        run = subprocess.run(["git", "-c", f"safe.directory={TOP}", *args], cwd=TOP,
                             capture_output=True, text=True)
    except FileNotFoundError:
        tap.skip_all("git is not installed")
    return run.stdout if run.returncode == 0 else ""


def tracked():
    return [name for name in git("ls-files", "-z").split("\0") if (TOP / name).is_file()]


def none(strange, name):
    """Passes when the list is empty and shows it otherwise."""
    t.ok(not strange, name, "\n".join(strange))


def licence_of(name):
    return LICENCES[max((p for p in LICENCES if name.startswith(p)), key=len)]


def spdx(files):
    wrong = []
    for name, text in files.items():
        if NO_SPDX.search(name):
            continue
        head = "\n".join(text.split("\n")[:3])
        found = re.search(r"SPDX-License-Identifier: (.*?)(?: \*/| -->|)$", head, re.M)
        if not found or found[1].strip('"') != licence_of(name):
            wrong.append(f"{name}: {found[1] if found else 'none'}, wanted {licence_of(name)}")
    none(wrong, "every file names its licence, the one that COPYING gives its folder")


def folders(files):
    none(sorted({name.split("/")[0] for name in files} - TOP_LEVEL),
         "nothing else at the top level")
    wrong = []
    for name in files:
        for path in pathlib.PurePath(name).parents:
            depth = len(path.parts)
            above = files.get(f"{path.parent}/README.md", "") if depth == 2 else ""
            if not (depth not in (1, 2) or path.parts[0] in NO_README
                    or f"{path}/README.md" in files
                    or re.search(rf"(?<!\w){re.escape(path.name)}(?!\w)", above)):
                wrong.append(str(path))
    none(sorted(set(wrong)), "folders of two levels have a README.md or are in their parent's")


def contents(files):
    source = {n: text for n, text in files.items() if not DATA.search(n)}
    none([n for n, text in source.items()
          if text.count("\n") > LINES_MAX_OF.get(n, LINES_MAX)],
         f"no file has over {LINES_MAX} lines")
    none([n for n, text in source.items() if text and not text.endswith("\n")
          or re.search(r"[ \t]$", text, re.M)], "no trailing blanks, a newline at the end")
    none([f"{n}: {m[0]}" for n, text in source.items() for m in HOMES.finditer(text)]
         + [n for n, text in source.items() if len(TOP.parts) > 2 and f"{TOP}/" in text],
         "no path of a machine")
    none([f"{n}: {m[0]}" for n, text in source.items() for m in HOSTS.finditer(text)
          if m[0] not in NAMESPACES],
         "no name of a host")
    none([n for n, text in files.items() if bool((TOP / n).stat().st_mode & 0o100)
          != text.startswith("#!")],
         "scripts are executable, nothing else is")


def links(files):
    wrong = []
    for name, text in files.items():
        if not name.endswith(".md"):
            continue
        for target in LINK.findall(text):
            if not re.match(r"\w+:", target) and not (TOP / name).parent.joinpath(target).exists():
                wrong.append(f"{name}: {target}")
        for path in QUOTED_PATH.findall(text):
            if not (TOP / path).exists():
                wrong.append(f"{name}: `{path}`")
    none(wrong, "links and paths in *.md lead somewhere")


names = tracked()
if not names:
    tap.skip_all("not a git checkout")
tree = {name: (TOP / name).read_text(encoding="utf-8", errors="replace") for name in names}
spdx(tree)
folders(tree)
contents(tree)
links(tree)
t.done()
