/*
 * weight_plan_report.h - what a budget or a target made of the weights, in the report.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_WEIGHT_PLAN_REPORT_H
#define FT_CALIBRATE_WEIGHT_PLAN_REPORT_H

#include "calibrate/report/report.h"

/* Sentences for the terminal; nothing without a plan. */
void ft_weight_plan_report_print(const ft_weight_plan_report *report, FILE *file);

/* A paragraph of a page; nothing without a plan. */
void ft_weight_plan_report_html(const ft_weight_plan_report *report, FILE *file);

/* An object, which the caller owns; null without a plan. */
json_t *ft_weight_plan_report_json(const ft_weight_plan_report *report);

#endif
