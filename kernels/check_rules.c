/*
 * check_rules.c - what the rules of several operations share: results, and the depth of integer
 * sums.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/check_rules.h"

/* The results have this shape, and are of the types in `writes` (FT_CAN_...). */
static ft_status check_written(const checker *c, ft_rows rows, size_t cols, unsigned writes)
{
    const ft_value *out = get_value(c, c->op->out), *quantized = get_value(c, c->op->quantized);
    if (out == NULL && quantized == NULL)
        return fail_check(c, "has no result");
    if (out != NULL && !(writes & FT_CAN_FLOATS))
        return fail_check(c, "cannot write a float result");
    if (quantized != NULL && !(writes & FT_CAN_QUANTIZE))
        return fail_check(c, "cannot write a quantized result");
    if (out != NULL && quantized != NULL && !(writes & FT_CAN_BOTH))
        return fail_check(c, "cannot write both a float and a quantized result");
    if (out != NULL && (!is_float_value(out) || !has_shape(out, rows, cols)))
        return fail_check(c, "the float result has the wrong shape or dtype");
    if (quantized != NULL && (!is_quantized_value(quantized) || !has_shape(quantized, rows, cols)))
        return fail_check(c, "the quantized result has the wrong shape or dtype, or no scale");
    if (quantized != NULL && quantized->dynamic && !(writes & FT_CAN_DYNAMIC))
        return fail_check(c, "cannot write a result with row scales");
    return FT_OK;
}

ft_status ft_check_results(const checker *c, ft_rows rows, size_t cols)
{
    return check_written(c, rows, cols, ft_op_info_of(c->op->kind)->writes);
}

ft_status ft_check_gemm_results(const checker *c, const ft_value *x, size_t cols,
                                unsigned float_dtypes)
{
    const ft_value *out = get_value(c, c->op->out), *quantized = get_value(c, c->op->quantized);
    unsigned writes = ft_op_info_of(c->op->kind)->writes;
    FT_TRY(check_written(c, x->rows, cols, is_float_value(x) ? FT_CAN_FLOATS : writes));
    if (quantized != NULL && quantized->dtype != x->dtype)
        return fail_check(c, "the quantized result has the wrong shape or dtype, or no scale");
    if (out != NULL && is_float_value(x) && out->dtype != x->dtype &&
        !(x->rows == FT_SELECTED && out->dtype == FT_F32))
        return fail_check(c, "input and float result differ in precision");
    if (out != NULL && !is_float_value(x) && !(float_dtypes >> out->dtype & 1))
        return fail_check(c, "cannot write a float result of this precision");
    return FT_OK;
}

ft_status ft_check_accumulator_depth(const checker *c, const ft_weight *w)
{
    const ft_groupwise *groupwise = &w->groupwise;
    bool in_groups =
        groupwise->scale != NULL && !groupwise->int8_activations && groupwise->group > 0;
    if (w->cols > 65536 && (!in_groups || groupwise->group > 65536))
        return fail_check(c, "K is above 65536, so that int32 sums could overflow");
    bool long_group = groupwise->group == 0 || groupwise->group > FT_GROUPWISE_MAX_INT8_GROUP;
    if (groupwise->int8_activations && w->cols > FT_GROUPWISE_MAX_INT8_GROUP && long_group)
        return fail_check(c, "a group of int8 activations is above 32768, so that int32 sums could "
                             "overflow");
    return FT_OK;
}
