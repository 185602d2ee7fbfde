# SPDX-License-Identifier: MIT
"""Where things are, and how tests start a hawkd."""

import contextlib
import itertools
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools/demo"))

from hawkd import Hawkd, HawkdError, binary_path  # noqa: E402,F401

HAWKD = binary_path(ROOT)
HAWKCTL = str(ROOT / "build/bin/hawkctl")
MODEL = os.environ.get("HAWK_TEST_MODEL", str(ROOT / "tests/data/hawk-tiny.gguf"))
STORIES = ROOT / "../shared/models/stories260K.gguf"
NAME = "tiny"
START_S = 60        # time for a hawkd that is expected to fail, seconds
POLLS = 4000        # of /metrics, and
PATIENCE_S = 60     # before a condition counts as never met: a busy machine polls faster than it steps
SMALL = "HAWK_SMALL" in os.environ      # for the VM, which emulates: some 40 times slower


def size(full, small):
    return small if SMALL else full


@contextlib.contextmanager
def scratch():
    """A folder on a real disk: /tmp may be a tmpfs, which has no O_DIRECT."""
    base = ROOT / "build"
    base = base if os.access(base, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="hawk-test.", dir=base) as folder:
        yield folder


def start(kv, *options, model=MODEL, alias=NAME, sparse=not SMALL, reload="always"):
    """Without @sparse it starts faster, and refuses sparse attention. What comes from flash
    does not depend on how loaded this machine is, unless @reload is "cheaper"."""
    options += () if sparse else ("--no-sparse",)
    options += ("--reload", reload)
    return Hawkd(HAWKD, model, kv, "--alias", alias, *options)


def start_fails(*argv, timeout=START_S, wrap=()):
    """Run a hawkd that must refuse to start; (status, stderr)."""
    done = subprocess.run([*wrap, HAWKD, *argv], stdin=subprocess.DEVNULL, timeout=timeout,
                          capture_output=True, text=True, errors="replace", check=False)
    return done.returncode, done.stderr


def completion(server, **body):
    body.setdefault("model", NAME)
    body.setdefault("temperature", 0)
    return server.call("POST", "/v1/completions", body)


def until(server, condition):
    """Poll /metrics until a condition holds."""
    end = time.monotonic() + PATIENCE_S
    for poll in itertools.count():
        if poll >= POLLS and time.monotonic() > end:
            return None
        metrics = server.metrics()
        if condition(metrics):
            return metrics


def raw_request(server, text):
    """Send bytes on a fresh connection; the socket is left open."""
    sock = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    sock.sendall(text if isinstance(text, bytes) else text.encode())
    return sock
