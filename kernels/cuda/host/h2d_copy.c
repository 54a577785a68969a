/*
 * h2d_copy.c - worker threads fill pinned buffers, and one thread copies them to the device.
 *
 * Copies from pinned memory reach PCIe bandwidth, copies from pageable memory do not.  The spans
 * are split into chunks.  Threads copy chunks from the mapped file, which also takes its page
 * faults, into pinned buffers, while earlier chunks are copied to the device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/host/h2d_copy.h"

#include "kernels/threads/processors.h"
#include "kernels/threads/team.h"
#include "kernels/threads/thread_pool.h"
#include "runtime/mem.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/*
 * A copy of 1 MB leaves the bus idle for a tenth of its time, so chunks that are next to each other
 * on both sides are copied as a run.  Two runs are in flight, and meanwhile the next one grows.
 * Eight threads fill buffers as fast as the bus of an H200 empties them; more slow it down.
 */
enum {
    MAX_THREADS = 11,
    BUFFERS = 32,
    CHUNK_BYTES = 1 << 20,
    MAX_RUN = 8,
    IN_FLIGHT = 2,
    MERGE_GAP = 256,
    PAGE_BYTES = 4096,
    HUGE_PAGE_BYTES = 2 << 20
};

/* Up to CHUNK_BYTES of the target. */
typedef struct chunk {
    char *to;
    size_t bytes;
    int first, last; /* the spans in which the chunk begins and ends */
    bool has_work;   /* of its last span, which ends with it */
} chunk;

/*
 * Chunk i uses buffer i % BUFFERS.  One thread issues all copies, in the order of the chunks,
 * because several threads would contend for the driver's lock.  The other threads fill buffers.
 */
struct ft_cuda_h2d_copier {
    char *buffers;   /* [BUFFERS][CHUNK_BYTES], pinned */
    bool registered; /* aligned_alloc() and cudaHostRegister(); else cudaHostAlloc() */
    int threads;
    cudaStream_t stream;
    cudaEvent_t done_event[IN_FLIGHT];

    /* The current ft_cuda_h2d_send(). */
    const ft_cuda_h2d_span *span;
    ft_cuda_h2d_work *work;
    const void *user;
    chunk *chunk;
    int n_chunks;
    int issued, runs;       /* chunks and runs; only the issuing thread uses them */
    int run_end[IN_FLIGHT]; /* the first chunk behind each run */
    int completed_runs;
    atomic_int claimed;         /* chunks whose buffers a thread fills or has filled */
    atomic_int filled[BUFFERS]; /* 1 + the index of the chunk in this buffer */
    atomic_int completed;       /* chunks that have been copied: their buffers are free */
    atomic_int failed;          /* cudaError_t; not 0: all threads stop */
};

/* ---- Chunks ------------------------------------------------------------------------------- */

/* Whether a span continues in the chunk of those before it. */
static bool is_merged(const chunk *last, const ft_cuda_h2d_span *p)
{
    return !last->has_work && p->to >= last->to + last->bytes &&
           p->to < last->to + last->bytes + MERGE_GAP && p->to < last->to + CHUNK_BYTES;
}

/* Merge spans with gaps of less than MERGE_GAP bytes into chunks; false: out of memory. */
static bool split_chunks(ft_cuda_h2d_copier *f, int count)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += f->span[i].bytes;
    f->n_chunks = 0;
    f->chunk = ft_calloc(bytes / CHUNK_BYTES + (size_t) count, sizeof *f->chunk);
    for (int i = 0; i < count && f->chunk != NULL; i++) {
        const ft_cuda_h2d_span *p = &f->span[i];
        chunk *last = f->n_chunks > 0 ? &f->chunk[f->n_chunks - 1] : NULL;
        size_t done = 0;
        if (last != NULL && is_merged(last, p)) {
            done = ft_min_size(p->bytes, (size_t) (last->to + CHUNK_BYTES - p->to));
            last->bytes = (size_t) (p->to - last->to) + done;
            last->last = i;
        }
        for (; done < p->bytes; done += f->chunk[f->n_chunks++].bytes)
            f->chunk[f->n_chunks] =
                (chunk){ p->to + done, ft_min_size(p->bytes - done, CHUNK_BYTES), i, i, false };
        f->chunk[f->n_chunks - 1].has_work = p->has_work;
    }
    return f->chunk != NULL;
}

static void copy_chunk(char *buffer, const ft_cuda_h2d_span *span, const chunk *one)
{
    char *at = one->to, *end = at + one->bytes;
    for (const ft_cuda_h2d_span *p = &span[one->first]; at < end; p++) {
        if (p->to > at) {
            memset(buffer + (at - one->to), 0, (size_t) (p->to - at));
            at = p->to;
        }
        size_t done = (size_t) (at - p->to),
               bytes = ft_min_size(p->bytes - done, (size_t) (end - at));
        memcpy(buffer + (at - one->to), p->from + done, bytes);
        at += bytes;
    }
}

/* ---- Buffers ------------------------------------------------------------------------------ */

static void touch_pages(const void *job, int thread, size_t first, size_t end)
{
    char *buffers = (char *) (uintptr_t) job;
    (void) thread;
    for (size_t page = first; page < end; page++)
        buffers[page * PAGE_BYTES] = 0;
}

/* Huge pages are pinned faster: 32 MB in 2.5 ms on that machine, cudaHostAlloc() takes 12 ms. */
static int alloc_pinned(ft_cuda_h2d_copier *f, int threads)
{
    size_t bytes = ft_round_up((size_t) BUFFERS * CHUNK_BYTES, HUGE_PAGE_BYTES);
    f->buffers = aligned_alloc(HUGE_PAGE_BYTES, bytes);
    if (f->buffers == NULL)
        return (int) cudaErrorMemoryAllocation;
    (void) madvise(f->buffers, bytes, MADV_HUGEPAGE);
    ft_parallel_for(threads > 0 ? threads : f->threads, bytes / PAGE_BYTES, touch_pages,
                    f->buffers);
    f->registered = cudaHostRegister(f->buffers, bytes, cudaHostRegisterDefault) == cudaSuccess;
    if (f->registered)
        return 0;
    (void) cudaGetLastError(); /* some systems do not support it */
    free(f->buffers);
    f->buffers = NULL;
    return (int) cudaHostAlloc((void **) &f->buffers, bytes, cudaHostAllocDefault);
}

static void free_pinned(ft_cuda_h2d_copier *f)
{
    if (f->registered) {
        (void) cudaHostUnregister(f->buffers);
        free(f->buffers);
    } else
        (void) cudaFreeHost(f->buffers);
}

int ft_cuda_h2d_open(ft_cuda_h2d_copier **out, int threads)
{
    ft_cuda_h2d_copier *f = ft_calloc(1, sizeof *f);
    *out = f;
    if (f == NULL)
        return (int) cudaErrorMemoryAllocation;
    f->threads = ft_num_processors() + 1 < MAX_THREADS ? ft_num_processors() + 1 : MAX_THREADS;
    int status = (int) cudaStreamCreateWithFlags(&f->stream, cudaStreamNonBlocking);
    if (status == 0)
        status = alloc_pinned(f, threads);
    for (int i = 0; i < IN_FLIGHT && status == 0; i++)
        status = (int) cudaEventCreateWithFlags(&f->done_event[i], cudaEventDisableTiming);
    if (status != 0) {
        (void) ft_cuda_h2d_close(f);
        *out = NULL;
    }
    return status;
}

int ft_cuda_h2d_close(ft_cuda_h2d_copier *f)
{
    if (f == NULL)
        return 0;
    int status = f->stream != NULL ? (int) cudaStreamSynchronize(f->stream) : 0;
    for (int i = 0; i < IN_FLIGHT; i++)
        if (f->done_event[i] != NULL)
            (void) cudaEventDestroy(f->done_event[i]);
    if (f->stream != NULL)
        (void) cudaStreamDestroy(f->stream);
    free_pinned(f);
    free(f);
    return status;
}

cudaStream_t ft_cuda_h2d_stream(const ft_cuda_h2d_copier *f)
{
    return f->stream;
}

/* ---- Sending ------------------------------------------------------------------------------ */

static char *buffer_of(const ft_cuda_h2d_copier *f, int i)
{
    return f->buffers + (size_t) (i % BUFFERS) * CHUNK_BYTES;
}

/* Fill the buffer of the next chunk if it is free; false: nothing to do now. */
static bool fill_next(ft_cuda_h2d_copier *f)
{
    int next = atomic_load(&f->claimed);
    if (next == f->n_chunks || next >= atomic_load(&f->completed) + BUFFERS ||
        !atomic_compare_exchange_strong(&f->claimed, &next, next + 1))
        return false;
    copy_chunk(buffer_of(f, next), f->span, &f->chunk[next]);
    atomic_store(&f->filled[next % BUFFERS], next + 1);
    return true;
}

static void fill_all(ft_cuda_h2d_copier *f)
{
    while (atomic_load(&f->claimed) < f->n_chunks && atomic_load(&f->failed) == 0)
        if (!fill_next(f))
            sched_yield();
}

/* Mark completed copies. */
static int poll_completed(ft_cuda_h2d_copier *f)
{
    for (; f->completed_runs < f->runs; f->completed_runs++) {
        int slot = f->completed_runs % IN_FLIGHT;
        int status = (int) cudaEventQuery(f->done_event[slot]);
        if (status != 0)
            return status == (int) cudaErrorNotReady ? 0 : status;
        atomic_store(&f->completed, f->run_end[slot]);
    }
    return 0;
}

static bool is_filled(ft_cuda_h2d_copier *f, int i)
{
    return i < f->n_chunks && atomic_load(&f->filled[i % BUFFERS]) == i + 1;
}

/* Whether chunk i can be copied together with the one before it. */
static bool continues_run(const ft_cuda_h2d_copier *f, int i)
{
    const chunk *before = &f->chunk[i - 1];
    return i % BUFFERS != 0 && !before->has_work && before->bytes == CHUNK_BYTES &&
           f->chunk[i].to == before->to + CHUNK_BYTES;
}

/* Issue the copy of the chunks that are filled, and the work behind the last. */
static int issue_run(ft_cuda_h2d_copier *f)
{
    int first = f->issued, end = first + 1, slot = f->runs % IN_FLIGHT;
    size_t bytes = f->chunk[first].bytes;
    for (; end < first + MAX_RUN && is_filled(f, end) && continues_run(f, end); end++)
        bytes += f->chunk[end].bytes;
    int status = (int) cudaMemcpyAsync(f->chunk[first].to, buffer_of(f, first), bytes,
                                       cudaMemcpyHostToDevice, f->stream);
    if (status == 0)
        status = (int) cudaEventRecord(f->done_event[slot], f->stream);
    if (status == 0 && f->chunk[end - 1].has_work)
        status = f->work(f->user, f->chunk[end - 1].last, f->stream);
    f->run_end[slot] = f->issued = end;
    f->runs++;
    return status;
}

/* This thread fills the next buffer itself where no other thread has claimed it. */
static void issue_all(ft_cuda_h2d_copier *f)
{
    int status = 0;
    while (f->issued < f->n_chunks && status == 0) {
        if (f->runs < f->completed_runs + IN_FLIGHT && is_filled(f, f->issued)) {
            status = issue_run(f);
            continue;
        }
        status = poll_completed(f);
        if (atomic_load(&f->claimed) == f->issued)
            (void) fill_next(f);
    }
    atomic_store(&f->failed, status);
}

static void issue_or_fill(const void *job, int thread)
{
    ft_cuda_h2d_copier *f = (ft_cuda_h2d_copier *) (uintptr_t) job;
    if (thread == 0)
        issue_all(f);
    else
        fill_all(f);
}

int ft_cuda_h2d_send(ft_cuda_h2d_copier *f, const ft_cuda_h2d_span *span, int count,
                     ft_cuda_h2d_work *work, const void *user)
{
    f->span = span;
    f->work = work;
    f->user = user;
    int status = (int) cudaStreamSynchronize(f->stream); /* all buffers are free */
    if (status != 0)
        return status;
    if (!split_chunks(f, count))
        return (int) cudaErrorMemoryAllocation;
    f->issued = f->runs = f->completed_runs = 0;
    for (int i = 0; i < BUFFERS; i++)
        atomic_store(&f->filled[i], 0);
    atomic_store(&f->claimed, 0);
    atomic_store(&f->completed, 0);
    ft_pool_run_any(f->threads, issue_or_fill, f);
    free(f->chunk);
    return atomic_load(&f->failed);
}
