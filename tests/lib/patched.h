/*
 * patched.h - the configurations of tests/data/config, unchanged or with some keys changed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_PATCHED_H
#define FT_TESTS_LIB_PATCHED_H

#include <stddef.h>

/* The text of NAME.json, for free(). */
unsigned char *config_text(const char *name, size_t *bytes);

/* The same with the members of `patch`, a JSON object; the value "REMOVE" removes a key. */
char *config_patched(const char *name, const char *patch);

#endif
