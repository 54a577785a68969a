/*
 * verdict.h - whether a quantized model is close enough to its float model, and what to try if not.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_VERDICT_H
#define FT_CALIBRATE_VERDICT_H

#include "calibrate/report/report.h"

/*
 * The warning of a report, as complete lines, or an empty text; the caller frees it. NULL: no
 * memory.
 *
 * The end-to-end comparison decides: the mean cosine must be at least 0.98, and classifiers must
 * predict the same class for 95 of 100 samples. Single points do not decide, because ranges that
 * look bad often cost nothing. The points with the lowest SQNR are named if the model as a whole is
 * bad; without a comparison, the points whose range could not be chosen as requested are.
 */
char *ft_report_warning(const ft_report *report);

#endif
