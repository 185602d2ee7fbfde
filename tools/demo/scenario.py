# SPDX-License-Identifier: MIT
"""What the agents of the demo do: each reads a file of this tree, piece by piece,
and is asked about it. The order makes every session wait until the others have
pushed its KV out of DRAM."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]

FILES = ["README.md", "kmod/ARCHITECTURE.md", "uapi/hawk.h", "kmod/core/core.h",
         "libhawk/include/hawk/hawk.h", "daemon/kv/kv.h", "daemon/exec/exec.h",
         "daemon/sched/sched.c", "daemon/exec/sample.h"]
FIRST = 5           # the first piece is so many times as long as the others

SYSTEM = "You are an assistant that answers questions about the Linux kernel."

QUESTIONS = ["What is {}?", "Explain {}.", "How does {} work?", "Tell me about {}.",
             "Describe {}.", "What do I need to know about {}?"]
TOPICS = ["a page table", "the scheduler", "a block device", "memory reclaim", "a kernel module",
          "DMA mapping", "a spinlock", "an interrupt handler", "the page cache", "RCU",
          "NUMA placement", "a file system"]


class Session:
    """One agent: its conversation so far, and the text it still has to read."""

    def __init__(self, number, piece_chars):
        self.number = number
        self.path = FILES[number % len(FILES)]
        self.piece_chars = piece_chars
        self.text = (ROOT / self.path).read_text()
        self.read = 0       # characters
        self.turns = 0
        self.messages = [{"role": "system", "content": SYSTEM}]

    def observe(self):
        """Append the next piece of the file, as a tool's answer, and a question."""
        start = self.read
        self.read += self.piece_chars * (1 if self.turns else FIRST)
        piece = self.text[start:self.read]
        index = self.number * 5 + self.turns
        question = QUESTIONS[index % len(QUESTIONS)].format(TOPICS[index % len(TOPICS)])
        self.messages.append({"role": "tool",
                              "content": f"{self.path}, from character {start}:\n{piece}"})
        self.messages.append({"role": "user", "content": question})
        self.turns += 1
        return question

    def answer(self, text):
        self.messages.append({"role": "assistant", "content": text})


def order(sessions, rounds):
    """In each round every session has two turns: the first finds its KV on flash,
    the second follows at once and finds it in DRAM."""
    for _ in range(rounds):
        for session in sessions:
            yield session
            yield session
