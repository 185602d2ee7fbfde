#!/bin/sh
# SPDX-License-Identifier: MIT
#
# hawkd as seen by the real OpenAI client for Python.

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/e2e/lib/tap.sh"

need_openai
exec "$python" "$root/tests/e2e/lib/openai_client.py"
