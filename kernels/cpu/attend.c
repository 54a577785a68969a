/*
 * attend.c - causal attention over what the cache holds.
 *
 * A row's result depends on its own query and on the keys before it alone, in the order of their
 * positions: neither its neighbours in the run nor the cutting of a prompt into chunks change a
 * bit.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/cpu.h"
#include "runtime/mem.h"

#include <math.h>
#include <omp.h>
#include <string.h>

/* Of one thread: a query and a result, a head of the cache, and the scores of all keys. */
typedef struct desk {
    float *query, *result, *head; /* [head_size] */
    float *score;                 /* [context] */
} desk;

size_t ft_cpu_attend_scratch(const ft_plan *plan, const ft_op *op, const ft_limits *limits)
{
    size_t cols = (size_t) plan->value[op->in[0]].cols;
    return (size_t) limits->threads *
           (ft_round_up((3 * cols + limits->context) * sizeof(float), 64) + 64);
}

static desk desk_of(const ft_args *args, size_t head_size)
{
    float *own = ft_thread_scratch(args, omp_get_thread_num());
    return (desk){ own, own + head_size, own + 2 * head_size, own + 3 * head_size };
}

/* A token's key or value of one head, as floats. */
static const float *cached(const ft_args *args, int slot, int scale_slot, size_t place,
                           size_t head_size, float *copy)
{
    const ft_view *cache = &args->state[slot];
    size_t at = place * head_size;
    if (cache->dtype == FT_F32)
        return (const float *) cache->data + at;
    if (cache->dtype == FT_I8)
        args->rows->dequantize_i8(copy, (const int8_t *) cache->data + at,
                                  ((const float *) args->state[scale_slot].data)[place], head_size);
    else
        args->rows->to_float(copy, (const uint16_t *) cache->data + at, cache->dtype, head_size);
    return copy;
}

static float dot(const float *a, const float *b, size_t n)
{
    float sum = 0.0f;
    for (size_t i = 0; i < n; i++)
        sum = fmaf(a[i], b[i], sum);
    return sum;
}

/* One head of one row: from desk->query to desk->result. */
static void attend_head(const ft_args *args, const desk *d, size_t row, size_t kv_head,
                        size_t head_size)
{
    const ft_attr *attr = &args->op->attr;
    size_t heads = (size_t) attr->kv_heads, last = ft_row_position(args->batch, row);
    size_t window = attr->window > 0 ? (size_t) attr->window : last + 1;
    size_t first = last + 1 > window ? last + 1 - window : 0;
    const int32_t *pages = ft_row_pages(args->batch, row);
    for (size_t i = first; i <= last; i++)
        d->score[i - first] =
            dot(d->query,
                cached(args, FT_STATE_KEYS, FT_STATE_KEY_SCALES,
                       ft_cache_find(pages, i, kv_head, heads), head_size, d->head),
                head_size);
    args->rows->softmax(d->score, attr->softmax_scale, last + 1 - first);
    memset(d->result, 0, head_size * sizeof *d->result);
    for (size_t i = first; i <= last; i++) {
        const float *value = cached(args, FT_STATE_VALUES, FT_STATE_VALUE_SCALES,
                                    ft_cache_find(pages, i, kv_head, heads), head_size, d->head);
        for (size_t k = 0; k < head_size; k++)
            d->result[k] = fmaf(d->score[i - first], value[k], d->result[k]);
    }
}

/* Part `head` of a row of queries or results. */
static void *part(const ft_view *view, size_t row, size_t head, size_t head_size)
{
    size_t at = row * view->cols + head * head_size;
    return (char *) view->data + at * ft_dtype_size(view->dtype);
}

void ft_cpu_attend(const ft_args *args)
{
    size_t heads = (size_t) args->op->attr.heads, head_size = args->in[0].cols / heads;
    size_t group = heads / (size_t) args->op->attr.kv_heads;
#pragma omp parallel num_threads(args->threads)
    {
        desk d = desk_of(args, head_size);
#pragma omp for schedule(dynamic, 4)
        for (size_t i = 0; i < args->in[0].rows * heads; i++) {
            size_t row = i / heads, head = i % heads;
            args->rows->to_float(d.query, part(&args->in[0], row, head, head_size),
                                 args->in[0].dtype, head_size);
            attend_head(args, &d, row, head / group, head_size);
            args->rows->from_float(part(&args->out, row, head, head_size), d.result,
                                   args->out.dtype, head_size);
        }
    }
}
