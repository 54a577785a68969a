/*
 * smooth.c - SmoothQuant for a whole model: factors of every input that can be scaled, folded into
 * the model.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/smooth/smooth.h"

#include "kernels/math/elementary.h"
#include "runtime/error.h"
#include "runtime/graph/plan.h"
#include "runtime/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What the search over all inputs needs. */
typedef struct search {
    const ft_smooth_options *options;
    const ft_model *model;
    ft_smoothquant *result;
    ft_activation_stats_options stats_options;
    ft_activation_stats stats;
    bool *may_change; /* [nweight]: int8 matrices */
    double log_ratio; /* sum over inputs */
} search;

/* ---- Setting up --------------------------------------------------------------------------- */

ft_activation_stats_options ft_smooth_stats_options(const ft_smooth_options *options)
{
    ft_activation_stats_options stats = options->stats;
    stats.moments = false;
    stats.kept_rows = FT_SMOOTH_ROWS;
    if (stats.last - stats.first > FT_SMOOTH_SAMPLES)
        stats.last = stats.first + FT_SMOOTH_SAMPLES;
    return stats;
}

static ft_status search_init(search *s, const ft_smooth_options *options, ft_smoothquant *result,
                             ft_error *err)
{
    const ft_model *model = options->stats.model;
    *s = (search){
        .options = options,
        .model = model,
        .result = result,
        .stats_options = ft_smooth_stats_options(options),
    };
    s->may_change = ft_calloc((size_t) model->nweight, sizeof *s->may_change);
    if (s->may_change == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu matrices", model->path,
                       options->count);
    for (size_t i = 0; i < options->count; i++) {
        int weight = ft_plan_find_weight(&model->graph, options->quantized[i].weights.name);
        if (weight >= 0)
            s->may_change[weight] = ft_scheme_is_int8(options->quantized[i].scheme);
    }
    FT_TRY(ft_folded_scales_init(&result->scales, model, err));
    result->kept = ft_calloc((size_t) model->graph.nvalue, sizeof *result->kept);
    if (result->kept == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for factors", model->path);
    return ft_activation_stats_init(&s->stats, &s->stats_options, s->may_change, err);
}

static void search_fini(search *s)
{
    ft_activation_stats_fini(&s->stats);
    free(s->may_change);
}

/* ---- One input ---------------------------------------------------------------------------- */

/* The matrices that read an input; *per_token: all have scales per row. */
static size_t collect_readers(const search *s, const ft_input_stats *input,
                              ft_weight_matrix *weights, bool *per_token)
{
    size_t count = 0;
    *per_token = true; /* also of factors that are kept */
    for (size_t i = 0; i < s->options->count; i++) {
        const ft_quantized_weight *q = &s->options->quantized[i];
        int weight = ft_plan_find_weight(&s->model->graph, q->weights.name);
        int index = weight < 0 ? -1 : s->stats.input_of_weight[weight];
        if (index < 0 || &s->stats.input[index] != input)
            continue;
        weights[count++] = q->weights;
        *per_token = *per_token && (s->options->keeps || q->scheme == FT_SCHEME_W8A8_DYNAMIC);
    }
    return count;
}

static ft_status fold_choice(search *s, const ft_scale_fold *fold, const float *factor,
                             const ft_smooth_choice *choice, ft_error *err)
{
    if (choice->error > 0.0 && choice->error_without > 0.0)
        s->log_ratio += ft_math_log(choice->error / choice->error_without);
    if (!choice->smooths)
        return FT_OK;
    s->result->scaled_inputs++;
    return ft_folded_scales_add(&s->result->scales, fold, factor, err);
}

static ft_status keep_choice(search *s, const ft_input_stats *input, const float *factor,
                             const ft_smooth_choice *choice, ft_error *err)
{
    ft_smoothquant *result = s->result;
    if (!choice->smooths)
        return FT_OK;
    float *copy = ft_calloc(input->cols, sizeof *copy);
    if (copy == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for factors", input->name);
    memcpy(copy, factor, input->cols * sizeof *copy);
    result->kept[result->n_kept++] = (ft_smoothing){ input->name, input->cols, copy };
    return FT_OK;
}

static ft_status smooth_input(search *s, ft_input_stats *input, const ft_scale_fold *fold,
                              ft_error *err)
{
    ft_weight_matrix *weights = ft_calloc(s->options->count, sizeof *weights);
    float *factor = ft_calloc(input->cols, sizeof *factor);
    ft_smooth_choice choice;
    ft_status status = ft_activation_stats_collect(&s->stats, input, err);
    if (status == FT_OK && (weights == NULL || factor == NULL))
        status = ft_fail(err, FT_ENOMEM, "%s: no memory for factors", input->name);
    if (status == FT_OK) {
        ft_smooth_problem problem = { .fold = fold,
                                      .input = input,
                                      .weights = weights,
                                      .alpha = s->options->alpha,
                                      .threads = s->stats_options.threads };
        problem.count = collect_readers(s, input, weights, &problem.per_token);
        status = ft_smooth_search(factor, &choice, &problem, err);
    }
    if (status == FT_OK)
        status = s->options->keeps ? keep_choice(s, input, factor, &choice, err)
                                   : fold_choice(s, fold, factor, &choice, err);
    free(weights);
    free(factor);
    return status;
}

/* ---- All inputs --------------------------------------------------------------------------- */

/* Whether the factors of an input are searched, and the fold that they must respect. */
static bool is_searched(const search *s, int value, ft_scale_fold *fold)
{
    const ft_smooth_options *o = s->options;
    bool folds = ft_scale_fold_find(fold, &s->model->graph, value, s->may_change);
    if (!o->keeps)
        return folds;
    *fold = (ft_scale_fold){ .value = value,
                             .cols = (size_t) s->model->graph.value[value].cols,
                             .norm = { -1, -1 },
                             .producer = -1,
                             .bias = -1,
                             .produced = -1 };
    return !(folds && o->is_folded);
}

static ft_status smooth_inputs(search *s, ft_error *err)
{
    const ft_plan *graph = &s->model->graph;
    ft_smoothquant *result = s->result;
    for (size_t i = 0; i < s->stats.count; i++) {
        ft_input_stats *input = &s->stats.input[i];
        ft_scale_fold fold;
        int value = ft_plan_find(graph, input->name);
        if (value < 0 || !is_searched(s, value, &fold))
            continue;
        result->inputs++;
        FT_TRY(smooth_input(s, input, &fold, err));
    }
    bool is_known = s->options->alpha < 0.0 && result->inputs > 0;
    result->error_ratio =
        is_known ? ft_math_exp(s->log_ratio / (double) result->inputs) : (double) NAN;
    return FT_OK;
}

ft_status ft_smoothquant_init(ft_smoothquant *smoothing, const ft_smooth_options *options,
                              ft_error *err)
{
    search s;
    *smoothing = (ft_smoothquant){ .inputs = 0 };
    ft_status status = search_init(&s, options, smoothing, err);
    if (status == FT_OK)
        status = smooth_inputs(&s, err);
    search_fini(&s);
    return status;
}

ft_status ft_smoothquant_collect_shard(const ft_smooth_options *options, ft_shard shard,
                                       const ft_stats_sink *sink, ft_error *err)
{
    search s;
    ft_smoothquant none = { .inputs = 0 };
    ft_status status = search_init(&s, options, &none, err);
    if (status == FT_OK)
        status = ft_activation_stats_collect_shard(&s.stats, shard, sink, err);
    search_fini(&s);
    ft_smoothquant_fini(&none);
    return status;
}

void ft_smoothquant_fini(ft_smoothquant *smoothing)
{
    for (size_t i = 0; i < smoothing->n_kept; i++)
        free((float *) (uintptr_t) smoothing->kept[i].factor);
    free(smoothing->kept);
    ft_folded_scales_fini(&smoothing->scales);
}

/* ---- Applying them ------------------------------------------------------------------------ */

static int find_scaled(const void *user, const ft_artifact_tensor *tensor)
{
    const ft_folded_scales *scales = &((const ft_smoothquant *) user)->scales;
    int weight = ft_plan_find_weight(&scales->model->graph, tensor->name);
    bool is_scaled = weight >= 0 && (scales->vector[weight] != NULL ||
                                     scales->row[weight] != NULL || scales->col[weight] != NULL);
    return is_scaled ? weight : -1;
}

static ft_status read_row(void *user, const ft_artifact_tensor *tensor, int weight, size_t row,
                          float *out, ft_error *err)
{
    const ft_folded_scales *scales = &((const ft_smoothquant *) user)->scales;
    size_t cols = (size_t) tensor->dim[tensor->ndim - 1];
    (void) err;
    if (scales->vector[weight] != NULL)
        memcpy(out, scales->vector[weight], cols * sizeof *out);
    else
        ft_weight_matrix_load(out,
                              &(ft_weight_matrix){ .name = tensor->name,
                                                   .dtype = tensor->dtype,
                                                   .data = tensor->data,
                                                   .rows = (size_t) tensor->dim[0],
                                                   .cols = cols,
                                                   .row_factor = scales->row[weight],
                                                   .col_factor = scales->col[weight] },
                              row, 0, cols);
    return FT_OK;
}

ft_rewrite ft_smoothquant_rewrite(ft_smoothquant *smoothing)
{
    return (ft_rewrite){ .model = smoothing->scales.model,
                         .find = find_scaled,
                         .read_row = read_row,
                         .user = smoothing,
                         .folded = &smoothing->scales };
}
