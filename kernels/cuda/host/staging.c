/*
 * staging.c - see staging.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/host/staging.h"

#include "runtime/mem.h"
#include "runtime/tensor.h"

/* A buffer holds several matrices, because the streams wait for each other at its end. */
enum { LEAST_BYTES = 32 << 20 };

static size_t staged_bytes(const ft_weight *w)
{
    return ft_round_up(ft_weight_bytes(w), FT_CUDA_WEIGHT_ALIGN);
}

int ft_cuda_staging_init(ft_cuda_staging *s, ft_cuda_staged_matrix *matrix, int count)
{
    *s = (ft_cuda_staging){ .matrix = matrix, .count = count, .bytes = LEAST_BYTES };
    if (count == 0)
        return 0;
    for (int i = 0; i < count; i++)
        s->bytes = ft_max_size(s->bytes, staged_bytes(matrix[i].weight));
    int status = (int) cudaStreamCreateWithFlags(&s->prepacks, cudaStreamNonBlocking);
    if (status == 0)
        status = (int) cudaEventCreateWithFlags(&s->filled, cudaEventDisableTiming);
    for (int i = 0; i < 2 && status == 0; i++) {
        status = (int) cudaMalloc((void **) &s->buffer[i], s->bytes);
        if (status == 0)
            status = (int) cudaEventCreateWithFlags(&s->prepacked[i], cudaEventDisableTiming);
    }
    return status;
}

void ft_cuda_staging_spans(ft_cuda_h2d_span *out, const ft_cuda_staging *s)
{
    size_t at = 0;
    int fill = 0;
    for (int i = 0; i < s->count; i++) {
        ft_cuda_staged_matrix *m = &s->matrix[i];
        size_t bytes = staged_bytes(m->weight);
        if (at + bytes > s->bytes) {
            out[i - 1].has_work = true;
            fill++;
            at = 0;
        }
        m->fill = fill;
        m->staged = s->buffer[fill % 2] + at;
        out[i] = (ft_cuda_h2d_span){ m->weight->data, m->staged, ft_weight_bytes(m->weight),
                                     i == s->count - 1 };
        at += bytes;
    }
}

/* Prepack the matrices that a full buffer holds; `last` is the last of them. */
static int prepack_filled(const ft_cuda_staging *s, int last)
{
    int status = 0;
    for (int i = last; i >= 0 && s->matrix[i].fill == s->matrix[last].fill && status == 0; i--) {
        const ft_cuda_staged_matrix *m = &s->matrix[i];
        status = ft_cuda_prepack(s->prepacks, m->prepacked, (const int8_t *) m->staged,
                                 m->weight->rows, m->weight->cols);
    }
    return status;
}

/* A buffer has been filled: prepack it, and wait until the other one can be overwritten. */
int ft_cuda_staging_exchange(const void *staging, int span, cudaStream_t copies)
{
    const ft_cuda_staging *s = staging;
    int fill = s->matrix[span].fill, status = (int) cudaEventRecord(s->filled, copies);
    if (status == 0)
        status = (int) cudaStreamWaitEvent(s->prepacks, s->filled, 0);
    if (status == 0)
        status = prepack_filled(s, span);
    if (status == 0)
        status = (int) cudaEventRecord(s->prepacked[fill % 2], s->prepacks);
    if (status == 0 && fill > 0)
        status = (int) cudaStreamWaitEvent(copies, s->prepacked[(fill + 1) % 2], 0);
    return status;
}

int ft_cuda_staging_fini(ft_cuda_staging *s)
{
    int status = s->prepacks != NULL ? (int) cudaStreamSynchronize(s->prepacks) : 0;
    for (int i = 0; i < 2; i++) {
        if (s->prepacked[i] != NULL)
            (void) cudaEventDestroy(s->prepacked[i]);
        (void) cudaFree(s->buffer[i]);
    }
    if (s->filled != NULL)
        (void) cudaEventDestroy(s->filled);
    if (s->prepacks != NULL)
        (void) cudaStreamDestroy(s->prepacks);
    return status;
}
