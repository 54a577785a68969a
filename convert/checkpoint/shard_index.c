/*
 * shard_index.c - parse the index of a sharded checkpoint.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/checkpoint/shard_index.h"

#include "convert/checkpoint/text_file.h"
#include "runtime/base/json_reader.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

/* A file name without any path, on any operating system. */
static bool is_file_name(const char *file)
{
    return *file != '\0' && strpbrk(file, "/\\") == NULL && strcmp(file, ".") != 0 &&
           strcmp(file, "..") != 0;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}

static ft_status load_map(ft_shard_index *index, const char *text, size_t bytes, ft_error *err)
{
    ft_json_reader in = { .file = index->path, .err = err };
    FT_TRY(ft_json_load(&in, JSON_OBJECT, text, bytes, FT_TEXT_FILE_MAX_BYTES));
    index->root = in.json;
    index->weight_map = json_object_get(index->root, "weight_map");
    if (!json_is_object(index->weight_map))
        return ft_fail(err, FT_EFORMAT, "%s: no object \"weight_map\", expected an index of shards",
                       index->path);
    if (json_object_size(index->weight_map) == 0)
        return ft_fail(err, FT_EFORMAT, "%s: weight_map is empty", index->path);
    return FT_OK;
}

/* Collect the file of each tensor, in the order of the map. */
static ft_status list_files(ft_shard_index *index, ft_error *err)
{
    index->file = ft_calloc(json_object_size(index->weight_map), sizeof *index->file);
    if (index->file == NULL)
        return ft_fail(err, FT_ENOMEM, "%s: no memory", index->path);
    const char *tensor;
    json_t *value;
    json_object_foreach(index->weight_map, tensor, value)
    {
        const char *file = json_string_value(value);
        if (file == NULL)
            return ft_fail(err, FT_EFORMAT, "%s: %.256s: expected the name of a file", index->path,
                           tensor);
        if (!is_file_name(file))
            return ft_fail(err, FT_EFORMAT,
                           "%s: %.256s: \"%.256s\" is not the name of a file in the same folder",
                           index->path, tensor, file);
        index->file[index->n_files++] = file;
    }
    return FT_OK;
}

static void remove_duplicates(ft_shard_index *index)
{
    size_t kept = 1;
    qsort(index->file, index->n_files, sizeof *index->file, compare_texts);
    for (size_t i = 1; i < index->n_files; i++)
        if (strcmp(index->file[kept - 1], index->file[i]) != 0)
            index->file[kept++] = index->file[i];
    index->n_files = kept;
}

ft_status ft_shard_index_parse(ft_shard_index *index, const char *path, const char *text,
                               size_t bytes, ft_error *err)
{
    *index = (ft_shard_index){ .path = path };
    FT_TRY(load_map(index, text, bytes, err));
    FT_TRY(list_files(index, err));
    remove_duplicates(index);
    return FT_OK;
}

void ft_shard_index_fini(ft_shard_index *index)
{
    free(index->file);
    json_decref(index->root);
}

const char *ft_shard_index_file_of(const ft_shard_index *index, const char *tensor)
{
    return json_string_value(json_object_get(index->weight_map, tensor));
}
