/*
 * folder.c - a temporary folder for the files of a test.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/lib/folder.h"

#include "tests/tap/tap.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void folder_make(char path[FOLDER_PATH])
{
    const char *base = getenv("TMPDIR");
    if (base == NULL || strlen(base) > 40)
        base = "/tmp";
    snprintf(path, FOLDER_PATH, "%s/ft-test-XXXXXX", base);
    if (mkdtemp(path) == NULL)
        bail_out("%s: cannot make a folder", path);
}

void folder_remove(const char *path)
{
    char file[512];
    DIR *dir = opendir(path);
    for (const struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
        snprintf(file, sizeof file, "%s/%s", path, e->d_name);
        unlink(file);
    }
    if (dir != NULL)
        closedir(dir);
    rmdir(path);
}

int folder_count(const char *path)
{
    int count = -2;
    DIR *dir = opendir(path);
    while (dir != NULL && readdir(dir) != NULL)
        count++;
    if (dir != NULL)
        closedir(dir);
    return count;
}

void folder_write(const char *path, const char *name, const char *data, size_t bytes)
{
    char file[512];
    snprintf(file, sizeof file, "%s/%s", path, name);
    FILE *out = fopen(file, "wb");
    if (out == NULL || fwrite(data, 1, bytes, out) != bytes || fclose(out) != 0)
        bail_out("cannot write %s", file);
}

/* ft_calloc_aligned() rounds up, which would hide a read just past the end from a sanitizer. */
static unsigned char *aligned(size_t bytes)
{
    void *memory;
    if (posix_memalign(&memory, 64, bytes > 0 ? bytes : 1) != 0)
        bail_out("cannot allocate %zu bytes", bytes);
    return memory;
}

unsigned char *folder_read(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    struct stat st;
    if (file == NULL || fstat(fileno(file), &st) != 0)
        bail_out("%s: cannot open", path);
    *bytes = (size_t) st.st_size;
    unsigned char *data = aligned(*bytes);
    if (fread(data, 1, *bytes, file) != *bytes)
        bail_out("%s: cannot read", path);
    fclose(file);
    return data;
}

unsigned char *aligned_copy(const unsigned char *data, size_t bytes)
{
    return memcpy(aligned(bytes), data, bytes);
}
