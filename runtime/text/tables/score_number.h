/*
 * score_number.h - read a number with the rounding of the `tokenizers` library.
 *
 * That library's JSON reader rounds twice, first the digits and then the quotient with a power of
 * ten, so numbers of more than 15 digits may be wrong in the last bit. Sums of scores that would be
 * equal then are not, and the best path depends on it: for the same path, scores must have the same
 * error.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_TABLES_SCORE_NUMBER_H
#define FT_RUNTIME_TEXT_TABLES_SCORE_NUMBER_H

#include "runtime/base/json_scan.h"

/* A finite number; FT_EFORMAT when something else comes next. */
ft_status ft_score_number_scan(ft_json_scanner *scan, double *number);

#endif
