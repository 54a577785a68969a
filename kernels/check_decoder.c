/*
 * check_decoder.c - the rules of operations that only decoders have.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/check_rules.h"

#include "kernels/beam_search.h"
#include "runtime/mem.h"

ft_status ft_check_gate(const checker *c)
{
    const ft_value *x = get_value(c, c->op->in[0]), *y = get_value(c, c->op->in[1]);
    if (!is_float_value(x) || !is_float_value(y) || !same_shape(x, y) || x->dtype != y->dtype)
        return fail_check(c, "the operands must be floats of the same shape and precision");
    return ft_check_results(c, x->rows, (size_t) x->cols);
}

/* The keys or values of a cache: floats, or int8 values with scales. */
static bool is_kv_cache(const ft_value *cache, const ft_value *scales, ft_rows rows, size_t width,
                        int32_t heads)
{
    if (cache == NULL || !has_shape(cache, rows, width))
        return false;
    if (cache->dtype == FT_I8)
        return is_state(scales, rows, (size_t) heads, FT_F32);
    return is_float(cache->dtype) && scales == NULL;
}

static ft_status check_cache(const checker *c, size_t head_size)
{
    int32_t heads = c->op->attr.kv_heads;
    size_t width = (size_t) heads * head_size;
    ft_rows rows = c->op->attr.cross_kv ? FT_CROSS_KV : FT_KV_CACHE;
    if (!is_kv_cache(get_state(c, FT_STATE_KEYS), get_state(c, FT_STATE_KEY_SCALES), rows, width,
                     heads) ||
        !is_kv_cache(get_state(c, FT_STATE_VALUES), get_state(c, FT_STATE_VALUE_SCALES), rows,
                     width, heads))
        return fail_check(c,
                          "the KV cache has the wrong shape or dtype, or is int8 without scales");
    return FT_OK;
}

/* The head size of queries `q`; 0 if they do not split into heads. */
static size_t head_size_of(const checker *c, const ft_value *q)
{
    const ft_attr *attr = &c->op->attr;
    if (!is_float_value(q) || q->rows != FT_TOKENS || attr->heads < 1 || attr->kv_heads < 1 ||
        q->cols % attr->heads != 0 || attr->heads % attr->kv_heads != 0)
        return 0;
    return (size_t) (q->cols / attr->heads);
}

/* Keys and values are kv_heads * head_size wide and of one precision: that of `reference`, if not
 * NULL. */
static ft_status check_keys_and_values(const checker *c, const ft_value *reference,
                                       size_t head_size)
{
    for (int i = 1; i < 3; i++) {
        const ft_value *x = get_value(c, c->op->in[i]);
        if (!is_float_value(x) || (reference != NULL && x->dtype != reference->dtype) ||
            !has_shape(x, FT_TOKENS, (size_t) c->op->attr.kv_heads * head_size))
            return fail_check(c, "the width of keys and values is not kv_heads * head_size");
        reference = x;
    }
    return check_cache(c, head_size);
}

/* Without rotary positions there are no queries and no frequencies. */
static ft_status check_store_without_rope(const checker *c)
{
    const ft_value *k = get_value(c, c->op->in[1]);
    int32_t heads = c->op->attr.kv_heads;
    if (k == NULL || heads < 1 || k->cols % heads != 0)
        return fail_check(c, "the width of the keys is not a multiple of kv_heads");
    if (get_weight(c, 0) != NULL || c->op->out >= 0 || c->op->quantized >= 0)
        return fail_check(c, "rotary frequencies or a result need queries");
    return check_keys_and_values(c, NULL, (size_t) (k->cols / heads));
}

ft_status ft_check_store_kv(const checker *c)
{
    const ft_value *q = get_value(c, c->op->in[0]);
    if (q == NULL)
        return check_store_without_rope(c);
    size_t head_size = head_size_of(c, q);
    if (head_size == 0 || head_size % 2 != 0)
        return fail_check(c, "the queries do not split into heads, or the head size is odd");
    if (c->op->attr.cross_kv)
        return fail_check(c, "cross-attention keys have no rotary positions");
    FT_TRY(check_keys_and_values(c, q, head_size));
    if (!is_vector(get_weight(c, 0), head_size / 2))
        return fail_check(c, "the rotary frequencies must be head_size / 2 floats");
    return ft_check_results(c, FT_TOKENS, (size_t) q->cols);
}

ft_status ft_check_attend_kv(const checker *c)
{
    const ft_value *q = get_value(c, c->op->in[0]);
    size_t head_size = head_size_of(c, q);
    if (head_size == 0)
        return fail_check(c, "the queries do not split into heads");
    if (c->op->attr.cross_kv && c->op->attr.window != 0)
        return fail_check(c, "cross-attention has no sliding window");
    if (c->op->state[FT_STATE_CACHE_INDIRECTION] >= 0 &&
        !is_state(get_state(c, FT_STATE_CACHE_INDIRECTION), FT_SLOT_POSITIONS, 1, FT_I32))
        return fail_check(c, "the cache indirection must be int32, one per slot and position");
    FT_TRY(check_cache(c, head_size));
    return ft_check_results(c, FT_TOKENS, (size_t) q->cols);
}

ft_status ft_check_gather_rows(const checker *c)
{
    const ft_value *x = get_value(c, c->op->in[0]), *y = get_value(c, c->op->out);
    if (!is_float_value(x) || x->rows != FT_TOKENS || (y != NULL && y->dtype != x->dtype))
        return fail_check(c, "the input is not float or not one row per token");
    return ft_check_results(c, FT_SELECTED, (size_t) x->cols);
}

static ft_status check_histories(const checker *c)
{
    const ft_value *seen = get_state(c, FT_STATE_TOKEN_COUNTS);
    if (!is_state(get_state(c, FT_STATE_HISTORY), FT_SLOT_POSITIONS, 1, FT_I32) || seen == NULL ||
        seen->rows != FT_SLOTS || seen->dtype != FT_I32)
        return fail_check(c, "histories and token counts must be int32 states of each slot");
    return FT_OK;
}

ft_status ft_check_record_tokens(const checker *c)
{
    if (!is_index(get_value(c, c->op->in[0])))
        return fail_check(c, "ids must be int32, one per token");
    if (c->op->out >= 0 || c->op->quantized >= 0)
        return fail_check(c, "cannot have a result besides the histories");
    return check_histories(c);
}

ft_status ft_check_sample(const checker *c)
{
    const ft_value *x = get_value(c, c->op->in[0]);
    const ft_value *out = get_value(c, c->op->out), *logprob = get_value(c, c->op->second);
    if (!is_float_value(x) || x->dtype != FT_F32 || x->rows != FT_SELECTED)
        return fail_check(c, "logits must be float32, one row per token to sample");
    FT_TRY(check_histories(c));
    if (!is_state(get_state(c, FT_STATE_LAST_TOKEN), FT_SLOTS, 1, FT_I32) ||
        get_state(c, FT_STATE_TOKEN_COUNTS)->cols != x->cols)
        return fail_check(c, "last tokens must be int32, and token counts as wide as the logits");
    if (out == NULL || out->dtype != FT_I32 || !has_shape(out, FT_SELECTED, 1) ||
        !is_float_value(logprob) || logprob->dtype != FT_F32 || !has_shape(logprob, FT_SELECTED, 1))
        return fail_check(c, "the results must be an int32 token and its float32 log-probability");
    return FT_OK;
}

/* One int32 per position of each slot. */
static bool is_list(const checker *c, int operand)
{
    return is_state(get_state(c, operand), FT_SLOT_POSITIONS, 1, FT_I32);
}

ft_status ft_check_beam_search(const checker *c)
{
    const ft_value *x = get_value(c, c->op->in[0]);
    if (!is_float_value(x) || x->dtype != FT_F32 || x->rows != FT_SELECTED)
        return fail_check(c, "logits must be float32, one row per beam");
    if (x->cols > INT32_MAX / FT_MAX_BEAMS)
        return fail_check(c, "the vocabulary is too large for 32-bit candidate indices");
    if (!is_list(c, FT_STATE_HISTORY) || !is_list(c, FT_STATE_FINISHED) ||
        !is_list(c, FT_STATE_CACHE_INDIRECTION))
        return fail_check(c, "histories, cache indirection and finished hypotheses must be int32, "
                             "one list per slot");
    if (!is_state(get_state(c, FT_STATE_LAST_TOKEN), FT_SLOTS, 1, FT_I32) ||
        !is_state(get_state(c, FT_STATE_BEAMS), FT_SLOTS, FT_BEAM_WORDS, FT_I32))
        return fail_check(c, "last tokens and beam states must be int32, one row per slot");
    if (c->op->out >= 0 || c->op->quantized >= 0)
        return fail_check(c, "cannot have a result besides its state");
    return FT_OK;
}
