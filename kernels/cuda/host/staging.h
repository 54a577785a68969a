/*
 * staging.h - int8 matrices that are in device memory in the layout of the file only until they
 * have been prepacked.
 *
 * They alternate between two buffers: while one is filled, the matrices in the other are prepacked
 * in a stream of their own.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_HOST_STAGING_H
#define FT_KERNELS_CUDA_HOST_STAGING_H

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/host/h2d_copy.h"

/* A matrix with data on the host, and where it is prepacked to. */
typedef struct ft_cuda_staged_matrix {
    const ft_weight *weight;
    int8_t *prepacked;
    char *staged; /* in a buffer; set by ft_cuda_staging_spans() */
    int fill;     /* how many buffers have been filled before; likewise */
} ft_cuda_staged_matrix;

typedef struct ft_cuda_staging {
    ft_cuda_staged_matrix *matrix; /* [count], of the caller */
    int count;
    char *buffer[2];
    size_t bytes; /* of a buffer */
    cudaStream_t prepacks;
    cudaEvent_t filled, prepacked[2];
} ft_cuda_staging;

/* Allocates the buffers; nothing if there are no matrices.  Returns cudaError_t. */
int ft_cuda_staging_init(ft_cuda_staging *s, ft_cuda_staged_matrix *matrix, int count);

/* The copies, one for each matrix, which must be the first of a ft_cuda_h2d_send(). */
void ft_cuda_staging_spans(ft_cuda_h2d_span *out, const ft_cuda_staging *s);

/* The work of these spans; `staging` is a ft_cuda_staging. */
int ft_cuda_staging_exchange(const void *staging, int span, cudaStream_t copies);

/* Waits for the last prepacking; the copies must have ended.  Also after a failed init. */
int ft_cuda_staging_fini(ft_cuda_staging *s);

#endif
