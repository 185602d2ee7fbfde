# SPDX-License-Identifier: MIT
#
# The shipped model has nothing to compile; its test runs with the TAP scripts.

TESTS_E2E += tests/data/test_model.py
