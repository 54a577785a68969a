/*
 * model.c - open a model: bind the weights, build the graph, lower it to a plan, check the plan.
 *
 * The weights come from an artifact or from memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/model/model.h"

#include "runtime/model/bind.h"
#include "runtime/model/folded.h"
#include "runtime/model/smoothing.h"
#include "runtime/model/validate.h"
#include "runtime/model/devices.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/graph/plan.h"

#include <stdlib.h>
#include <string.h>

/* ---- Plan --------------------------------------------------------------------------------- */

static ft_status build_graph(ft_model *model, ft_error *err)
{
    ft_graph graph;
    ft_graph_init(&graph, model->weight, model->quantizable, model->nweight);
    model->family->build(&graph, &model->config);
    ft_status status = ft_graph_finish(&graph, err);
    model->graph = graph.plan;
    for (int i = 0; i < model->graph.nop; i++)
        model->has_cache = model->has_cache || ft_op_uses_cache(model->graph.op[i].kind);
    return status;
}

/*
 * F16 overflows above 65504.  Values between two calibration points (a GEMM output, its sum with
 * the residual) are not observed, and calibration may have clipped values above the amax.  So F16
 * is used only if every amax is at least 16 times smaller.
 */
#define MAX_AMAX_FOR_F16 4096.0f

static bool fits_f16(const ft_amax_table *amax)
{
    for (size_t i = 0; amax != NULL && i < amax->count; i++)
        if (!(amax->entry[i].amax <= MAX_AMAX_FOR_F16))
            return false;
    return amax != NULL;
}

/* The dtype of the float matrices: of the linears, or of the embeddings if linears are quantized.
 */
static ft_dtype matrix_dtype(const ft_model *model)
{
    for (int i = 0; i < model->nweight; i++)
        if (model->quantizable[i])
            return model->weight[i].dtype;
    for (int i = 0; i < model->nweight; i++)
        if (model->weight[i].rows > 1 && model->weight[i].layout == FT_ROW)
            return model->weight[i].dtype;
    return FT_F32;
}

/* Whether an int8 model also has float GEMMs on tokens, whose input and output dtypes must agree.
 */
static bool has_float_gemms(const ft_model *model)
{
    for (int i = 0; i < model->graph.nop; i++) {
        const ft_op *op = &model->graph.op[i];
        if (ft_op_is_gemm(op->kind) && model->graph.value[op->in[0]].rows == FT_TOKENS &&
            !model->quantizable[op->weight[0]])
            return true;
    }
    return false;
}

/*
 * The dtype of float activations.  Float plans use the dtype of the weights if the device supports
 * it.  Int8 plans use F16 on every device, so that all devices give the same bits.
 */
static ft_dtype float_dtype(const ft_model *model)
{
    ft_mode mode = model->quant.mode;
    if (mode == FT_MODE_FLOAT && model->backend->f16_activations)
        return matrix_dtype(model);
    if (mode != FT_MODE_FAKE_QUANTIZE && mode != FT_MODE_INT8)
        return FT_F32;
    bool f16 = model->has_cache ? !has_float_gemms(model) : fits_f16(model->quant.amax);
    return f16 ? FT_F16 : FT_F32;
}

/* An operation that the device does not support is rejected when the model is opened. */
static ft_status check_op(const ft_model *model, const ft_op *op, ft_error *err)
{
    FT_TRY(ft_op_check(&model->plan, op, model->path, err));
    return model->backend->supports_op != NULL
               ? model->backend->supports_op(&model->plan, op, model->path, err)
               : FT_OK;
}

static ft_status make_plan(ft_model *model, ft_error *err)
{
    float *scale = ft_calloc((size_t) model->graph.nvalue, sizeof *scale);
    if (scale == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for scales", model->path);
    ft_status status = ft_validate_scales(model, scale, err);
    if (status == FT_OK)
        status = ft_lower(&model->plan, &model->graph,
                          &(ft_lower_options){ .mode = model->quant.mode,
                                               .fuse = model->fuse,
                                               .int8_residual = model->quant.int8_residual,
                                               .int8_kv_cache = model->int8_kv_cache,
                                               .f16_kv_cache = model->f16_kv_cache,
                                               .scale = scale,
                                               .float_dtype = float_dtype(model) },
                          err);
    for (int i = 0; i < model->plan.nop && status == FT_OK; i++)
        status = check_op(model, &model->plan.op[i], err);
    free(scale);
    return status;
}

/* ---- Opening ------------------------------------------------------------------------------ */

static ft_status choose_quant(ft_model *model, const ft_model_options *options,
                              const ft_quant_config *quant, ft_error *err)
{
    ft_artifact_state state = ft_artifact_get_header(model->artifact)->state;
    bool is_int8 = state == FT_ARTIFACT_INT8;
    if (quant != NULL && state != FT_ARTIFACT_FLOAT)
        return ft_fail(err, FT_EARG, "%s: has state %s, expected a float artifact", model->path,
                       ft_artifact_state_name(state));
    if (quant != NULL) {
        model->quant = *quant;
        model->shares_embedding = quant->quantized_head && model->config.tied;
        if (model->shares_embedding)
            model->config.tied = false;
        return FT_OK;
    }
    if (options->fake && !is_int8)
        return ft_fail(err, FT_EARG, "%s: has state %s, but --fake needs an int8 artifact",
                       model->path, ft_artifact_state_name(state));
    model->quant.mode = !is_int8        ? FT_MODE_FLOAT
                        : options->fake ? FT_MODE_FAKE_QUANTIZE
                                        : FT_MODE_INT8;
    return ft_validate_recipe(model, &model->quant, err);
}

static ft_status read_head(ft_model *model, ft_error *err)
{
    const ft_artifact_header *head = ft_artifact_get_header(model->artifact);
    model->family = ft_family_find(head->family);
    if (model->family == NULL)
        return ft_fail(err, FT_EUNSUPPORTED, "%s: family %s is unknown to this version",
                       model->path, head->family);
    return ft_config_from_json(&model->config, head->config, model->family->kind, model->path, err);
}

/* id2label of the checkpoint; optional. */
static void read_labels(ft_model *model)
{
    ft_json_reader in = { .file = model->path };
    (void) ft_artifact_load_json(model->artifact, "config.json", &in);
    model->labels = json_incref(json_object_get(in.json, "id2label"));
    json_decref(in.json);
}

/* The LM head stays bound, but the graph does not use it. */
static ft_status set_embedding(ft_model *model, ft_error *err)
{
    ft_config *config = &model->config;
    if (config->embedding != FT_EMBEDDING_NONE)
        return FT_OK;
    if (config->kind != FT_KIND_DECODER)
        return ft_fail(err, FT_EUNSUPPORTED,
                       "%s: is %s without an embedding; convert a checkpoint with modules.json of "
                       "sentence-transformers",
                       model->path, ft_kind_name(config->kind));
    if (config->rotated)
        return ft_fail(err, FT_EUNSUPPORTED,
                       "%s: is rotated, and so would be its embeddings; convert the checkpoint "
                       "without --rotate",
                       model->path);
    config->embedding = FT_EMBEDDING_LAST;
    config->normalize = true;
    return FT_OK;
}

static ft_status open_device(ft_model *model, const ft_model_options *options, ft_error *err)
{
    FT_TRY(ft_device_open(&model->backend, &model->device, options->device, err));
    ft_tuning_apply(model->backend, model->device, options->tuning, model->tuning_note);
    return FT_OK;
}

/* From bound weights to a plan on the device. */
static ft_status make_device_plan(ft_model *model, ft_error *err)
{
    FT_TRY(build_graph(model, err));
    FT_TRY(ft_smoothing_check(model, err));
    FT_TRY(ft_folded_check(model, err));
    FT_TRY(ft_model_quantize(model, err));
    FT_TRY(make_plan(model, err));
    return model->backend->upload(model->device, &model->plan, model->weight, model->nweight, err);
}

static void read_ahead(const ft_model *model)
{
    if (model->backend->read_ahead != NULL)
        model->backend->read_ahead(model->device, ft_artifact_data(model->artifact),
                                   ft_artifact_bytes(model->artifact));
}

static ft_status load_artifact(ft_model *model, const ft_model_options *options,
                               const ft_quant_config *quant, bool embeds, ft_error *err)
{
    /*
     * First, because it prepares the upload meanwhile; but what is wrong with the file matters
     * more.
     */
    ft_error device_error;
    ft_status opened = open_device(model, options, &device_error);
    FT_TRY(ft_artifact_map(&model->artifact, model->path, err));
    if (opened == FT_OK)
        read_ahead(model);
    FT_TRY(ft_artifact_read(model->artifact, options->verify, err));
    FT_TRY(read_head(model, err));
    FT_TRY(ft_validate_family(model, err));
    FT_TRY(choose_quant(model, options, quant, err));
    FT_TRY(ft_model_bind(model, NULL, err));
    FT_TRY(ft_validate_head(model, err));
    read_labels(model);
    if (embeds)
        FT_TRY(set_embedding(model, err));
    if (opened != FT_OK)
        return ft_fail(err, opened, "%s", device_error.text);
    return make_device_plan(model, err);
}

static ft_status load_weights(ft_model *model, const ft_model_parts *parts,
                              const ft_model_options *options, const ft_quant_config *quant,
                              ft_error *err)
{
    model->family = parts->family;
    model->config = *parts->config;
    model->quant = *quant;
    FT_TRY(ft_config_check(&model->config, model->path, err));
    FT_TRY(ft_validate_family(model, err));
    FT_TRY(ft_model_bind(model, parts, err));
    FT_TRY(open_device(model, options, err));
    return make_device_plan(model, err);
}

/*
 * From the artifact `name` if `parts` is NULL, otherwise from the parts, with name parts->name.
 * `embeds`: the artifact must have an embedding, or gets one.
 */
static ft_status make_model(ft_model **out, const char *name, const ft_model_parts *parts,
                            const ft_model_options *options, const ft_quant_config *quant,
                            bool embeds, ft_error *err)
{
    static const ft_model_options defaults;
    *out = NULL;
    ft_model *model = ft_calloc(1, sizeof *model);
    if (model == NULL || (model->path = ft_strdup(name)) == NULL) {
        free(model);
        return ft_fail(err, FT_ENOMEM, "%s: no memory", name);
    }
    if (options == NULL)
        options = &defaults;
    model->fuse = !options->no_fuse;
    model->f16_kv_cache = options->kv == FT_KV_DTYPE_F16;
    model->int8_kv_cache = options->kv == FT_KV_DTYPE_INT8;
    ft_status status = parts != NULL ? load_weights(model, parts, options, quant, err)
                                     : load_artifact(model, options, quant, embeds, err);
    if (status != FT_OK) {
        ft_model_close(model);
        return status;
    }
    *out = model;
    return FT_OK;
}

ft_status ft_model_from_weights(ft_model **out, const ft_model_parts *parts,
                                const ft_model_options *options, const ft_quant_config *quant,
                                ft_error *err)
{
    return make_model(out, parts->name, parts, options, quant, false, err);
}

ft_status ft_model_open_with_config(ft_model **out, const char *path,
                                    const ft_model_options *options, const ft_quant_config *quant,
                                    ft_error *err)
{
    return make_model(out, path, NULL, options, quant, false, err);
}

ft_status ft_model_open_for_embedding(ft_model **out, const char *path,
                                      const ft_model_options *options, ft_error *err)
{
    return make_model(out, path, NULL, options, NULL, true, err);
}

void ft_model_close(ft_model *model)
{
    if (model == NULL)
        return;
    if (model->device != NULL)
        model->backend->close(model->device);
    ft_plan_fini(&model->plan);
    ft_plan_fini(&model->graph);
    for (int i = 0; i < model->nweight; i++)
        free(model->quantized[i]);
    free(model->quantized);
    free(model->positions);
    free(model->quantizable);
    free(model->weight);
    json_decref(model->labels);
    ft_artifact_close(model->artifact);
    free(model->path);
    free(model);
}

/* ---- Questions ---------------------------------------------------------------------------- */

bool ft_model_generates(const ft_model *model)
{
    return model->has_cache && model->config.embedding == FT_EMBEDDING_NONE;
}

static ft_artifact_state state_of(const ft_model *model)
{
    if (model->artifact != NULL)
        return ft_artifact_get_header(model->artifact)->state;
    if (model->quant.mode == FT_MODE_INT8 || model->quant.mode == FT_MODE_FAKE_QUANTIZE)
        return FT_ARTIFACT_INT8;
    for (int i = 0; i < model->nweight; i++)
        if (model->weight[i].groupwise.scale != NULL)
            return FT_ARTIFACT_GROUPWISE;
    return FT_ARTIFACT_FLOAT;
}

/* The public name of a state; manifests say "blocks" for group-wise quantized weights. */
static const char *precision_name(ft_artifact_state state)
{
    return state == FT_ARTIFACT_GROUPWISE ? "groupwise" : ft_artifact_state_name(state);
}

static size_t weight_bytes(const ft_model *model)
{
    size_t bytes = 0;
    for (int i = 0; i < model->nweight && model->artifact == NULL; i++)
        bytes += ft_weight_bytes(&model->weight[i]);
    for (size_t i = 0; model->artifact != NULL && i < ft_artifact_count(model->artifact); i++)
        bytes += ft_artifact_at(model->artifact, i)->bytes;
    return bytes;
}

ft_model_info ft_model_get_info(const ft_model *model)
{
    if (model == NULL)
        return (ft_model_info){ 0 };
    const ft_config *c = &model->config;
    const int32_t positions = c->positions - c->position_offset;
    bool truncates = c->max_seq_length > 0 && c->max_seq_length < positions;
    return (ft_model_info){
        .family = model->family->name,
        .precision = precision_name(state_of(model)),
        .layers = c->layers,
        .hidden = c->hidden,
        .heads = c->heads,
        .vocabulary = c->vocabulary,
        .max_positions = positions,
        .max_seq_length = truncates ? c->max_seq_length : positions,
        .labels = c->labels,
        .problem_type = ft_head_is_classifier(c->head) ? ft_problem_name(c->problem_type) : NULL,
        .embedding = c->embedding != FT_EMBEDDING_NONE,
        .weight_bytes = weight_bytes(model),
    };
}

const char *ft_model_label(const ft_model *model, int32_t index)
{
    char key[16];
    if (model == NULL)
        return NULL;
    snprintf(key, sizeof key, "%d", index);
    return json_string_value(json_object_get(model->labels, key));
}

int32_t ft_model_find_label(const ft_model *model, const char *name, int32_t first)
{
    for (int32_t i = first; i < model->config.labels; i++) {
        const char *label = ft_model_label(model, i);
        if (label != NULL && strcmp(label, name) == 0)
            return i;
    }
    return -1;
}

ft_status ft_model_write_plan(const ft_model *model, FILE *file, ft_error *err)
{
    FT_REQUIRE(model, err);
    FT_REQUIRE(file, err);
    return ft_plan_write(&model->plan, file, err);
}
