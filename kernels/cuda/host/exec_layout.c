/*
 * exec_layout.c - where the inputs of a forward pass and the row scales of a value are stored.
 *
 * The files that allocate, stage and launch all need these offsets.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/beam_search.h"
#include "kernels/cuda/host/exec.h"
#include "runtime/mem.h"

size_t ft_cuda_max_query_tiles(size_t tokens, size_t sequences)
{
    return tokens / FT_CUDA_QUERY_TILE + sequences;
}

/* Reserve `bytes` and return their offset. */
static size_t append(size_t *at, size_t bytes)
{
    size_t begin = *at;
    *at += ft_round_up(bytes, 16);
    return begin;
}

ft_cuda_input_offsets ft_cuda_layout_inputs(const ft_exec *exec, const ft_cuda_bucket *bucket)
{
    ft_cuda_input_offsets in = { 0 };
    size_t at = 0, element_bytes = sizeof(int32_t);
    for (int i = 0; i < FT_NUM_BATCH_INPUTS; i++)
        if (exec->reads_input[i])
            in.input[i] = append(&at, bucket->tokens * element_bytes);
    in.start = append(&at, (bucket->sequences + 1) * element_bytes);
    in.query_tiles = append(&at, bucket->query_tiles * sizeof(ft_cuda_query_tile));
    if (exec->has_cache) {
        in.seq_id = append(&at, bucket->tokens * element_bytes);
        in.n_past = append(&at, bucket->sequences * element_bytes);
        in.n_tokens = append(&at, bucket->sequences * element_bytes);
        in.slot = append(&at, bucket->sequences * element_bytes);
        in.pages =
            append(&at, bucket->sequences * exec->limits.context / FT_PAGE_TOKENS * element_bytes);
        in.selected_rows = append(&at, bucket->selected * element_bytes);
        in.sampling = append(&at, bucket->selected * sizeof(ft_sampling_params));
        in.beams = append(&at, bucket->beam_groups * sizeof(ft_beam_params));
        in.cross_kv_last = append(&at, bucket->sequences * element_bytes);
        in.cross_kv_pages =
            append(&at, bucket->sequences * exec->limits.cross_kv / FT_PAGE_TOKENS * element_bytes);
    }
    in.bytes = at;
    return in;
}

float *ft_cuda_row_scales(const ft_exec *exec, const ft_value *v)
{
    return (float *) (void *) (exec->arena + v->offset + ft_row_scales_offset(v, &exec->limits));
}
