/*
 * shard.h - the part of the samples that one of several processes runs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_STATS_SHARD_H
#define FT_CALIBRATE_STATS_SHARD_H

#include <stdint.h>

enum { FT_MAX_SHARDS = 4096 };

/* Part `index` of `count`, index < count <= FT_MAX_SHARDS; count 0: there is one process. */
typedef struct ft_shard {
    uint32_t index, count;
} ft_shard;

/*
 * Its samples of *first .. *last - 1. All shards together have each sample once, and their sizes
 * differ by one at most; of more shards than samples some are empty.
 */
static inline void ft_shard_samples(ft_shard shard, uint64_t *first, uint64_t *last)
{
    if (shard.count == 0)
        return;
    uint64_t whole = (*last - *first) / shard.count, rest = (*last - *first) % shard.count;
    uint64_t before = *first + whole * shard.index + (shard.index < rest ? shard.index : rest);
    *first = before;
    *last = before + whole + (shard.index < rest);
}

#endif
