/*
 * weight_report.h - scheme, method and error of each matrix.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_WEIGHT_REPORT_H
#define FT_CALIBRATE_WEIGHT_REPORT_H

#include "calibrate/report/report.h"

/*
 * Fills in what is known before quantization; for int8, whose scales are already computed, that is
 * everything.
 */
void ft_weight_report_init(ft_weight_report *report, const ft_quantized_weight *quantized,
                           const ft_recipe *recipe);

/* Adds the error of a group-wise quantized matrix once it has been written. */
void ft_weight_report_add_error(ft_weight_report *report, const ft_quantized_weight *quantized);

#endif
