/*
 * results.c - the outputs of many runs, gathered into whole tensors.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/results.h"

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/plan.h"
#include "runtime/session.h"

#include <stdlib.h>
#include <string.h>

/* Whether the plan says so: a run of sequences of one token has as many rows either way. */
static int value_of(const ft_plan *plan, const char *name)
{
    for (int i = 0; i < plan->noutput; i++)
        if (strcmp(plan->output[i].name, name) == 0)
            return plan->output[i].value;
    return ft_plan_find(plan, name);
}

/* The shape of a result over the whole dataset, from its shape in one run. */
static void widen(ft_named_tensor *result, const ft_session *session, const ft_dataset *dataset)
{
    ft_tensor *tensor = &result->tensor;
    int value = value_of(&session->plan, result->name);
    bool packed = tensor->ndim == 2 && session->plan.value[value].rows == FT_TOKENS;
    bool source = dataset->target_ids == NULL || ft_session_has_source_rows(session, value);
    size_t tokens = source ? ft_dataset_text_tokens(dataset) : ft_dataset_target_tokens(dataset);
    tensor->dim[0] = (int64_t) (packed ? tokens : dataset->rows);
}

ft_status ft_results_init(ft_results *out, const ft_session *session, const ft_dataset *dataset,
                          const char *const *names, size_t count, ft_error *err)
{
    memset(out, 0, sizeof *out);
    out->tensor = ft_array(count, sizeof *out->tensor);
    out->filled = ft_array(count, sizeof *out->filled);
    if (out->tensor == NULL || out->filled == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu outputs", count);
    for (size_t i = 0; i < count; i++) {
        ft_tensor *tensor = &out->tensor[i].tensor;
        FT_TRY(ft_session_get(session, names[i], tensor, err));
        out->tensor[i].name = names[i];
        widen(&out->tensor[i], session, dataset);
        size_t bytes = ft_tensor_bytes(tensor);
        tensor->data = ft_alloc(bytes);
        out->count = i + 1;
        if (tensor->data == NULL)
            return ft_fail(err, FT_ENOMEM, "%s: no memory for %zu bytes of output", names[i],
                           bytes);
    }
    return FT_OK;
}

void ft_results_fini(ft_results *results)
{
    for (size_t i = 0; i < results->count; i++)
        free(results->tensor[i].tensor.data);
    free(results->tensor);
    free(results->filled);
    memset(results, 0, sizeof *results);
}

ft_status ft_results_append(ft_results *results, const ft_session *session, size_t first,
                            ft_error *err)
{
    for (size_t i = 0; i < results->count; i++) {
        ft_tensor part = { .data = (float *) results->tensor[i].tensor.data + results->filled[i] };
        FT_TRY(ft_session_get_from(session, results->tensor[i].name, first, &part, err));
        results->filled[i] += ft_tensor_count(&part);
    }
    return FT_OK;
}

const ft_tensor *ft_results_find(const ft_results *results, const char *name)
{
    for (size_t i = 0; i < results->count; i++)
        if (strcmp(results->tensor[i].name, name) == 0)
            return &results->tensor[i].tensor;
    return NULL;
}
