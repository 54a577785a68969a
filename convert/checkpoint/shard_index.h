/*
 * shard_index.h - model.safetensors.index.json: maps each tensor of a checkpoint to its shard.
 *
 *     {"metadata": {"total_size": 10951168},
 *      "weight_map": {"lm_head.weight": "model-00002-of-00002.safetensors", ...}}
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_CHECKPOINT_SHARD_INDEX_H
#define FT_CONVERT_CHECKPOINT_SHARD_INDEX_H

#include "runtime/ft.h"

#include <jansson.h>

typedef struct ft_shard_index {
    const char *path;   /* for messages, borrowed */
    json_t *root;       /* owns the strings below */
    json_t *weight_map; /* tensor name -> file name, all strings; not empty */
    const char **file;  /* the distinct file names, sorted */
    size_t n_files;
} ft_shard_index;

/*
 * Parse an index. File names must not contain a path: an index that could refer to files outside of
 * its own folder is rejected, FT_EFORMAT. On failure, too, the caller calls ft_shard_index_fini on
 * *index.
 */
FT_MUST_USE ft_status ft_shard_index_parse(ft_shard_index *index, const char *path,
                                           const char *text, size_t bytes, ft_error *err);
void ft_shard_index_fini(ft_shard_index *index);

/* The shard of a tensor; NULL when the index does not list the tensor. */
const char *ft_shard_index_file_of(const ft_shard_index *index, const char *tensor);

#endif
