/*
 * readers.c - which of the observed values the int8 model quantizes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/readers.h"

#include "runtime/graph/plan.h"

static bool reads_value(const ft_op *op, int value)
{
    for (int i = 0; i < FT_MAX_IN; i++)
        if (op->in[i] == value)
            return true;
    return false;
}

/* The matrix by which an operation multiplies an int8 input; NULL: none. */
static const char *int8_matrix(const ft_calibration_job *j, const ft_op *op)
{
    if (!ft_op_is_gemm(op->kind))
        return NULL;
    const char *name = j->model->plan.weight[op->weight[0]].name;
    const ft_quantized_weight *found =
        ft_quantized_weights_find(j->quantized, j->n_quantized, name);
    return found != NULL && found->scheme == FT_SCHEME_W8A8 ? found->weights.name : NULL;
}

bool ft_point_is_quantized(const ft_calibration_job *job, const char *point, const char **matrix)
{
    const ft_plan *plan = &job->model->plan;
    int value = ft_plan_find(plan, point);
    *matrix = NULL;
    if (value < 0 || plan->value[value].inner)
        return false;
    bool is_quantized = job->options->int8_residual;
    for (int i = 0; i < plan->nop; i++) {
        const ft_op *op = &plan->op[i];
        if (!reads_value(op, value))
            continue;
        if (*matrix == NULL)
            *matrix = int8_matrix(job, op);
        is_quantized =
            is_quantized || *matrix != NULL || ft_op_info_of(op->kind)->reads == FT_READS_STATIC;
    }
    return is_quantized;
}
