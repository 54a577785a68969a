/*
 * report.h - report a conversion as a table or as JSON.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_REPORT_H
#define FT_CONVERT_REPORT_H

#include "convert/convert.h"

/* Print a table of all weights, the files and the total to `file`. */
void ft_report_table(const ft_conversion *conversion, FILE *file);

/*
 * The same as a JSON object, with the configuration, unused tensors and notes; ft-convert(1) lists
 * the keys. NULL when out of memory. `output` is the path of the artifact that was written, or
 * NULL.
 */
json_t *ft_report_json(const ft_conversion *conversion, const char *output);

/* A JSON object for a checkpoint that cannot be converted; NULL when out of memory. */
json_t *ft_report_failure(const ft_messages *problems);

#endif
