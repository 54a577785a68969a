/*
 * bert.c - makes random weights for the table of a model family.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/lib/models/bert.h"

#include "runtime/mem.h"
#include "runtime/graph/plan.h"
#include "tests/lib/ops/oracle.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

ft_config test_bert_config(int32_t hidden, int32_t heads, int32_t ffn)
{
    return (ft_config){
        .layers = 2,
        .hidden = hidden,
        .heads = heads,
        .ffn = ffn,
        .vocabulary = 50,
        .positions = 300,
        .types = 2,
        .labels = 3,
        .padding_id = -1,
        .eps = 1e-12f,
        .activation = FT_ACT_GELU,
        .pooler = true,
        .head = FT_HEAD_POOLED,
        .embedding = FT_EMBEDDING_MEAN,
        .normalize = true,
    };
}

static void *memory(size_t bytes)
{
    void *block = ft_calloc_aligned(bytes);
    if (block == NULL)
        bail_out("cannot allocate %zu bytes", bytes);
    return block;
}

/* A weight that is not quantized: norms near 1, all others small. */
static void make_floats(rng *r, ft_weight *weight)
{
    size_t count = weight->rows * weight->cols;
    float *data = memory(count * sizeof *data);
    rng_floats(r, data, count, weight->rows == 1 ? 0.1 : 1.0 / sqrt((double) weight->cols));
    bool is_gain = strstr(weight->name, "norm.weight") != NULL;
    for (size_t i = 0; i < count && is_gain; i++)
        data[i] += 1.0f;
    weight->data = data;
}

/* Scales that give uniform int8 values, with standard deviation 73, the size of trained weights. */
static float *make_scales(rng *r, size_t rows, size_t cols)
{
    float *scale = memory(rows * sizeof *scale);
    for (size_t i = 0; i < rows; i++)
        scale[i] = (float) (rng_uniform(r, 0.5, 1.5) / (73.0 * sqrt((double) cols)));
    return scale;
}

/* The quantized values in float, or their dequantized values. */
static void *fake_quantized(const ft_weight *weight, const int8_t *quantized, bool real)
{
    float *data = memory(weight->rows * weight->cols * sizeof *data);
    for (size_t row = 0; row < weight->rows; row++)
        for (size_t i = row * weight->cols; i < (row + 1) * weight->cols; i++)
            data[i] = real ? (float) quantized[i] * weight->scale[row] : (float) quantized[i];
    return data;
}

static void *quantized_in_col4(const ft_weight *weight, const int8_t *quantized)
{
    int8_t *data = memory(oracle_col4(NULL, NULL, weight->rows, weight->cols, 0));
    oracle_col4(data, quantized, weight->rows, weight->cols, 0);
    return data;
}

static void make_linear(rng *r, ft_weight *weight, ft_mode mode)
{
    int8_t *quantized = memory(weight->rows * weight->cols);
    float *scale = make_scales(r, weight->rows, weight->cols);
    rng_int8(r, quantized, weight->rows * weight->cols);
    weight->scale = scale;
    if (mode == FT_MODE_INT8) {
        weight->data = quantized_in_col4(weight, quantized);
        weight->dtype = FT_I8;
        weight->layout = FT_COL4_4R2_8C;
    } else
        weight->data = fake_quantized(weight, quantized, mode != FT_MODE_FAKE_QUANTIZE);
    if (mode == FT_MODE_FLOAT || mode == FT_MODE_OBSERVE) {
        weight->scale = NULL;
        free(scale);
    }
    free(quantized);
}

static void build(test_bert *model)
{
    ft_graph graph;
    ft_error err;
    ft_graph_init(&graph, model->weight, model->quantizable, model->nweight);
    ft_family_find("bert")->build(&graph, &model->config);
    if (ft_graph_finish(&graph, &err) != FT_OK)
        bail_out("%s", err.text);
    model->graph = graph.plan;
}

void test_bert_make(test_bert *out, const ft_config *config, ft_mode mode, uint64_t seed)
{
    rng r = { seed };
    ft_weight_spec *spec;
    size_t count;
    ft_error err;
    if (ft_family_weights(ft_family_find("bert"), NULL, config, &spec, &count, &err) != FT_OK)
        bail_out("%s", err.text);
    *out = (test_bert){ .config = *config,
                        .weight = memory(count * sizeof *out->weight),
                        .quantizable = memory(count * sizeof *out->quantizable),
                        .nweight = (int) count };
    for (size_t i = 0; i < count; i++) {
        ft_weight *weight = &out->weight[i];
        memcpy(weight->name, spec[i].name, sizeof weight->name);
        weight->rows = spec[i].ndim == 2 ? (size_t) spec[i].dim[0] : 1;
        weight->cols = (size_t) spec[i].dim[spec[i].ndim - 1];
        out->quantizable[i] = spec[i].role == FT_ROLE_LINEAR;
        if (out->quantizable[i])
            make_linear(&r, weight, mode);
        else
            make_floats(&r, weight);
    }
    free(spec);
    build(out);
}

void test_bert_free(test_bert *model)
{
    for (int i = 0; i < model->nweight; i++) {
        free((void *) (uintptr_t) model->weight[i].data);
        free((void *) (uintptr_t) model->weight[i].scale);
    }
    free(model->weight);
    free(model->quantizable);
    ft_plan_fini(&model->graph);
}

ft_plan test_lower(const ft_plan *graph, const ft_lower_options *how)
{
    ft_plan plan;
    ft_error err;
    if (ft_lower(&plan, graph, how, &err) != FT_OK)
        bail_out("%s", err.text);
    for (int i = 0; i < plan.nop; i++)
        if (ft_op_check(&plan, &plan.op[i], "test", &err) != FT_OK)
            bail_out("%s", err.text);
    return plan;
}
