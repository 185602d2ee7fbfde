#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The main job: agents whose KV is several times the DRAM they get.

Several sessions talk to one hawkd in turns. Together their KV exceeds the DRAM
tier, so a session that comes back finds its KV on flash. Every token is compared
with a hawkd that reuses nothing."""

import argparse
import json
import os
import pathlib
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import hawkd  # noqa: E402
import scenario  # noqa: E402

ROOT = scenario.ROOT
RATIO_MIN = 4.0     # KV of all sessions over the DRAM tier
SEED = 20261
STEP = 9            # turns per line of progress when there is no terminal

EPILOG = """exit status: 0 when every token equals the uncached run and the KV of all
sessions is at least 4 times the DRAM tier; 1 otherwise; 2 for a wrong command line."""


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__, epilog=EPILOG,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=str(ROOT / "tests/data/hawk-tiny.gguf"),
                        help="GGUF model (default: the one of this tree)")
    parser.add_argument("--kv", metavar="URL",
                        help="KV memory, e.g. dev:/dev/hawk (default: embedded, with a "
                             "temporary flash file)")
    parser.add_argument("--dram", default="4M", metavar="SIZE",
                        help="DRAM tier of the embedded memory (default: 4M)")
    parser.add_argument("--flash", default="256M", metavar="SIZE",
                        help="flash file of the embedded memory (default: 256M)")
    parser.add_argument("--kv-dtype", default="f16", choices=("f16", "f32"),
                        help="element type of the KV (default: f16)")
    parser.add_argument("--sessions", type=int, default=9, help="agents (default: 9)")
    parser.add_argument("--rounds", type=int, default=2,
                        help="rounds of two turns per session (default: 2)")
    parser.add_argument("--piece", type=int, default=280, metavar="CHARS",
                        help="text that a turn adds, the first one five times as much "
                             "(default: 280)")
    parser.add_argument("--max-tokens", type=int, default=48,
                        help="tokens that a turn generates at most (default: 48)")
    parser.add_argument("--out", metavar="FILE", help="write the result as JSON to FILE")
    parser.add_argument("--json", action="store_true", help="print only the JSON result")
    return parser.parse_args()


class Screen:
    """Progress for people; silent with --json."""

    def __init__(self, quiet):
        self.quiet = quiet

    def say(self, text=""):
        if not self.quiet:
            print(text, flush=True)

    def progress(self, text):
        if not self.quiet and sys.stdout.isatty():
            print(f"\r\033[K{text}", end="", flush=True)

    def clear(self):
        self.progress("")


def request(session, opts, number):
    return {"model": "demo", "messages": list(session.messages), "max_tokens": opts.max_tokens,
            "temperature": 0.4, "seed": SEED + number, "return_token_ids": True}


def tokens_of(answer):
    choice = answer["choices"][0]
    return choice["prompt_token_ids"], choice["token_ids"]


HEAD = ("                    prompt   from    from     re-              \n"
        "turn session        tokens   DRAM   flash  computed   TTFT ms  tokens/s")


def row(turn, session, result):
    # A rate needs two tokens: the model may end its answer at once.
    rate = f"{result['tokens_per_s']:9.1f}" if result["completion_tokens"] > 1 else f"{'-':>9}"
    return (f"{turn:4} {session.number + 1} {session.path[-12:]:12} {result['prompt_tokens']:6} "
            f"{result['tokens_dram']:6} {result['tokens_flash']:7} "
            f"{result['tokens_recomputed']:9} {result['ttft_ms']:9.1f} "
            f"{rate}")


def play(server, opts, screen):
    """All turns against the server under test; returns [(request, answer, result)]."""
    sessions = [scenario.Session(i, opts.piece) for i in range(opts.sessions)]
    turns = []
    screen.say(HEAD)
    for number, session in enumerate(scenario.order(sessions, opts.rounds)):
        question = session.observe()
        body = request(session, opts, number)
        screen.progress(f"turn {number + 1}: {question}")
        answer = server.chat(body)
        session.answer(answer["choices"][0]["message"]["content"])
        result = {"turn": number + 1, "session": session.number + 1,
                  "prompt_tokens": answer["usage"]["prompt_tokens"],
                  "completion_tokens": answer["usage"]["completion_tokens"], **answer["hawk"]}
        turns.append((body, answer, result))
        screen.clear()
        screen.say(row(number + 1, session, result))
    return sessions, turns


def check(server, turns, screen):
    """Send every prompt again to a server without cache; count turns that differ."""
    wrong = 0
    for body, answer, result in turns:
        screen.progress(f"checking turn {result['turn']} of {len(turns)} without any cache")
        if result["turn"] % STEP == 0 and not sys.stdout.isatty():
            screen.say(f"{result['turn']} of {len(turns)} turns")
        again = server.chat(body)
        result["exact"] = tokens_of(again) == tokens_of(answer)
        result["uncached_ttft_ms"] = again["hawk"]["ttft_ms"]
        if again["hawk"]["tokens_recomputed"] != result["prompt_tokens"]:
            raise hawkd.HawkdError("the server without cache reused KV: nothing was compared")
        if not result["exact"]:
            wrong += 1
            screen.clear()
            screen.say(f"turn {result['turn']}: the tokens DIFFER from the uncached run")
    screen.clear()
    return wrong


def show_text(sessions, screen):
    session = sessions[0]
    screen.say(f"\nSession 1 ({session.path}), its questions and answers:")
    for message in session.messages:
        if message["role"] == "user":
            screen.say(f"  > {message['content']}")
        elif message["role"] == "assistant":
            screen.say("    " + message["content"].strip().replace("\n", "\n    "))


def memory(server, turns, opts):
    """Bytes of the DRAM tier, and of the sessions' KV together."""
    m = server.metrics()
    dram = sum(v for k, v in m.items() if k.startswith("hawkd_tier_bytes{") and '"dram"' in k)
    _, health = server.call("GET", "/health")
    block = health["kv"]["block_bytes"]
    longest = {}
    for _, _, r in turns:
        longest[r["session"]] = r["prompt_tokens"] + r["completion_tokens"]
    blocks = sum(n // health["kv"]["block_tokens"] for n in longest.values())
    return int(dram), blocks * block, m


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else 0.0


def summary(turns, sessions, dram, kv_bytes, metrics, wrong, seconds):
    results = [r for _, _, r in turns]
    reloaded = [r for r in results if r["tokens_flash"] > r["prompt_tokens"] // 2]
    return {
        "exact": wrong == 0, "turns_wrong": wrong, "sessions": len(sessions),
        "dram_bytes": dram, "kv_bytes": kv_bytes, "ratio": round(kv_bytes / dram, 3),
        "prompt_tokens": sum(r["prompt_tokens"] for r in results),
        "tokens_dram": sum(r["tokens_dram"] for r in results),
        "tokens_flash": sum(r["tokens_flash"] for r in results),
        "tokens_recomputed": sum(r["tokens_recomputed"] for r in results),
        "blocks_written": int(metrics['hawkd_kv_evicted_blocks_total{how="written"}']),
        "blocks_reloaded": int(metrics["hawkd_kv_reloaded_blocks_total"]),
        "reloaded_turns": len(reloaded),
        "reloaded_ttft_ms": round(mean(r["ttft_ms"] for r in reloaded), 3),
        "reloaded_uncached_ttft_ms": round(mean(r["uncached_ttft_ms"] for r in reloaded), 3),
        "seconds": round(seconds, 1), "turns": results,
    }


def tell(s, screen):
    def mib(n):
        return f"{n / 2**20:.1f} MiB"

    screen.say(f"\nKV of {s['sessions']} sessions {mib(s['kv_bytes'])}, DRAM tier "
               f"{mib(s['dram_bytes'])}: {s['ratio']:.1f} times as much")
    screen.say(f"prompt tokens {s['prompt_tokens']}: {s['tokens_dram']} from DRAM, "
               f"{s['tokens_flash']} from flash, {s['tokens_recomputed']} recomputed")
    screen.say(f"blocks written to flash {s['blocks_written']}, reloaded {s['blocks_reloaded']}")
    screen.say(f"turns mostly from flash {s['reloaded_turns']}: mean TTFT "
               f"{s['reloaded_ttft_ms']:.1f} ms, without cache "
               f"{s['reloaded_uncached_ttft_ms']:.1f} ms")
    screen.say(f"every token equals the uncached run: {'yes' if s['exact'] else 'NO'}")
    screen.say(f"took {s['seconds']:.1f} s")


def run(opts, screen, folder):
    start = time.monotonic()
    kv = opts.kv or (f"embed:?dram={opts.dram}&flash={folder}/kv.flash&flash_size={opts.flash}")
    binary = hawkd.binary_path(ROOT)
    screen.say(f"hawkd with {kv}\n")
    # what comes from flash is to be seen, also where computing would be as quick
    options = ("--alias", "demo", "--kv-dtype", opts.kv_dtype, "--reload", "always")
    with hawkd.Hawkd(binary, opts.model, kv, *options) as server:
        sessions, turns = play(server, opts, screen)
        dram, kv_bytes, metrics = memory(server, turns, opts)
    show_text(sessions, screen)
    screen.say("\nEvery prompt again, on a hawkd that reuses nothing ...")
    with hawkd.Hawkd(binary, opts.model, "embed:?dram=64M", "--no-cache", *options) as server:
        wrong = check(server, turns, screen)
    return summary(turns, sessions, dram, kv_bytes, metrics, wrong, time.monotonic() - start)


def main():
    opts = parse_args()
    screen = Screen(opts.json)
    # O_DIRECT needs a disk: not /tmp, which may be a tmpfs.
    base = ROOT / "build"
    base = base if os.access(base, os.W_OK) else None
    try:
        with tempfile.TemporaryDirectory(prefix="hawk-demo.", dir=base) as folder:
            result = run(opts, screen, folder)
    except (hawkd.HawkdError, OSError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    tell(result, screen)
    text = json.dumps(result, indent=1) + "\n"
    if opts.json:
        print(text, end="")
    if opts.out:
        pathlib.Path(opts.out).write_text(text)
        screen.say(f"wrote {opts.out}")
    if result["ratio"] < RATIO_MIN:
        print(f"demo: the KV is only {result['ratio']} times the DRAM tier, "
              f"{RATIO_MIN} was the aim: use more sessions or a smaller --dram", file=sys.stderr)
        return 1
    return 0 if result["exact"] else 1


if __name__ == "__main__":
    sys.exit(main())
