/*
 * refine.c - data-driven group-wise quantization: AWQ, GPTQ and imatrix.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/weights/refine.h"

#include "calibrate/weights/awq.h"
#include "runtime/mem.h"
#include "runtime/graph/plan.h"

#include <stdlib.h>
#include <string.h>

/* ---- Matrices ----------------------------------------------------------------------------- */

static int weight_of(const ft_refining *r, const ft_quantized *q)
{
    return ft_plan_find_weight(&r->of.model->plan, q->weights.name);
}

static ft_sums *input_of(ft_refining *r, int weight)
{
    int index = weight < 0 ? -1 : r->inputs.by_weight[weight];
    return index < 0 ? NULL : &r->inputs.input[index];
}

static ft_status find_blocks(ft_refining *r, ft_error *err)
{
    r->in_blocks = ft_array((size_t) r->of.model->nweight, sizeof *r->in_blocks);
    if (r->in_blocks == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu matrices", r->count);
    for (size_t i = 0; i < r->count; i++)
        if (ft_scheme_is_blocks(r->quantized[i].scheme))
            r->in_blocks[weight_of(r, &r->quantized[i])] = true;
    return FT_OK;
}

/* ---- AWQ --------------------------------------------------------------------------------- */

/* The linears that read an input, as inputs of the search. */
static size_t collect_readers(ft_refining *r, const ft_sums *input, ft_weights *weights,
                              ft_blocks_how *how)
{
    size_t count = 0;
    for (size_t i = 0; i < r->count; i++)
        if (ft_scheme_is_blocks(r->quantized[i].scheme) &&
            input_of(r, weight_of(r, &r->quantized[i])) == input) {
            weights[count] = r->quantized[i].weights;
            how[count++] = r->quantized[i].how;
        }
    return count;
}

/* Folds the factors, unless no scaling was best. */
static ft_status divide(ft_refining *r, ft_sums *input, const ft_fold *fold, float *factor,
                        const ft_awq_choice *choice, ft_error *err)
{
    if (choice->power <= 0.0) {
        free(factor);
        return FT_OK;
    }
    r->divided++;
    ft_inputs_divide(input, factor);
    return ft_scaling_add(&r->scaling, fold, factor, err);
}

static ft_status search(ft_refining *r, ft_sums *input, const ft_fold *fold, ft_error *err)
{
    ft_weights *weights = ft_array(r->count, sizeof *weights);
    ft_blocks_how *how = ft_array(r->count, sizeof *how);
    float *factor = ft_array(input->cols, sizeof *factor);
    ft_awq_choice choice;
    ft_status status = ft_inputs_need(&r->inputs, input, err);
    if (status == FT_OK && (weights == NULL || how == NULL || factor == NULL))
        status = ft_fail(err, FT_ENOMEM, "%s: no memory for factors", input->name);
    if (status == FT_OK) {
        ft_awq what = { .fold = fold,
                        .input = input,
                        .weights = weights,
                        .how = how,
                        .count = collect_readers(r, input, weights, how),
                        .weighted = r->recipe->clip == FT_CLIP_IMATRIX,
                        .threads = r->of.threads };
        status = ft_awq_search(factor, &choice, &what, err);
    }
    free(weights);
    free(how);
    if (status != FT_OK) {
        free(factor);
        return status;
    }
    return divide(r, input, fold, factor, &choice, err);
}

static ft_status search_all(ft_refining *r, ft_error *err)
{
    for (size_t i = 0; i < r->inputs.count; i++) {
        ft_sums *input = &r->inputs.input[i];
        ft_fold fold;
        int value = ft_plan_find(&r->of.model->graph, input->name);
        if (value < 0 || !ft_fold_find(&fold, &r->of.model->graph, value, r->in_blocks))
            continue;
        r->divisible++;
        FT_TRY(search(r, input, &fold, err));
    }
    if (r->divisible == 0)
        return ft_fail(
            err, FT_EUNSUPPORTED,
            "%s: AWQ: no input of a group-wise quantized matrix can be scaled by its producer",
            r->of.model->path);
    for (size_t i = 0; i < r->count; i++) {
        int weight = weight_of(r, &r->quantized[i]);
        r->quantized[i].weights.row_factor = r->scaling.row[weight];
        r->quantized[i].weights.col_factor = r->scaling.col[weight];
    }
    return FT_OK;
}

ft_status ft_refining_init(ft_refining *r, const ft_inputs_of *of, const ft_recipe *recipe,
                           ft_quantized *quantized, size_t count, ft_error *err)
{
    *r = (ft_refining){ .recipe = recipe, .quantized = quantized, .count = count, .of = *of };
    r->of.moments = recipe->gptq || recipe->awq;
    FT_TRY(find_blocks(r, err));
    FT_TRY(ft_inputs_init(&r->inputs, &r->of, r->in_blocks, err));
    FT_TRY(ft_scaling_init(&r->scaling, of->model, err));
    return recipe->awq ? search_all(r, err) : FT_OK;
}

void ft_refining_fini(ft_refining *r)
{
    ft_gptq_fini(&r->gptq);
    ft_scaling_fini(&r->scaling);
    ft_inputs_fini(&r->inputs);
    free(r->importance);
    free(r->in_blocks);
    *r = (ft_refining){ 0 };
}

/* ---- One matrix --------------------------------------------------------------------------- */

/* Computes what depends on the input alone; matrices with the same input share it. */
static ft_status prepare_input(ft_refining *r, ft_sums *input, ft_error *err)
{
    if (r->input == input)
        return FT_OK;
    r->input = NULL;
    ft_gptq_fini(&r->gptq);
    free(r->importance);
    r->importance = ft_array(input->cols, sizeof *r->importance);
    if (r->importance == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu columns", input->name, input->cols);
    FT_TRY(ft_inputs_need(&r->inputs, input, err));
    ft_importance(r->importance, input);
    if (r->recipe->gptq)
        FT_TRY(ft_gptq_init(&r->gptq, input->moments, input->cols, input->name, err));
    r->input = input;
    return FT_OK;
}

ft_status ft_refining_prepare(ft_refining *r, ft_quantized *q, ft_error *err)
{
    ft_sums *input = input_of(r, weight_of(r, q));
    if (input == NULL)
        return ft_fail(err, FT_EUNSUPPORTED, "%s: no linear uses it", q->weights.name);
    FT_TRY(prepare_input(r, input, err));
    q->how.moments = input->moments;
    q->how.importance = r->recipe->clip == FT_CLIP_IMATRIX ? r->importance : NULL;
    q->how.round = r->recipe->gptq ? ft_gptq_round : NULL;
    q->how.user = &r->gptq;
    return FT_OK;
}

const float *ft_refining_vector(const ft_refining *r, const char *name)
{
    int weight = r->scaling.vector != NULL ? ft_plan_find_weight(&r->of.model->plan, name) : -1;
    return weight < 0 ? NULL : r->scaling.vector[weight];
}
