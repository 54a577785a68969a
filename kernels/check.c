/*
 * check.c - the rule of each operation: shapes, dtypes, scales.
 *
 * Every operation of a plan is checked here before a backend runs it.  Kernels therefore do not
 * check their operands, and a mistake in a family, in lowering or in an artifact is reported as an
 * error instead of a crash.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/check_rules.h"

ft_status ft_check_embed(const checker *c)
{
    const ft_weight *word = get_weight(c, 0), *position = get_weight(c, 1),
                    *type = get_weight(c, 2);
    const ft_value *positions = get_value(c, c->op->in[1]), *types = get_value(c, c->op->in[2]);
    if (!is_index(get_value(c, c->op->in[0])) || (positions != NULL && !is_index(positions)) ||
        (types != NULL && !is_index(types)))
        return fail_check(c, "ids, positions and token types must be int32, one per token");
    if ((types == NULL) != (type == NULL) || (positions != NULL && position == NULL))
        return fail_check(c, "indices and their table must be given together");
    if (!(c->op->attr.embed_scale > 0.0f) || c->op->attr.position_offset < 0)
        return fail_check(
            c, "the embedding scale must be above 0 and the position offset must not be negative");
    if (!is_float_matrix(word) ||
        (position != NULL && (!is_float_matrix(position) || word->cols != position->cols)) ||
        (type != NULL && (!is_float_matrix(type) || word->cols != type->cols)))
        return fail_check(c, "the embedding tables must be float matrices of the same width");
    if (c->op->state[FT_STATE_LAST_TOKEN] >= 0 &&
        !is_state(get_state(c, FT_STATE_LAST_TOKEN), FT_SLOTS, 1, FT_I32))
        return fail_check(c, "the last tokens must be int32, one per slot");
    return ft_check_results(c, FT_TOKENS, word->cols);
}

/* The second operand of a sum has the shape of the first and is float or quantized. */
static ft_status check_residual(const checker *c, const ft_value *x, const ft_value *residual)
{
    bool quantized = is_quantized_value(residual) && !residual->dynamic;
    if (residual == NULL || !same_shape(x, residual) || !(is_float_value(residual) || quantized))
        return fail_check(c, "the residual has the wrong shape or dtype");
    return FT_OK;
}

/* A vector by which the quantized result is smoothed is as long as its rows. */
static ft_status check_smoothing(const checker *c, const ft_value *x)
{
    const ft_weight *smoothing = get_weight(c, FT_WEIGHT_SMOOTHING);
    if (smoothing != NULL && (c->op->quantized < 0 || !is_vector(smoothing, (size_t) x->cols)))
        return fail_check(c, "the smoothing must be a float vector as long as the quantized rows");
    return FT_OK;
}

ft_status ft_check_norm(const checker *c)
{
    const ft_value *x = get_value(c, c->op->in[0]), *residual = get_value(c, c->op->in[1]);
    if (!is_float_value(x))
        return fail_check(c, "the input is not float");
    if (residual != NULL)
        FT_TRY(check_residual(c, x, residual));
    bool has_bias = c->op->attr.norm == FT_NORM_LAYER;
    if (!is_vector(get_weight(c, 0), (size_t) x->cols) ||
        (has_bias ? !is_vector(get_weight(c, 1), (size_t) x->cols) : get_weight(c, 1) != NULL))
        return fail_check(c, "weight and bias must be float vectors as long as the input is wide");
    const ft_value *sum = get_value(c, c->op->second);
    if (sum != NULL && (residual == NULL || !is_float_value(sum) || !same_shape(x, sum)))
        return fail_check(c,
                          "the stored sum has the wrong shape or dtype, or there is no residual");
    FT_TRY(check_smoothing(c, x));
    return ft_check_results(c, x->rows, (size_t) x->cols);
}

ft_status ft_check_head_norm(const checker *c)
{
    const ft_value *x = get_value(c, c->op->in[0]);
    if (!is_float_value(x))
        return fail_check(c, "the input is not float");
    if (c->op->attr.heads < 1 || x->cols % c->op->attr.heads != 0)
        return fail_check(c, "the width is not a multiple of the number of heads");
    if (!is_vector(get_weight(c, 0), (size_t) (x->cols / c->op->attr.heads)))
        return fail_check(c, "the weight must be a float vector of head_size elements");
    return ft_check_results(c, x->rows, (size_t) x->cols);
}

ft_status ft_check_linear(const checker *c)
{
    const ft_value *x = get_value(c, c->op->in[0]);
    const ft_weight *w = get_weight(c, 0), *bias = get_weight(c, 1);
    if (w == NULL || x == NULL || w->cols != (size_t) x->cols)
        return fail_check(c, "the weight and the input differ in K");
    if (bias != NULL && !is_vector(bias, w->rows))
        return fail_check(c, "the bias must be a float vector with one element per output");
    bool plain = w->scale == NULL && is_float_matrix(w) && is_float_value(x);
    bool fake = w->scale != NULL && w->dtype == FT_F32 && w->layout == FT_ROW &&
                is_quantized_value(x) && x->dtype == FT_F32;
    bool int8 = w->scale != NULL && w->dtype == FT_I8 && w->layout == FT_COL4_4R2_8C &&
                is_quantized_value(x) && x->dtype == FT_I8;
    bool blocks = is_groupwise_matrix(w) && is_float_value(x);
    if (!plain && !fake && !int8 && !blocks)
        return fail_check(c, "input and weight must both be float or both be quantized");
    if (!plain)
        FT_TRY(ft_check_accumulator_depth(c, w));
    return ft_check_gemm_results(c, x, w->rows, 1u << FT_F32 | 1u << FT_F16);
}

/* ------------------------------------------------------------------------------------------- */

ft_status ft_check_attention(const checker *c)
{
    const ft_value *q = get_value(c, c->op->in[0]), *probs = get_value(c, c->op->inner);
    if (q == NULL || probs == NULL || !probs->inner || q->rows != FT_TOKENS)
        return fail_check(c, "queries or probabilities are missing");
    for (int i = 0; i < 3; i++) {
        const ft_value *x = get_value(c, c->op->in[i]);
        if (x == NULL || !same_shape(x, q) || x->dtype != q->dtype ||
            is_float_value(x) != is_float_value(q))
            return fail_check(c, "queries, keys and values differ in shape or dtype");
    }
    if (!is_float_value(q) && !is_quantized_value(q))
        return fail_check(c, "queries are neither float nor quantized with a scale");
    if (c->op->attr.heads < 1 || q->cols % c->op->attr.heads != 0)
        return fail_check(c, "the width is not a multiple of the number of heads");
    if (!is_float_value(q) && q->cols / c->op->attr.heads > 1024)
        return fail_check(
            c, "the head size is above 1024, so that float sums of int8 products are not exact");
    return ft_check_gemm_results(c, q, (size_t) q->cols, 1u << FT_F32);
}

/* Operations on floats whose result has the shape of the input. */
static ft_status check_elementwise(const checker *c)
{
    const ft_value *x = get_value(c, c->op->in[0]);
    if (!is_float_value(x))
        return fail_check(c, "the input is not float");
    return ft_check_results(c, x->rows, (size_t) x->cols);
}

ft_status ft_check_activate(const checker *c)
{
    return check_elementwise(c);
}

ft_status ft_check_l2_normalize(const checker *c)
{
    return check_elementwise(c);
}

ft_status ft_check_quantize(const checker *c)
{
    FT_TRY(check_elementwise(c));
    return check_smoothing(c, get_value(c, c->op->in[0]));
}

ft_status ft_check_add(const checker *c)
{
    FT_TRY(check_elementwise(c));
    return check_residual(c, get_value(c, c->op->in[0]), get_value(c, c->op->in[1]));
}

ft_status ft_check_dequantize(const checker *c)
{
    const ft_value *x = get_value(c, c->op->in[0]);
    if (!is_quantized_value(x))
        return fail_check(c, "the input has no scale");
    return ft_check_results(c, x->rows, (size_t) x->cols);
}

ft_status ft_check_observe(const checker *c)
{
    if (!is_float_value(get_value(c, c->op->in[0])))
        return fail_check(c, "the observed value is not float");
    if (c->op->out >= 0 || c->op->quantized >= 0)
        return fail_check(c, "cannot have a result");
    return FT_OK;
}

ft_status ft_check_pool(const checker *c)
{
    const ft_value *x = get_value(c, c->op->in[0]);
    if (!is_float_value(x) || x->rows != FT_TOKENS)
        return fail_check(c, "the input is not float or not one row per token");
    if ((unsigned) c->op->attr.pooling >= FT_NUM_POOLINGS)
        return fail_check(c, "not a pooling");
    return ft_check_results(c, FT_SEQUENCES, (size_t) x->cols);
}

static ft_status (*const rules[FT_NUM_OP_KINDS])(const checker *) = {
#define X(NAME, name, ...) [FT_OP_##NAME] = ft_check_##name,
#include "kernels/ops.def"
#undef X
};

ft_status ft_op_check(const ft_plan *plan, const ft_op *op, const char *what, ft_error *err)
{
    const checker c = { plan, op, what, err };
    return (unsigned) op->kind < FT_NUM_OP_KINDS ? rules[op->kind](&c)
                                                 : fail_check(&c, "not an operation");
}
