/*
 * shard_index.c - fuzz target: arbitrary bytes parsed as model.safetensors.index.json.
 *
 * An accepted index names only files of its own folder, and every tensor is in one of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/checkpoint/shard_index.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static void check_file(const ft_shard_index *index, size_t i)
{
    const char *file = index->file[i];
    require(*file != '\0' && strpbrk(file, "/\\") == NULL);
    require(strcmp(file, ".") != 0 && strcmp(file, "..") != 0);
    require(i == 0 || strcmp(index->file[i - 1], file) < 0);
}

static int is_listed(const ft_shard_index *index, const char *file)
{
    for (size_t i = 0; i < index->n_files; i++)
        if (strcmp(index->file[i], file) == 0)
            return 1;
    return 0;
}

static void check(const ft_shard_index *index)
{
    const char *tensor;
    json_t *file;
    require(index->n_files > 0 && index->n_files <= json_object_size(index->weight_map));
    for (size_t i = 0; i < index->n_files; i++)
        check_file(index, i);
    json_object_foreach(index->weight_map, tensor, file)
    {
        const char *found = ft_shard_index_file_of(index, tensor);
        require(found == json_string_value(file) && is_listed(index, found));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ft_error err = { .code = FT_OK };
    ft_shard_index index;
    ft_status rc = ft_shard_index_parse(&index, "fuzz", (const char *) data, size, &err);
    if (rc == FT_OK)
        check(&index);
    else
        require(err.code == rc && strncmp(err.text, "fuzz: ", 6) == 0);
    ft_shard_index_fini(&index);
    return 0;
}
