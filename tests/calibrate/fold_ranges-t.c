/*
 * fold_ranges-t.c - AWQ: which input scales fold into their producer, that folding keeps the
 * outputs, and the search for scales.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/weights/awq.h"
#include "runtime/mem.h"
#include "runtime/graph/plan.h"
#include "tests/lib/models/calibrated.h"
#include "tests/lib/models/converted.h"
#include "tests/lib/golden.h"
#include "tests/lib/models/llama_file.h"
#include "tests/lib/random.h"
#include "tests/lib/models/translator_file.h"
#include "tests/lib/models/vit_file.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static ft_error err;

/* ---- Models ------------------------------------------------------------------------------- */

typedef struct subject {
    tiny checkpoint;
    ft_model *model;
    bool *is_groupwise;
} subject;

static bool is_linear(const ft_model *model, int weight)
{
    const ft_artifact_tensor *t = ft_artifact_find(model->artifact, model->weight[weight].name);
    return t != NULL && strcmp(t->role, "linear") == 0;
}

static void open_subject(subject *s)
{
    char path[128];
    ft_artifact_close(converted(&s->checkpoint, &(ft_convert_options){ 0 }));
    snprintf(path, sizeof path, "%s/model.ft", s->checkpoint.folder);
    s->model = calibrated_open(path, NULL);
    s->is_groupwise = ft_calloc((size_t) s->model->nweight, sizeof *s->is_groupwise);
    for (int i = 0; i < s->model->nweight; i++)
        s->is_groupwise[i] = is_linear(s->model, i);
}

static subject make(const char *file, const char *name, void (*maker)(tiny *, const json_t *))
{
    subject s;
    json_t *variants = golden_json(file);
    maker(&s.checkpoint, llama_variant(variants, name));
    json_decref(variants);
    open_subject(&s);
    return s;
}

static void close_subject(subject *s)
{
    ft_model_close(s->model);
    free(s->is_groupwise);
    tiny_remove(&s->checkpoint);
}

/* ---- Foldable inputs ---------------------------------------------------------------------- */

static bool find(const subject *s, const char *name, ft_scale_fold *fold)
{
    int value = ft_plan_find(&s->model->graph, name);
    if (value < 0)
        bail_out("%s is no value", name);
    return ft_scale_fold_find(fold, &s->model->graph, value, s->is_groupwise);
}

static const char *name_of(const subject *s, int weight)
{
    return weight < 0 ? "nothing" : s->model->weight[weight].name;
}

static void test_llama(void)
{
    subject s = make("llama-variants.json", "qwen2", llama_make);
    ft_scale_fold f;
    ok(find(&s, "layer.1.attn.norm", &f),
       "llama: scales of the q, k and v input fold into the norm before it");
    is_str(name_of(&s, f.norm[0]), "layer.1.attn.norm.weight",
           "llama: the input scales of attention fold into the norm weight");
    ok(f.norm[1] < 0 && f.producer < 0,
       "llama: the norm weight is the only fold target of the attention input");
    ok(find(&s, "layer.1.ffn.act", &f),
       "llama: scales of the gated activation fold into its producer");
    is_str(name_of(&s, f.producer), "layer.1.ffn.up.weight",
           "llama: the input scales of ffn.down fold into the rows of ffn.up");
    ok(find(&s, "layer.1.attn.context", &f),
       "llama: scales of the attention output fold into its producer");
    is_str(name_of(&s, f.producer), "layer.1.attn.v.weight",
           "llama: the input scales of attn.out fold into the rows of attn.v");
    is_str(name_of(&s, f.bias), "layer.1.attn.v.bias",
           "llama: the input scales of attn.out fold into the bias of attn.v");
    size_t size = f.cols / f.heads, sharing = f.heads / f.kv_heads;
    int wrong = 0;
    for (size_t head = 0; head < f.heads; head++)
        for (size_t i = 0; i < size; i++)
            wrong += ft_scale_fold_row(&f, head * size + i) != head / sharing * size + i;
    ok(wrong == 0 && sharing > 1, "llama: query heads that share a KV head share the fold row");
    ok(!find(&s, "norm", &f), "llama: the final norm does not fold because it is an output");
    ok(!find(&s, "layer.0.ffn.sum", &f),
       "llama: the residual sum does not fold because other operations read it");

    int k = ft_plan_find_weight(&s.model->graph, "layer.1.attn.k.weight");
    s.is_groupwise[k] = false;
    ok(!find(&s, "layer.1.attn.norm", &f),
       "llama: a norm does not fold when one of its consumers is not group-wise quantized");
    int up = ft_plan_find_weight(&s.model->graph, "layer.1.ffn.up.weight");
    s.is_groupwise[up] = false;
    ok(!find(&s, "layer.1.ffn.act", &f),
       "llama: scales do not fold into a matrix that is not group-wise quantized");
    close_subject(&s);
}

static void test_others(void)
{
    ft_scale_fold f;
    subject bert;
    tiny_make_classifier(&bert.checkpoint);
    open_subject(&bert);
    ok(!find(&bert, "layer.0.attn.norm", &f),
       "bert: a post-norm does not fold because the residual also reads it");
    ok(!find(&bert, "layer.0.ffn.act", &f), "bert: scales do not fold through GELU");
    ok(find(&bert, "layer.0.attn.context", &f) && f.bias >= 0,
       "bert: scales of the attention output fold into attn.v and its bias");
    close_subject(&bert);

    subject vit = make("vit-variants.json", "classes", vit_make);
    ok(find(&vit, "layer.0.attn.norm", &f) && f.norm[1] >= 0,
       "vit: scales fold into the weight and bias of a pre-norm");
    close_subject(&vit);

    subject m2m = make("translator-variants.json", "m2m", translator_make);
    int through_relu = 0, through_memory = 0;
    for (int i = 0; i < m2m.model->graph.nvalue; i++)
        if (ft_scale_fold_find(&f, &m2m.model->graph, i, m2m.is_groupwise)) {
            int maker = ft_plan_producer(&m2m.model->graph, i);
            through_relu += m2m.model->graph.op[maker].kind == FT_OP_ACTIVATE;
            through_memory += m2m.model->graph.op[maker].attr.cross_kv;
        }
    is_int(through_relu, 4, "m2m: scales fold through ReLU");
    is_int(through_memory, 2, "m2m: scales fold through the cross-attention KV");
    close_subject(&m2m);
}

/* ---- Equivalence -------------------------------------------------------------------------- */

static float *random_factors(uint64_t seed, const ft_scale_fold *f)
{
    float *factor = ft_calloc(f->cols, sizeof *factor),
          *of_row = ft_calloc(f->cols, sizeof *of_row);
    rng r = { seed };
    for (size_t i = 0; i < f->cols; i++)
        of_row[i] = (float) exp(rng_uniform(&r, -1.5, 1.5));
    for (size_t i = 0; i < f->cols; i++)
        factor[i] = of_row[ft_scale_fold_row(f, i)];
    free(of_row);
    return factor;
}

/* A copy of a weight in float32 with the factors applied. */
static ft_weight scaled(const ft_folded_scales *scaling, int index, bool *made)
{
    ft_weight out = scaling->model->weight[index];
    ft_weight_matrix from = { .name = out.name,
                              .dtype = out.dtype,
                              .data = out.data,
                              .rows = out.rows,
                              .cols = out.cols,
                              .row_factor = scaling->row[index],
                              .col_factor = scaling->col[index] };
    *made = from.row_factor != NULL || from.col_factor != NULL;
    if (scaling->vector[index] != NULL)
        out.data = scaling->vector[index];
    if (!*made)
        return out;
    float *data = ft_calloc_aligned(out.rows * out.cols * sizeof *data);
    for (size_t row = 0; row < out.rows; row++)
        ft_weight_matrix_load(data + row * out.cols, &from, row, 0, out.cols);
    out.data = data;
    out.dtype = FT_F32;
    return out;
}

static int divide_all(ft_folded_scales *scaling, const subject *s)
{
    int folds = 0;
    for (int i = 0; i < s->model->graph.nvalue; i++) {
        ft_scale_fold fold;
        if (!ft_scale_fold_find(&fold, &s->model->graph, i, s->is_groupwise))
            continue;
        float *factor = random_factors(100 + (uint64_t) i, &fold);
        if (ft_folded_scales_add(scaling, &fold, factor, &err) != FT_OK)
            bail_out("%s", err.text);
        free(factor);
        folds++;
    }
    return folds;
}

/* The last hidden state for the given inputs. */
static float *run(const ft_model *model, const ft_named_tensor *named, size_t count, size_t *n)
{
    ft_session *session = calibrated_session(model, &(ft_session_options){ .threads = 1 });
    for (size_t i = 0; i < count; i++)
        if (ft_session_set(session, named[i].name, &named[i].tensor, &err) != FT_OK)
            bail_out("%s", err.text);
    if (ft_session_run(session, &err) != FT_OK)
        bail_out("%s", err.text);
    float *out = calibrated_get(session, "last_hidden_state", n);
    ft_session_close(session);
    return out;
}

/* Folds factors of e^+-1.5 into all foldable inputs at once, in float32. */
static void test_exact(const char *what, const subject *s, const ft_named_tensor *named,
                       size_t count, int folds)
{
    size_t weights = (size_t) (s->model->nweight - (s->model->positions != NULL)), n, m;
    ft_weight *weight = ft_calloc(weights, sizeof *weight);
    bool *made = ft_calloc(weights, sizeof *made);
    ft_folded_scales scaling;
    ft_model *twin;
    if (ft_folded_scales_init(&scaling, s->model, &err) != FT_OK)
        bail_out("%s", err.text);
    is_int(divide_all(&scaling, s), folds, "%s: %d values have foldable scales", what, folds);
    for (size_t i = 0; i < weights; i++)
        weight[i] = scaled(&scaling, (int) i, &made[i]);
    ft_model_parts parts = { "twin", s->model->family, &s->model->config, weight, weights };
    if (ft_model_from_weights(&twin, &parts, NULL, &(ft_quant_config){ .mode = FT_MODE_FLOAT },
                              &err) != FT_OK)
        bail_out("%s", err.text);
    float *a = run(s->model, named, count, &n), *b = run(twin, named, count, &m);
    double most = 0.0, square = 0.0;
    for (size_t i = 0; i < n && n == m; i++) {
        most = fmax(most, fabs((double) a[i] - (double) b[i]));
        square += (double) a[i] * (double) a[i];
    }
    /* Each factor costs three roundings of 2^-24; a few layers amplify them a hundredfold. */
    near(most / sqrt(square / (double) n), 0.0, 2e-5,
         "folding scales into the producers leaves the model outputs unchanged");
    free(a);
    free(b);
    ft_model_close(twin);
    for (size_t i = 0; i < weights; i++)
        if (made[i])
            free((void *) (uintptr_t) weight[i].data);
    free(weight);
    free(made);
    ft_folded_scales_fini(&scaling);
}

static void test_all_exact(void)
{
    static int32_t ids[] = { 5, 9, 2, 17, 7, 3, 12, 19, 5, 8, 11, 6 };
    const ft_tensor text = { .dtype = FT_I32, .ndim = 2, .dim = { 2, 6 }, .data = ids };
    const ft_named_tensor named[] = { { "input_ids", text }, { "decoder_input_ids", text } };
    static const char *const llamas[] = { "grouped", "qwen2", "one-key-head", "biases" };
    for (size_t i = 0; i < FT_COUNT(llamas); i++) {
        subject s = make("llama-variants.json", llamas[i], llama_make);
        test_exact(llamas[i], &s, named, 1, 4 * s.model->config.layers);
        close_subject(&s);
    }
    subject bert;
    tiny_make_classifier(&bert.checkpoint);
    open_subject(&bert);
    test_exact("bert", &bert, named, 1, 2);
    close_subject(&bert);
    subject m2m = make("translator-variants.json", "m2m", translator_make);
    test_exact("m2m", &m2m, named, 2, 20);
    close_subject(&m2m);
    json_t *variants = golden_json("vit-variants.json");
    const ft_named_tensor images = { "pixel_values",
                                     vit_images(llama_variant(variants, "classes")) };
    json_decref(variants);
    subject vit = make("vit-variants.json", "classes", vit_make);
    test_exact("vit", &vit, &images, 1, 3 * vit.model->config.layers);
    close_subject(&vit);
    free(images.tensor.data);
}

/* ---- Search ------------------------------------------------------------------------------- */

enum { ROWS = 40, INPUTS = 64 };

/* Two matrices with inputs of which every eighth is an outlier, `large` times the others. */
static ft_awq_result search(double large, float *factor)
{
    static double magnitude[INPUTS], square[INPUTS], moments[INPUTS * INPUTS];
    static float matrix[2][ROWS * INPUTS];
    rng r = { 9 };
    for (int i = 0; i < 2; i++)
        rng_floats(&r, matrix[i], ROWS * INPUTS, 0.1);
    memset(moments, 0, sizeof moments);
    for (size_t i = 0; i < INPUTS; i++) {
        double size = i % 8 == 3 ? large : 1.0;
        magnitude[i] = 800.0 * size;
        moments[i * INPUTS + i] = square[i] = 1000.0 * size * size;
    }
    ft_input_stats input = {
        .cols = INPUTS, .magnitude = magnitude, .square = square, .moments = moments, .rows = 1000
    };
    ft_weight_matrix weights[2];
    ft_groupwise_options how[2];
    for (int i = 0; i < 2; i++) {
        weights[i] = (ft_weight_matrix){
            .name = "w", .dtype = FT_F32, .data = matrix[i], .rows = ROWS, .cols = INPUTS
        };
        how[i] = (ft_groupwise_options){ .bits = 4, .group = 32 };
    }
    const ft_scale_fold fold = { .cols = INPUTS, .norm = { 0, -1 }, .producer = -1, .bias = -1 };
    ft_awq_result choice;
    if (ft_awq_search(factor, &choice,
                      &(ft_awq){ .fold = &fold,
                                 .input = &input,
                                 .weights = weights,
                                 .options = how,
                                 .count = 2,
                                 .threads = 2 },
                      &err) != FT_OK)
        bail_out("%s", err.text);
    return choice;
}

static void test_search(void)
{
    float factor[INPUTS];
    ft_awq_result equal = search(1.0, factor);
    near(equal.power, 0.0, 0.0, "AWQ chooses the exponent 0 for input channels of equal magnitude");
    near(equal.error, equal.error_without, 0.0,
         "AWQ does not reduce the error for input channels of equal magnitude");
    ft_awq_result apart = search(20.0, factor);
    ok(apart.error < 0.7 * apart.error_without,
       "AWQ reduces the error for outlier channels: %.3f of the error remains",
       apart.error / apart.error_without);
    near((double) (factor[3] / factor[4]), pow(20.0, apart.power), 1e-5,
         "AWQ factors are the channel magnitudes raised to the chosen exponent");
    /* 1e-6: two roundings */
    near((double) (factor[3] * factor[4]), 1.0, 1e-6, "AWQ factors are normalized around 1");
}

int main(void)
{
    test_llama();
    test_others();
    test_all_exact();
    test_search();
    return done_testing();
}
