/*
 * report.h - the calibration report: the choice of each method for each point, the selected range,
 * and the errors.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_REPORT_H
#define FT_CALIBRATE_REPORT_H

#include "calibrate/ranges/channels.h"
#include "calibrate/mixed/evaluate.h"
#include "calibrate/mixed/loss.h"
#include "calibrate/ranges/method.h"
#include "calibrate/weights/quantized.h"
#include "kernels/op.h"
#include "runtime/base/messages.h"

#include <stdio.h>

typedef struct ft_point_report {
    char name[FT_NAME];
    uint64_t n_values;    /* number of values */
    bool is_quantized;    /* the int8 model quantizes it */
    bool per_token;       /* with a scale per token; `chosen` is the range of a static scale */
    char matrix[FT_NAME]; /* first int8 matrix that reads the point; "": none */
    ft_amax_result candidate[FT_AMAX_CANDIDATES];
    ft_amax_result chosen;
    uint64_t bin[FT_COARSE_BINS]; /* of the histogram */
    ft_channel_summary channel;   /* measured if a report is written from samples */
} ft_point_report;

typedef struct ft_weight_report {
    char name[FT_NAME];
    ft_scheme scheme;
    int32_t group;       /* group size */
    char method[32];     /* how grids and rounding were chosen */
    bool asymmetric;     /* group-wise with zero points */
    ft_weight_sqnr sqnr; /* of the weights */
    double output_error; /* relative error of the outputs; NaN: no input statistics */
} ft_weight_report;

/* What ft_calibration_mix_precision() chose; samples 0: nothing was measured. */
typedef struct ft_mixed_report {
    ft_loss_kind kind;
    size_t samples;             /* that plans were compared on */
    size_t units;               /* activations and attentions with a precision of their own */
    size_t per_token, per_group, in_float; /* units that do not have static int8 scales */
    double target;
    double initial_loss, loss; /* of the scheme's and of the chosen plan */
    double cost; /* operations that the precisions add, relative to those of the matrices */
    double ms;   /* estimated for the chosen plan on the target machine; 0: no times */
    double budget_ms; /* 0: a target decided */

    /* The loss of the chosen plan on evaluation samples; verified 0: there are none. */
    size_t verified;
    double verified_loss;
} ft_mixed_report;

/* What ft_calibration_plan_weights() chose; samples 0: nothing was measured. */
typedef struct ft_weight_plan_report {
    ft_loss_kind kind;
    size_t samples, passes; /* that plans were compared on; forward passes of each */
    size_t four_bits, eight_bits, in_float; /* matrices without a rule, by what they got */
    double budget, budget_ms;               /* bits, or milliseconds; 0: it did not decide */
    double ms; /* estimated for the chosen plan on the target machine; 0: no times */
    double bits, loss;                      /* of the chosen plan */
    double uniform_bits, uniform_loss;      /* of 4 bits for all of them */

    /* The loss of the artifact on evaluation samples; verified 0: it was not measured. */
    size_t verified;
    bool held_out; /* these samples were not used for calibration */
    double verified_loss;
} ft_weight_plan_report;

/* What int8 for one activation, or 4 bits for one matrix, cost at the output of the model. */
typedef struct ft_sensitivity {
    char name[FT_NAME]; /* the activation, of attention its queries; or the matrix */
    ft_scheme scheme;   /* of the plan that it is a part of; w4a16: of a matrix */
    double loss;        /* of the model in which all others are float */
    size_t bytes;       /* of the int8 matrices that read it, or of the matrix */
} ft_sensitivity;

/* A plan for the whole model: what its weights take, and what it loses. */
typedef struct ft_pareto_point {
    double bits; /* per weight */
    double loss;
    bool chosen;
} ft_pareto_point;

typedef struct ft_report {
    const char *model;      /* path of the float artifact, borrowed; NULL: unknown */
    ft_point_report *point; /* [points], owned */
    size_t points;
    ft_weight_report *weight; /* [weights], owned */
    size_t weights;
    ft_sensitivity *sensitivity; /* [sensitivities], owned; NULL: not measured */
    size_t sensitivities;
    const char *loss_name;   /* what the losses are: "KL divergence of logits" */
    ft_pareto_point *pareto; /* [pareto_points], owned; NULL: no search */
    size_t pareto_points;
    size_t foldable_inputs, folded_inputs; /* inputs whose scales AWQ can fold, and did fold */
    size_t scalable_inputs, scaled_inputs; /* inputs that SmoothQuant can scale, and did scale */
    double smooth_error_ratio;             /* ft_smoothquant.error_ratio */
    uint64_t samples;                      /* observed */
    ft_method method;                      /* requested method */
    ft_scheme scheme;                      /* of matrices without a rule */
    bool int8_residual, is_decoder;
    ft_mixed_report mixed;
    ft_weight_plan_report weight_plan;
    ft_messages notes;        /* warnings, which have a code, and notes, which have FT_OK */
    bool held_out;            /* the evaluation samples were not used for calibration */
    ft_evaluation evaluation; /* samples = 0: none */
    char *warning;            /* ft_report_warning(), owned */
    char *text;               /* ft_report_format(), owned; NULL if not requested */
} ft_report;

void ft_report_fini(ft_report *report);

/* Whether the methods' ranges for a point differ by more than a factor of 4. */
bool ft_report_methods_disagree(const ft_point_report *point);

/* Prints the tables. */
void ft_report_print(const ft_report *report, FILE *file);

/* The end-to-end figures as a JSON object, which the caller owns; null without an evaluation. */
json_t *ft_report_evaluation_json(const ft_report *report);

/* The report with its warning as JSON; the caller frees it. NULL: no memory. */
char *ft_report_format(const ft_report *report);

#endif
