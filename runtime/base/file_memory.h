/*
 * file_memory.h - memory for large results, in a temporary file that has no name: the kernel may
 * write its pages to disk instead of running out of memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_BASE_FILE_MEMORY_H
#define FT_RUNTIME_BASE_FILE_MEMORY_H

#include "runtime/error.h"

#include <stddef.h>

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/*
 * `bytes` zeros, page-aligned, in a file of `folder`.  FT_EIO: the file cannot be created or has no
 * space; FT_ENOMEM.  free also accepts NULL.
 */
FT_MUST_USE ft_status ft_file_memory_alloc(void **out, size_t bytes, const char *folder,
                                           ft_error *err);
void ft_file_memory_free(void *memory, size_t bytes);

#pragma GCC visibility pop

#endif
