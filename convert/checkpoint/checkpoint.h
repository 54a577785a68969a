/*
 * checkpoint.h - the tensors of a checkpoint, however many files they lie in.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_CHECKPOINT_CHECKPOINT_H
#define FT_CONVERT_CHECKPOINT_CHECKPOINT_H

#include "runtime/container/safetensors.h"

typedef struct ft_checkpoint ft_checkpoint;

/*
 * Open a checkpoint and map all of its files.  On failure *out is NULL.  `path` is one of
 *   - a folder with model.safetensors, or else model.safetensors.index.json and its shards;
 *   - an index (*.json), with its shards beside it;
 *   - one safetensors file.
 * An index and its shards must agree entirely: no shard missing, and every tensor exactly where
 * the index says and nowhere else.
 *
 * FT_EIO: a file is absent or unreadable, or the folder holds none of the above.
 * FT_EUNSUPPORTED: there are only pickled weights; the text says what converts them.
 * FT_EFORMAT: an index is wrong, or disagrees with its shards, or a tensor occurs twice.
 * And what ft_safetensors_open says.
 */
FT_MUST_USE ft_status ft_checkpoint_open(ft_checkpoint **out, const char *path, ft_error *err);

/* Open one or more safetensors files as one checkpoint; companions lie beside the first. */
FT_MUST_USE ft_status ft_checkpoint_open_files(ft_checkpoint **out, const char *const *paths,
                                               size_t count, ft_error *err);

/* Takes NULL. */
void ft_checkpoint_close(ft_checkpoint *cp);

/* Tensors in the order of their names; as in safetensors.h, for reading and maybe unaligned. */
size_t ft_checkpoint_count(const ft_checkpoint *cp);
const ft_named_tensor *ft_checkpoint_at(const ft_checkpoint *cp, size_t index);

/* By name, in logarithmic time; NULL when there is none. */
const ft_tensor *ft_checkpoint_find(const ft_checkpoint *cp, const char *name);

/* The path of the file that holds a tensor; NULL when there is no such tensor. */
const char *ft_checkpoint_file_of(const ft_checkpoint *cp, const char *name);

/* As ft_safetensors_release, whichever file the data are of. */
void ft_checkpoint_release(const ft_checkpoint *cp, const void *data, size_t bytes);

/* Whether a companion lies in the checkpoint's folder. */
bool ft_checkpoint_has(const ft_checkpoint *cp, const char *file);

/*
 * Read a companion whole.  *text is the caller's to free() and has a zero byte behind its *bytes.
 * FT_EIO: absent.  FT_ELIMIT: larger than 64 MiB.
 */
FT_MUST_USE ft_status ft_checkpoint_read(const ft_checkpoint *cp, const char *file, char **text,
                                         size_t *bytes, ft_error *err);

#endif
