/*
 * atomic_file.h - write a file atomically: it appears under its name completely, or not at all.
 *
 * Data is written to a hidden file in the same folder, ".NAME.ft-tmp-PID-RANDOM". Committing calls
 * fsync, then renames it: if the process is killed at any moment, an existing file of that name is
 * intact. A file that replaces another takes over its permissions; a new file follows the umask.
 *
 * A killed writer leaves its temporary file behind, unless the program deletes the files listed in
 * runtime/base/temp_files.h. Each writer locks its temporary file, and the kernel releases the lock
 * with the process. So the next writer of the same name can tell stale files from files being
 * written, on this machine or, where the file system shares locks, on another one, and removes the
 * stale ones.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_BASE_ATOMIC_FILE_H
#define FT_RUNTIME_BASE_ATOMIC_FILE_H

#include "runtime/ft.h"

#include <stdio.h>

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

typedef struct ft_atomic_file ft_atomic_file;

/*
 * Whether two paths refer to the same file, whatever their spelling and whatever links they follow.
 * A file that does not exist yet is identified by its folder and its name.
 */
bool ft_paths_same_file(const char *a, const char *b);

/* FT_EARG when writing `path` would replace the file that is read from `input`. */
ft_status ft_path_check_not_input(const char *path, const char *input, ft_error *err);

/*
 * Start writing a file that will be named `path`. FT_EARG when the path exists already (a folder or
 * device always, a file unless `force`); FT_EIO when the folder is not writable.
 */
ft_status ft_atomic_file_open(ft_atomic_file **out, const char *path, bool force, ft_error *err);

/* The path, for error messages, and the descriptor to write to and read back from. */
const char *ft_atomic_file_path(const ft_atomic_file *output);
int ft_atomic_file_fd(const ft_atomic_file *output);

/*
 * The path of the temporary file, for readers that open it by name; the caller frees it. NULL when
 * out of memory.
 */
char *ft_atomic_file_temp_path(const ft_atomic_file *output);

/*
 * A buffered stream over the same descriptor, or NULL and errno. The ft_atomic_file owns it:
 * committing flushes it and fails if any write to it has failed, so callers need to check only the
 * commit.
 */
FILE *ft_atomic_file_stream(ft_atomic_file *output);

/* Preallocate disk space, so that a full disk is reported before the work starts: FT_EIO. */
ft_status ft_atomic_file_reserve(ft_atomic_file *output, uint64_t bytes, ft_error *err);

/* Flush the data to disk and rename the file to its final name. */
ft_status ft_atomic_file_commit(ft_atomic_file *output, ft_error *err);

/* Free it; unless committed, also delete the temporary file. Accepts NULL. */
void ft_atomic_file_close(ft_atomic_file *output);

#pragma GCC visibility pop

#endif
