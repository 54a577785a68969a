/*
 * check.c - the rule of each operation: shapes, dtypes, scales.
 *
 * Every operation of every plan passes here before a backend sees it, so kernels need not check,
 * and a mistake in a family, a lowering or an artifact becomes a sentence instead of a crash.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/check_private.h"

ft_status ft_check_results(const checker *c, ft_rows rows, size_t cols, int writes)
{
    const ft_value *out = value_at(c, c->op->out), *codes = value_at(c, c->op->codes);
    if (out == NULL && codes == NULL)
        return refuse(c, "has no result");
    if (out != NULL && !(writes & FLOATS))
        return refuse(c, "cannot write floats");
    if (codes != NULL && !(writes & CODES))
        return refuse(c, "cannot write codes");
    if (out != NULL && codes != NULL && !(writes & BOTH_AT_ONCE))
        return refuse(c, "cannot write floats and codes at once");
    if (out != NULL && (!is_real(out) || !has_shape(out, rows, cols)))
        return refuse(c, "the float result has another shape or dtype");
    if (codes != NULL && (!is_codes(codes) || !has_shape(codes, rows, cols)))
        return refuse(c, "the codes have another shape or dtype, or no scale");
    if (codes != NULL && codes->dynamic && !(writes & DYNAMIC))
        return refuse(c, "cannot make the scales of its rows");
    return FT_OK;
}

ft_status ft_check_product(const checker *c, const ft_value *x, size_t cols, unsigned reals)
{
    const ft_value *out = value_at(c, c->op->out), *codes = value_at(c, c->op->codes);
    FT_TRY(ft_check_results(c, x->rows, cols, is_real(x) ? FLOATS : FLOATS | CODES));
    if (codes != NULL && codes->dtype != x->dtype)
        return refuse(c, "the codes have another shape or dtype, or no scale");
    if (out != NULL && is_real(x) && out->dtype != x->dtype &&
        !(x->rows == FT_SELECTED && out->dtype == FT_F32))
        return refuse(c, "reads and writes floats of two precisions");
    if (out != NULL && !is_real(x) && !(reals >> out->dtype & 1))
        return refuse(c, "cannot write floats of this precision");
    return FT_OK;
}

ft_status ft_check_depth(const checker *c, const ft_weight *w)
{
    const ft_blocks *blocks = &w->blocks;
    bool in_groups = blocks->scale != NULL && !blocks->by_codes && blocks->group > 0;
    if (w->cols > 65536 && (!in_groups || blocks->group > 65536))
        return refuse(c, "the weight is deeper than the 65536 codes that int32 adds safely");
    return FT_OK;
}

/* ------------------------------------------------------------------------------------------- */

static ft_status check_embed(const checker *c)
{
    const ft_weight *word = weight_at(c, 0), *position = weight_at(c, 1), *type = weight_at(c, 2);
    const ft_value *positions = value_at(c, c->op->in[1]), *types = value_at(c, c->op->in[2]);
    if (!is_index(value_at(c, c->op->in[0])) || (positions != NULL && !is_index(positions)) ||
        (types != NULL && !is_index(types)))
        return refuse(c, "ids, positions and types must be int32, one a token");
    if ((types == NULL) != (type == NULL) || (positions != NULL && position == NULL))
        return refuse(c, "indices and their table must both be there or both be absent");
    if (!(c->op->attr.embed_scale > 0.0f) || c->op->attr.position_offset < 0)
        return refuse(c, "words need a scale above 0, and positions no offset below it");
    if (!is_float_matrix(word) ||
        (position != NULL && (!is_float_matrix(position) || word->cols != position->cols)) ||
        (type != NULL && (!is_float_matrix(type) || word->cols != type->cols)))
        return refuse(c, "the tables are not float matrices of one width");
    if (c->op->state[FT_STATE_LAST] >= 0 &&
        !is_state(state_at(c, FT_STATE_LAST), FT_SEATS, 1, FT_I32))
        return refuse(c, "the tokens chosen last must be int32, one a seat");
    return ft_check_results(c, FT_TOKENS, word->cols, FLOATS);
}

/* The second operand of a sum: of the shape of the first, floats or codes. */
static ft_status check_residual(const checker *c, const ft_value *x, const ft_value *residual)
{
    bool codes = is_codes(residual) && !residual->dynamic;
    if (residual == NULL || !same_shape(x, residual) || !(is_real(residual) || codes))
        return refuse(c, "the residual has another shape or dtype");
    return FT_OK;
}

static ft_status check_norm(const checker *c)
{
    const ft_value *x = value_at(c, c->op->in[0]), *residual = value_at(c, c->op->in[1]);
    if (!is_real(x))
        return refuse(c, "reads something that is not float");
    if (residual != NULL)
        FT_TRY(check_residual(c, x, residual));
    bool has_bias = c->op->attr.norm == FT_NORM_LAYER;
    if (!is_vector(weight_at(c, 0), (size_t) x->cols) ||
        (has_bias ? !is_vector(weight_at(c, 1), (size_t) x->cols) : weight_at(c, 1) != NULL))
        return refuse(c, "weight and bias must be float vectors as wide as the input");
    const ft_value *sum = value_at(c, c->op->second);
    if (sum != NULL && (residual == NULL || !is_real(sum) || !same_shape(x, sum)))
        return refuse(c, "the sum has another shape or dtype, or there is nothing to add");
    return ft_check_results(c, x->rows, (size_t) x->cols, FLOATS | CODES | BOTH_AT_ONCE | DYNAMIC);
}

static ft_status check_linear(const checker *c)
{
    const ft_value *x = value_at(c, c->op->in[0]);
    const ft_weight *w = weight_at(c, 0), *bias = weight_at(c, 1);
    if (w == NULL || x == NULL || w->cols != (size_t) x->cols)
        return refuse(c, "the weight is not as deep as the input is wide");
    if (bias != NULL && !is_vector(bias, w->rows))
        return refuse(c, "the bias must be a float vector, one value an output");
    bool plain = w->scale == NULL && is_float_matrix(w) && is_real(x);
    bool fake = w->scale != NULL && w->dtype == FT_F32 && w->layout == FT_ROW && is_codes(x) &&
                x->dtype == FT_F32;
    bool int8 = w->scale != NULL && w->dtype == FT_I8 && w->layout == FT_COL4_4R2_8C &&
                is_codes(x) && x->dtype == FT_I8;
    bool blocks = is_block_matrix(w) && is_real(x);
    if (!plain && !fake && !int8 && !blocks)
        return refuse(c, "input and weight are not both float or both codes");
    if (!plain)
        FT_TRY(ft_check_depth(c, w));
    return ft_check_product(c, x, w->rows, 1u << FT_F32 | 1u << FT_F16);
}

/* ------------------------------------------------------------------------------------------- */

static ft_status check_attention(const checker *c)
{
    const ft_value *q = value_at(c, c->op->in[0]), *probs = value_at(c, c->op->inner);
    if (q == NULL || probs == NULL || !probs->inner || q->rows != FT_TOKENS)
        return refuse(c, "lacks queries or probabilities");
    for (int i = 0; i < 3; i++) {
        const ft_value *x = value_at(c, c->op->in[i]);
        if (x == NULL || !same_shape(x, q) || x->dtype != q->dtype || is_real(x) != is_real(q))
            return refuse(c, "queries, keys and values differ in shape or dtype");
    }
    if (!is_real(q) && !is_codes(q))
        return refuse(c, "queries are neither floats nor codes with a scale");
    if (c->op->attr.heads < 1 || q->cols % c->op->attr.heads != 0)
        return refuse(c, "the heads do not divide the width");
    if (!is_real(q) && q->cols / c->op->attr.heads > 1024)
        return refuse(c, "the heads are wider than the 1024 codes whose sums are exact in float");
    return ft_check_product(c, q, (size_t) q->cols, 1u << FT_F32);
}

/* Operations from floats to something of the same shape. */
static ft_status check_map(const checker *c, int writes)
{
    const ft_value *x = value_at(c, c->op->in[0]);
    if (!is_real(x))
        return refuse(c, "reads something that is not float");
    return ft_check_results(c, x->rows, (size_t) x->cols, writes);
}

static ft_status check_add(const checker *c)
{
    FT_TRY(check_map(c, FLOATS));
    return check_residual(c, value_at(c, c->op->in[0]), value_at(c, c->op->in[1]));
}

static ft_status check_dequantize(const checker *c)
{
    const ft_value *x = value_at(c, c->op->in[0]);
    if (!is_codes(x))
        return refuse(c, "reads something that has no scale");
    return ft_check_results(c, x->rows, (size_t) x->cols, FLOATS);
}

static ft_status check_observe(const checker *c)
{
    if (!is_real(value_at(c, c->op->in[0])))
        return refuse(c, "observes what is not float");
    if (c->op->out >= 0 || c->op->codes >= 0)
        return refuse(c, "cannot write anything");
    return FT_OK;
}

static ft_status check_pool(const checker *c)
{
    const ft_value *x = value_at(c, c->op->in[0]);
    if (!is_real(x) || x->rows != FT_TOKENS)
        return refuse(c, "reads something that is not float or not per token");
    return ft_check_results(c, FT_SEQUENCES, (size_t) x->cols, FLOATS);
}

ft_status ft_op_check(const ft_plan *plan, const ft_op *op, const char *what, ft_error *err)
{
    checker c = { plan, op, what, err };
    switch (op->kind) {
    case FT_OP_EMBED:
        return check_embed(&c);
    case FT_OP_NORM:
        return check_norm(&c);
    case FT_OP_LINEAR:
        return check_linear(&c);
    case FT_OP_ACTIVATE:
    case FT_OP_NORMALIZE:
        return check_map(&c, FLOATS);
    case FT_OP_QUANTIZE:
        return check_map(&c, CODES | DYNAMIC);
    case FT_OP_ADD:
        return check_add(&c);
    case FT_OP_CONV:
        return ft_check_conv(&c);
    case FT_OP_ATTENTION:
        return check_attention(&c);
    case FT_OP_DEQUANTIZE:
        return check_dequantize(&c);
    case FT_OP_OBSERVE:
        return check_observe(&c);
    case FT_OP_PATCHES:
        return ft_check_patches(&c);
    case FT_OP_PLACE:
        return ft_check_place(&c);
    case FT_OP_POOL:
        return check_pool(&c);
    case FT_OP_GATE:
        return ft_check_gate(&c);
    case FT_OP_STORE:
        return ft_check_store(&c);
    case FT_OP_ATTEND:
        return ft_check_attend(&c);
    case FT_OP_SELECT:
        return ft_check_select(&c);
    case FT_OP_NOTE:
        return ft_check_note(&c);
    case FT_OP_CHOOSE:
        return ft_check_choose(&c);
    case FT_OP_BEAM:
        return ft_check_beam(&c);
    case FT_OP_KINDS:
        break;
    }
    return refuse(&c, "is no operation");
}
