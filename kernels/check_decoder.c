/*
 * check_decoder.c - the rules of what only decoders do.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/check_private.h"

#include "kernels/beam_search.h"
#include "runtime/mem.h"

ft_status ft_check_gate(const checker *c)
{
    const ft_value *x = value_at(c, c->op->in[0]), *y = value_at(c, c->op->in[1]);
    if (!is_real(x) || !is_real(y) || !same_shape(x, y) || x->dtype != y->dtype)
        return refuse(c, "the factors are not floats of one shape and precision");
    return ft_check_results(c, x->rows, (size_t) x->cols, FLOATS | CODES | DYNAMIC);
}

/* Keys or values that are kept: floats, or codes beside which scales lie. */
static bool is_cache(const ft_value *cache, const ft_value *scales, ft_rows rows, size_t width,
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
    ft_rows rows = c->op->attr.memory ? FT_MEMORY : FT_CACHE;
    if (!is_cache(state_at(c, FT_STATE_KEYS), state_at(c, FT_STATE_KEY_SCALES), rows, width,
                  heads) ||
        !is_cache(state_at(c, FT_STATE_VALUES), state_at(c, FT_STATE_VALUE_SCALES), rows, width,
                  heads))
        return refuse(c, "the cache has another shape or dtype, or codes without scales");
    return FT_OK;
}

/* The heads of queries `q`; 0 where they do not fit. */
static size_t head_size_of(const checker *c, const ft_value *q)
{
    const ft_attr *attr = &c->op->attr;
    if (!is_real(q) || q->rows != FT_TOKENS || attr->heads < 1 || attr->kv_heads < 1 ||
        q->cols % attr->heads != 0 || attr->heads % attr->kv_heads != 0)
        return 0;
    return (size_t) (q->cols / attr->heads);
}

/* Keys and values of one precision, as wide as their heads; `like` sets it, unless it is NULL. */
static ft_status check_stored(const checker *c, const ft_value *like, size_t head_size)
{
    for (int i = 1; i < 3; i++) {
        const ft_value *x = value_at(c, c->op->in[i]);
        if (!is_real(x) || (like != NULL && x->dtype != like->dtype) ||
            !has_shape(x, FT_TOKENS, (size_t) c->op->attr.kv_heads * head_size))
            return refuse(c, "keys and values are not as wide as their heads");
        like = x;
    }
    return check_cache(c, head_size);
}

/* Nothing is turned: there are no queries and no frequencies. */
static ft_status check_plain_store(const checker *c)
{
    const ft_value *k = value_at(c, c->op->in[1]);
    int32_t heads = c->op->attr.kv_heads;
    if (k == NULL || heads < 1 || k->cols % heads != 0)
        return refuse(c, "the heads do not divide the keys");
    if (weight_at(c, 0) != NULL || c->op->out >= 0 || c->op->codes >= 0)
        return refuse(c, "turns queries, but has none");
    return check_stored(c, NULL, (size_t) (k->cols / heads));
}

ft_status ft_check_store(const checker *c)
{
    const ft_value *q = value_at(c, c->op->in[0]);
    if (q == NULL)
        return check_plain_store(c);
    size_t head_size = head_size_of(c, q);
    if (head_size == 0 || head_size % 2 != 0)
        return refuse(c, "the heads do not divide the queries, or have an odd size");
    if (c->op->attr.memory)
        return refuse(c, "a memory has no positions to turn to");
    FT_TRY(check_stored(c, q, head_size));
    if (!is_vector(weight_at(c, 0), head_size / 2))
        return refuse(c, "the frequencies are not one float for each pair of a head");
    return ft_check_results(c, FT_TOKENS, (size_t) q->cols, FLOATS);
}

ft_status ft_check_attend(const checker *c)
{
    const ft_value *q = value_at(c, c->op->in[0]);
    size_t head_size = head_size_of(c, q);
    if (head_size == 0)
        return refuse(c, "the heads do not divide the queries");
    if (c->op->attr.memory && c->op->attr.window != 0)
        return refuse(c, "a memory has no window");
    if (c->op->state[FT_STATE_ORIGIN] >= 0 &&
        !is_state(state_at(c, FT_STATE_ORIGIN), FT_CONTEXTS, 1, FT_I32))
        return refuse(c, "the origins of tokens must be int32, one for each");
    FT_TRY(check_cache(c, head_size));
    return ft_check_results(c, FT_TOKENS, (size_t) q->cols, FLOATS);
}

ft_status ft_check_select(const checker *c)
{
    const ft_value *x = value_at(c, c->op->in[0]), *y = value_at(c, c->op->out);
    if (!is_real(x) || x->rows != FT_TOKENS || (y != NULL && y->dtype != x->dtype))
        return refuse(c, "reads something that is not float or not per token");
    return ft_check_results(c, FT_SELECTED, (size_t) x->cols, FLOATS);
}

static ft_status check_histories(const checker *c)
{
    const ft_value *seen = state_at(c, FT_STATE_SEEN);
    if (!is_state(state_at(c, FT_STATE_HISTORY), FT_CONTEXTS, 1, FT_I32) || seen == NULL ||
        seen->rows != FT_SEATS || seen->dtype != FT_I32)
        return refuse(c, "the histories must be int32, one list a seat");
    return FT_OK;
}

ft_status ft_check_note(const checker *c)
{
    if (!is_index(value_at(c, c->op->in[0])))
        return refuse(c, "ids must be int32, one a token");
    if (c->op->out >= 0 || c->op->codes >= 0)
        return refuse(c, "cannot write anything but histories");
    return check_histories(c);
}

ft_status ft_check_choose(const checker *c)
{
    const ft_value *x = value_at(c, c->op->in[0]);
    const ft_value *out = value_at(c, c->op->out), *logprob = value_at(c, c->op->second);
    if (!is_real(x) || x->dtype != FT_F32 || x->rows != FT_SELECTED)
        return refuse(c, "logits must be float32, one row for each token to choose");
    FT_TRY(check_histories(c));
    if (!is_state(state_at(c, FT_STATE_LAST), FT_SEATS, 1, FT_I32) ||
        state_at(c, FT_STATE_SEEN)->cols != x->cols)
        return refuse(c, "histories and logits differ in their vocabulary");
    if (out == NULL || out->dtype != FT_I32 || !has_shape(out, FT_SELECTED, 1) ||
        !is_real(logprob) || logprob->dtype != FT_F32 || !has_shape(logprob, FT_SELECTED, 1))
        return refuse(c, "the results must be a token and its log-probability");
    return FT_OK;
}

/* The tokens of a seat: one list, or what stands for each place in it. */
static bool is_list(const checker *c, int slot)
{
    return is_state(state_at(c, slot), FT_CONTEXTS, 1, FT_I32);
}

ft_status ft_check_beam(const checker *c)
{
    const ft_value *x = value_at(c, c->op->in[0]);
    if (!is_real(x) || x->dtype != FT_F32 || x->rows != FT_SELECTED)
        return refuse(c, "logits must be float32, one row for each lane");
    if (x->cols > INT32_MAX / FT_MAX_BEAMS)
        return refuse(c, "the vocabulary is too large to number the tokens of all lanes");
    if (!is_list(c, FT_STATE_HISTORY) || !is_list(c, FT_STATE_FINISHED) ||
        !is_list(c, FT_STATE_ORIGIN))
        return refuse(c, "histories, origins and finished texts must be int32, one list a seat");
    if (!is_state(state_at(c, FT_STATE_LAST), FT_SEATS, 1, FT_I32) ||
        !is_state(state_at(c, FT_STATE_BEAMS), FT_SEATS, FT_BEAM_WORDS, FT_I32))
        return refuse(c, "the tokens chosen last, or what is known of lanes, are not one a seat");
    if (c->op->out >= 0 || c->op->codes >= 0)
        return refuse(c, "cannot write anything but what it remembers");
    return FT_OK;
}
