#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Tokens dropped from the cache, asked for by the real OpenAI client for Python.

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/e2e/lib/tap.sh"

need_openai
exec "$python" "$root/tests/e2e/lib/drop_client.py"
