# SPDX-License-Identifier: MIT
"""Test results in TAP, for prove."""

import sys
import traceback


class Skip(Exception):
    """Raise in a test: it is shown as skipped, with the reason."""


class Tap:
    def __init__(self):
        self.count = 0
        self.failed = 0

    def ok(self, good, name, diag=""):
        self.count += 1
        if not good:
            self.failed += 1
        print(f"{'ok' if good else 'not ok'} {self.count} - {name}", flush=True)
        if not good and diag:
            self.note(diag)
        return good

    def equal(self, got, wanted, name):
        return self.ok(got == wanted, name, f"got    {got!r}\nwanted {wanted!r}")

    def skip(self, name, reason):
        self.count += 1
        print(f"ok {self.count} - {name} # SKIP {reason}", flush=True)

    def note(self, text):
        for line in str(text).splitlines():
            print(f"# {line}", flush=True)

    def run(self, test, *args):
        """Run a test function; an exception is a failure of its own."""
        name = test.__name__.removeprefix("test_").replace("_", " ")
        try:
            test(*args)
        except Skip as reason:
            self.skip(name, reason)
        except Exception:
            self.ok(False, name, traceback.format_exc())

    def done(self):
        print(f"1..{self.count}")
        sys.exit(1 if self.failed else 0)


def chosen(*groups):
    """Of each group of test functions those that the command line names; without names, all.
    A name of none of them ends the program: what was asked for would not be tested."""
    names = sys.argv[1:]
    known = {f.__name__.removeprefix("test_") for group in groups for f in group}
    wrong = [name for name in names if name not in known]
    if wrong:
        print(f"no test {' '.join(wrong)}; there are: {' '.join(sorted(known))}", file=sys.stderr)
        sys.exit(2)
    return [[f for f in group if not names or f.__name__.removeprefix("test_") in names]
            for group in groups]


def skip_all(reason):
    print(f"1..0 # SKIP {reason}")
    sys.exit(0)
