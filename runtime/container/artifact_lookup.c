/*
 * artifact_lookup.c - the header, tensors and files of an open artifact.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/container/artifact_private.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

/* ---- Tensors by name ------------------------------------------------------------------------ */

static int by_name(const void *x, const void *y)
{
    const ft_artifact_tensor *const *a = x, *const *b = y;
    return strcmp((*a)->name, (*b)->name);
}

ft_status ft_artifact_index_tensors(ft_artifact *a, ft_error *err)
{
    a->by_name = ft_calloc(a->manifest.n_tensors, sizeof *a->by_name);
    if (a->by_name == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory", a->label);
    for (size_t i = 0; i < a->manifest.n_tensors; i++)
        a->by_name[i] = &a->manifest.tensor[i];
    qsort(a->by_name, a->manifest.n_tensors, sizeof *a->by_name, by_name);
    return FT_OK;
}

const ft_artifact_tensor *ft_artifact_find(const ft_artifact *a, const char *name)
{
    const ft_artifact_tensor key = { .name = name }, *wanted = &key;
    const ft_artifact_tensor **found =
        bsearch(&wanted, a->by_name, a->manifest.n_tensors, sizeof *a->by_name, by_name);
    return found != NULL ? *found : NULL;
}

/* ---- Queries -------------------------------------------------------------------------------- */

const ft_artifact_header *ft_artifact_get_header(const ft_artifact *a)
{
    return &a->manifest.header;
}

const json_t *ft_artifact_manifest(const ft_artifact *a)
{
    return a->manifest.json;
}

const void *ft_artifact_data(const ft_artifact *a)
{
    return a->map;
}

size_t ft_artifact_bytes(const ft_artifact *a)
{
    return a->bytes;
}

size_t ft_artifact_count(const ft_artifact *a)
{
    return a->manifest.n_tensors;
}

const ft_artifact_tensor *ft_artifact_at(const ft_artifact *a, size_t index)
{
    return &a->manifest.tensor[index];
}

size_t ft_artifact_file_count(const ft_artifact *a)
{
    return a->manifest.n_files;
}

const ft_artifact_entry *ft_artifact_file_at(const ft_artifact *a, size_t index)
{
    return &a->manifest.file[index];
}

const ft_artifact_entry *ft_artifact_find_file(const ft_artifact *a, const char *name)
{
    for (size_t i = 0; i < a->manifest.n_files; i++)
        if (strcmp(a->manifest.file[i].name, name) == 0)
            return &a->manifest.file[i];
    return NULL;
}

ft_status ft_artifact_load_json(const ft_artifact *a, const char *name, ft_json_reader *in)
{
    const ft_artifact_entry *file = ft_artifact_find_file(a, name);
    in->json = NULL;
    return file == NULL ? FT_OK
                        : ft_json_load(in, JSON_OBJECT, file->data, file->bytes, FT_JSON_MAX_BYTES);
}

ft_status ft_artifact_file(const ft_artifact *a, const char *name, const void **data, size_t *bytes,
                           ft_error *err)
{
    const ft_artifact_entry *file = ft_artifact_find_file(a, name);
    if (file == NULL)
        return ft_fail(err, FT_EFORMAT, "%s: no %s", a->label, name);
    *data = file->data;
    *bytes = file->bytes;
    return FT_OK;
}

const ft_amax_table *ft_artifact_amax(const ft_artifact *a)
{
    return a->amax;
}
