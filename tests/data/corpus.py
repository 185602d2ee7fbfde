#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Extract English prose from the kernel documentation in Debian's linux-doc.

Input is the tree of the unpacked package (dpkg-deb -x), output one JSON object
a line: {"path", "split", "title", "sections": [{"level", "heading", "paragraphs"}]}.

What is taken: *.rst.gz and the few *.txt.gz at the top of Documentation/.
What is left out, and why:
  - files whose SPDX tag does not allow GPL-2.0 (the media books are GFDL only),
    so that one licence covers the whole corpus;
  - translations, device-tree bindings, feature matrices: not English prose;
  - tables, code, directives, field lists: a model of this size learns only
    their punctuation;
  - every paragraph and section title with a mail address in it.
The held-out split is by file: a hash of the path picks one file in 25.
"""

import argparse
import gzip
import hashlib
import json
import pathlib
import re
import sys

SKIP_DIRS = ("translations", "devicetree", "features", "ABI", "sphinx-static")
HELD_OUT_ONE_IN = 25

ADORNMENT = re.compile(r"^([=\-~^\"'#*+.:_`])\1{2,}$")
TABLE = re.compile(r"^\s*(\+[-=+]{3,}|\|.*\|\s*$|=+( +=+)+\s*$|-+( +-+)+\s*$)")
FIELD = re.compile(r"^:[\w ()/*-]+:( |$)")
BULLET = re.compile(r"^([-*+•]|\(?[0-9a-zA-Z#]{1,2}[.)])\s+(?=\S)")
ADMONITION = re.compile(r"^\.\. (note|warning|tip|important|caution|attention|hint)::\s*(.*)$")
SPDX = re.compile(r"SPDX-License-Identifier:\s*(.+)")

INLINE = [
    (re.compile(r"``([^`]+)``"), r"\1"),
    (re.compile(r":[\w:+-]+:`([^`<]+?)\s*<[^`>]*>`"), r"\1"),
    (re.compile(r":[\w:+-]+:`[~!]?([^`]+)`"), r"\1"),
    (re.compile(r"`([^`<]+?)\s*<[^`>]*>`__?"), r"\1"),
    (re.compile(r"`([^`]+)`_{0,2}"), r"\1"),
    (re.compile(r"\*\*([^*]+)\*\*"), r"\1"),
    (re.compile(r"(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])"), r"\1"),
    (re.compile(r"\s*\[[#\w]+\]_"), ""),
    (re.compile(r"\\([*_`|\\ ])"), r"\1"),
    (re.compile(r"\s+"), " "),
]


def licence_allows_gpl2(text):
    """True if the file has no tag (the package says GPL-2) or one naming GPL-2.0."""
    tag = SPDX.search(text[:2000])
    return tag is None or re.search(r"(?<!L)GPL-2\.0", tag.group(1)) is not None


def plain(text):
    """Strip reStructuredText inline markup and collapse white space."""
    for pattern, to in INLINE:
        text = pattern.sub(to, text)
    return text.strip()


def indent_of(line):
    return len(line) - len(line.lstrip(" "))


def is_prose(text):
    """A sentence: long enough, ends like one, mostly letters, no mail address."""
    if len(text) < 40 or text[-1] not in ".:!?)\"" or "@" in text:
        return False
    letters = sum(c.isalpha() or c == " " for c in text)
    return letters >= 0.86 * len(text)


class Parser:
    """Line-oriented reading of one document; see parse()."""

    def __init__(self, lines):
        self.lines = [line.rstrip().expandtabs(8) for line in lines]
        self.at = 0
        self.levels = []
        self.sections = [{"level": 0, "heading": "", "paragraphs": []}]

    def skip_deeper(self, indent):
        """Skip blank lines and all lines indented more than @indent."""
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if line and indent_of(line) <= indent:
                return
            self.at += 1

    def heading(self):
        """Consume a section title if one starts here."""
        here = self.lines[self.at:self.at + 3] + [""] * 3
        over = bool(ADORNMENT.match(here[0]) and here[1].strip() and here[2] == here[0])
        under = bool(here[0] and here[0][0] != " " and ADORNMENT.match(here[1])
                     and len(here[1]) + 2 >= len(here[0]) and not ADORNMENT.match(here[0]))
        if not over and not under:
            return False
        style = (over, here[0][0] if over else here[1][0])
        if style not in self.levels:
            self.levels.append(style)
        self.sections.append({"level": self.levels.index(style) + 1,
                              "heading": plain(here[1] if over else here[0]),
                              "paragraphs": []})
        self.at += 3 if over else 2
        return True

    def block(self):
        """Take the lines up to a blank one, a new list item or another indent."""
        first = self.lines[self.at]
        indent = indent_of(first)
        taken = [first.strip()]
        self.at += 1
        bullet = BULLET.match(taken[0])
        if bullet:
            indent += len(bullet.group(0))
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if not line or BULLET.match(line.strip()) or indent_of(line) != indent:
                break
            taken.append(line.strip())
            self.at += 1
        return indent_of(first), taken

    def paragraph(self):
        indent, taken = self.block()
        text = " ".join(taken)
        if any(TABLE.match(line) for line in taken) or FIELD.match(text):
            return
        literal = text.endswith("::")
        if literal:
            text = text[:-1]
        bullet = BULLET.match(text)
        if bullet:
            mark = bullet.group(1) if bullet.group(1)[:-1].isdigit() else "-"
            text = mark + " " + text[bullet.end():]
        text = plain(text)
        if is_prose(text):
            self.sections[-1]["paragraphs"].append(text)
        if literal:
            self.skip_deeper(indent)

    def parse(self):
        while self.at < len(self.lines):
            line = self.lines[self.at]
            note = ADMONITION.match(line.strip())
            if not line.strip():
                self.at += 1
            elif note:
                # The body of a note is prose: read on, at its own indent.
                self.lines[self.at] = note.group(2)
                self.at += 0 if note.group(2) else 1
            elif line.strip().startswith("..") or line.strip() == "::":
                indent = indent_of(line)
                self.at += 1
                self.skip_deeper(indent)
            elif not self.heading():
                self.paragraph()
        return [s for s in self.sections if s["paragraphs"] and "@" not in s["heading"]]


def held_out(path):
    digest = hashlib.sha256(path.encode()).digest()
    return digest[0] * 256 + digest[1] < 65536 // HELD_OUT_ONE_IN


def documents(root):
    """Yield the documents of an unpacked package in a fixed order."""
    top = next(pathlib.Path(root).glob("usr/share/doc/linux-doc-*/Documentation"), None)
    if top is None:
        sys.exit(f"{root}: no usr/share/doc/linux-doc-*/Documentation; "
                 "unpack the package there with dpkg-deb -x")
    files = sorted(top.rglob("*.rst.gz")) + sorted(top.glob("*.txt.gz"))
    for file in files:
        path = str(file.relative_to(top))
        if path.startswith(SKIP_DIRS) or file.is_symlink():
            continue
        text = gzip.open(file, "rt", encoding="utf-8", errors="replace").read()
        if not licence_allows_gpl2(text):
            continue
        sections = Parser(text.splitlines()).parse()
        if sum(len(p) for s in sections for p in s["paragraphs"]) < 400:
            continue
        title = next((s["heading"] for s in sections if s["heading"]), "")
        yield {"path": path, "split": "held-out" if held_out(path) else "train",
               "title": title, "sections": sections}


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("root", help="folder that dpkg-deb -x unpacked linux-doc-6.1 into")
    ap.add_argument("out", help="JSON lines file to write")
    args = ap.parse_args()
    count = {"train": [0, 0], "held-out": [0, 0]}
    with open(args.out, "w", encoding="utf-8") as out:
        for doc in documents(args.root):
            out.write(json.dumps(doc, ensure_ascii=False) + "\n")
            count[doc["split"]][0] += 1
            count[doc["split"]][1] += sum(len(p) for s in doc["sections"]
                                          for p in s["paragraphs"])
    for split, (files, chars) in count.items():
        print(f"{split}: {files} files, {chars} characters of prose")


if __name__ == "__main__":
    main()
