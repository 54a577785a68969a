/*
 * read_file.h - a whole file in memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_BASE_READ_FILE_H
#define FT_RUNTIME_BASE_READ_FILE_H

#include "runtime/error.h"

#include <stddef.h>

/*
 * Reads a file, of a larger one the first max_bytes + 1 bytes; the caller frees *data, also on
 * failure.  FT_EIO, FT_ENOMEM.
 */
FT_MUST_USE ft_status ft_file_read(char **data, size_t *bytes, const char *path, size_t max_bytes,
                                   ft_error *err);

#endif
