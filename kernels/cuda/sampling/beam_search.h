/*
 * beam_search.h - a step of beam search on the GPU.
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

/* Parameters of a step for several texts. All pointers are to device memory. */
typedef struct ft_cuda_beam_params {
    ft_beam_state memory;
    const float *logits;         /* [rows, vocabulary] */
    const ft_beam_params *beams; /* [groups], with disjoint slots */
    size_t groups;
    size_t widest;    /* beams of the widest group, at most FT_MAX_BEAMS */
    void *scratch;    /* ft_cuda_beam_scratch() bytes, 16-byte aligned */
    size_t num_slots; /* number of slots that the scratch buffer is for */
} ft_cuda_beam_params;

size_t ft_cuda_beam_scratch(size_t num_slots, size_t vocabulary);

/* Computes ft_cpu_beam_search_row() and ft_cpu_beam_search_merge() with the same bits. Returns a
 * cudaError_t. */
int ft_cuda_beam_step(const ft_cuda_device_props *props, void *stream,
                      const ft_cuda_beam_params *args);

/* Its two launches: candidates of all beams into the scratch buffer, and their merge. */
int ft_cuda_beam_candidates(const ft_cuda_device_props *props, void *stream,
                            const ft_cuda_beam_params *args);
int ft_cuda_beam_merge(const ft_cuda_device_props *props, void *stream,
                       const ft_cuda_beam_params *args);

/* Candidates of one beam in the scratch buffer, like ft_beam_candidates of the CPU. */
typedef struct ft_cuda_beam_candidate_list {
    uint64_t candidate[FT_BEAM_CANDIDATES];
    int32_t failed;
} ft_cuda_beam_candidate_list;

#ifdef __cplusplus
}
#endif
#endif
