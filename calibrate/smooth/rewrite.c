/*
 * rewrite.c - writes a float artifact with some tensors replaced.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/smooth/rewrite.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

/* One tensor: copied bytes, or rows that are computed when the writer asks for them. */
typedef struct source {
    const ft_rewrite *rewrite;
    const ft_artifact_tensor *tensor;
    int number;      /* of a replaced tensor; -1: copied */
    size_t position; /* bytes delivered */
    float *row;      /* the current row of a replaced tensor */
} source;

static size_t row_bytes(const ft_artifact_tensor *tensor)
{
    return (size_t) tensor->dim[tensor->ndim - 1] * sizeof(float);
}

static ft_status produce_copy(void *user, void *buffer, size_t bytes, size_t *produced,
                              ft_error *err)
{
    source *s = user;
    (void) err;
    *produced = ft_min_size(bytes, s->tensor->bytes - s->position);
    memcpy(buffer, (const char *) s->tensor->data + s->position, *produced);
    s->position += *produced;
    return FT_OK;
}

static ft_status produce_rows(void *user, void *buffer, size_t bytes, size_t *produced,
                              ft_error *err)
{
    source *s = user;
    size_t size = row_bytes(s->tensor), offset = s->position % size;
    if (s->row == NULL && (s->row = ft_calloc(1, size)) == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory for a row", s->tensor->name);
    if (offset == 0)
        FT_TRY(s->rewrite->read_row(s->rewrite->user, s->tensor, s->number, s->position / size,
                                    s->row, err));
    *produced = ft_min_size(bytes, size - offset);
    memcpy(buffer, (const char *) s->row + offset, *produced);
    s->position += *produced;
    return FT_OK;
}

static ft_status add_tensor(ft_artifact_writer *writer, source *s, ft_error *err)
{
    ft_artifact_tensor tensor = *s->tensor;
    bool replaced = (s->number = s->rewrite->find(s->rewrite->user, s->tensor)) >= 0;
    if (replaced)
        tensor.dtype = FT_F32;
    return ft_artifact_add_tensor(writer, &tensor, replaced ? produce_rows : produce_copy, s, err);
}

static ft_status add_entries(ft_artifact_writer *writer, source *sources, const ft_rewrite *rewrite,
                             ft_error *err)
{
    const ft_artifact *artifact = rewrite->model->artifact;
    for (size_t i = 0; i < ft_artifact_count(artifact); i++) {
        sources[i] = (source){ .rewrite = rewrite, .tensor = ft_artifact_at(artifact, i) };
        FT_TRY(add_tensor(writer, &sources[i], err));
    }
    FT_TRY(ft_folded_scales_write(rewrite->folded, writer, err));
    for (size_t i = 0; i < ft_artifact_file_count(artifact); i++) {
        const ft_artifact_entry *file = ft_artifact_file_at(artifact, i);
        FT_TRY(ft_artifact_add_memory(writer, file->name, file->data, file->bytes, err));
    }
    return FT_OK;
}

static ft_status write_artifact(ft_artifact_writer *writer, const ft_rewrite *rewrite,
                                ft_error *err)
{
    ft_artifact_header head = *ft_artifact_get_header(rewrite->model->artifact);
    FT_TRY(ft_folded_scales_require(&head.required, rewrite->folded, err));
    ft_status status = ft_artifact_write(writer, &head, err);
    json_decref(head.required);
    return status;
}

ft_status ft_rewrite_artifact(ft_artifact_writer *writer, const ft_rewrite *rewrite, ft_error *err)
{
    const ft_artifact *artifact = rewrite->model->artifact;
    size_t count = ft_artifact_count(artifact);
    source *sources = ft_calloc(count, sizeof *sources);
    ft_status status = sources != NULL
                           ? add_entries(writer, sources, rewrite, err)
                           : ft_fail(err, FT_ENOMEM, "no memory for %zu tensors", count);
    if (status == FT_OK)
        status = write_artifact(writer, rewrite, err);
    for (size_t i = 0; i < count && sources != NULL; i++)
        free(sources[i].row);
    free(sources);
    return status;
}
