/*
 * beam_search.h - a step of beam search, on the GPU.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_SAMPLING_BEAM_SEARCH_H
#define FT_KERNELS_CUDA_SAMPLING_BEAM_SEARCH_H

#include "kernels/beam_search.h"
#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A step of many texts.  Device memory, all of it. */
typedef struct ft_cuda_beams {
    ft_beam_memory memory;
    const float *logits;   /* [rows, vocabulary] */
    const ft_beams *beams; /* [groups]; no two have a seat in common */
    size_t groups;
    size_t widest; /* lanes of the widest group, at most FT_MAX_BEAMS */
    void *scratch; /* ft_cuda_beam_scratch() bytes, 16-byte aligned */
    size_t seats;  /* that the scratch is for */
} ft_cuda_beams;

size_t ft_cuda_beam_scratch(size_t seats, size_t vocabulary);

/* What ft_cpu_beam_row() and ft_cpu_beam_merge() do, to the bit. */
int ft_cuda_beam_step(const ft_cuda_chip *chip, void *stream, const ft_cuda_beams *args);

/* Its two launches: candidates of all lanes into the scratch, and what becomes of them. */
int ft_cuda_beam_rows(const ft_cuda_chip *chip, void *stream, const ft_cuda_beams *args);
int ft_cuda_beam_merge(const ft_cuda_chip *chip, void *stream, const ft_cuda_beams *args);

/* What a lane hands in, in the scratch: as ft_beam_list of the CPU. */
typedef struct ft_cuda_beam_list {
    uint64_t candidate[FT_BEAM_CANDIDATES];
    int32_t failed;
} ft_cuda_beam_list;

#ifdef __cplusplus
}
#endif
#endif
