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
static const ft_quantized_weight *int8_matrix(const ft_calibration_job *j, const ft_op *op)
{
    if (!ft_op_is_gemm(op->kind))
        return NULL;
    const char *name = j->model->plan.weight[op->weight[0]].name;
    const ft_quantized_weight *found =
        ft_quantized_weights_find(j->quantized, j->n_quantized, name);
    return found != NULL && ft_scheme_is_int8(found->scheme) ? found : NULL;
}

static void add_use(ft_point_use *use, const ft_calibration_job *j, const ft_op *op)
{
    const ft_quantized_weight *matrix = int8_matrix(j, op);
    if (matrix != NULL && use->matrix == NULL)
        use->matrix = matrix->weights.name;
    if (matrix != NULL && matrix->scheme == FT_SCHEME_W8A8_DYNAMIC)
        use->per_token = true;
    if (matrix != NULL || ft_op_info_of(op->kind)->reads == FT_READS_STATIC)
        use->is_quantized = true;
}

ft_point_use ft_point_use_of(const ft_calibration_job *job, const char *point)
{
    const ft_plan *plan = &job->model->plan;
    int value = ft_plan_find(plan, point);
    if (value < 0 || plan->value[value].inner)
        return (ft_point_use){ .is_quantized = false };
    ft_point_use use = { .is_quantized = job->options->int8_residual };
    for (int i = 0; i < plan->nop; i++)
        if (reads_value(&plan->op[i], value))
            add_use(&use, job, &plan->op[i]);
    return use;
}
