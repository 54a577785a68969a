/*
 * synthetic.c - models of a given shape with random weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/synthetic.h"

#include "kernels/half.h"
#include "kernels/quant.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/session.h"
#include "runtime/tools/noise.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

/* ---- Names -------------------------------------------------------------------------------- */

static const char *const schemes[FT_SCHEMES] = {
    [FT_SCHEME_FLOAT] = "float",
    [FT_SCHEME_F16] = "f16",
    [FT_SCHEME_INT8] = "int8",
    [FT_SCHEME_INT8_RESIDUAL] = "int8-residual",
    [FT_SCHEME_DYNAMIC] = "w8a8-dynamic",
};

const char *ft_scheme_name(ft_scheme scheme)
{
    return (unsigned) scheme < FT_SCHEMES ? schemes[scheme] : "unknown";
}

bool ft_scheme_parse(const char *name, ft_scheme *out)
{
    for (size_t i = 0; i < FT_SCHEMES; i++)
        if (strcmp(schemes[i], name) == 0) {
            *out = (ft_scheme) i;
            return true;
        }
    return false;
}

#define BERT                                                                                       \
    .vocabulary = 30522, .positions = 512, .types = 2, .padding_id = -1, .eps = 1e-12f,            \
    .activation = FT_ACT_GELU

#define LLAMA .padding_id = -1, .eps = 1e-5f, .activation = FT_ACT_SILU, .rope = FT_ROPE_DEFAULT

/*
 * The first two as google-research published them, the third as all-MiniLM-L6-v2 embeds; then the
 * published Llamas, the last with the matrices of Llama 3.2 1B and Llama 2's vocabulary.
 */
static const struct {
    const char *name;
    ft_config config;
} shapes[] = {
    { "bert-base",
      { .layers = 12, .hidden = 768, .heads = 12, .ffn = 3072, .pooler = true, BERT } },
    { "bert-large",
      { .layers = 24, .hidden = 1024, .heads = 16, .ffn = 4096, .pooler = true, BERT } },
    { "minilm",
      { .layers = 6,
        .hidden = 384,
        .heads = 12,
        .ffn = 1536,
        .embedding = FT_EMBEDDING_MEAN,
        .normalize = true,
        BERT } },
    { "llama-2-7b",
      { .layers = 32,
        .hidden = 4096,
        .heads = 32,
        .kv_heads = 32,
        .head_size = 128,
        .ffn = 11008,
        .vocabulary = 32000,
        .positions = 4096,
        .rope_theta = 1e4,
        LLAMA } },
    { "llama-3-8b",
      { .layers = 32,
        .hidden = 4096,
        .heads = 32,
        .kv_heads = 8,
        .head_size = 128,
        .ffn = 14336,
        .vocabulary = 128256,
        .positions = 8192,
        .rope_theta = 5e5,
        LLAMA } },
    { "llama-1b",
      { .layers = 16,
        .hidden = 2048,
        .heads = 32,
        .kv_heads = 8,
        .head_size = 64,
        .ffn = 8192,
        .vocabulary = 32000,
        .positions = 4096,
        .rope_theta = 5e5,
        LLAMA } },
};

const char *ft_shape_name(size_t index)
{
    return index < FT_COUNT(shapes) ? shapes[index].name : NULL;
}

bool ft_shape_parse(const char *name, ft_config *out)
{
    for (size_t i = 0; i < FT_COUNT(shapes); i++)
        if (strcmp(shapes[i].name, name) == 0) {
            *out = shapes[i].config;
            return true;
        }
    return false;
}

/* ---- One weight --------------------------------------------------------------------------- */

/* Borrowed data are const; who made them may free them. */
static void *mutable(const void *data)
{
    return (void *) (uintptr_t) data;
}

static void store_codes(const ft_weight *weight, size_t row, const float *values)
{
    size_t cols = weight->cols;
    int8_t *codes = mutable(weight->data);
    float amax = 0.0f;
    for (size_t i = 0; i < cols; i++)
        amax = fmaxf(amax, fabsf(values[i]));
    float scale = ft_scale_from_amax(amax), inverse = ft_inverse_scale(scale);
    ((float *) mutable(weight->scale))[row] = scale;
    for (size_t i = 0; i < cols; i++)
        codes[ft_offset(weight->layout, row, i, weight->rows, cols)] =
            ft_quantize(values[i], inverse);
}

static void store_row(const ft_weight *weight, size_t row, const float *values)
{
    size_t cols = weight->cols;
    if (weight->dtype == FT_I8)
        store_codes(weight, row, values);
    else if (weight->dtype == FT_F16)
        for (size_t i = 0; i < cols; i++)
            ((uint16_t *) mutable(weight->data))[row * cols + i] = ft_f16_from_float(values[i]);
    else
        memcpy((float *) mutable(weight->data) + row * cols, values, cols * sizeof *values);
}

static bool allocate(ft_weight *weight)
{
    size_t bytes = weight->dtype == FT_I8
                       ? ft_layout_bytes(weight->layout, weight->rows, weight->cols)
                       : weight->rows * weight->cols * ft_dtype_size(weight->dtype);
    weight->data = ft_alloc(bytes);
    if (weight->dtype == FT_I8)
        weight->scale = ft_alloc(weight->rows * sizeof(float));
    return weight->data != NULL && (weight->dtype != FT_I8 || weight->scale != NULL);
}

ft_status ft_weight_fill(ft_weight *weight, const ft_distribution *how, int threads, ft_error *err)
{
    float *rows = ft_array((size_t) threads * weight->cols, sizeof *rows); /* one a thread */
    bool fine = allocate(weight) && rows != NULL;
#pragma omp parallel for num_threads(threads) schedule(static) if (fine)
    for (size_t row = 0; row < (fine ? weight->rows : 0); row++) {
        float *values = rows + (size_t) omp_get_thread_num() * weight->cols;
        for (size_t i = 0; i < weight->cols; i++)
            values[i] =
                how->mean + how->deviation * ft_noise_normal(how->key, row * weight->cols + i);
        store_row(weight, row, values);
    }
    free(rows);
    if (fine)
        return FT_OK;
    ft_weight_clear(weight);
    return ft_fail(err, FT_ENOMEM, "%s: no memory for [%zu, %zu]", weight->name, weight->rows,
                   weight->cols);
}

void ft_weight_clear(ft_weight *weight)
{
    free(mutable(weight->data));
    free(mutable(weight->scale));
    weight->data = NULL;
    weight->scale = NULL;
}

/* ---- All weights -------------------------------------------------------------------------- */

static bool is_int8(ft_scheme scheme)
{
    return scheme == FT_SCHEME_INT8 || scheme == FT_SCHEME_INT8_RESIDUAL ||
           scheme == FT_SCHEME_DYNAMIC;
}

static ft_dtype dtype_of(ft_role role, ft_scheme scheme)
{
    if (role == FT_ROLE_VECTOR || scheme == FT_SCHEME_FLOAT)
        return FT_F32;
    return role == FT_ROLE_LINEAR && is_int8(scheme) ? FT_I8 : FT_F16;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

static ft_status make_weight(ft_weight *weight, const ft_weight_spec *spec, ft_scheme scheme,
                             uint64_t key, int threads, ft_error *err)
{
    bool is_gain = spec->role == FT_ROLE_VECTOR && ends_with(spec->name, ".weight");
    ft_distribution how = { ft_noise(key, 0), is_gain ? 1.0f : 0.0f, 0.02f };
    memcpy(weight->name, spec->name, sizeof weight->name);
    weight->rows = spec->ndim == 2 ? (size_t) spec->dim[0] : 1;
    weight->cols = (size_t) spec->dim[spec->ndim - 1];
    weight->dtype = dtype_of(spec->role, scheme);
    weight->layout = weight->dtype == FT_I8 ? FT_COL4_4R2_8C : FT_ROW;
    return ft_weight_fill(weight, &how, threads, err);
}

/* The weight of layer 0 that this one of a later layer has the numbers of; NULL: none. */
static const ft_weight *twin_of(const ft_synthetic *made, const char *name)
{
    char first[FT_NAME];
    int layer, used = 0;
    if (!made->alike || sscanf(name, "layer.%d.%n", &layer, &used) != 1 || layer == 0)
        return NULL;
    snprintf(first, sizeof first, "layer.0.%s", name + used);
    for (size_t i = 0; i < made->nweight; i++)
        if (strcmp(made->weight[i].name, first) == 0)
            return &made->weight[i];
    return NULL;
}

/* Weight number made->nweight. */
static ft_status add_weight(ft_synthetic *made, const ft_weight_spec *spec, ft_scheme scheme,
                            int threads, ft_error *err)
{
    ft_weight *weight = &made->weight[made->nweight];
    const ft_weight *twin = twin_of(made, spec->name);
    if (twin == NULL)
        return make_weight(weight, spec, scheme, made->nweight, threads, err);
    *weight = *twin;
    memcpy(weight->name, spec->name, sizeof weight->name);
    return FT_OK;
}

static ft_status make_weights(ft_synthetic *made, ft_scheme scheme, int threads, ft_error *err)
{
    ft_weight_spec *spec;
    size_t count;
    FT_TRY(ft_family_weights(made->family, -1, &made->config, &spec, &count, err));
    ft_status status = FT_OK;
    made->weight = ft_array(count, sizeof *made->weight);
    if (made->weight == NULL)
        status = ft_fail(err, FT_ENOMEM, "no memory for %zu weights", count);
    for (size_t i = 0; i < count && status == FT_OK; i++, made->nweight++)
        status = add_weight(made, &spec[i], scheme, threads, err);
    free(spec);
    return status;
}

/* ---- Ranges ------------------------------------------------------------------------------- */

enum { OBSERVED = 64 }; /* tokens, of one sequence */

/* The greatest magnitude that was counted. */
static float greatest(ft_counts *counts)
{
    ft_counts_settle(counts);
    return counts->tail_used > 0 ? ft_float_from_bits(counts->tail[counts->tail_used - 1]) : 0.0f;
}

/* What was measured in layer 0 holds in every layer. */
static ft_status add_ranges(ft_amax *list, const char *name, float amax, int layers, ft_error *err)
{
    static const char first[] = "layer.0.";
    bool in_layer = strncmp(name, first, sizeof first - 1) == 0;
    for (int i = 0; i < (in_layer ? layers : 1); i++) {
        char other[FT_NAME];
        if (in_layer)
            snprintf(other, sizeof other, "layer.%d.%s", i, name + sizeof first - 1);
        else
            snprintf(other, sizeof other, "%s", name);
        FT_TRY(ft_amax_add(list, &(ft_amax_entry){ .name = other, .amax = amax, .method = "max" },
                           err));
    }
    return FT_OK;
}

/* Run random tokens; counts [nvalue] has counters where the plan has points. */
static ft_status observe(const ft_model *model, ft_counts *const *counts, ft_error *err)
{
    int32_t ids[OBSERVED];
    ft_tensor input = { .dtype = FT_I32, .ndim = 2, .dim = { 1, OBSERVED }, .data = ids };
    ft_session *session;
    for (size_t i = 0; i < OBSERVED; i++)
        ids[i] = (int32_t) ft_noise_below(1, i, (uint32_t) model->config.vocabulary);
    FT_TRY(ft_session_open(
        &session, model, &(ft_session_options){ .max_tokens = OBSERVED, .max_sequences = 1 }, err));
    ft_status status = ft_session_set(session, "input_ids", &input, err);
    if (status == FT_OK)
        status = ft_session_run_counting(session, counts, err);
    if (status == FT_OK)
        status = ft_session_collect(session, counts, err);
    ft_session_close(session);
    return status;
}

static ft_status measure_points(ft_amax *list, const ft_model *model, int layers, ft_error *err)
{
    const ft_plan *plan = &model->plan;
    ft_counts *own = ft_array((size_t) plan->nvalue, sizeof *own);
    ft_counts **counts = ft_array((size_t) plan->nvalue, sizeof(ft_counts *));
    bool fine = own != NULL && counts != NULL;
    for (int i = 0; i < plan->nvalue && fine; i++)
        if (plan->value[i].point) {
            counts[i] = &own[i];
            fine = ft_counts_init(&own[i]);
        }
    ft_status status = fine ? observe(model, counts, err)
                            : ft_fail(err, FT_ENOMEM, "no memory for the counters of a layer");
    for (int i = 0; i < plan->nvalue && status == FT_OK; i++)
        if (plan->value[i].point)
            status = add_ranges(list, plan->value[i].name, greatest(&own[i]), layers, err);
    for (int i = 0; own != NULL && i < plan->nvalue; i++)
        ft_counts_fini(&own[i]);
    free(counts);
    free(own);
    return status;
}

/* Observe one layer in float, with small tables. */
static ft_status measure(ft_synthetic *made, int threads, ft_error *err)
{
    ft_synthetic one = { .family = made->family,
                         .config = made->config,
                         .purpose = { .mode = FT_MODE_OBSERVE } };
    ft_model *model = NULL;
    one.config.layers = 1;
    one.config.vocabulary = 512;
    one.config.positions = OBSERVED + one.config.position_offset;
    made->amax = ft_amax_new();
    ft_status status = FT_OK;
    if (made->amax == NULL)
        status = ft_fail(err, FT_ENOMEM, "no memory for ranges");
    if (status == FT_OK)
        status = make_weights(&one, FT_SCHEME_FLOAT, threads, err);
    if (status == FT_OK)
        status = ft_synthetic_open(&model, &one, "one layer", NULL, err);
    if (status == FT_OK)
        status = measure_points(made->amax, model, made->config.layers, err);
    ft_model_close(model);
    ft_synthetic_fini(&one);
    return status;
}

/* ---- Models ------------------------------------------------------------------------------- */

ft_status ft_synthetic_make(ft_synthetic *out, const ft_config *config, ft_scheme scheme,
                            bool alike, int threads, ft_error *err)
{
    bool decoder = config->rope != FT_ROPE_NONE;
    *out = (ft_synthetic){ .family = ft_family_find(decoder ? "llama" : "bert"),
                           .config = *config,
                           .alike = alike && decoder };
    if (decoder ? scheme == FT_SCHEME_INT8_RESIDUAL : scheme == FT_SCHEME_DYNAMIC)
        return ft_fail(err, FT_EUNSUPPORTED, "scheme %s is for %s", ft_scheme_name(scheme),
                       decoder ? "encoders" : "decoders");
    ft_status status = make_weights(out, scheme, threads, err);
    if (status == FT_OK && is_int8(scheme) && scheme != FT_SCHEME_DYNAMIC)
        status = measure(out, threads, err);
    out->purpose = (ft_purpose){
        .mode = is_int8(scheme) ? FT_MODE_INT8 : FT_MODE_FLOAT,
        .int8_residual = scheme == FT_SCHEME_INT8_RESIDUAL,
        .dynamic = scheme == FT_SCHEME_DYNAMIC,
        .amax = out->amax,
    };
    if (status != FT_OK)
        ft_synthetic_fini(out);
    return status;
}

void ft_synthetic_fini(ft_synthetic *made)
{
    for (size_t i = 0; i < made->nweight; i++)
        if (twin_of(made, made->weight[i].name) == NULL)
            ft_weight_clear(&made->weight[i]);
    free(made->weight);
    ft_amax_free(made->amax);
    memset(made, 0, sizeof *made);
}

ft_status ft_synthetic_open(ft_model **out, const ft_synthetic *made, const char *name,
                            const ft_model_options *options, ft_error *err)
{
    ft_model_parts parts = { name, made->family, &made->config, made->weight, made->nweight };
    return ft_model_make(out, &parts, options, &made->purpose, err);
}
