/*
 * mem.c - allocation helpers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *ft_calloc_aligned(size_t bytes)
{
    size_t rounded;
    if (!ft_checked_add(bytes, 63, &rounded))
        return NULL;
    rounded = rounded / 64 * 64;
    void *block = aligned_alloc(64, rounded == 0 ? 64 : rounded);
    if (block != NULL)
        memset(block, 0, rounded);
    return block;
}

size_t ft_memory_available(void)
{
    static const char pattern[] = "\nMemAvailable:";
    char text[4096];
    int file = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
    ssize_t bytes = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    text[bytes > 0 ? bytes : 0] = '\0';
    const char *found = strstr(text, pattern);
    return found != NULL ? (size_t) strtoull(found + sizeof pattern - 1, NULL, 10) * 1024
                         : SIZE_MAX;
}

void *ft_calloc(size_t count, size_t size)
{
    return calloc(count == 0 ? 1 : count, size);
}

void *ft_array_grow(void *array, size_t *capacity, size_t min_capacity, size_t size)
{
    size_t new_capacity = min_capacity, bytes;
    if ((*capacity > 0 && !ft_checked_mul(*capacity, 2, &new_capacity)) ||
        !ft_checked_mul(new_capacity, size, &bytes))
        return NULL;
    void *grown = realloc(array, bytes);
    if (grown != NULL)
        *capacity = new_capacity;
    return grown;
}

bool ft_memstream_close(FILE *stream, char **text)
{
    bool complete = ferror(stream) == 0;
    if (fclose(stream) == 0 && complete && *text != NULL)
        return true;
    free(*text);
    *text = NULL;
    return false;
}

char *ft_strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = malloc(bytes);
    if (copy != NULL)
        memcpy(copy, text, bytes);
    return copy;
}
