/*
 * h2d_begin.c - opens and closes a copier in threads of their own: pinned buffers and the beginning
 * of the file are ready when a model has been planned, and nobody waits until the buffers have been
 * freed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/host/h2d_copy.h"

#include "runtime/mem.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

/* SPARE_BYTES: what must be free beside the file, so that weights find the same room as ever. */
enum { THREADS = 8, AHEAD_BYTES = 256 << 20, STEP_BYTES = 64 << 20, SPARE_BYTES = 1 << 30 };

struct ft_cuda_h2d_opening {
    pthread_t thread;
    int device, status;
    ft_cuda_h2d_copier *copier;
    size_t file_bytes;
    _Atomic(const char *) file; /* NULL: unknown */
    atomic_bool is_planned;     /* the weights are known: no more is read ahead */
    ft_cuda_h2d_ahead ahead;
};

struct ft_cuda_h2d_closing {
    pthread_t thread;
    int device;
    ft_cuda_h2d_copier *copier;
};

/* Signals are for the caller's threads. */
static bool start(pthread_t *thread, void *(*run)(void *), void *job)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(thread, NULL, run, job) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

/* ---- Opening ------------------------------------------------------------------------------ */

static bool alloc_ahead(ft_cuda_h2d_opening *o, size_t bytes)
{
    size_t available, total;
    bool fits = cudaMemGetInfo(&available, &total) == cudaSuccess &&
                available / 2 > o->file_bytes && available / 2 > SPARE_BYTES &&
                cudaMalloc((void **) &o->ahead.memory, bytes) == cudaSuccess;
    if (!fits)
        (void) cudaGetLastError();
    return fits;
}

/* Copy the file from its beginning until the weights are known, or the memory is full. */
static int read_ahead(ft_cuda_h2d_opening *o, const char *file)
{
    size_t most = ft_min_size(o->file_bytes, AHEAD_BYTES);
    int status = 0;
    if (!alloc_ahead(o, most))
        return 0;
    o->ahead.from = file;
    while (o->ahead.bytes < most && status == 0 && !atomic_load(&o->is_planned)) {
        size_t at = o->ahead.bytes, bytes = ft_min_size(most - at, STEP_BYTES);
        ft_cuda_h2d_span span = { file + at, o->ahead.memory + at, bytes, false };
        status = ft_cuda_h2d_send(o->copier, &span, 1, NULL, NULL);
        o->ahead.bytes += bytes;
    }
    return status;
}

static void *open_copier(void *opening)
{
    ft_cuda_h2d_opening *o = opening;
    o->status = (int) cudaSetDevice(o->device);
    if (o->status == 0)
        o->status = ft_cuda_h2d_open(&o->copier, THREADS);
    const char *file = atomic_load(&o->file);
    if (o->status == 0 && file != NULL)
        o->status = read_ahead(o, file);
    return NULL;
}

ft_cuda_h2d_opening *ft_cuda_h2d_begin(int device)
{
    ft_cuda_h2d_opening *o = ft_calloc(1, sizeof *o);
    if (o == NULL)
        return NULL;
    o->device = device;
    if (start(&o->thread, open_copier, o))
        return o;
    free(o);
    return NULL;
}

void ft_cuda_h2d_read_ahead(ft_cuda_h2d_opening *o, const void *file, size_t bytes)
{
    if (o == NULL)
        return;
    o->file_bytes = bytes;
    atomic_store(&o->file, file);
}

int ft_cuda_h2d_finish(ft_cuda_h2d_opening *o, ft_cuda_h2d_copier **out, ft_cuda_h2d_ahead *ahead)
{
    *ahead = (ft_cuda_h2d_ahead){ 0 };
    if (o == NULL)
        return ft_cuda_h2d_open(out, 0);
    atomic_store(&o->is_planned, true);
    pthread_join(o->thread, NULL);
    int status = o->status;
    *out = o->copier;
    *ahead = o->ahead;
    free(o);
    return status;
}

void ft_cuda_h2d_abandon(ft_cuda_h2d_opening *o)
{
    ft_cuda_h2d_copier *copier;
    ft_cuda_h2d_ahead ahead;
    if (o == NULL)
        return;
    (void) ft_cuda_h2d_finish(o, &copier, &ahead);
    (void) ft_cuda_h2d_close(copier);
    (void) cudaFree(ahead.memory);
}

/* ---- Closing ------------------------------------------------------------------------------ */

static void *close_copier(void *closing)
{
    ft_cuda_h2d_closing *c = closing;
    (void) cudaSetDevice(c->device);
    (void) ft_cuda_h2d_close(c->copier);
    return NULL;
}

ft_cuda_h2d_closing *ft_cuda_h2d_begin_close(ft_cuda_h2d_copier *copier, int device)
{
    ft_cuda_h2d_closing *c = copier != NULL ? ft_calloc(1, sizeof *c) : NULL;
    if (c != NULL) {
        c->device = device;
        c->copier = copier;
        if (start(&c->thread, close_copier, c))
            return c;
    }
    free(c);
    (void) ft_cuda_h2d_close(copier);
    return NULL;
}

void ft_cuda_h2d_finish_close(ft_cuda_h2d_closing *c)
{
    if (c != NULL)
        pthread_join(c->thread, NULL);
    free(c);
}
