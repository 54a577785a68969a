/*
 * read_file.c - a whole file in memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/base/read_file.h"
#include "runtime/mem.h"

#include <stdlib.h>

/* The buffer grows with the file, since limits are far above what files have. */
static ft_status read_all(char **data, size_t *bytes, FILE *file, const char *path,
                          size_t max_bytes, ft_error *err)
{
    for (size_t capacity = 1 << 16;; capacity *= 2) {
        capacity = ft_min_size(capacity, max_bytes + 1);
        char *grown = realloc(*data, capacity);
        if (grown == NULL)
            return ft_fail(err, FT_ENOMEM, "%s: no memory", path);
        *data = grown;
        *bytes += fread(*data + *bytes, 1, capacity - *bytes, file);
        if (ferror(file))
            return ft_fail_errno(err, "%s: cannot read", path);
        if (*bytes < capacity || capacity > max_bytes)
            return FT_OK;
    }
}

ft_status ft_file_read(char **data, size_t *bytes, const char *path, size_t max_bytes,
                       ft_error *err)
{
    FILE *file = fopen(path, "rb");
    *data = NULL;
    *bytes = 0;
    if (file == NULL)
        return ft_fail_errno(err, "%s: cannot open", path);
    ft_status status = read_all(data, bytes, file, path, max_bytes, err);
    fclose(file);
    return status;
}
