/*
 * sample_report.h - a calibration report with every kind of content, made from random values.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_MODELS_SAMPLE_REPORT_H
#define FT_TESTS_LIB_MODELS_SAMPLE_REPORT_H

#include "calibrate/report/report.h"

/*
 * A report of `layers` layers with points, weights, sensitivity and a Pareto front.  One matrix has
 * a name of characters that HTML reserves.  Free with ft_report_fini().
 */
void sample_report_make(ft_report *out, size_t layers);

#define SAMPLE_HOSTILE_NAME "<b onclick=\"x()\">&'.weight"

#endif
