/*
 * replay.c - main() of a fuzz target where there is no libFuzzer.
 *
 *     safetensors.t [FILE|FOLDER]...
 *
 * Feeds the target every file, by default those of tests/fuzz/corpus/NAME, so that whatever was
 * once found stays fixed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/fuzz/fuzz.h"
#include "tests/tap/tap.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* In memory exactly as large as the file, so that a sanitizer sees a read beyond its end. */
static void feed_file(const char *path, size_t size)
{
    uint8_t *data = malloc(size);
    FILE *file = fopen(path, "rb");
    if (file == NULL || (data == NULL && size > 0) || fread(data, 1, size, file) != size)
        bail_out("cannot read %s", path);
    fclose(file);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
}

/* Feed a file or all files below a folder; return how many there were. */
static int feed(const char *path)
{
    struct stat about;
    if (stat(path, &about) != 0)
        bail_out("%s is missing", path);
    if (!S_ISDIR(about.st_mode)) {
        feed_file(path, (size_t) about.st_size);
        return 1;
    }
    int files = 0;
    DIR *entries = opendir(path);
    for (struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;) {
        char below[4096];
        snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
        files += entry->d_name[0] != '.' ? feed(below) : 0;
    }
    closedir(entries);
    return files;
}

/* The program's name without folders and without ".t". */
static const char *target_name(const char *program)
{
    static char name[64];
    const char *slash = strrchr(program, '/');
    snprintf(name, sizeof name, "%s", slash == NULL ? program : slash + 1);
    name[strcspn(name, ".")] = '\0';
    return name;
}

int main(int argc, char **argv)
{
    int files = 0;
    char corpus[4096];
    const char *source = getenv("FT_SRCDIR"), *name = target_name(argv[0]);
    snprintf(corpus, sizeof corpus, "%s/tests/fuzz/corpus/%s", source == NULL ? "." : source, name);
    for (int i = 1; i < argc; i++)
        files += feed(argv[i]);
    if (argc == 1)
        files = feed(corpus);
    plan(1);
    ok(files > 0, "%s keeps its promises on %d inputs", name, files);
    return done_testing();
}
