/*
 * results.c - outputs of many forward passes: the last one in memory, all of them in a file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/run/results.h"

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/graph/plan.h"
#include "runtime/model/session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The plan value of an output: only its row kind tells tokens from sequences of one token. */
static int value_of(const ft_plan *plan, const char *name)
{
    for (int i = 0; i < plan->noutput; i++)
        if (strcmp(plan->output[i].name, name) == 0)
            return plan->output[i].value;
    return ft_plan_find(plan, name);
}

/* The shape of an output for the whole dataset, from its shape in one pass. */
static void set_full_shape(ft_named_tensor *result, const ft_session *session,
                           const ft_dataset *dataset)
{
    ft_tensor *tensor = &result->tensor;
    int value = value_of(&session->plan, result->name);
    bool packed = session->plan.value[value].rows == FT_TOKENS &&
                  !ft_session_is_padded_output(session, result->name);
    bool source = dataset->target_ids == NULL || ft_session_has_encoder_rows(session, value);
    size_t tokens = source ? ft_dataset_source_tokens(dataset) : ft_dataset_target_tokens(dataset);
    tensor->dim[0] = (int64_t) (packed ? tokens : dataset->rows);
}

/* ---- Matryoshka embeddings ------------------------------------------------------------------ */

static bool is_cut(const ft_results *r, const char *name)
{
    return r->cut.size > 0 && strcmp(name, "embedding") == 0;
}

/* The L2 norm is bounded from below, as in the operation. */
static void normalize(float *row, size_t size)
{
    double squares = 0.0;
    for (size_t i = 0; i < size; i++)
        squares += (double) row[i] * (double) row[i];
    double norm = squares > 1e-24 ? sqrt(squares) : 1e-12;
    for (size_t i = 0; i < size; i++)
        row[i] = (float) ((double) row[i] / norm);
}

/* Keep the first columns of a matrix. */
static void cut_rows(const ft_results *r, ft_tensor *part)
{
    float *data = (float *) part->data;
    size_t rows = (size_t) part->dim[0], cols = (size_t) part->dim[1], size = r->cut.size;
    for (size_t i = 0; i < rows; i++) {
        memmove(data + i * size, data + i * cols, size * sizeof *data);
        if (r->cut.normalize)
            normalize(data + i * size, size);
    }
    part->dim[1] = (int64_t) size;
}

/* ---- Outputs -------------------------------------------------------------------------------- */

static ft_status begin_file(ft_results *r, const ft_session *session, const ft_dataset *dataset,
                            ft_atomic_file *output, ft_error *err)
{
    ft_named_tensor *full = ft_calloc(r->count, sizeof *full);
    ft_status status = FT_OK;
    if (full == NULL)
        status = ft_fail(err, FT_ENOMEM, "no memory for %zu outputs", r->count);
    for (size_t i = 0; i < r->count && status == FT_OK; i++) {
        full[i].name = r->name[i];
        status = ft_session_get(session, r->name[i], &full[i].tensor, err);
        if (status == FT_OK)
            set_full_shape(&full[i], session, dataset);
        if (status == FT_OK && is_cut(r, r->name[i]))
            full[i].tensor.dim[1] = (int64_t) r->cut.size;
    }
    if (status == FT_OK)
        status = ft_safetensors_stream_open(&r->file, output, full, r->count, err);
    free(full);
    return status;
}

ft_status ft_results_init(ft_results *out, const ft_session *session, const ft_dataset *dataset,
                          const char *const *names, size_t count, const ft_embedding_cut *cut,
                          ft_atomic_file *output, ft_error *err)
{
    *out = (ft_results){ .name = names, .cut = *cut };
    out->part = ft_calloc(count, sizeof *out->part);
    out->capacity = ft_calloc(count, sizeof *out->capacity);
    if (out->part == NULL || out->capacity == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu outputs", count);
    out->count = count;
    return output != NULL ? begin_file(out, session, dataset, output, err) : FT_OK;
}

void ft_results_fini(ft_results *results)
{
    for (size_t i = 0; i < results->count; i++)
        free(results->part[i].data);
    free(results->part);
    free(results->capacity);
    ft_safetensors_stream_free(results->file);
    *results = (ft_results){ .count = 0 };
}

/* Resize the buffer for the outputs of the last pass. */
static ft_status reserve(ft_results *r, size_t i, const ft_session *session, ft_error *err)
{
    ft_tensor shape = { .data = NULL };
    FT_TRY(ft_session_get(session, r->name[i], &shape, err));
    size_t bytes = ft_tensor_bytes(&shape);
    if (bytes <= r->capacity[i] && r->part[i].data != NULL)
        return FT_OK;
    free(r->part[i].data);
    r->part[i].data = ft_calloc_aligned(bytes);
    r->capacity[i] = bytes;
    return r->part[i].data != NULL
               ? FT_OK
               : ft_fail(err, FT_ENOMEM, "%s: no memory for %zu bytes of output", r->name[i],
                         bytes);
}

ft_status ft_results_collect(ft_results *results, const ft_session *session, size_t first,
                             ft_error *err)
{
    for (size_t i = 0; i < results->count; i++) {
        ft_tensor *part = &results->part[i];
        FT_TRY(reserve(results, i, session, err));
        FT_TRY(ft_session_get_rows(session, results->name[i], first, part, err));
        if (is_cut(results, results->name[i]))
            cut_rows(results, part);
        if (results->file != NULL)
            FT_TRY(ft_safetensors_stream_write(results->file, i, part->data, ft_tensor_bytes(part),
                                               err));
    }
    return FT_OK;
}

ft_status ft_results_end(ft_results *results, ft_error *err)
{
    return results->file != NULL ? ft_safetensors_stream_commit(results->file, err) : FT_OK;
}

const ft_tensor *ft_results_find(const ft_results *results, const char *name)
{
    for (size_t i = 0; i < results->count; i++)
        if (strcmp(results->name[i], name) == 0)
            return &results->part[i];
    return NULL;
}
