/*
 * h2d_begin.c - opens a copier in a thread of its own, so that pinned buffers are ready when a
 * model has been planned.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/host/h2d_copy.h"

#include "runtime/mem.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

struct ft_cuda_h2d_opening {
    pthread_t thread;
    int device, status;
    ft_cuda_h2d_copier *copier;
};

static void *open_copier(void *opening)
{
    ft_cuda_h2d_opening *o = opening;
    o->status = (int) cudaSetDevice(o->device);
    if (o->status == 0)
        o->status = ft_cuda_h2d_open(&o->copier, 1);
    return NULL;
}

ft_cuda_h2d_opening *ft_cuda_h2d_begin(int device)
{
    ft_cuda_h2d_opening *o = ft_calloc(1, sizeof *o);
    if (o == NULL)
        return NULL;
    o->device = device;
    sigset_t all, before; /* signals are for the caller's threads */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&o->thread, NULL, open_copier, o) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started)
        return o;
    free(o);
    return NULL;
}

int ft_cuda_h2d_finish(ft_cuda_h2d_opening *o, ft_cuda_h2d_copier **out)
{
    if (o == NULL)
        return ft_cuda_h2d_open(out, 0);
    pthread_join(o->thread, NULL);
    int status = o->status;
    *out = o->copier;
    free(o);
    return status;
}

void ft_cuda_h2d_abandon(ft_cuda_h2d_opening *o)
{
    ft_cuda_h2d_copier *copier;
    if (o == NULL)
        return;
    (void) ft_cuda_h2d_finish(o, &copier);
    (void) ft_cuda_h2d_close(copier);
}
