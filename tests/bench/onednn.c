/*
 * onednn.c - matmul of oneDNN 2.x: s8 x s8 with scales per column, bias, gelu, sum, s8 or f32 out;
 * and f32.
 *
 * Output scales come before the post-ops and after the bias, so the bias is divided by them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/bench/onednn.h"

#include <dnnl.h>
#include <stdio.h>
#include <stdlib.h>

struct onednn {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t primitive;
    dnnl_memory_t x, bias, y, *weights; /* bias: NULL for f32 */
    size_t sets;
    float *bias_values;
};

#define CHECK(call)                                                                                \
    do {                                                                                           \
        dnnl_status_t check_status = (call);                                                       \
        if (check_status != dnnl_success) {                                                        \
            fprintf(stderr, "oneDNN: %s: status %d\n", #call, (int) check_status);                 \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static dnnl_memory_desc_t matrix(size_t rows, size_t cols, dnnl_data_type_t type,
                                 dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t desc;
    dnnl_dims_t dims = { (dnnl_dim_t) rows, (dnnl_dim_t) cols };
    CHECK(dnnl_memory_desc_init_by_tag(&desc, 2, dims, type, tag));
    return desc;
}

static dnnl_primitive_attr_t epilogue(const ft_gemm_i8 *g)
{
    dnnl_primitive_attr_t attr;
    dnnl_post_ops_t ops;
    CHECK(dnnl_primitive_attr_create(&attr));
    CHECK(dnnl_post_ops_create(&ops));
    float inverse = g->out_inverse > 0.0f ? g->out_inverse : 1.0f;
    float *scales = malloc(g->n * sizeof *scales);
    for (size_t i = 0; i < g->n; i++)
        scales[i] = g->x_scale * g->w_scale[i] * (g->activation == FT_ACT_NONE ? inverse : 1.0f);
    CHECK(dnnl_primitive_attr_set_output_scales(attr, (dnnl_dim_t) g->n, 1 << 1, scales));
    free(scales);
    if (g->activation == FT_ACT_GELU_APPROX)
        CHECK(dnnl_post_ops_append_eltwise(ops, inverse, dnnl_eltwise_gelu_erf, 0.0f, 0.0f));
    if (g->residual != NULL)
        CHECK(dnnl_post_ops_append_sum(ops, 1.0f));
    CHECK(dnnl_primitive_attr_set_post_ops(attr, ops));
    CHECK(dnnl_post_ops_destroy(ops));
    return attr;
}

static onednn *start(void)
{
    onednn *p = calloc(1, sizeof *p);
    CHECK(dnnl_engine_create(&p->engine, dnnl_cpu, 0));
    CHECK(dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags));
    return p;
}

/* The primitive, and its operands without their data. */
static void make_operands(onednn *p, dnnl_primitive_desc_t desc, const dnnl_memory_desc_t *x,
                          const dnnl_memory_desc_t *y, size_t sets)
{
    CHECK(dnnl_primitive_create(&p->primitive, desc));
    CHECK(dnnl_memory_create(&p->x, x, p->engine, DNNL_MEMORY_NONE));
    CHECK(dnnl_memory_create(&p->y, y, p->engine, DNNL_MEMORY_NONE));
    p->sets = sets;
    p->weights = calloc(sets, sizeof *p->weights);
}

/* Row-major weights [n, k] of a type, in the layout that the primitive prefers. */
static dnnl_memory_t reordered(const onednn *p, dnnl_primitive_desc_t matmul, dnnl_data_type_t type,
                               const void *weights, size_t n, size_t k)
{
    const dnnl_memory_desc_t *to_desc =
        dnnl_primitive_desc_query_md(matmul, dnnl_query_weights_md, 0);
    dnnl_memory_desc_t from_desc = matrix(k, n, type, dnnl_ba);
    dnnl_memory_t from, to;
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t reorder;
    CHECK(dnnl_memory_create(&from, &from_desc, p->engine, (void *) (uintptr_t) weights));
    CHECK(dnnl_memory_create(&to, to_desc, p->engine, DNNL_MEMORY_ALLOCATE));
    CHECK(
        dnnl_reorder_primitive_desc_create(&desc, &from_desc, p->engine, to_desc, p->engine, NULL));
    CHECK(dnnl_primitive_create(&reorder, desc));
    dnnl_exec_arg_t args[] = { { DNNL_ARG_FROM, from }, { DNNL_ARG_TO, to } };
    CHECK(dnnl_primitive_execute(reorder, p->stream, 2, args));
    CHECK(dnnl_stream_wait(p->stream));
    CHECK(dnnl_primitive_destroy(reorder));
    CHECK(dnnl_primitive_desc_destroy(desc));
    CHECK(dnnl_memory_destroy(from));
    return to;
}

static void run(onednn *p, const void *x, void *y, size_t set)
{
    CHECK(dnnl_memory_set_data_handle(p->x, (void *) (uintptr_t) x));
    CHECK(dnnl_memory_set_data_handle(p->y, y));
    dnnl_exec_arg_t args[] = {
        { DNNL_ARG_SRC, p->x },
        { DNNL_ARG_WEIGHTS, p->weights[set] },
        { DNNL_ARG_DST, p->y },
        { DNNL_ARG_BIAS, p->bias },
    };
    CHECK(dnnl_primitive_execute(p->primitive, p->stream, p->bias != NULL ? 4 : 3, args));
    CHECK(dnnl_stream_wait(p->stream));
}

void onednn_free(onednn *p)
{
    for (size_t i = 0; i < p->sets; i++)
        CHECK(dnnl_memory_destroy(p->weights[i]));
    free(p->weights);
    free(p->bias_values);
    if (p->bias != NULL)
        CHECK(dnnl_memory_destroy(p->bias));
    CHECK(dnnl_memory_destroy(p->x));
    CHECK(dnnl_memory_destroy(p->y));
    CHECK(dnnl_primitive_destroy(p->primitive));
    CHECK(dnnl_stream_destroy(p->stream));
    CHECK(dnnl_engine_destroy(p->engine));
    free(p);
}

/* ---- Int8 --------------------------------------------------------------------------------- */

onednn *onednn_new(const ft_gemm_i8 *g, const int8_t *const *weights, size_t sets)
{
    onednn *p = start();
    dnnl_memory_desc_t x = matrix(g->m, g->k, dnnl_s8, dnnl_ab);
    dnnl_memory_desc_t w = matrix(g->k, g->n, dnnl_s8, dnnl_format_tag_any);
    dnnl_memory_desc_t b = matrix(1, g->n, dnnl_f32, dnnl_ab);
    dnnl_memory_desc_t y = matrix(g->m, g->n, g->out_inverse > 0.0f ? dnnl_s8 : dnnl_f32, dnnl_ab);
    dnnl_matmul_desc_t matmul;
    CHECK(dnnl_matmul_desc_init(&matmul, &x, &w, &b, &y));
    dnnl_primitive_attr_t attr = epilogue(g);
    dnnl_primitive_desc_t desc;
    CHECK(dnnl_primitive_desc_create(&desc, &matmul, attr, p->engine, NULL));
    make_operands(p, desc, &x, &y, sets);
    p->bias_values = malloc(g->n * sizeof *p->bias_values);
    for (size_t i = 0; i < g->n; i++)
        p->bias_values[i] = g->bias != NULL ? g->bias[i] / (g->x_scale * g->w_scale[i]) : 0.0f;
    CHECK(dnnl_memory_create(&p->bias, &b, p->engine, p->bias_values));
    for (size_t i = 0; i < sets; i++)
        p->weights[i] = reordered(p, desc, dnnl_s8, weights[i], g->n, g->k);
    CHECK(dnnl_primitive_desc_destroy(desc));
    CHECK(dnnl_primitive_attr_destroy(attr));
    return p;
}

void onednn_run(onednn *p, const ft_gemm_i8 *g, size_t set)
{
    run(p, g->x, g->y, set);
}

/* ---- Float -------------------------------------------------------------------------------- */

onednn *onednn_f32_new(size_t m, size_t n, size_t k, const float *weights, size_t sets)
{
    onednn *p = start();
    dnnl_memory_desc_t x = matrix(m, k, dnnl_f32, dnnl_ab);
    dnnl_memory_desc_t w = matrix(k, n, dnnl_f32, dnnl_format_tag_any);
    dnnl_memory_desc_t y = matrix(m, n, dnnl_f32, dnnl_ab);
    dnnl_matmul_desc_t matmul;
    dnnl_primitive_desc_t desc;
    CHECK(dnnl_matmul_desc_init(&matmul, &x, &w, NULL, &y));
    CHECK(dnnl_primitive_desc_create(&desc, &matmul, NULL, p->engine, NULL));
    make_operands(p, desc, &x, &y, sets);
    for (size_t i = 0; i < sets; i++)
        p->weights[i] = reordered(p, desc, dnnl_f32, weights, n, k);
    CHECK(dnnl_primitive_desc_destroy(desc));
    return p;
}

void onednn_f32_run(onednn *p, const float *x, float *y, size_t set)
{
    run(p, x, y, set);
}
