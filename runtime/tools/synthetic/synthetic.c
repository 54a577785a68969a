/*
 * synthetic.c - models of a given shape with random weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/synthetic/synthetic.h"

#include "kernels/half.h"
#include "runtime/base/affix.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/model/pixels.h"
#include "runtime/model/session.h"
#include "runtime/tools/synthetic/counter_rng.h"

#include <stdlib.h>
#include <string.h>

/* ---- Layers ------------------------------------------------------------------------------- */

/*
 * Weight names in layers are PREFIX NUMBER SUFFIX: "decoder.layer." 11 ".attn.q".  Returns where
 * the number starts; NULL: not in a layer.
 */
static const char *layer_number_in(const char *name)
{
    static const char word[] = "layer.";
    const char *at = strstr(name, word);
    return at != NULL && (at == name || at[-1] == '.') ? at + sizeof word - 1 : NULL;
}

/* The corresponding name in another layer. */
static void name_in_layer(char out[FT_NAME], const char *name, int layer)
{
    const char *number = layer_number_in(name);
    snprintf(out, FT_NAME, "%.*s%d%s", (int) (number - name), name, layer,
             number + strspn(number, "0123456789"));
}

/* Number of layers in the stack of this name. */
static int num_layers_of(const ft_config *config, const char *name)
{
    return strncmp(name, "encoder.", 8) == 0 ? config->encoder_layers : config->layers;
}

/* ---- All weights -------------------------------------------------------------------------- */

static bool is_int8(ft_synthetic_scheme scheme)
{
    return scheme == FT_SYNTHETIC_INT8 || scheme == FT_SYNTHETIC_INT8_RESIDUAL ||
           scheme == FT_SYNTHETIC_W8A8_DYNAMIC;
}

static ft_dtype dtype_of(ft_role role, ft_synthetic_scheme scheme)
{
    if (role == FT_ROLE_VECTOR || scheme == FT_SYNTHETIC_FLOAT)
        return FT_F32;
    if (scheme == FT_SYNTHETIC_BF16)
        return FT_BF16;
    if (role != FT_ROLE_LINEAR || scheme == FT_SYNTHETIC_F16)
        return FT_F16;
    return is_int8(scheme) ? FT_I8 : scheme == FT_SYNTHETIC_W4A16 ? FT_U4 : FT_U8;
}

static ft_status make_weight(ft_weight *weight, const ft_weight_spec *spec,
                             const ft_synthetic_options *options, uint64_t key, ft_error *err)
{
    bool is_gain = spec->role == FT_ROLE_VECTOR && ft_ends_with(spec->name, ".weight");
    ft_distribution how = { ft_counter_rng(key, 0), is_gain ? 1.0f : 0.0f, 0.02f, options->backend,
                            options->device };
    memcpy(weight->name, spec->name, sizeof weight->name);
    weight->rows = spec->ndim == 2 ? (size_t) spec->dim[0] : 1;
    weight->cols = (size_t) spec->dim[spec->ndim - 1];
    weight->dtype = dtype_of(spec->role, options->scheme);
    weight->layout = weight->dtype == FT_I8                  ? FT_COL4_4R2_8C
                     : ft_groupwise_bits(weight->dtype) != 0 ? FT_PANEL32
                                                             : FT_ROW;
    weight->groupwise =
        (ft_groupwise){ .group = options->group,
                        .int8_activations = options->scheme == FT_SYNTHETIC_W8A8_BLOCK };
    return ft_synthetic_weight_fill(weight, &how, options->threads, err);
}

/* The weight of layer 0 whose data this weight shares; NULL: none. */
static const ft_weight *shared_weight_of(const ft_synthetic *synthetic, const char *name)
{
    char first[FT_NAME];
    const char *number = layer_number_in(name);
    if (!synthetic->share_layers || number == NULL || *number == '0')
        return NULL;
    name_in_layer(first, name, 0);
    for (size_t i = 0; i < synthetic->nweight; i++)
        if (strcmp(synthetic->weight[i].name, first) == 0)
            return &synthetic->weight[i];
    return NULL;
}

/* Add weight number made->nweight. */
static ft_status add_weight(ft_synthetic *synthetic, const ft_weight_spec *spec,
                            const ft_synthetic_options *options, ft_error *err)
{
    ft_weight *weight = &synthetic->weight[synthetic->nweight];
    const ft_weight *shared = shared_weight_of(synthetic, spec->name);
    if (shared == NULL)
        return make_weight(weight, spec, options, synthetic->nweight, err);
    *weight = *shared;
    memcpy(weight->name, spec->name, sizeof weight->name);
    return FT_OK;
}

static ft_status make_weights(ft_synthetic *synthetic, const ft_synthetic_options *options,
                              ft_error *err)
{
    ft_weight_spec *spec;
    size_t count;
    FT_TRY(ft_family_weights(synthetic->family, NULL, &synthetic->config, &spec, &count, err));
    ft_status status = FT_OK;
    synthetic->weight = ft_calloc(count, sizeof *synthetic->weight);
    if (synthetic->weight == NULL)
        status = ft_fail(err, FT_ENOMEM, "no memory for %zu weights", count);
    for (size_t i = 0; i < count && status == FT_OK; i++, synthetic->nweight++)
        status = add_weight(synthetic, &spec[i], options, err);
    free(spec);
    return status;
}

/* ---- Ranges ------------------------------------------------------------------------------- */

enum { OBSERVED_TOKENS = 64 }; /* tokens of one sequence; encoder-decoders: also of its source */

/* The largest magnitude counted. */
static float max_counted(ft_counts *counts)
{
    ft_counts_finalize(counts);
    return counts->tail_used > 0 ? ft_float_from_bits(counts->tail[counts->tail_used - 1]) : 0.0f;
}

/* The range of layer 0 is used for every layer. */
static ft_status add_amax(ft_amax_table *list, const char *name, float amax,
                          const ft_config *config, ft_error *err)
{
    int count = layer_number_in(name) != NULL ? num_layers_of(config, name) : 1;
    for (int i = 0; i < count; i++) {
        char own[FT_NAME];
        if (layer_number_in(name) != NULL)
            name_in_layer(own, name, i);
        else
            snprintf(own, sizeof own, "%s", name);
        FT_TRY(ft_amax_table_add(
            list, &(ft_amax_entry){ .name = own, .amax = amax, .method = "max" }, err));
    }
    return FT_OK;
}

ft_status ft_synthetic_images(ft_session *session, size_t count, ft_error *err)
{
    const ft_conv image = ft_config_patches(&session->model->config);
    size_t n = count * (size_t) ft_conv_image_size(&image);
    float *x = ft_calloc(n, sizeof *x);
    if (x == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu images", count);
    for (size_t i = 0; i < n; i++)
        x[i] = ft_counter_rng_normal(1, i);
    const ft_tensor tensor = {
        .dtype = FT_F32,
        .ndim = 4,
        .dim = { (int64_t) count, image.channels, image.height, image.width },
        .data = x,
    };
    ft_status status = ft_session_set(session, FT_PIXEL_VALUES, &tensor, err);
    free(x);
    return status;
}

static ft_status set_random_ids(ft_session *session, const char *name, uint64_t key, ft_error *err)
{
    int32_t ids[OBSERVED_TOKENS];
    ft_tensor input = { .dtype = FT_I32, .ndim = 2, .dim = { 1, OBSERVED_TOKENS }, .data = ids };
    uint32_t vocabulary = (uint32_t) session->model->config.vocabulary;
    for (size_t i = 0; i < OBSERVED_TOKENS; i++)
        ids[i] = (int32_t) ft_counter_rng_below(key, i, vocabulary);
    return ft_session_set(session, name, &input, err);
}

/* Run random tokens or an image; counts[nvalue] has counters for the calibration points. */
static ft_status observe(const ft_model *model, ft_counts *const *counts, ft_error *err)
{
    ft_session *session;
    bool is_vision = ft_config_is_vision(&model->config);
    FT_TRY(ft_session_open(
        &session, model,
        &(ft_session_options){ .max_tokens = is_vision ? 0 : OBSERVED_TOKENS, .max_sequences = 1 },
        err));
    ft_status status = is_vision ? ft_synthetic_images(session, 1, err)
                                 : set_random_ids(session, "input_ids", 1, err);
    if (status == FT_OK && ft_config_is_encoder_decoder(&model->config))
        status = set_random_ids(session, "decoder_input_ids", 2, err);
    if (status == FT_OK)
        status = ft_session_run_observed(session, counts, err);
    if (status == FT_OK)
        status = ft_session_collect_counts(session, counts, err);
    ft_session_close(session);
    return status;
}

static ft_status measure_amax(ft_amax_table *list, const ft_model *model, const ft_config *config,
                              ft_error *err)
{
    const ft_plan *plan = &model->plan;
    ft_counts *own = ft_calloc((size_t) plan->nvalue, sizeof *own);
    ft_counts **counts = ft_calloc((size_t) plan->nvalue, sizeof(ft_counts *));
    bool ok = own != NULL && counts != NULL;
    for (int i = 0; i < plan->nvalue && ok; i++)
        if (plan->value[i].point) {
            counts[i] = &own[i];
            ok = ft_counts_init(&own[i]);
        }
    ft_status status = ok ? observe(model, counts, err)
                          : ft_fail(err, FT_ENOMEM, "no memory for the counters of a layer");
    for (int i = 0; i < plan->nvalue && status == FT_OK; i++)
        if (plan->value[i].point)
            status = add_amax(list, plan->value[i].name, max_counted(&own[i]), config, err);
    for (int i = 0; own != NULL && i < plan->nvalue; i++)
        ft_counts_fini(&own[i]);
    free(counts);
    free(own);
    return status;
}

/* Calibrate on one float layer, with small embedding tables. */
static ft_status measure(ft_synthetic *synthetic, const ft_synthetic_options *options,
                         ft_error *err)
{
    ft_synthetic_options as_float = *options;
    ft_synthetic one = { .family = synthetic->family,
                         .config = synthetic->config,
                         .quant = { .mode = FT_MODE_OBSERVE } };
    ft_model *model = NULL;
    as_float.scheme = FT_SYNTHETIC_FLOAT;
    one.config.layers = 1;
    one.config.encoder_layers = synthetic->config.encoder_layers > 0;
    if (!ft_config_is_vision(&one.config)) {
        one.config.vocabulary = 512;
        one.config.positions = OBSERVED_TOKENS + one.config.position_offset;
    }
    synthetic->amax = ft_amax_table_new();
    ft_status status = FT_OK;
    if (synthetic->amax == NULL)
        status = ft_fail(err, FT_ENOMEM, "no memory for ranges");
    if (status == FT_OK)
        status = make_weights(&one, &as_float, err);
    if (status == FT_OK)
        status = ft_synthetic_open(&model, &one, "one layer", NULL, err);
    if (status == FT_OK)
        status = measure_amax(synthetic->amax, model, &synthetic->config, err);
    ft_model_close(model);
    ft_synthetic_fini(&one);
    return status;
}

/* ---- Models ------------------------------------------------------------------------------- */

static const char *family_of(const ft_config *config)
{
    if (ft_config_is_encoder_decoder(config))
        return "m2m100";
    if (ft_config_is_vision(config))
        return "vit";
    return ft_config_is_decoder(config) ? "llama" : "bert";
}

ft_status ft_synthetic_make(ft_synthetic *out, const ft_config *config,
                            const ft_synthetic_options *how, ft_error *err)
{
    ft_synthetic_scheme scheme = how->scheme;
    bool decoder = ft_config_is_decoder(config), is_vision = ft_config_is_vision(config);
    *out = (ft_synthetic){ .family = how->family != NULL ? how->family
                                                         : ft_family_find(family_of(config)),
                           .config = *config,
                           .share_layers = how->share_layers && decoder };
    if (decoder && scheme == FT_SYNTHETIC_INT8_RESIDUAL)
        return ft_fail(err, FT_EUNSUPPORTED, "scheme %s is for encoders",
                       ft_synthetic_scheme_name(scheme));
    if (is_vision && scheme == FT_SYNTHETIC_INT8_RESIDUAL)
        return ft_fail(err, FT_EUNSUPPORTED, "scheme %s is for encoders of text",
                       ft_synthetic_scheme_name(scheme));
    ft_status status = make_weights(out, how, err);
    if (status == FT_OK && is_int8(scheme) && scheme != FT_SYNTHETIC_W8A8_DYNAMIC)
        status = measure(out, how, err);
    out->quant = (ft_quant_config){
        .mode = is_int8(scheme) ? FT_MODE_INT8 : FT_MODE_FLOAT,
        .int8_residual = scheme == FT_SYNTHETIC_INT8_RESIDUAL,
        .dynamic = scheme == FT_SYNTHETIC_W8A8_DYNAMIC,
        .amax = out->amax,
    };
    if (status != FT_OK)
        ft_synthetic_fini(out);
    return status;
}

void ft_synthetic_fini(ft_synthetic *synthetic)
{
    for (size_t i = 0; i < synthetic->nweight; i++)
        if (shared_weight_of(synthetic, synthetic->weight[i].name) == NULL)
            ft_synthetic_weight_free(&synthetic->weight[i]);
    free(synthetic->weight);
    ft_amax_table_free(synthetic->amax);
    memset(synthetic, 0, sizeof *synthetic);
}

ft_status ft_synthetic_open(ft_model **out, const ft_synthetic *synthetic, const char *name,
                            const ft_model_options *options, ft_error *err)
{
    ft_model_parts parts = { name, synthetic->family, &synthetic->config, synthetic->weight,
                             synthetic->nweight };
    return ft_model_from_weights(out, &parts, options, &synthetic->quant, err);
}
