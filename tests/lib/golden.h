/*
 * golden.h - reference values from other software, stored in tests/golden.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_GOLDEN_H
#define FT_TESTS_LIB_GOLDEN_H

#include <jansson.h>

/* A JSON file of tests/golden; the test ends if it cannot be read.  json_decref() it. */
json_t *golden_json(const char *name);

#endif
