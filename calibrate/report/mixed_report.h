/*
 * mixed_report.h - what a target or a budget of time made of an int8 plan, in the report.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_MIXED_REPORT_H
#define FT_CALIBRATE_MIXED_REPORT_H

#include "calibrate/report/report.h"

/* Sentences for the terminal; nothing without a plan. */
void ft_mixed_report_print(const ft_mixed_report *report, ft_scheme scheme, FILE *file);

/* A paragraph of a page; nothing without an estimated time. */
void ft_mixed_report_html(const ft_mixed_report *report, FILE *file);

/* An object, which the caller owns; null without a plan. */
json_t *ft_mixed_report_json(const ft_mixed_report *report);

#endif
