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

/* Open a stream and pinned buffers on the current device.  These functions return cudaError_t. */
int ft_cuda_h2d_open(ft_cuda_h2d_copier **out);

/*
 * Copy spans, in ascending order of `at`, to device memory.  Gaps of less than 256 bytes between
 * them may be filled with zeros.  On return all copies are in the stream of the copier, and the
 * host memory is no longer needed.
 */
int ft_cuda_h2d_send(ft_cuda_h2d_copier *copier, char *target, const ft_cuda_h2d_span *span,
                     int count);

cudaStream_t ft_cuda_h2d_stream(const ft_cuda_h2d_copier *copier);

/* Wait for the stream and free the copier, which may be NULL. */
int ft_cuda_h2d_close(ft_cuda_h2d_copier *copier);

#endif
