# SPDX-License-Identifier: MIT

TESTS_E2E += $(wildcard tests/e2e/*.t)
