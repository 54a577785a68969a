/*
 * checkpoint.h - access to the tensors of a checkpoint of one or more files.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_CHECKPOINT_CHECKPOINT_H
#define FT_CONVERT_CHECKPOINT_CHECKPOINT_H

#include "runtime/container/safetensors.h"

typedef struct ft_checkpoint ft_checkpoint;

/*
 * Open a checkpoint and memory-map all of its files. On failure *out is NULL. `path` is one of
 *
 *   - a folder with model.safetensors, or else model.safetensors.index.json and its shards;
 *   - an index (*.json) in the folder of its shards;
 *   - one safetensors file.
 *
 * An index and its shards must agree exactly: no shard is missing, and every tensor is in the shard
 * that the index names and in no other.
 *
 * FT_EIO: a file is missing or unreadable, or the folder holds none of the above.
 * FT_EUNSUPPORTED: there are only pickled weights; the text says how to convert them.
 * FT_EFORMAT: the index is invalid or disagrees with its shards, or a tensor occurs twice.
 * Also the errors of ft_safetensors_open.
 */
FT_MUST_USE ft_status ft_checkpoint_open(ft_checkpoint **out, const char *path, ft_error *err);

/*
 * Open one or more safetensors files as one checkpoint; other files are read from the first one's
 * folder.
 */
FT_MUST_USE ft_status ft_checkpoint_open_files(ft_checkpoint **out, const char *const *paths,
                                               size_t count, ft_error *err);

/* Accepts NULL. */
void ft_checkpoint_close(ft_checkpoint *cp);

/* Tensors sorted by name; as in safetensors.h, read-only and possibly unaligned. */
size_t ft_checkpoint_count(const ft_checkpoint *cp);
const ft_named_tensor *ft_checkpoint_at(const ft_checkpoint *cp, size_t index);

/* Look up a tensor by name by binary search; NULL when there is none. */
const ft_tensor *ft_checkpoint_find(const ft_checkpoint *cp, const char *name);

/* The paths of its files, shards in the order of the index. */
size_t ft_checkpoint_file_count(const ft_checkpoint *cp);
const char *ft_checkpoint_file_at(const ft_checkpoint *cp, size_t index);

/* The path of the file that holds a tensor; NULL when there is no such tensor. */
const char *ft_checkpoint_file_of(const ft_checkpoint *cp, const char *name);

/* Like ft_safetensors_release, for the file that contains the data. */
void ft_checkpoint_release(const ft_checkpoint *cp, const void *data, size_t bytes);

/* The folder of its files, "." for the current one. */
const char *ft_checkpoint_folder(const ft_checkpoint *cp);

/* Whether the checkpoint's folder contains a regular file of this name. */
bool ft_checkpoint_has(const ft_checkpoint *cp, const char *file);

/*
 * Read a whole file of the checkpoint's folder. The caller frees *text; a zero byte follows its
 * *bytes. FT_EIO: missing. FT_ELIMIT: larger than 64 MiB.
 */
FT_MUST_USE ft_status ft_checkpoint_read(const ft_checkpoint *cp, const char *file, char **text,
                                         size_t *bytes, ft_error *err);

#endif
