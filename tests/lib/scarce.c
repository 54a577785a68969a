/*
 * scarce.c - preloaded into a program, makes one of its allocations fail, and reports at the end
 * the blocks that were not freed.
 *
 *     LD_PRELOAD=libscarce.so FT_SCARCE=17 FT_SCARCE_LOG=FILE PROGRAM...
 *
 * Allocations are counted from 1 and from the first one that the program or libftruntime makes;
 * those of the libraries beneath them count as well, except of those that end a program without
 * memory. FT_SCARCE=0 lets all succeed, and notes the first allocation of each chain of callers.
 * The log has a line for each fact, see starve.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE 1

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)

/* ---- The underlying allocator ------------------------------------------------------------- */

static void *(*next_malloc)(size_t);
static void *(*next_calloc)(size_t, size_t);
static void *(*next_realloc)(void *, size_t);
static void *(*next_aligned)(size_t, size_t);
static int (*next_memalign)(void **, size_t, size_t);
static void (*next_free)(void *);

/* dlsym() itself may allocate, before the underlying allocator is known. */
static _Alignas(16) char early[4096];
static size_t early_used;

static void *early_block(size_t size)
{
    size_t start = early_used;
    early_used += (size + 15) / 16 * 16;
    return early_used <= sizeof early ? early + start : NULL;
}

static bool is_early(const void *block)
{
    return (uintptr_t) block - (uintptr_t) early < sizeof early;
}

#define FIND(pointer, name) (*(void **) &(pointer) = dlsym(RTLD_NEXT, name))

static void find_next(void)
{
    FIND(next_free, "free");
    FIND(next_calloc, "calloc");
    FIND(next_realloc, "realloc");
    FIND(next_aligned, "aligned_alloc");
    FIND(next_memalign, "posix_memalign");
    FIND(next_malloc, "malloc");
}

static bool is_ready(void)
{
    static bool asking;
    if (next_malloc != NULL)
        return true;
    if (!asking) {
        asking = true;
        find_next();
    }
    return next_malloc != NULL;
}

/* ---- Callers ------------------------------------------------------------------------------ */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *program; /* its path, once main() can run */
static long count, failing;
static bool begun;
static Dl_info refused; /* the caller of the failed allocation */
static const char *refused_at;

/* These end the program with their own messages. */
static bool is_spared(const char *library)
{
    static const char *const name[] = { "ld-linux", "libasan", "libubsan", "libtsan", "libcrypto" };
    for (size_t i = 0; i < sizeof name / sizeof *name; i++)
        if (strstr(library, name[i]) != NULL)
            return true;
    return false;
}

/* The tools are programs and the library that is made with them. */
static bool is_ours(const char *file)
{
    return strcmp(file, program) == 0 || strstr(file, "/libftruntime.so") != NULL;
}

static bool is_counted(const void *caller, Dl_info *info)
{
    if (program == NULL || dladdr(caller, info) == 0 || info->dli_fname == NULL ||
        is_spared(info->dli_fname))
        return false;
    begun = begun || is_ours(info->dli_fname);
    return begun;
}

/* ---- Blocks in use ------------------------------------------------------------------------ */

enum { SLOTS = 1 << 20 };

static struct block {
    const void *start; /* NULL: free slot; `early`: a slot that was in use */
    const char *caller;
    size_t size;
} block[SLOTS];
static size_t blocks;

static size_t slot_of(const void *start)
{
    return (size_t) ((uintptr_t) start / 16 * UINT64_C(0x9e3779b97f4a7c15) >> 44) % SLOTS;
}

static void keep(const void *start, size_t size, const void *caller)
{
    size_t i = slot_of(start);
    while (block[i].start != NULL && block[i].start != early)
        i = (i + 1) % SLOTS;
    block[i] = (struct block){ start, caller, size };
    blocks++;
}

static bool forget(const void *start)
{
    for (size_t i = slot_of(start); block[i].start != NULL; i = (i + 1) % SLOTS)
        if (block[i].start == start) {
            block[i].start = early;
            blocks--;
            return true;
        }
    return false;
}

/* ---- Call chains -------------------------------------------------------------------------- */

enum { CHAINS = 1 << 14, DEPTH = 32 };

static struct chain {
    uint64_t hash; /* 0: free slot */
    long first;    /* allocation */
} chain[CHAINS];
static size_t chains;

/* Records a new call chain, if the table has a free slot. */
static void note_chain(long number)
{
    void *frame[DEPTH];
    int depth = backtrace(frame, DEPTH);
    uint64_t hash = 1;
    for (int i = 0; i < depth; i++)
        hash = (hash ^ (uintptr_t) frame[i]) * UINT64_C(0x9e3779b97f4a7c15);
    size_t i = (size_t) (hash >> 50) % CHAINS;
    while (chain[i].hash != 0 && chain[i].hash != hash)
        i = (i + 1) % CHAINS;
    if (chain[i].hash == hash || chains > CHAINS / 2)
        return;
    chain[i] = (struct chain){ hash, number };
    chains++;
}

/* ---- Counting ----------------------------------------------------------------------------- */

/* Whether this allocation fails; *counted: whether to track its block. */
static bool is_refused(const void *caller, bool *counted)
{
    Dl_info info;
    pthread_mutex_lock(&lock);
    *counted = is_counted(caller, &info);
    bool refuse = *counted && ++count == failing;
    if (*counted && failing == 0)
        note_chain(count);
    if (refuse) {
        refused = info;
        refused_at = caller;
    }
    pthread_mutex_unlock(&lock);
    if (refuse)
        errno = ENOMEM;
    return refuse;
}

static void *kept(void *start, size_t size, const void *caller, bool counted)
{
    if (start == NULL || !counted)
        return start;
    pthread_mutex_lock(&lock);
    keep(start, size, caller);
    pthread_mutex_unlock(&lock);
    return start;
}

static void forget_locked(const void *start)
{
    pthread_mutex_lock(&lock);
    if (blocks > 0)
        forget(start);
    pthread_mutex_unlock(&lock);
}

/* ---- Replaced functions ------------------------------------------------------------------- */

PUBLIC void *malloc(size_t size)
{
    bool counted;
    if (!is_ready())
        return early_block(size);
    return is_refused(CALLER, &counted) ? NULL : kept(next_malloc(size), size, CALLER, counted);
}

PUBLIC void *calloc(size_t number, size_t size)
{
    bool counted;
    if (!is_ready())
        return early_block(number * size);
    if (is_refused(CALLER, &counted))
        return NULL;
    return kept(next_calloc(number, size), number * size, CALLER, counted);
}

/* The old block is untracked first, because another thread may get its address at once. */
static void *reallocated(void *old, size_t size, const void *caller)
{
    bool counted;
    if (is_refused(caller, &counted))
        return NULL;
    if (old != NULL)
        forget_locked(old);
    void *start = next_realloc(old, size);
    return kept(start == NULL && size > 0 ? old : start, size, caller, counted) == start ? start
                                                                                         : NULL;
}

PUBLIC void *realloc(void *old, size_t size)
{
    return reallocated(old, size, CALLER);
}

PUBLIC void *reallocarray(void *old, size_t number, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(number, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return reallocated(old, bytes, CALLER);
}

PUBLIC void *aligned_alloc(size_t alignment, size_t size)
{
    bool counted;
    if (!is_ready() || is_refused(CALLER, &counted))
        return NULL;
    return kept(next_aligned(alignment, size), size, CALLER, counted);
}

PUBLIC int posix_memalign(void **start, size_t alignment, size_t size)
{
    bool counted;
    if (!is_ready() || is_refused(CALLER, &counted))
        return ENOMEM;
    int error = next_memalign(start, alignment, size);
    if (error == 0)
        kept(*start, size, CALLER, counted);
    return error;
}

PUBLIC void free(void *start)
{
    if (start == NULL || is_early(start) || !is_ready())
        return;
    int before = errno;
    forget_locked(start);
    next_free(start);
    errno = before;
}

/* ---- Beginning and end -------------------------------------------------------------------- */

static void __attribute__((constructor)) begin(void)
{
    static char path[4096], words[4096];
    const char *number = getenv("FT_SCARCE");
    ssize_t bytes = readlink("/proc/self/exe", path, sizeof path - 1);
    unsetenv("LD_PRELOAD");
    if (number == NULL || bytes < 0)
        return;
    is_ready();
    backtrace((void *[1]){ NULL }, 1); /* allocates on its first call */
    setvbuf(stdout, words, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF, sizeof words);
    failing = strtol(number, NULL, 10);
    /* dladdr() reports the program by the name with which it was started. */
    Dl_info info;
    void *start = dlsym(RTLD_DEFAULT, "main");
    program = start != NULL && dladdr(start, &info) != 0 ? info.dli_fname : program_invocation_name;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static void write_place(int log, const char *what, size_t size, const char *caller)
{
    Dl_info info;
    if (dladdr(caller, &info) != 0)
        dprintf(log, "%s %zu bytes %s+0x%tx\n", what, size, base_name(info.dli_fname),
                caller - (const char *) info.dli_fbase);
}

static void __attribute__((destructor)) end(void)
{
    const char *path = getenv("FT_SCARCE_LOG");
    int log = program == NULL || path == NULL
                  ? -1
                  : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    program = NULL;
    if (log < 0)
        return;
    dprintf(log, "allocations %ld\nblocks %zu\n", count, blocks);
    for (size_t i = 0; i < CHAINS; i++)
        if (chain[i].hash != 0)
            dprintf(log, "first %ld\n", chain[i].first);
    if (refused_at != NULL)
        write_place(log, "refused", 0, refused_at);
    for (size_t i = 0; i < SLOTS; i++)
        if (block[i].start != NULL && block[i].start != early)
            write_place(log, "left", block[i].size, block[i].caller);
    close(log);
}
