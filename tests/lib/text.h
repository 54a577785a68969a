/*
 * text.h - plans as text, and golden files.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_TEXT_H
#define FT_TESTS_LIB_TEXT_H

#include "kernels/op.h"

/* The output of ft_plan_write(); free with free(). */
char *plan_text(const ft_plan *plan);

/* One check: `text` equals tests/golden/`name` line by line; the first difference is shown. */
void is_golden(const char *text, const char *name);

#endif
