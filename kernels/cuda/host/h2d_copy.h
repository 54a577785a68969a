/*
 * h2d_copy.h - copies many spans of host memory to device memory at full PCIe bandwidth.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_HOST_H2D_COPY_H
#define FT_KERNELS_CUDA_HOST_H2D_COPY_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>

/* A span of host memory and its destination in device memory. */
typedef struct ft_cuda_h2d_span {
    const char *from;
    char *to;
    size_t bytes;
    bool has_work; /* ft_cuda_h2d_work follows */
} ft_cuda_h2d_span;

typedef struct ft_cuda_h2d_copier ft_cuda_h2d_copier;

/*
 * Open a stream and pinned buffers on the current device, with so many threads; 0: one for each
 * processor.  These functions return cudaError_t.
 */
int ft_cuda_h2d_open(ft_cuda_h2d_copier **out, int threads);

/* Bytes of a file that are in device memory before it is known what they are. */
typedef struct ft_cuda_h2d_ahead {
    const char *from; /* where the file is in host memory */
    char *memory;     /* NULL: nowhere */
    size_t bytes;     /* from the beginning of the file */
} ft_cuda_h2d_ahead;

/*
 * The same in a thread of its own (h2d_begin.c): begin, and later finish or abandon it.  Begin
 * returns NULL where there is no thread, and finish, which accepts that, then opens the copier.
 * In between, the thread may read ahead a mapped file; *ahead is then the caller's to free, and its
 * copies are in the stream of the copier.
 */
typedef struct ft_cuda_h2d_opening ft_cuda_h2d_opening;
ft_cuda_h2d_opening *ft_cuda_h2d_begin(int device);
void ft_cuda_h2d_read_ahead(ft_cuda_h2d_opening *opening, const void *file, size_t bytes);
int ft_cuda_h2d_finish(ft_cuda_h2d_opening *opening, ft_cuda_h2d_copier **out,
                       ft_cuda_h2d_ahead *ahead);
void ft_cuda_h2d_abandon(ft_cuda_h2d_opening *opening);

/* Put work behind the copies of a span and of all before it into the stream; cudaError_t. */
typedef int ft_cuda_h2d_work(const void *user, int span, cudaStream_t stream);

/*
 * Copy spans to device memory in their order, which may overlap where work is between them.  Gaps
 * of less than 256 bytes between two of them may be filled with zeros.  On return all copies are in
 * the stream of the copier, and the host memory is no longer needed.
 */
int ft_cuda_h2d_send(ft_cuda_h2d_copier *copier, const ft_cuda_h2d_span *span, int count,
                     ft_cuda_h2d_work *work, const void *user);

cudaStream_t ft_cuda_h2d_stream(const ft_cuda_h2d_copier *copier);

/* Wait for the stream and free the copier, which may be NULL. */
int ft_cuda_h2d_close(ft_cuda_h2d_copier *copier);

/*
 * The same in a thread of its own (h2d_begin.c), when all copies have ended: begin, and later
 * finish, which accepts NULL.
 */
typedef struct ft_cuda_h2d_closing ft_cuda_h2d_closing;
ft_cuda_h2d_closing *ft_cuda_h2d_begin_close(ft_cuda_h2d_copier *copier, int device);
void ft_cuda_h2d_finish_close(ft_cuda_h2d_closing *closing);

#endif
