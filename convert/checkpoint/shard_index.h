/*
 * shard_index.h - model.safetensors.index.json: which file of a checkpoint holds which tensor.
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
    const char *path;  /* for messages, borrowed */
    json_t *root;      /* owns the strings below */
    json_t *map;       /* tensor name -> file name, all strings; not empty */
    const char **file; /* the distinct files, sorted */
    size_t files;
} ft_shard_index;

/*
 * Read an index from memory.  Files are plain names: an index that could lead out of its own
 * folder is refused, FT_EFORMAT.  On failure too, *index is to be given to ft_shard_index_fini.
 */
FT_MUST_USE ft_status ft_shard_index_parse(ft_shard_index *index, const char *path,
                                           const char *text, size_t bytes, ft_error *err);
void ft_shard_index_fini(ft_shard_index *index);

/* The file that is said to hold a tensor; NULL when the index does not know the tensor. */
const char *ft_shard_index_file_of(const ft_shard_index *index, const char *tensor);

#endif
