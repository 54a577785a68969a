/*
 * replay.c - main() of a fuzz target built without libFuzzer.
 *
 *     safetensors.t [FILE|FOLDER]...
 *
 * Runs the target on every file, by default those of tests/fuzz/corpus/NAME, as a regression test;
 * then on some hundred reproducible mutations of them.  An input that crashes the program is saved
 * as NAME.crash in $TMPDIR or /tmp.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate.h"
#include "tests/tap/tap.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 3000, SECONDS = 3, GROWTH = 4096, FILES = 1024 };

typedef struct input {
    uint8_t *data;
    size_t size;
} input;

static input file[FILES];
static size_t files;

/* ---- Inputs ------------------------------------------------------------------------------- */

static void read_file(const char *path, size_t size)
{
    uint8_t *data = malloc(size + 1);
    FILE *from = fopen(path, "rb");
    if (from == NULL || data == NULL || fread(data, 1, size, from) != size || files == FILES)
        bail_out("cannot read %s", path);
    fclose(from);
    file[files++] = (input){ data, size };
}

static int in_order(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Reads a file, or all files below a folder. */
static void read_all(const char *path)
{
    struct stat about;
    struct dirent **entry;
    if (stat(path, &about) != 0)
        bail_out("%s is missing", path);
    if (!S_ISDIR(about.st_mode)) {
        read_file(path, (size_t) about.st_size);
        return;
    }
    int count = scandir(path, &entry, NULL, in_order);
    for (int i = 0; i < count; i++) {
        char below[4096];
        snprintf(below, sizeof below, "%s/%s", path, entry[i]->d_name);
        if (entry[i]->d_name[0] != '.')
            read_all(below);
        free(entry[i]);
    }
    free(count < 0 ? NULL : entry);
}

/* ---- Crashes ------------------------------------------------------------------------------ */

static char crash_path[4096];
static const uint8_t *fed;
static size_t fed_bytes;

static void keep_input(int number)
{
    static const char words[] = "# the input is in ";
    int out = open(crash_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    bool kept = out >= 0 && write(out, fed, fed_bytes) == (ssize_t) fed_bytes;
    if (kept && write(STDERR_FILENO, words, sizeof words - 1) > 0 &&
        write(STDERR_FILENO, crash_path, strlen(crash_path)) > 0 &&
        write(STDERR_FILENO, "\n", 1) > 0)
        close(out);
    signal(number, SIG_DFL);
    raise(number);
}

static void keep_inputs_of_crashes(const char *name)
{
    static const int signals[] = { SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV };
    const char *folder = getenv("TMPDIR");
    snprintf(crash_path, sizeof crash_path, "%s/%s.crash", folder != NULL ? folder : "/tmp", name);
    for (size_t i = 0; i < FT_COUNT(signals); i++)
        signal(signals[i], keep_input);
}

/* ---- Running ------------------------------------------------------------------------------ */

/* Copies the input to memory of the exact size, so that a sanitizer detects reads beyond it. */
static void feed(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size);
    if (copy == NULL && size > 0)
        bail_out("no memory for %zu bytes", size);
    if (size > 0)
        memcpy(copy, data, size);
    fed = copy;
    fed_bytes = size;
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static size_t change(uint8_t *data, size_t size, size_t room, unsigned seed)
{
    uint64_t state = seed;
    return LLVMFuzzerCustomMutator != NULL ? LLVMFuzzerCustomMutator(data, size, room, seed)
                                           : mutate_text(data, size, room, &state);
}

/* Runs the target on an input with one or several mutations. */
static void feed_changed(const input *from, unsigned seed)
{
    size_t room = from->size + GROWTH, size = from->size;
    uint8_t *data = calloc(room, 1);
    if (data == NULL)
        bail_out("no memory for %zu bytes", room);
    if (size > 0)
        memcpy(data, from->data, size);
    for (unsigned i = 0; i <= seed % 3; i++)
        size = change(data, size, room, seed * 4 + i);
    feed(data, size);
    free(data);
}

/* The number of mutations run, which is limited by CPU time. */
static unsigned feed_all_changed(void)
{
    unsigned done = 0;
    clock_t end = clock() + SECONDS * CLOCKS_PER_SEC;
    for (; done < ROUNDS && clock() < end; done++)
        feed_changed(&file[done % files], done);
    return done;
}

/* ------------------------------------------------------------------------------------------- */

/* The name of the program without folders and without ".t". */
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
    char corpus[4096];
    const char *source = getenv("FT_SRCDIR"), *name = target_name(argv[0]);
    snprintf(corpus, sizeof corpus, "%s/tests/fuzz/corpus/%s", source == NULL ? "." : source, name);
    keep_inputs_of_crashes(name);
    for (int i = 1; i < argc; i++)
        read_all(argv[i]);
    if (argc == 1)
        read_all(corpus);
    for (size_t i = 0; i < files; i++)
        feed(file[i].data, file[i].size);
    ok(files > 0, "the target %s meets its requirements on all %zu corpus inputs", name, files);
    if (argc == 1) {
        unsigned changes = feed_all_changed();
        ok(changes > 0, "the target %s meets its requirements on mutated inputs", name);
        diag("%u mutations", changes);
    }
    for (size_t i = 0; i < files; i++)
        free(file[i].data);
    return done_testing();
}
