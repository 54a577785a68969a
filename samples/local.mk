# SPDX-License-Identifier: Apache-2.0
EXTRA_DIST += samples/README.md samples/minilm.py
