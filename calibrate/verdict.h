/*
 * verdict.h - whether a model of codes is near enough to its float model, and what to try if not.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_VERDICT_H
#define FT_CALIBRATE_VERDICT_H

#include "calibrate/report.h"

/*
 * What is worth a warning, as lines that each end, or an empty text; for free().  NULL: no memory.
 *
 * The comparison at the end of the model decides: a mean cosine of at least 0.98, and of
 * classifiers the same class for 95 of 100 samples.  Single points decide nothing, for ranges that
 * look bad often cost nothing; those with the least SQNR are named where the whole is bad, and
 * where nothing was compared those whose range could not be chosen as was asked.
 */
char *ft_report_verdict(const ft_report *report);

#endif
