/*
 * query_blocks.c - divides attention over packed sequences into blocks of queries.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cpu/base/cpu.h"
#include "runtime/mem.h"

static size_t blocks_per_sequence(const ft_batch *batch)
{
    return (batch->longest + FT_QUERY_BLOCK - 1) / FT_QUERY_BLOCK;
}

size_t ft_cpu_query_blocks(const ft_args *args)
{
    const ft_batch *batch = args->batch;
    return batch->sequences * (size_t) args->op->attr.heads * blocks_per_sequence(batch);
}

ft_query_block ft_cpu_query_block(const ft_args *args, size_t index)
{
    const ft_batch *batch = args->batch;
    size_t heads = (size_t) args->op->attr.heads, blocks = blocks_per_sequence(batch);
    size_t sequence = index / (heads * blocks), head_size = args->in[0].cols / heads;
    ft_query_block b = { .first = (size_t) batch->start[sequence],
                         .query = index % blocks * FT_QUERY_BLOCK,
                         .col = index / blocks % heads * head_size,
                         .head_size = head_size };
    b.length = (size_t) batch->start[sequence + 1] - b.first;
    b.rows = b.query < b.length ? ft_min_size(FT_QUERY_BLOCK, b.length - b.query) : 0;
    return b;
}
