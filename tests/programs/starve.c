/*
 * starve.c - run a command once for each call chain that allocates memory, and fail that
 * allocation.
 *
 *     starve [-e EVERY] [-o] LIBRARY FOLDER COMMAND...
 *
 * LIBRARY is lib/scarce.c.  The command writes to FOLDER, which is emptied before each run.  The
 * first allocation of each call chain fails; with -e 3 only every third chain is tried.  With -o
 * standard output is compared too.  Each violation is a line with the place of the allocation; the
 * last lines count them:
 *
 *     allocations N   allocations of the normal run, which must succeed
 *     chains N        different call chains of these allocations
 *     crashes N       runs that ended with a signal or a status other than 0 and 1
 *     silent N        failures without a message, or without "memory" in the message if the
 *                     program itself made the failed allocation
 *     litter N        failures that left a file in FOLDER
 *     different N     successes with other outputs than the normal run
 *     leaks N         runs that did not free a block that the normal run frees
 *
 * Exits with 0 if all counts but the first two are 0, and with 77 in a build whose sanitizer
 * replaces the allocator.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/lib/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED 1
#endif
#elif defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define IS_SANITIZED 1
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED 0
#endif

enum { CRASH, SILENT, LITTER, DIFFERENT, LEAK, KINDS, PATH = 4096, SHOWN = 20 };

static const char *const kind_name[KINDS] = { "crashes", "silent", "litter", "different", "leaks" };

static struct {
    const char *library, *folder;
    char **command;
    long every;
    bool compares_output;
} job = { .every = 1 };

static char own[FOLDER_PATH]; /* holds the files log, out and err */

/* ---- Files -------------------------------------------------------------------------------- */

typedef struct text {
    char *start; /* NUL-terminated */
    size_t bytes;
} text;

static text read_text(const char *folder, const char *name)
{
    char path[PATH];
    text t = { NULL, 0 };
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    long bytes = file == NULL || fseek(file, 0, SEEK_END) != 0 ? 0 : ftell(file);
    t.start = calloc((size_t) bytes + 1, 1);
    if (t.start == NULL)
        abort();
    if (file != NULL) {
        rewind(file);
        t.bytes = fread(t.start, 1, (size_t) bytes, file);
        fclose(file);
    }
    return t;
}

static void empty(const char *folder)
{
    char path[PATH];
    DIR *entries = opendir(folder);
    for (const struct dirent *e; entries != NULL && (e = readdir(entries)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        unlink(path);
    }
    if (entries != NULL)
        closedir(entries);
}

/* ---- The outcome of a run ----------------------------------------------------------------- */

typedef struct outcome {
    int status; /* from waitpid() */
    text log, out, err;
    long allocations, *first; /* [chains] the first allocation of each call chain */
    size_t chains;
    char name[8][256];
    text content[8]; /* the files in the folder */
    int files;
} outcome;

static void read_folder(outcome *o)
{
    DIR *entries = opendir(job.folder);
    for (const struct dirent *e; entries != NULL && (e = readdir(entries)) != NULL;) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || o->files == 8)
            continue;
        snprintf(o->name[o->files], sizeof o->name[0], "%s", e->d_name);
        o->content[o->files++] = read_text(job.folder, e->d_name);
    }
    if (entries != NULL)
        closedir(entries);
}

static int in_order(const void *a, const void *b)
{
    long left = *(const long *) a, right = *(const long *) b;
    return (left > right) - (left < right);
}

static void read_chains(outcome *o)
{
    static const char word[] = "\nfirst ";
    o->first = calloc(o->log.bytes / sizeof word + 1, sizeof *o->first);
    if (o->first == NULL)
        abort();
    for (const char *at = o->log.start; (at = strstr(at, word)) != NULL; at++)
        o->first[o->chains++] = strtol(at + strlen(word), NULL, 10);
    qsort(o->first, o->chains, sizeof *o->first, in_order);
}

static void forget(outcome *o)
{
    free(o->first);
    for (int i = 0; i < o->files; i++)
        free(o->content[i].start);
    free(o->log.start);
    free(o->out.start);
    free(o->err.start);
}

static bool is_same(const text *a, const text *b)
{
    return a->bytes == b->bytes && memcmp(a->start, b->start, a->bytes) == 0;
}

static bool wrote_the_same(const outcome *a, const outcome *b)
{
    bool same = a->files == b->files && (!job.compares_output || is_same(&a->out, &b->out));
    for (int i = 0; i < a->files && same; i++) {
        int k = 0;
        while (k < b->files && strcmp(a->name[i], b->name[k]) != 0)
            k++;
        same = k < b->files && is_same(&a->content[i], &b->content[k]);
    }
    return same;
}

/* ---- Running ------------------------------------------------------------------------------ */

static void redirect(int descriptor, const char *name)
{
    char path[PATH];
    snprintf(path, sizeof path, "%s/%s", own, name);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || dup2(file, descriptor) < 0)
        _exit(127);
    close(file);
}

static void start(long which)
{
    char number[32], log[PATH];
    const struct rlimit end = { 60, 60 };
    snprintf(number, sizeof number, "%ld", which);
    snprintf(log, sizeof log, "%s/log", own);
    setenv("FT_SCARCE", number, 1);
    setenv("FT_SCARCE_LOG", log, 1);
    setenv("LD_PRELOAD", job.library, 1);
    setrlimit(RLIMIT_CPU, &end);
    redirect(STDOUT_FILENO, "out");
    redirect(STDERR_FILENO, "err");
    execvp(job.command[0], job.command);
    _exit(127);
}

static void run(outcome *o, long which)
{
    memset(o, 0, sizeof *o);
    empty(job.folder);
    empty(own);
    pid_t child = fork();
    if (child == 0)
        start(which);
    if (child < 0 || waitpid(child, &o->status, 0) != child)
        abort();
    o->log = read_text(own, "log");
    o->out = read_text(own, "out");
    o->err = read_text(own, "err");
    read_folder(o);
    sscanf(o->log.start, "allocations %ld", &o->allocations);
    read_chains(o);
}

/* ---- Checks ------------------------------------------------------------------------------- */

static long found[KINDS];

/* The line of a log that begins with `begin`, or an empty string. */
static const char *line_of(const text *log, const char *begin)
{
    static char line[256];
    const char *at = strstr(log->start, begin);
    snprintf(line, sizeof line, "%.*s", at == NULL ? 0 : (int) strcspn(at, "\n"),
             at == NULL ? "" : at);
    return line;
}

static void report(int kind, long which, const outcome *o, const char *detail)
{
    if (found[kind]++ < SHOWN)
        printf("allocation %ld: %s; %s: %s\n", which, line_of(&o->log, "refused"), kind_name[kind],
               detail);
}

/* The library or program that a line of a log names. */
static const char *place_of(char place[256], const char *line)
{
    place[0] = '\0';
    sscanf(line, "%*s %*d bytes %255[^+]", place);
    return place;
}

/* Whether the program or libftruntime was refused, and no other library, which may call it
 * anything. */
static bool is_own(const outcome *o)
{
    char place[256];
    const char *slash = strrchr(job.command[0], '/');
    place_of(place, line_of(&o->log, "refused"));
    return strncmp(place, "libftruntime.so", strlen("libftruntime.so")) == 0 ||
           strcmp(place, slash == NULL ? job.command[0] : slash + 1) == 0;
}

/*
 * A block that was not freed and is not in the log of the normal run.  Blocks that a library leaks
 * after its own failed allocation do not count.
 */
static const char *leaked(const outcome *o, const outcome *first)
{
    static char line[256];
    char refused[256], left[256];
    place_of(refused, line_of(&o->log, "refused"));
    for (const char *at = o->log.start; (at = strstr(at, "\nleft ")) != NULL; at++) {
        snprintf(line, sizeof line, "%.*s", (int) strcspn(at + 1, "\n") + 1, at);
        bool excused = !is_own(o) && strcmp(refused, place_of(left, line + 1)) == 0;
        if (!excused && strstr(first->log.start, line) == NULL)
            return line + 1;
    }
    return NULL;
}

static void judge(const outcome *o, const outcome *first, long which)
{
    char words[64];
    const char *leak = leaked(o, first);
    bool ended = WIFEXITED(o->status) && WEXITSTATUS(o->status) <= 1;
    snprintf(words, sizeof words, WIFEXITED(o->status) ? "status %d" : "signal %d",
             WIFEXITED(o->status) ? WEXITSTATUS(o->status) : WTERMSIG(o->status));
    if (!ended)
        report(CRASH, which, o, words);
    if (leak != NULL)
        report(LEAK, which, o, leak);
    if (o->status == 0 && !wrote_the_same(first, o))
        report(DIFFERENT, which, o, "a success");
    if (o->status != 0 &&
        (o->err.bytes == 0 || (is_own(o) && strstr(o->err.start, "memory") == NULL)))
        report(SILENT, which, o, o->err.start);
    if (o->status != 0 && o->files > 0)
        report(LITTER, which, o, o->name[0]);
}

static int finish(const outcome *first)
{
    long all = 0;
    printf("allocations %ld\nchains %zu\n", first->allocations, first->chains);
    for (int i = 0; i < KINDS; i++) {
        printf("%s %ld\n", kind_name[i], found[i]);
        all += found[i];
    }
    return all > 0;
}

int main(int argc, char **argv)
{
    if (IS_SANITIZED)
        return 77;
    for (int option; (option = getopt(argc, argv, "+e:o")) != -1;)
        if (option == 'e')
            job.every = strtol(optarg, NULL, 10);
        else
            job.compares_output = true;
    if (argc - optind < 3 || job.every < 1) {
        fputs("starve [-e EVERY] [-o] LIBRARY FOLDER COMMAND...\n", stderr);
        return 2;
    }
    job.library = argv[optind];
    job.folder = argv[optind + 1];
    job.command = argv + optind + 2;
    folder_make(own);
    outcome first, o;
    run(&first, 0);
    if (first.status != 0 || first.allocations == 0)
        printf("%s", first.err.start);
    for (size_t i = 0; i < first.chains && first.status == 0; i += (size_t) job.every) {
        run(&o, first.first[i]);
        judge(&o, &first, first.first[i]);
        forget(&o);
    }
    int status = first.status == 0 && first.allocations > 0 ? finish(&first) : 2;
    forget(&first);
    folder_remove(own);
    return status;
}
