/*
 * h2d_copy.h - many pieces of host memory to one place on the device, at the speed of the bus.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_HOST_H2D_COPY_H
#define FT_KERNELS_CUDA_HOST_H2D_COPY_H

#include <cuda_runtime_api.h>
#include <stddef.h>

/* Bytes of the host, and where they go. */
typedef struct ft_cuda_h2d_span {
    const char *from;
    size_t at, bytes; /* `at`: from the first byte of the target */
} ft_cuda_h2d_span;

typedef struct ft_cuda_h2d_copier ft_cuda_h2d_copier;

/* A stream and pinned buffers on the current device.  All of these return cudaError_t. */
int ft_cuda_h2d_open(ft_cuda_h2d_copier **out);

/*
 * Send parts, by ascending `at`, to device memory; less than 256 bytes between two of them may
 * become zeros.  When this returns, everything is on its way in the ferry's stream, and the host's
 * memory is not needed any more.
 */
int ft_cuda_h2d_send(ft_cuda_h2d_copier *copier, char *target, const ft_cuda_h2d_span *span,
                     int count);

cudaStream_t ft_cuda_h2d_stream(const ft_cuda_h2d_copier *copier);

/* Wait for everything in the stream; takes NULL. */
int ft_cuda_h2d_close(ft_cuda_h2d_copier *copier);

#endif
