/*
 * weight_report.h - what becomes of each matrix, by what method, and what it costs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_WEIGHT_REPORT_H
#define FT_CALIBRATE_WEIGHT_REPORT_H

#include "calibrate/report.h"

/* What is known before codes are made; of int8, whose scales have been found, that is all. */
void ft_weight_report_begin(ft_weight_report *report, const ft_quantized *quantized,
                            const ft_recipe *recipe);

/* What blocks cost, once they have been made. */
void ft_weight_report_end(ft_weight_report *report, const ft_quantized *quantized);

#endif
