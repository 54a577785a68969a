/*
 * report.h - what a conversion does, for people and for programs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_REPORT_H
#define FT_CONVERT_REPORT_H

#include "convert/convert.h"

/* A table of all weights, the files and the total, on `file`. */
void ft_report_table(const ft_conversion *conversion, FILE *file);

/*
 * The same as an object, with configuration, unused tensors and notes; ft-convert(1) lists the
 * keys.  NULL when there is no memory.  `output` is the artifact that was written, or NULL.
 */
json_t *ft_report_json(const ft_conversion *conversion, const char *output);

/* An object for a checkpoint that cannot be converted. */
json_t *ft_report_failure(const ft_messages *problems);

#endif
