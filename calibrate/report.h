/*
 * report.h - what each method would choose for each point, what was chosen, and what it costs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_REPORT_H
#define FT_CALIBRATE_REPORT_H

#include "calibrate/evaluate.h"
#include "calibrate/ranges/method.h"
#include "calibrate/weights/quantized.h"
#include "kernels/op.h"

#include <stdio.h>

typedef struct ft_point_report {
    char name[FT_NAME];
    uint64_t values;      /* counted */
    bool read;            /* it becomes codes by this range; ft_point_is_read() */
    char matrix[FT_NAME]; /* the first that multiplies these; "": none */
    ft_amax_choice candidate[FT_CANDIDATES];
    ft_amax_choice chosen;
} ft_point_report;

typedef struct ft_weight_report {
    char name[FT_NAME];
    ft_scheme scheme;
    int32_t group;        /* of blocks */
    char method[32];      /* how grids of blocks and their codes were chosen */
    bool asymmetric;      /* of blocks */
    ft_weights_sqnr sqnr; /* per channel: what was done, whatever a scale is for */
    double output_error;  /* of results, as lengths; NaN: nothing is known of inputs */
} ft_weight_report;

typedef struct ft_report {
    ft_point_report *point; /* [points], owned */
    size_t points;
    ft_weight_report *weight; /* [weights], owned */
    size_t weights;
    size_t divisible, divided; /* inputs that AWQ may divide, and that it did */
    uint64_t samples;          /* observed */
    ft_method method;          /* that was asked for; of points */
    ft_scheme scheme;          /* of matrices without a rule */
    bool int8_residual, decodes;
    bool held_out;            /* the evaluation's samples were not calibrated on */
    ft_evaluation evaluation; /* samples = 0: none */
    char *warning;            /* ft_report_verdict(), owned */
    char *text;               /* ft_report_format(), owned; NULL where nobody asked for it */
} ft_report;

void ft_report_fini(ft_report *report);

/* Whether the methods' choices for a point lie more than a factor of 4 apart. */
bool ft_report_disagrees(const ft_point_report *point);

/* Tables for people. */
void ft_report_print(const ft_report *report, FILE *file);

/* Everything, its warning included, as JSON; for free().  NULL: no memory.
 */
char *ft_report_format(const ft_report *report);

#endif
