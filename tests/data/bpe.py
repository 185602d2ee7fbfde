# SPDX-License-Identifier: MIT
"""Byte-level BPE in the GPT-2 form: training, encoding, decoding.

Text is cut into pieces by the GPT-2 pattern (tokenizer.ggml.pre "gpt-2"), each
piece is taken as UTF-8 bytes, each byte is written as one printable character,
and merges are applied inside a piece, the earliest-learnt merge first.

Only the standard library is needed, so that the tests can use this file too.
"""

import collections
import functools
import re
import sys
import unicodedata


@functools.cache
def byte_chars():
    """The 256 characters that stand for bytes in a GPT-2 vocabulary.

    Bytes that print in Latin-1 stand for themselves, the others are numbered
    from U+0100 upwards in byte order.
    """
    table, spare = [], 0x100
    for byte in range(256):
        if 0x21 <= byte <= 0x7E or 0xA1 <= byte <= 0xAC or byte >= 0xAE:
            table.append(chr(byte))
        else:
            table.append(chr(spare))
            spare += 1
    return table


def char_class(group):
    """Body of a regex character class: all code points of general category @group*."""
    ranges, start = [], None
    for code in range(sys.maxunicode + 2):
        inside = code <= sys.maxunicode and unicodedata.category(chr(code))[0] == group
        if inside and start is None:
            start = code
        elif not inside and start is not None:
            ranges.append(f"\\U{start:08x}-\\U{code - 1:08x}")
            start = None
    return "".join(ranges)


@functools.cache
def piece_pattern():
    """The GPT-2 pattern, \\p{L} and \\p{N} spelled out: "re" does not know them."""
    letter, number = char_class("L"), char_class("N")
    return re.compile(rf"'(?:[stmd]|re|ve|ll)| ?[{letter}]+| ?[{number}]+"
                      rf"| ?[^\s{letter}{number}]+|\s+(?!\S)|\s+")


def pieces(text):
    return piece_pattern().findall(text)


def to_chars(piece):
    table = byte_chars()
    return "".join(table[b] for b in piece.encode("utf-8"))


class Tokenizer:
    """Vocabulary = list of token strings, merges = list of "left right",
    special = the token strings that stand for themselves and are never split.
    """

    def __init__(self, tokens, merges, special):
        self.tokens, self.merges, self.special = tokens, merges, special
        self.ids = {token: i for i, token in enumerate(tokens)}
        self.rank = {tuple(m.split(" ")): i for i, m in enumerate(merges)}
        self.byte_of = {c: b for b, c in enumerate(byte_chars())}
        self.cache = {}
        self.cut = re.compile("(" + "|".join(map(re.escape, special)) + ")")

    def encode_piece(self, piece):
        """Ids of one piece: join the adjacent pair of lowest rank until none is left."""
        if piece in self.cache:
            return self.cache[piece]
        parts = list(to_chars(piece))
        while len(parts) > 1:
            best = min(zip(parts, parts[1:]), key=lambda p: self.rank.get(p, len(self.rank)))
            if best not in self.rank:
                break
            out, i = [], 0
            while i < len(parts):
                if tuple(parts[i:i + 2]) == best:
                    out.append(parts[i] + parts[i + 1])
                    i += 2
                else:
                    out.append(parts[i])
                    i += 1
            parts = out
        ids = self.cache[piece] = [self.ids[p] for p in parts]
        return ids

    def encode(self, text, parse_special=True):
        """Ids of @text. With @parse_special the special strings become their tokens."""
        ids = []
        for part in self.cut.split(text) if parse_special else [text]:
            if parse_special and part in self.special:
                ids.append(self.ids[part])
            else:
                for piece in pieces(part):
                    ids.extend(self.encode_piece(piece))
        return ids

    def decode(self, ids):
        """Text of @ids; special tokens print as nothing, broken UTF-8 as U+FFFD."""
        raw = bytearray()
        for i in ids:
            if self.tokens[i] not in self.special:
                raw.extend(self.byte_of[c] for c in self.tokens[i])
        return raw.decode("utf-8", errors="replace")


def merge_word(word, pair, joined):
    out, i = [], 0
    while i < len(word):
        if i + 1 < len(word) and word[i] == pair[0] and word[i + 1] == pair[1]:
            out.append(joined)
            i += 2
        else:
            out.append(word[i])
            i += 1
    return out


def train(texts, n_tokens, special):
    """Learn a vocabulary of @n_tokens: 256 bytes, then merges, then @special.

    The most frequent pair is merged first; ties go to the pair that sorts first,
    so that the result depends on the text only.
    """
    counts = collections.Counter(p for text in texts for p in pieces(text))
    words = [list(to_chars(p)) for p in counts]
    weight = list(counts.values())
    pair_count = collections.Counter()
    where = collections.defaultdict(set)
    for w, word in enumerate(words):
        for pair in zip(word, word[1:]):
            pair_count[pair] += weight[w]
            where[pair].add(w)
    tokens, merges = list(byte_chars()), []
    while len(tokens) < n_tokens - len(special):
        pair = min(pair_count, key=lambda p: (-pair_count[p], p))
        joined = pair[0] + pair[1]
        tokens.append(joined)
        merges.append(" ".join(pair))
        for w in where.pop(pair):
            for old in zip(words[w], words[w][1:]):
                pair_count[old] -= weight[w]
            words[w] = merge_word(words[w], pair, joined)
            for new in zip(words[w], words[w][1:]):
                pair_count[new] += weight[w]
                where[new].add(w)
        del pair_count[pair]
    return Tokenizer(tokens + list(special), merges, list(special))
