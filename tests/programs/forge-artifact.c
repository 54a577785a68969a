/*
 * forge-artifact.c - edit an artifact and recompute its checksums, for shell tests.
 *
 *     forge-artifact IN OUT [EDIT]...
 *
 * An EDIT is  set PATH JSON  or  unset PATH  for a value of the manifest (recipe/activations,
 * tensors/3/role),  put ENTRY FILE,  or  drop ENTRY,  which also removes it from the manifest.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/lib/folder.h"
#include "tests/lib/forge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool put_file(forge *f, const char *entry, const char *path)
{
    size_t bytes;
    unsigned char *data = folder_read(path, &bytes);
    forge_put(f, entry, data, bytes, true);
    free(data);
    return true;
}

static bool drop(forge *f, const char *name)
{
    const forge_entry *entry = forge_find(f, name);
    if (entry != NULL)
        forge_drop(f, (size_t) (entry - f->entry), true);
    return entry != NULL;
}

/* Applies the edit at argv[0]; returns its number of arguments, or 0 if it fails. */
static int edit(forge *f, int argc, char **argv)
{
    if (argc >= 3 && strcmp(argv[0], "set") == 0) {
        json_t *value = json_loads(argv[2], JSON_DECODE_ANY, NULL);
        return value != NULL && forge_set(f, argv[1], value) ? 3 : 0;
    }
    if (argc >= 2 && strcmp(argv[0], "unset") == 0)
        return forge_set(f, argv[1], NULL) ? 2 : 0;
    if (argc >= 3 && strcmp(argv[0], "put") == 0)
        return put_file(f, argv[1], argv[2]) ? 3 : 0;
    if (argc >= 2 && strcmp(argv[0], "drop") == 0)
        return drop(f, argv[1]) ? 2 : 0;
    return 0;
}

static bool write_file(const forge *f, const char *path)
{
    size_t bytes;
    unsigned char *data = forge_write(f, &bytes);
    FILE *file = fopen(path, "wb");
    bool fine = data != NULL && file != NULL && fwrite(data, 1, bytes, file) == bytes;
    fine = file != NULL && fclose(file) == 0 && fine;
    free(data);
    return fine;
}

int main(int argc, char **argv)
{
    size_t bytes;
    forge f;
    if (argc < 3) {
        fputs("forge-artifact IN OUT [EDIT]...\n", stderr);
        return 2;
    }
    unsigned char *data = folder_read(argv[1], &bytes);
    bool fine = forge_read(&f, data, bytes);
    free(data);
    for (int at = 3, words; at < argc && fine; at += words) {
        words = edit(&f, argc - at, argv + at);
        fine = words > 0;
        if (!fine)
            fprintf(stderr, "forge-artifact: cannot %s %s\n", argv[at],
                    at + 1 < argc ? argv[at + 1] : "");
    }
    fine = fine && write_file(&f, argv[2]);
    forge_fini(&f);
    return !fine;
}
