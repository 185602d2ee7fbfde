# SPDX-License-Identifier: MIT
"""Turn the corpus into training text: plain documents and chats made from them."""

import json
import pathlib
import random

END, TURN, TURN_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
SPECIAL = [END, TURN, TURN_END]

SYSTEM = ["You are a helpful assistant.",
          "You are an assistant that answers questions about the Linux kernel.",
          "Answer the user's question about Linux."]
ASK = ["What is {}?", "Tell me about {}.", "Explain {}.", "Can you explain {}?",
       "What do I need to know about {}?", "{}", "How does {} work?", "Describe {}."]
# Headings that name a part of a document, not a subject.
GENERIC = {"introduction", "overview", "description", "name", "about", "summary", "notes",
           "general", "background", "intro", "general description", "abstract", "preface",
           "general information", "general remarks", "basics", "usage", "details"}


def load(path, split):
    """Documents of one split ("train" or "held-out") of corpus.py's output."""
    with open(path, encoding="utf-8") as lines:
        return [doc for doc in map(json.loads, lines) if doc["split"] == split]


def render_document(doc):
    out = []
    for section in doc["sections"]:
        if section["heading"]:
            out.append("#" * min(section["level"], 3) + " " + section["heading"])
        out.extend(section["paragraphs"])
    return "\n\n".join(out) + "\n"


def render_chat(turns):
    """The text of a conversation, [(role, content)...], in the model's chat template."""
    return "".join(f"{TURN}{role}\n{content}{TURN_END}\n" for role, content in turns)


def answer(section, limit=700):
    """The first paragraphs of a section, up to @limit characters, at least one."""
    taken = section["paragraphs"][:1]
    for paragraph in section["paragraphs"][1:]:
        if sum(map(len, taken)) + len(paragraph) > limit:
            break
        taken.append(paragraph)
    return "\n\n".join(taken)


def topic_of(doc, section):
    """What a section is about: its heading, else the document's title or file name."""
    names = [section["heading"], doc["title"], pathlib.PurePath(doc["path"]).name.split(".")[0]]
    names = [name.rstrip(".:?! ") for name in names]
    return next((name for name in names if name and name.lower() not in GENERIC), names[-1])


def chats(doc, rng):
    """Conversations of one to four turns: section titles asked, their text answered."""
    turns, wanted = [], rng.randint(1, 4)
    for section in doc["sections"]:
        topic = topic_of(doc, section)
        if not 3 <= len(topic) <= 60:
            continue
        if not turns and rng.random() < 0.4:
            turns.append(("system", rng.choice(SYSTEM)))
        ask = "{}?" if section["heading"].endswith("?") else rng.choice(ASK)
        turns.append(("user", ask.format(topic)))
        turns.append(("assistant", answer(section)))
        wanted -= 1
        if not wanted:
            yield render_chat(turns)
            turns, wanted = [], rng.randint(1, 4)
    if turns:
        yield render_chat(turns)


def texts(docs, seed, chat_share):
    """All texts in a shuffled order; @chat_share of the possible chats is kept."""
    rng = random.Random(seed)
    out = [render_document(doc) for doc in docs]
    for doc in docs:
        out.extend(chat for chat in chats(doc, rng) if rng.random() < chat_share)
    rng.shuffle(out)
    return out
