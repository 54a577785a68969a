/*
 * file_memory.c - memory in a temporary file that has no name.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/base/file_memory.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static int open_unnamed(const char *folder)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/.ft-memory-XXXXXX", folder) >= (int) sizeof path)
        return -1;
    int file = mkostemp(path, O_CLOEXEC);
    if (file >= 0)
        (void) unlink(path);
    return file;
}

/* Reserves the space, so that writing to the memory cannot fail later. */
static ft_status map(void **out, int file, size_t bytes, const char *folder, ft_error *err)
{
    int code = posix_fallocate(file, 0, (off_t) bytes);
    if (code != 0)
        return ft_fail(err, FT_EIO, "%s: no space for %zu bytes of temporary data", folder, bytes);
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED)
        return ft_fail(err, FT_ENOMEM, "%s: cannot map %zu bytes of temporary data", folder, bytes);
    *out = memory;
    return FT_OK;
}

ft_status ft_file_memory_alloc(void **out, size_t bytes, const char *folder, ft_error *err)
{
    int file = open_unnamed(folder);
    *out = NULL;
    if (file < 0)
        return ft_fail_errno(err, "%s: cannot create a temporary file", folder);
    ft_status status = map(out, file, bytes, folder, err);
    (void) close(file);
    return status;
}

void ft_file_memory_free(void *memory, size_t bytes)
{
    if (memory != NULL)
        (void) munmap(memory, bytes);
}
