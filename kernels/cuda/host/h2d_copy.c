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
 * Time to open a 1.26 GB model on an H200 with 16 cores, where the copy alone takes 22.8 ms: 43 ms
 * with these buffers, 47 with 24 of 1 MB, 52 with 32 of 512 KB, 51 with 12 of 2 MB.
 */
enum {
    MAX_THREADS = 17,
    BUFFERS = 32,
    CHUNK_BYTES = 1 << 20,
    MERGE_GAP = 256,
    PAGE_BYTES = 4096,
    HUGE_PAGE_BYTES = 2 << 20
};

/* Up to CHUNK_BYTES of the target. */
typedef struct chunk {
    size_t at, bytes;
    int first;     /* the span in which the chunk begins */
    bool is_ended; /* the span ends with the chunk */
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
    cudaEvent_t done_event[BUFFERS];

    /* The current ft_cuda_h2d_send(). */
    char *target;
    const ft_cuda_h2d_span *span;
    ft_cuda_h2d_work *work; /* NULL: none, and chunks may have several spans */
    const void *user;
    chunk *chunk;
    int n_chunks;
    int issued;                 /* copies that have been issued; only the issuing thread uses it */
    atomic_int claimed;         /* chunks whose buffers a thread fills or has filled */
    atomic_int filled[BUFFERS]; /* 1 + the index of the chunk in this buffer */
    atomic_int completed;       /* completed copies: their buffers are free */
    atomic_int failed;          /* cudaError_t; not 0: all threads stop */
};

/* ---- Chunks ------------------------------------------------------------------------------- */

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
        if (f->work == NULL && last != NULL && p->at < last->at + last->bytes + MERGE_GAP &&
            p->at < last->at + CHUNK_BYTES) {
            done = ft_min_size(p->bytes, last->at + CHUNK_BYTES - p->at);
            last->bytes = p->at + done - last->at;
        }
        for (; done < p->bytes; done += f->chunk[f->n_chunks++].bytes)
            f->chunk[f->n_chunks] =
                (chunk){ p->at + done, ft_min_size(p->bytes - done, CHUNK_BYTES), i,
                         p->bytes - done <= CHUNK_BYTES };
    }
    return f->chunk != NULL;
}

static void copy_chunk(char *buffer, const ft_cuda_h2d_span *span, const chunk *one)
{
    size_t at = one->at, end = at + one->bytes;
    for (int i = one->first; at < end; i++) {
        const ft_cuda_h2d_span *p = &span[i];
        if (p->at > at) {
            memset(buffer + (at - one->at), 0, p->at - at);
            at = p->at;
        }
        size_t bytes = ft_min_size(p->at + p->bytes, end) - at;
        memcpy(buffer + (at - one->at), p->from + (at - p->at), bytes);
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
    for (int i = 0; i < BUFFERS && status == 0; i++)
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
    for (int i = 0; i < BUFFERS; i++)
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
    for (int next = atomic_load(&f->completed); next < f->issued; next++) {
        int status = (int) cudaEventQuery(f->done_event[next % BUFFERS]);
        if (status != 0)
            return status == (int) cudaErrorNotReady ? 0 : status;
        atomic_store(&f->completed, next + 1);
    }
    return 0;
}

static int issue(ft_cuda_h2d_copier *f)
{
    const chunk *next = &f->chunk[f->issued];
    int status = (int) cudaMemcpyAsync(f->target + next->at, buffer_of(f, f->issued), next->bytes,
                                       cudaMemcpyHostToDevice, f->stream);
    if (status == 0)
        status = (int) cudaEventRecord(f->done_event[f->issued % BUFFERS], f->stream);
    if (status == 0 && f->work != NULL && next->is_ended)
        status = f->work(f->user, next->first, f->stream);
    f->issued++;
    return status;
}

/* This thread fills the next buffer itself where no other thread has claimed it. */
static void issue_all(ft_cuda_h2d_copier *f)
{
    int status = 0;
    while (f->issued < f->n_chunks && status == 0) {
        if (atomic_load(&f->filled[f->issued % BUFFERS]) == f->issued + 1) {
            status = issue(f);
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

int ft_cuda_h2d_send(ft_cuda_h2d_copier *f, char *target, const ft_cuda_h2d_span *span, int count)
{
    return ft_cuda_h2d_send_each(f, target, span, count, NULL, NULL);
}

int ft_cuda_h2d_send_each(ft_cuda_h2d_copier *f, char *target, const ft_cuda_h2d_span *span,
                          int count, ft_cuda_h2d_work *work, const void *user)
{
    f->target = target;
    f->span = span;
    f->work = work;
    f->user = user;
    int status = (int) cudaStreamSynchronize(f->stream); /* all buffers are free */
    if (status != 0)
        return status;
    if (!split_chunks(f, count))
        return (int) cudaErrorMemoryAllocation;
    f->issued = 0;
    for (int i = 0; i < BUFFERS; i++)
        atomic_store(&f->filled[i], 0);
    atomic_store(&f->claimed, 0);
    atomic_store(&f->completed, 0);
    ft_pool_run_any(f->threads, issue_or_fill, f);
    free(f->chunk);
    return atomic_load(&f->failed);
}
