# SPDX-License-Identifier: MIT
"""Finds what a clean kernel log does not contain."""

import re

BAD = re.compile(
    r"WARNING:|BUG:|BUG at|Oops|general protection fault|Kernel panic"
    r"|KASAN|UBSAN|KCSAN|KFENCE|DEBUG_LOCKS_WARN_ON"
    r"|possible (?:circular|recursive) locking|inconsistent lock state|suspicious RCU usage"
    r"|INFO: (?:task .* blocked|rcu|possible)|soft lockup|hard LOCKUP|rcu.*stall|self-detected"
    r"|refcount_t:|sleeping function called|scheduling while atomic|bad unlock balance"
    r"|ODEBUG:|DMA-API: .*(?:error|leak)|list_(?:add|del) corruption"
    r"|unreferenced object|Objects remaining"
    r"|Bad page (?:state|map)|BUG [^:]*: |Call Trace:")


def after_mark(text, mark):
    """The part of the log that the lab's own start line opens; all of it when there is none."""
    _, found, rest = text.partition(mark)
    return rest if found else text


def findings(text):
    """The suspicious lines of a kernel log."""
    return [line.strip() for line in text.splitlines() if BAD.search(line)]
