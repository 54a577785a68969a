/*
 * atomic_file.h - a file that appears under its name whole, or not at all.
 *
 * Bytes go to a hidden file in the same folder, ".NAME.ft-tmp-PID-RANDOM".  Committing makes
 * them durable, then renames: killed at any moment, the old file under the name is intact.  A file
 * that is replaced leaves its permissions to the new one; others follow the umask.
 *
 * A writer that was killed leaves its hidden file behind, unless the program removes what is listed
 * in runtime/base/temp_files.h.  Each writer holds a lock on its own, which the kernel drops with the
 * process, so the next writer of the same name knows the leftovers from work in progress, on this
 * machine or, where the file system shares locks, on another one, and removes them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_BASE_ATOMIC_FILE_H
#define FT_RUNTIME_BASE_ATOMIC_FILE_H

#include "runtime/ft.h"

#include <stdio.h>

typedef struct ft_output ft_output;

/*
 * Whether two paths lead to one file, whatever they spell and whatever links they follow.  A file
 * that is not there yet is known by its folder and its name.
 */
bool ft_output_same_file(const char *a, const char *b);

/* FT_EARG when a file written at `path` would take the place of the file read from `input`. */
ft_status ft_output_spare_input(const char *path, const char *input, ft_error *err);

/*
 * Begin a file that will be called `path`.  FT_EARG when something stands there already (a folder
 * or device always, a file unless `force`); FT_EIO when the folder does not let us write.
 */
ft_status ft_output_open(ft_output **out, const char *path, bool force, ft_error *err);

/* The path, for error texts, and the descriptor to write to and read back from. */
const char *ft_output_path(const ft_output *output);
int ft_output_fd(const ft_output *output);

/* Where the bytes are until they are committed, for those who read by name; free() it.  NULL: no
 * memory. */
char *ft_output_hidden(const ft_output *output);

/*
 * A buffered stream to the same descriptor, or NULL and errno.  It belongs to the output:
 * committing flushes it and fails if any write to it has failed, so that one look at the end is
 * enough.
 */
FILE *ft_output_stream(ft_output *output);

/* Set space aside, so that a full disk is known before the work; FT_EIO when it is full. */
ft_status ft_output_reserve(ft_output *output, uint64_t bytes, ft_error *err);

/* Make the bytes durable and move them under the name. */
ft_status ft_output_commit(ft_output *output, ft_error *err);

/* Free; unless committed, nothing is left of the file.  Takes NULL. */
void ft_output_close(ft_output *output);

#endif
