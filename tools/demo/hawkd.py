# SPDX-License-Identifier: MIT
"""Starts a hawkd and talks to it, with the standard library only."""

import http.client
import json
import os
import re
import signal
import subprocess
import tempfile

REQUEST_S = 600     # time for one answer, seconds


class HawkdError(Exception):
    pass


class Hawkd:
    """A running daemon. Use as a context manager; its log is shown when it fails."""

    def __init__(self, binary, model, kv, *options):
        self.log = tempfile.TemporaryFile(mode="w+")
        self.argv = [binary, "--model", model, "--kv", kv, "--listen", "127.0.0.1:0",
                     "--json", *options]
        self.process = subprocess.Popen(self.argv, stderr=subprocess.PIPE, text=True)
        self.port = None
        try:
            self.wait_for_port()
        except BaseException:
            self.stop()
            raise
        # Nobody reads the pipe from here on but this process: keep it drained.
        self.drain = subprocess.Popen(["cat"], stdin=self.process.stderr, stdout=self.log)
        self.process.stderr.close()

    def wait_for_port(self):
        said = []
        for line in self.process.stderr:
            message = json.loads(line).get("msg", "") if line.startswith("{") else line
            said.append(message)
            found = re.match(r"listening on http://.*:(\d+)$", message)
            if found:
                self.port = int(found.group(1))
                return
        status = self.process.wait()
        raise HawkdError(f"hawkd ended with status {status}:\n  " + "\n  ".join(said))

    def call(self, method, path, body=None):
        """Return (status, decoded body)."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=REQUEST_S)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None)
            answer = connection.getresponse()
            data = answer.read()
        finally:
            connection.close()
        if answer.headers.get_content_type() == "application/json":
            return answer.status, json.loads(data)
        return answer.status, data.decode()

    def chat(self, body):
        status, answer = self.call("POST", "/v1/chat/completions", body)
        if status != 200:
            raise HawkdError(f"hawkd answered {status}: {answer['error']['message']}")
        return answer

    def metrics(self):
        """All metrics as {"name{labels}": value}."""
        _, text = self.call("GET", "/metrics")
        lines = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, value in lines}

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.stop()
        self.drain.wait()
        if kind is not None and not issubclass(kind, KeyboardInterrupt):
            self.log.seek(0)
            print("last lines of hawkd's log:\n" + "".join(self.log.readlines()[-10:]))
        self.log.close()


def binary_path(root):
    return os.environ.get("HAWKD", str(root / "build/bin/hawkd"))
