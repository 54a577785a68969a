/*
 * check.c - the rule of each operation: shapes, dtypes, scales.
 *
 * Every operation of every plan passes here before a backend sees it, so kernels need not check,
 * and a mistake in a family, a lowering or an artifact becomes a sentence instead of a crash.
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
        return fail_check(c, "ids, positions and types must be int32, one a token");
    if ((types == NULL) != (type == NULL) || (positions != NULL && position == NULL))
        return fail_check(c, "indices and their table must both be there or both be absent");
    if (!(c->op->attr.embed_scale > 0.0f) || c->op->attr.position_offset < 0)
        return fail_check(c, "words need a scale above 0, and positions no offset below it");
    if (!is_float_matrix(word) ||
        (position != NULL && (!is_float_matrix(position) || word->cols != position->cols)) ||
        (type != NULL && (!is_float_matrix(type) || word->cols != type->cols)))
        return fail_check(c, "the tables are not float matrices of one width");
    if (c->op->state[FT_STATE_LAST_TOKEN] >= 0 &&
        !is_state(get_state(c, FT_STATE_LAST_TOKEN), FT_SLOTS, 1, FT_I32))
        return fail_check(c, "the tokens chosen last must be int32, one a seat");
    return ft_check_results(c, FT_TOKENS, word->cols);
}

/* The second operand of a sum: of the shape of the first, floats or codes. */
static ft_status check_residual(const checker *c, const ft_value *x, const ft_value *residual)
{
    bool codes = is_quantized_value(residual) && !residual->dynamic;
    if (residual == NULL || !same_shape(x, residual) || !(is_float_value(residual) || codes))
        return fail_check(c, "the residual has another shape or dtype");
    return FT_OK;
}

ft_status ft_check_norm(const checker *c)
{
    const ft_value *x = get_value(c, c->op->in[0]), *residual = get_value(c, c->op->in[1]);
    if (!is_float_value(x))
        return fail_check(c, "reads something that is not float");
    if (residual != NULL)
        FT_TRY(check_residual(c, x, residual));
    bool has_bias = c->op->attr.norm == FT_NORM_LAYER;
    if (!is_vector(get_weight(c, 0), (size_t) x->cols) ||
        (has_bias ? !is_vector(get_weight(c, 1), (size_t) x->cols) : get_weight(c, 1) != NULL))
        return fail_check(c, "weight and bias must be float vectors as wide as the input");
    const ft_value *sum = get_value(c, c->op->second);
    if (sum != NULL && (residual == NULL || !is_float_value(sum) || !same_shape(x, sum)))
        return fail_check(c, "the sum has another shape or dtype, or there is nothing to add");
    return ft_check_results(c, x->rows, (size_t) x->cols);
}

ft_status ft_check_head_norm(const checker *c)
{
    const ft_value *x = get_value(c, c->op->in[0]);
    if (!is_float_value(x))
        return fail_check(c, "reads something that is not float");
    if (c->op->attr.heads < 1 || x->cols % c->op->attr.heads != 0)
        return fail_check(c, "the heads do not divide the width");
    if (!is_vector(get_weight(c, 0), (size_t) (x->cols / c->op->attr.heads)))
        return fail_check(c, "the weight must be a float vector as wide as a head");
    return ft_check_results(c, x->rows, (size_t) x->cols);
}

ft_status ft_check_linear(const checker *c)
{
    const ft_value *x = get_value(c, c->op->in[0]);
    const ft_weight *w = get_weight(c, 0), *bias = get_weight(c, 1);
    if (w == NULL || x == NULL || w->cols != (size_t) x->cols)
        return fail_check(c, "the weight is not as deep as the input is wide");
    if (bias != NULL && !is_vector(bias, w->rows))
        return fail_check(c, "the bias must be a float vector, one value an output");
    bool plain = w->scale == NULL && is_float_matrix(w) && is_float_value(x);
    bool fake = w->scale != NULL && w->dtype == FT_F32 && w->layout == FT_ROW &&
                is_quantized_value(x) && x->dtype == FT_F32;
    bool int8 = w->scale != NULL && w->dtype == FT_I8 && w->layout == FT_COL4_4R2_8C &&
                is_quantized_value(x) && x->dtype == FT_I8;
    bool blocks = is_groupwise_matrix(w) && is_float_value(x);
    if (!plain && !fake && !int8 && !blocks)
        return fail_check(c, "input and weight are not both float or both codes");
    if (!plain)
        FT_TRY(ft_check_accumulator_depth(c, w));
    return ft_check_gemm_results(c, x, w->rows, 1u << FT_F32 | 1u << FT_F16);
}

/* ------------------------------------------------------------------------------------------- */

ft_status ft_check_attention(const checker *c)
{
    const ft_value *q = get_value(c, c->op->in[0]), *probs = get_value(c, c->op->inner);
    if (q == NULL || probs == NULL || !probs->inner || q->rows != FT_TOKENS)
        return fail_check(c, "lacks queries or probabilities");
    for (int i = 0; i < 3; i++) {
        const ft_value *x = get_value(c, c->op->in[i]);
        if (x == NULL || !same_shape(x, q) || x->dtype != q->dtype ||
            is_float_value(x) != is_float_value(q))
            return fail_check(c, "queries, keys and values differ in shape or dtype");
    }
    if (!is_float_value(q) && !is_quantized_value(q))
        return fail_check(c, "queries are neither floats nor codes with a scale");
    if (c->op->attr.heads < 1 || q->cols % c->op->attr.heads != 0)
        return fail_check(c, "the heads do not divide the width");
    if (!is_float_value(q) && q->cols / c->op->attr.heads > 1024)
        return fail_check(c,
                          "the heads are wider than the 1024 codes whose sums are exact in float");
    return ft_check_gemm_results(c, q, (size_t) q->cols, 1u << FT_F32);
}

/* Operations from floats to something of the same shape. */
static ft_status check_elementwise(const checker *c)
{
    const ft_value *x = get_value(c, c->op->in[0]);
    if (!is_float_value(x))
        return fail_check(c, "reads something that is not float");
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
    return check_elementwise(c);
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
        return fail_check(c, "reads something that has no scale");
    return ft_check_results(c, x->rows, (size_t) x->cols);
}

ft_status ft_check_observe(const checker *c)
{
    if (!is_float_value(get_value(c, c->op->in[0])))
        return fail_check(c, "observes what is not float");
    if (c->op->out >= 0 || c->op->codes >= 0)
        return fail_check(c, "cannot write anything");
    return FT_OK;
}

ft_status ft_check_pool(const checker *c)
{
    const ft_value *x = get_value(c, c->op->in[0]);
    if (!is_float_value(x) || x->rows != FT_TOKENS)
        return fail_check(c, "reads something that is not float or not per token");
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
                                                 : fail_check(&c, "is no operation");
}
