/*
 * head_rows.c - batches of rows through a session.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/eval/head_rows.h"

#include "runtime/cli/progress.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/model/session.h"

#include <stdlib.h>

enum { ROWS = 64, TOKENS = 4096 /* per forward pass */, OUTPUTS = 2 };

typedef struct {
    ft_session *session;
    const char *const *name;
    ft_tensor part[OUTPUTS]; /* of the last batch: [rows, tokens, ...] */
    size_t bytes[OUTPUTS];   /* allocated */
} reader;

static size_t batch_tokens(const ft_dataset *data)
{
    return data->cols > TOKENS ? data->cols : TOKENS;
}

static ft_status open_reader(reader *r, const ft_eval *eval, const ft_model *model,
                             const ft_dataset *data, ft_error *err)
{
    const ft_session_options options = { .threads = eval->threads,
                                         .max_tokens = (int64_t) batch_tokens(data),
                                         .max_sequences = ROWS };
    return ft_session_open(&r->session, model, &options, err);
}

static void close_reader(reader *r)
{
    ft_session_close(r->session);
    for (size_t i = 0; i < OUTPUTS; i++)
        free(r->part[i].data);
}

/* Copy an output of the last forward pass. */
static ft_status read_output(reader *r, size_t i, size_t first, ft_error *err)
{
    ft_tensor shape = { .data = NULL };
    FT_TRY(ft_session_get(r->session, r->name[i], &shape, err));
    size_t bytes = ft_tensor_bytes(&shape);
    if (bytes > r->bytes[i]) {
        free(r->part[i].data);
        r->part[i].data = ft_calloc_aligned(bytes);
        r->bytes[i] = bytes;
    }
    if (r->part[i].data == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for %zu bytes of output", bytes);
    return ft_session_get_rows(r->session, r->name[i], first, &r->part[i], err);
}

static ft_status read_batch(reader *r, const ft_dataset *data, size_t first, size_t count,
                            ft_error *err)
{
    FT_TRY(ft_dataset_set_inputs(data, first, count, r->session, err));
    FT_TRY(ft_session_run(r->session, err));
    for (size_t i = 0; i < OUTPUTS && r->name[i] != NULL; i++)
        FT_TRY(read_output(r, i, first, err));
    return FT_OK;
}

/* Row `i` of an output of the last batch. */
static const float *row_of(const ft_tensor *part, size_t i)
{
    return (const float *) part->data + i * (ft_tensor_numel(part) / (size_t) part->dim[0]);
}

static ft_status add_batch(const reader *r, size_t first, size_t count, ft_head_row_fn add,
                           void *user, ft_error *err)
{
    for (size_t i = 0; i < count; i++) {
        const float *output[OUTPUTS] = { row_of(&r->part[0], i), NULL };
        if (r->name[1] != NULL)
            output[1] = row_of(&r->part[1], i);
        FT_TRY(add(user, first + i, output, err));
    }
    return FT_OK;
}

ft_status ft_eval_head_rows(const ft_eval *eval, const ft_model *model, const ft_dataset *data,
                            const char *const *outputs, ft_head_row_fn add, void *user,
                            ft_error *err)
{
    ft_progress_line line;
    reader r = { .name = outputs };
    ft_status status = open_reader(&r, eval, model, data, err);
    ft_progress_begin(&line, "evaluating", "rows", false);
    for (size_t first = 0, count; status == FT_OK && first < data->rows; first += count) {
        count = ft_dataset_batch_rows(data, first, batch_tokens(data), ROWS);
        status = read_batch(&r, data, first, count, err);
        if (status == FT_OK)
            status = add_batch(&r, first, count, add, user, err);
        ft_progress_update(&line, first + count, data->rows);
    }
    ft_progress_end(&line);
    close_reader(&r);
    return status;
}
