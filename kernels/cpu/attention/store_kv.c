/*
 * store_kv.c - applies rotary embedding to queries and keys, and stores keys and values in the
 * paged KV cache or, without rotation, in the cross-attention KV.
 *
 * Rotary embedding pairs elements as Hugging Face checkpoints do: element i of a head is rotated
 * together with element i + head_size / 2, by the angle position * frequency[i].
 *
 * Sources: Su et al. 2021; for the scaled frequencies of longer sequences ("dynamic"),
 * transformers' modeling_rope_utils.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/base/cpu.h"
#include "kernels/math/elementary.h"
#include "kernels/quant.h"
#include "runtime/mem.h"

#include <math.h>

/* Scratch of one thread: cosines and sines of a position, and a row of heads. */
typedef struct rope_scratch {
    float *cosine, *sine; /* [head_size / 2] */
    float *row;           /* [heads * head_size] */
    size_t head_size;
} rope_scratch;

ft_workspace ft_cpu_store_kv_workspace(const ft_plan *plan, const ft_op *op,
                                       const ft_limits *limits)
{
    size_t cols = (size_t) plan->value[op->in[op->in[0] < 0 ? 1 : 0]].cols;
    size_t bytes = 2 * ft_round_up(cols * sizeof(float), 64) + 64;
    return (ft_workspace){ .scratch = (size_t) limits->threads * bytes };
}

static rope_scratch rope_scratch_of(const ft_args *args, int thread)
{
    char *base = ft_thread_scratch(args, thread);
    bool is_cross = args->in[0].data == NULL;
    size_t cols = is_cross ? args->in[1].cols : args->in[0].cols;
    size_t head_size = cols / (size_t) (is_cross ? args->op->attr.kv_heads : args->op->attr.heads);
    float *row = (float *) (void *) base;
    float *angles = (float *) (void *) (base + ft_round_up(cols * sizeof(float), 64));
    return (rope_scratch){ angles, angles + head_size / 2, row, head_size };
}

/* The rotary frequency of pair i in a sequence of `n_tokens` tokens. */
static float frequency(const ft_args *args, size_t head_size, size_t i, int32_t n_tokens)
{
    const ft_attr *attr = &args->op->attr;
    if (attr->rope_positions == 0 || n_tokens <= attr->rope_positions)
        return ((const float *) args->weight[0]->data)[i];
    double ntk_scale = (double) attr->rope_factor * n_tokens / attr->rope_positions -
                       ((double) attr->rope_factor - 1.0);
    double size = (double) head_size;
    double base = (double) attr->rope_theta * ft_math_pow(ntk_scale, size / (size - 2.0));
    return (float) ft_math_pow(base, -2.0 * (double) i / size);
}

static void set_angles(const ft_args *args, rope_scratch *s, size_t row)
{
    float position = (float) ft_row_position(args->batch, row);
    int32_t n_tokens = args->batch->n_tokens[args->batch->seq_id[row]];
    for (size_t i = 0; i < s->head_size / 2; i++) {
        float angle = position * frequency(args, s->head_size, i, n_tokens);
        s->cosine[i] = (float) ft_math_cos((double) angle);
        s->sine[i] = (float) ft_math_sin((double) angle);
    }
}

static void rotate(const rope_scratch *s, float *head)
{
    size_t half = s->head_size / 2;
    for (size_t i = 0; i < half; i++) {
        float a = head[i], b = head[i + half];
        head[i] = a * s->cosine[i] - b * s->sine[i];
        head[i + half] = b * s->cosine[i] + a * s->sine[i];
    }
}

/* Loads a row as floats into s->row. */
static void load_row(const ft_args *args, const rope_scratch *s, const ft_view *view, size_t row)
{
    const float *x = ft_row_as_float(args, view, row, s->row);
    for (size_t i = 0; i < view->cols && x != s->row; i++)
        s->row[i] = x[i];
}

/* Stores all heads of s->row in the cache. */
static void store_heads(const ft_args *args, const rope_scratch *s, const ft_view *cache,
                        const ft_view *scales, size_t row)
{
    size_t heads = (size_t) args->op->attr.kv_heads;
    size_t position = ft_row_position(args->batch, row);
    const int32_t *pages = args->op->attr.cross_kv ? ft_row_cross_kv_pages(args->batch, row)
                                                   : ft_row_pages(args->batch, row);
    for (size_t head = 0; head < heads; head++) {
        const float *x = s->row + head * s->head_size;
        size_t cache_row = ft_cache_token_row(pages, position, head, heads);
        char *to = (char *) cache->data + cache_row * s->head_size * ft_dtype_size(cache->dtype);
        if (cache->dtype != FT_I8) {
            args->rows->from_float(to, x, cache->dtype, s->head_size);
            continue;
        }
        float scale = ft_scale_from_amax(args->rows->amax(x, s->head_size));
        ((float *) scales->data)[cache_row] = scale;
        args->rows->quantize_i8((int8_t *) (void *) to, x, ft_inverse_scale(scale), s->head_size);
    }
}

/* Loads a row of queries or keys into s->row and rotates each head. */
static void rotate_heads(const ft_args *args, rope_scratch *s, const ft_view *view, int32_t heads,
                         size_t row)
{
    load_row(args, s, view, row);
    for (size_t head = 0; head < (size_t) heads; head++)
        rotate(s, s->row + head * s->head_size);
}

static void store_row(const ft_args *args, rope_scratch *s, size_t row)
{
    const ft_attr *attr = &args->op->attr;
    if (args->in[0].data == NULL) {
        load_row(args, s, &args->in[1], row);
    } else {
        set_angles(args, s, row);
        rotate_heads(args, s, &args->in[0], attr->heads, row);
        ft_row_store(args, &args->out, row, s->row);
        rotate_heads(args, s, &args->in[1], attr->kv_heads, row);
    }
    store_heads(args, s, &args->state[FT_STATE_KEYS], &args->state[FT_STATE_KEY_SCALES], row);
    load_row(args, s, &args->in[2], row);
    store_heads(args, s, &args->state[FT_STATE_VALUES], &args->state[FT_STATE_VALUE_SCALES], row);
}

static void store_rows(const void *job, int thread, size_t first, size_t end)
{
    rope_scratch s = rope_scratch_of(job, thread);
    for (size_t row = first; row < end; row++)
        store_row(job, &s, row);
}

/* Cosines and sines take as long as many elements that are only copied. */
void ft_cpu_store_kv(const ft_args *args)
{
    size_t rotation_work = args->in[0].data == NULL ? 0 : args->in[0].cols + 16 * args->in[1].cols;
    ft_parallel_rows(args, args->in[1].rows, 2 * args->in[1].cols + rotation_work, store_rows);
}
