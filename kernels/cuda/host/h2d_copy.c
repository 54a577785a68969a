/*
 * h2d_copy.c - threads fill pinned buffers, one of them sends these to the device.
 *
 * A pinned copy runs at the speed of the bus; pageable memory does not.  What is sent is cut into
 * pieces: threads copy them from the mapped file, whose pages are met for the first time here, into
 * pinned buffers, while others travel.
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
 * A machine with an H200 and 16 cores opened 1.26 GB, whose copy alone takes 22.8 ms, in 43 ms with
 * these buffers, 47 with 24 of 1 MB, 52 with 32 of 512 KB, 51 with 12 of 2 MB.
 */
enum { MOST_THREADS = 17, BUFFERS = 32, PIECE = 1 << 20, NEAR = 256, SMALL_PAGE = 4096, HUGE_PAGE = 2 << 20 };

/* Up to PIECE bytes of the target; `first` is the part that they begin in. */
typedef struct piece {
    size_t at, bytes;
    int first;
} piece;

/*
 * Piece i travels through buffer i % BUFFERS.  One thread speaks to the device, in the order of the
 * pieces, for many that do wait for the driver's lock; the others take pieces and fill buffers.
 */
struct ft_cuda_ferry {
    char *memory;    /* [BUFFERS][PIECE], pinned */
    bool registered; /* it is our own; else the runtime's */
    int threads;
    cudaStream_t stream;
    cudaEvent_t sent[BUFFERS];

    /* Of what is being sent. */
    char *target;
    const ft_cuda_part *part;
    piece *piece;
    int pieces;
    int issued;               /* copies that have been started; the speaker's own */
    atomic_int taken;         /* pieces that somebody fills or has filled */
    atomic_int full[BUFFERS]; /* the number after that of the piece which is in it */
    atomic_int arrived;       /* copies that have ended: their buffers are free */
    atomic_int failed;        /* cudaError_t; then everybody goes home */
};

/* ---- Pieces ------------------------------------------------------------------------------- */

/* Neighbours with less than NEAR between them travel together; false without memory. */
static bool cut(ft_cuda_ferry *f, int count)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += f->part[i].bytes;
    f->pieces = 0;
    f->piece = ft_array(bytes / PIECE + (size_t) count, sizeof *f->piece);
    for (int i = 0; i < count && f->piece != NULL; i++) {
        const ft_cuda_part *p = &f->part[i];
        piece *last = f->pieces > 0 ? &f->piece[f->pieces - 1] : NULL;
        size_t done = 0;
        if (last != NULL && p->at < last->at + last->bytes + NEAR && p->at < last->at + PIECE) {
            done = ft_min_size(p->bytes, last->at + PIECE - p->at);
            last->bytes = p->at + done - last->at;
        }
        for (; done < p->bytes; done += f->piece[f->pieces++].bytes)
            f->piece[f->pieces] = (piece){ p->at + done, ft_min_size(p->bytes - done, PIECE), i };
    }
    return f->piece != NULL;
}

static void fill(char *buffer, const ft_cuda_part *part, const piece *one)
{
    size_t at = one->at, end = at + one->bytes;
    for (int i = one->first; at < end; i++) {
        const ft_cuda_part *p = &part[i];
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
    char *memory = (char *) (uintptr_t) job;
    (void) thread;
    for (size_t page = first; page < end; page++)
        memory[page * SMALL_PAGE] = 0;
}

/* Large pages are pinned sooner: there, 32 MB in 2.5 ms, which took cudaHostAlloc() 12 ms. */
static int pin(ft_cuda_ferry *f)
{
    size_t bytes = ft_round_up((size_t) BUFFERS * PIECE, HUGE_PAGE);
    f->memory = aligned_alloc(HUGE_PAGE, bytes);
    if (f->memory == NULL)
        return (int) cudaErrorMemoryAllocation;
    (void) madvise(f->memory, bytes, MADV_HUGEPAGE);
    ft_team_share(f->threads, bytes / SMALL_PAGE, touch_pages, f->memory);
    f->registered = cudaHostRegister(f->memory, bytes, cudaHostRegisterDefault) == cudaSuccess;
    if (f->registered)
        return 0;
    (void) cudaGetLastError(); /* some systems cannot */
    free(f->memory);
    f->memory = NULL;
    return (int) cudaHostAlloc((void **) &f->memory, bytes, cudaHostAllocDefault);
}

static void unpin(ft_cuda_ferry *f)
{
    if (f->registered) {
        (void) cudaHostUnregister(f->memory);
        free(f->memory);
    } else
        (void) cudaFreeHost(f->memory);
}

int ft_cuda_ferry_open(ft_cuda_ferry **out)
{
    ft_cuda_ferry *f = ft_array(1, sizeof *f);
    *out = f;
    if (f == NULL)
        return (int) cudaErrorMemoryAllocation;
    f->threads = ft_processors() + 1 < MOST_THREADS ? ft_processors() + 1 : MOST_THREADS;
    int status = (int) cudaStreamCreateWithFlags(&f->stream, cudaStreamNonBlocking);
    if (status == 0)
        status = pin(f);
    for (int i = 0; i < BUFFERS && status == 0; i++)
        status = (int) cudaEventCreateWithFlags(&f->sent[i], cudaEventDisableTiming);
    if (status != 0) {
        (void) ft_cuda_ferry_close(f);
        *out = NULL;
    }
    return status;
}

int ft_cuda_ferry_close(ft_cuda_ferry *f)
{
    if (f == NULL)
        return 0;
    int status = f->stream != NULL ? (int) cudaStreamSynchronize(f->stream) : 0;
    for (int i = 0; i < BUFFERS; i++)
        if (f->sent[i] != NULL)
            (void) cudaEventDestroy(f->sent[i]);
    if (f->stream != NULL)
        (void) cudaStreamDestroy(f->stream);
    unpin(f);
    free(f);
    return status;
}

cudaStream_t ft_cuda_ferry_stream(const ft_cuda_ferry *f)
{
    return f->stream;
}

/* ---- Sending ------------------------------------------------------------------------------ */

static char *buffer_of(const ft_cuda_ferry *f, int i)
{
    return f->memory + (size_t) (i % BUFFERS) * PIECE;
}

/* Fill the next piece's buffer if it is free; false where there is nothing to do now. */
static bool fill_one(ft_cuda_ferry *f)
{
    int next = atomic_load(&f->taken);
    if (next == f->pieces || next >= atomic_load(&f->arrived) + BUFFERS ||
        !atomic_compare_exchange_strong(&f->taken, &next, next + 1))
        return false;
    fill(buffer_of(f, next), f->part, &f->piece[next]);
    atomic_store(&f->full[next % BUFFERS], next + 1);
    return true;
}

static void fill_all(ft_cuda_ferry *f)
{
    while (atomic_load(&f->taken) < f->pieces && atomic_load(&f->failed) == 0)
        if (!fill_one(f))
            sched_yield();
}

/* Notice copies that have ended. */
static int note_arrivals(ft_cuda_ferry *f)
{
    for (int next = atomic_load(&f->arrived); next < f->issued; next++) {
        int status = (int) cudaEventQuery(f->sent[next % BUFFERS]);
        if (status != 0)
            return status == (int) cudaErrorNotReady ? 0 : status;
        atomic_store(&f->arrived, next + 1);
    }
    return 0;
}

static int issue(ft_cuda_ferry *f)
{
    const piece *next = &f->piece[f->issued];
    int status = (int) cudaMemcpyAsync(f->target + next->at, buffer_of(f, f->issued), next->bytes,
                                       cudaMemcpyHostToDevice, f->stream);
    if (status == 0)
        status = (int) cudaEventRecord(f->sent[f->issued % BUFFERS], f->stream);
    f->issued++;
    return status;
}

/* Fills the buffer that is next to travel where no other thread has begun to. */
static void issue_all(ft_cuda_ferry *f)
{
    int status = 0;
    while (f->issued < f->pieces && status == 0) {
        if (atomic_load(&f->full[f->issued % BUFFERS]) == f->issued + 1) {
            status = issue(f);
            continue;
        }
        status = note_arrivals(f);
        if (atomic_load(&f->taken) == f->issued)
            (void) fill_one(f);
    }
    atomic_store(&f->failed, status);
}

static void issue_or_fill(const void *job, int thread)
{
    ft_cuda_ferry *f = (ft_cuda_ferry *) (uintptr_t) job;
    if (thread == 0)
        issue_all(f);
    else
        fill_all(f);
}

int ft_cuda_ferry_send(ft_cuda_ferry *f, char *target, const ft_cuda_part *part, int count)
{
    f->target = target;
    f->part = part;
    if (!cut(f, count))
        return (int) cudaErrorMemoryAllocation;
    f->issued = 0;
    for (int i = 0; i < BUFFERS; i++)
        atomic_store(&f->full[i], 0);
    atomic_store(&f->taken, 0);
    atomic_store(&f->arrived, 0);
    ft_pool_run_any(f->threads, issue_or_fill, f);
    free(f->piece);
    return atomic_load(&f->failed);
}
