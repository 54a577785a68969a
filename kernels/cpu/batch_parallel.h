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
 * so in a common arena one would overwrite what another still reads. Inputs come with the batch.
 * State values and outputs that are read after the run are shared by all shards.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_BATCH_PARALLEL_H
#define FT_KERNELS_CPU_BATCH_PARALLEL_H

#include "kernels/backend.h"

typedef struct ft_batch_shards ft_batch_shards;

/* A contiguous range of the sequences of a batch. */
typedef struct ft_batch_shard {
    ft_batch batch;                 /* this shard alone: sequence and row indices start at 0 */
    size_t first[FT_NUM_ROW_KINDS]; /* rows of the full batch before this shard */
    char *arena;                    /* of intermediate values */
} ft_batch_shard;

/*
 * Allocates the shards of batches within these limits. Sets *out to NULL and returns FT_OK where
 * sharding does not pay: results depend on the other rows of the batch, or each thread would read
 * more weights than it saves in synchronization. FT_ENOMEM if memory is short. The caller closes
 * *out.
 */
FT_MUST_USE ft_status ft_batch_shards_open(ft_batch_shards **out, const ft_plan *plan,
                                           const ft_limits *limits, ft_error *err);
void ft_batch_shards_close(ft_batch_shards *shards);

/* Splits a batch into shards, one per thread; returns their number, 0 for too few sequences. */
size_t ft_batch_shards_split(ft_batch_shards *shards, const ft_batch *batch);
const ft_batch_shard *ft_batch_shards_get(const ft_batch_shards *shards, size_t index);

/* Offset of a value in ft_batch_shard.arena, or SIZE_MAX if all shards share it. */
size_t ft_batch_shards_offset(const ft_batch_shards *shards, int value);

#endif
