/*
 * batch_parallel.h - data parallelism on the CPU: each thread runs all operations for a shard of
 * the batch.
 *
 * Where an operation takes microseconds, threads that synchronize after each one spend most of
 * their time waiting, all the more so on a machine with other load. Sequences are independent of
 * each other, so a large batch can be split into shards that run in parallel and synchronize once
 * at the end.
 *
 * Each shard has its own arena for intermediate values: two shards are never at the same operation,
 * so in a common arena one would overwrite what another still reads. Inputs are copied into it.
 * State values and outputs that are read after the run are shared by all shards.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_BATCH_PARALLEL_H
#define FT_KERNELS_CPU_BATCH_PARALLEL_H

#include "kernels/backend.h"

typedef struct ft_shares ft_shares;

/* A contiguous range of the sequences of a batch. */
typedef struct ft_share {
    ft_batch batch;             /* this shard alone: sequence and row indices start at 0 */
    size_t first[FT_ROW_KINDS]; /* rows of the full batch before this shard */
    char *arena;                /* of intermediate values */
} ft_share;

/*
 * Allocates the shards of batches within these limits. Sets *out to NULL and returns FT_OK where
 * sharding does not pay: results depend on the other rows of the batch, or each thread would read
 * more weights than it saves in synchronization. FT_ENOMEM if memory is short. The caller closes
 * *out.
 */
FT_MUST_USE ft_status ft_shares_open(ft_shares **out, const ft_plan *plan, const ft_limits *limits,
                                     ft_error *err);
void ft_shares_close(ft_shares *shares);

/*
 * Splits a batch and copies to each shard its rows of the inputs from `arena`, the arena of the
 * full batch. Returns the number of shards, one per thread, or 0 if the batch has too few
 * sequences.
 */
size_t ft_shares_cut(ft_shares *shares, const ft_batch *run, const char *arena);
const ft_share *ft_shares_get(const ft_shares *shares, size_t index);

/* Offset of a value in ft_batch_shard.arena, or SIZE_MAX if all shards share it. */
size_t ft_shares_offset(const ft_shares *shares, int value);

#endif
