/*
 * h2d_copy.h - copies many spans of host memory to one device buffer at full PCIe bandwidth.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_HOST_H2D_COPY_H
#define FT_KERNELS_CUDA_HOST_H2D_COPY_H

#include <cuda_runtime_api.h>
#include <stddef.h>

/* A span of host memory and its destination. */
typedef struct ft_cuda_h2d_span {
    const char *from;
    size_t at, bytes; /* `at`: byte offset in the target */
} ft_cuda_h2d_span;

typedef struct ft_cuda_h2d_copier ft_cuda_h2d_copier;

/*
 * Open a stream and pinned buffers on the current device, with so many threads; 0: one for each
 * processor.  These functions return cudaError_t.
 */
int ft_cuda_h2d_open(ft_cuda_h2d_copier **out, int threads);

/*
 * The same in a thread of its own (h2d_begin.c): begin, and later finish or abandon it.  Begin
 * returns NULL where there is no thread, and finish, which accepts that, then opens the copier.
 */
typedef struct ft_cuda_h2d_opening ft_cuda_h2d_opening;
ft_cuda_h2d_opening *ft_cuda_h2d_begin(int device);
int ft_cuda_h2d_finish(ft_cuda_h2d_opening *opening, ft_cuda_h2d_copier **out);
void ft_cuda_h2d_abandon(ft_cuda_h2d_opening *opening);

/*
 * Copy spans, in ascending order of `at`, to device memory.  Gaps of less than 256 bytes between
 * them may be filled with zeros.  On return all copies are in the stream of the copier, and the
 * host memory is no longer needed.
 */
int ft_cuda_h2d_send(ft_cuda_h2d_copier *copier, char *target, const ft_cuda_h2d_span *span,
                     int count);

/* Put work on a span behind its copy into the stream; returns cudaError_t. */
typedef int ft_cuda_h2d_work(const void *user, int span, cudaStream_t stream);

/* The same with spans in any order, which may overlap: each is used by `work` before the next. */
int ft_cuda_h2d_send_each(ft_cuda_h2d_copier *copier, char *target, const ft_cuda_h2d_span *span,
                          int count, ft_cuda_h2d_work *work, const void *user);

cudaStream_t ft_cuda_h2d_stream(const ft_cuda_h2d_copier *copier);

/* Wait for the stream and free the copier, which may be NULL. */
int ft_cuda_h2d_close(ft_cuda_h2d_copier *copier);

#endif
