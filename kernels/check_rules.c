/*
 * check_rules.c - what the rules of several operations share: results, and the depth of integer
 * sums.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/check_rules.h"

/* The results: of this shape, and only what `writes` has. */
static ft_status check_written(const checker *c, ft_rows rows, size_t cols, unsigned writes)
{
    const ft_value *out = get_value(c, c->op->out), *codes = get_value(c, c->op->codes);
    if (out == NULL && codes == NULL)
        return fail_check(c, "has no result");
    if (out != NULL && !(writes & FT_CAN_FLOATS))
        return fail_check(c, "cannot write floats");
    if (codes != NULL && !(writes & FT_CAN_QUANTIZE))
        return fail_check(c, "cannot write codes");
    if (out != NULL && codes != NULL && !(writes & FT_CAN_BOTH))
        return fail_check(c, "cannot write floats and codes at once");
    if (out != NULL && (!is_float_value(out) || !has_shape(out, rows, cols)))
        return fail_check(c, "the float result has another shape or dtype");
    if (codes != NULL && (!is_quantized_value(codes) || !has_shape(codes, rows, cols)))
        return fail_check(c, "the codes have another shape or dtype, or no scale");
    if (codes != NULL && codes->dynamic && !(writes & FT_CAN_DYNAMIC))
        return fail_check(c, "cannot make the scales of its rows");
    return FT_OK;
}

ft_status ft_check_results(const checker *c, ft_rows rows, size_t cols)
{
    return check_written(c, rows, cols, ft_op_info_of(c->op->kind)->writes);
}

ft_status ft_check_gemm_results(const checker *c, const ft_value *x, size_t cols,
                                unsigned float_dtypes)
{
    const ft_value *out = get_value(c, c->op->out), *codes = get_value(c, c->op->codes);
    unsigned writes = ft_op_info_of(c->op->kind)->writes;
    FT_TRY(check_written(c, x->rows, cols, is_float_value(x) ? FT_CAN_FLOATS : writes));
    if (codes != NULL && codes->dtype != x->dtype)
        return fail_check(c, "the codes have another shape or dtype, or no scale");
    if (out != NULL && is_float_value(x) && out->dtype != x->dtype &&
        !(x->rows == FT_SELECTED && out->dtype == FT_F32))
        return fail_check(c, "reads and writes floats of two precisions");
    if (out != NULL && !is_float_value(x) && !(float_dtypes >> out->dtype & 1))
        return fail_check(c, "cannot write floats of this precision");
    return FT_OK;
}

ft_status ft_check_accumulator_depth(const checker *c, const ft_weight *w)
{
    const ft_groupwise *blocks = &w->blocks;
    bool in_groups = blocks->scale != NULL && !blocks->int8_activations && blocks->group > 0;
    if (w->cols > 65536 && (!in_groups || blocks->group > 65536))
        return fail_check(c, "the weight is deeper than the 65536 codes that int32 adds safely");
    return FT_OK;
}
