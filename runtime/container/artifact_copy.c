/*
 * artifact_copy.c - add all entries of an artifact to a writer.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/container/artifact_copy.h"

#include "runtime/base/affix.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

/* The bytes of a tensor and its continuations: values, scales, zero points. */
enum { PARTS = 3 };
typedef struct copy_source {
    const char *data[PARTS];
    size_t left[PARTS];
    int part;
} copy_source;

struct ft_artifact_copy {
    copy_source *source; /* [tensors] */
};

static ft_status produce(void *user, void *buffer, size_t bytes, size_t *produced, ft_error *err)
{
    copy_source *source = user;
    (void) err;
    while (source->part < PARTS - 1 && source->left[source->part] == 0)
        source->part++;
    *produced = ft_min_size(bytes, source->left[source->part]);
    memcpy(buffer, source->data[source->part], *produced);
    source->data[source->part] += *produced;
    source->left[source->part] -= *produced;
    return FT_OK;
}

/* An entry that belongs to a tensor of blocks: PREFIXNAME. */
static void add_part(copy_source *source, int part, const ft_artifact *from, const char *prefix,
                     const char *name)
{
    char entry[FT_ARTIFACT_NAME_MAX + 3];
    snprintf(entry, sizeof entry, "%s%s", prefix, name);
    const ft_artifact_entry *file = ft_artifact_find_file(from, entry);
    if (file != NULL) {
        source->data[part] = file->data;
        source->left[part] = file->bytes;
    }
}

static ft_status add_tensor(ft_artifact_writer *writer, const ft_artifact *from, size_t index,
                            copy_source *source, ft_error *err)
{
    const ft_artifact_tensor *tensor = ft_artifact_at(from, index);
    *source = (copy_source){ .data = { tensor->data }, .left = { tensor->bytes } };
    if (tensor->layout == FT_PANEL32) {
        add_part(source, 1, from, "s/", tensor->name);
        add_part(source, 2, from, "z/", tensor->name);
    }
    return ft_artifact_add_tensor(writer, tensor, produce, source, err);
}

/* Scales and zero points come with their tensors. */
static bool belongs_to_tensor(const char *entry)
{
    return ft_starts_with(entry, "s/") || ft_starts_with(entry, "z/");
}

ft_status ft_artifact_copy_new(ft_artifact_copy **out, ft_artifact_writer *writer,
                               const ft_artifact *from, ft_error *err)
{
    size_t tensors = ft_artifact_count(from);
    ft_status status = FT_OK;
    *out = ft_calloc(1, sizeof **out);
    if (*out != NULL)
        (*out)->source = ft_calloc(tensors, sizeof *(*out)->source);
    if (*out == NULL || (*out)->source == NULL)
        status = ft_fail(err, FT_ENOMEM, "no memory to copy %zu tensors", tensors);
    for (size_t i = 0; i < tensors && status == FT_OK; i++)
        status = add_tensor(writer, from, i, &(*out)->source[i], err);
    for (size_t i = 0; i < ft_artifact_file_count(from) && status == FT_OK; i++) {
        const ft_artifact_entry *file = ft_artifact_file_at(from, i);
        if (!belongs_to_tensor(file->name))
            status = ft_artifact_add_memory(writer, file->name, file->data, file->bytes, err);
    }
    if (status != FT_OK) {
        ft_artifact_copy_free(*out);
        *out = NULL;
    }
    return status;
}

void ft_artifact_copy_free(ft_artifact_copy *copy)
{
    if (copy != NULL)
        free(copy->source);
    free(copy);
}
