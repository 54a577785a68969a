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

void *ft_alloc(size_t bytes)
{
    size_t rounded;
    if (!ft_add(bytes, 63, &rounded))
        return NULL;
    rounded = rounded / 64 * 64;
    void *memory = aligned_alloc(64, rounded == 0 ? 64 : rounded);
    if (memory != NULL)
        memset(memory, 0, rounded);
    return memory;
}

size_t ft_memory_free(void)
{
    static const char key[] = "\nMemAvailable:";
    char text[4096];
    int file = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
    ssize_t bytes = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    text[bytes > 0 ? bytes : 0] = '\0';
    const char *found = strstr(text, key);
    return found != NULL ? (size_t) strtoull(found + sizeof key - 1, NULL, 10) * 1024 : SIZE_MAX;
}

void *ft_array(size_t count, size_t size)
{
    return calloc(count == 0 ? 1 : count, size);
}

void *ft_grown(void *array, size_t *room, size_t first, size_t size)
{
    size_t wanted = first, bytes;
    if ((*room > 0 && !ft_mul(*room, 2, &wanted)) || !ft_mul(wanted, size, &bytes))
        return NULL;
    void *grown = realloc(array, bytes);
    if (grown != NULL)
        *room = wanted;
    return grown;
}

bool ft_memstream_close(FILE *stream, char **text)
{
    bool whole = ferror(stream) == 0;
    if (fclose(stream) == 0 && whole && *text != NULL)
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
