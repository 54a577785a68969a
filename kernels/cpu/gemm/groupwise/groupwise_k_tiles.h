/*
 * groupwise_k_tiles.h - the loop over the k_tiles of a panel that all groupwise_*.c share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_GEMM_GROUPWISE_GROUPWISE_K_TILES_H
#define FT_KERNELS_CPU_GEMM_GROUPWISE_GROUPWISE_K_TILES_H

#include "kernels/cpu/gemm/groupwise/groupwise.h"
#include "kernels/cpu/base/simd.h"
#include "runtime/mem.h"

/*
 * Bytes of weights, and groups of scales, that are prefetched into the L2 cache ahead of use.
 * Otherwise the few outstanding misses of the L1 cache limit the throughput.
 */
enum { PREFETCH_BYTES = 16384, PREFETCH_GROUPS = 16 };

FT_INLINE void prefetch(const void *base, size_t offset)
{
    __builtin_prefetch((const void *) ((uintptr_t) base + offset), 0, 2);
}

/* Prefetches the scales of a later group, in this panel or the next. */
FT_INLINE void prefetch_group(const ft_groupwise_weights *w, size_t row, size_t group)
{
    size_t groups = w->groups, next = group + PREFETCH_GROUPS;
    size_t at =
        next < groups ? next * w->stride + row : next % groups * w->stride + row + FT_PANEL_ROWS;
    prefetch(w->scale, 2 * at);
    if (w->zero != NULL)
        prefetch(w->zero, at);
}

/* A k_tile of a panel, and the operands of the first of the rows of x. */
typedef struct k_tile {
    const uint32_t *weights;
    const uint16_t *scale;
    const uint8_t *zero; /* may be NULL */
    const int8_t *x;
    const int32_t *sum, *x_zero;
    const float *scale_x;
    float *y;
    int32_t *weight_sum; /* int8 activations */
    size_t k_blocks;
    size_t blocks_left, group_blocks_left,
        group; /* k_blocks that remain in the row and in the group, and the index of the group */
} k_tile;

/*
 * The first k_tile of row i of x and the panel that starts at `row`. After the last one,
 * next_k_tile() yields an empty one.
 */
FT_INLINE k_tile first_k_tile(const ft_groupwise_tile *t, size_t i, size_t row)
{
    return (k_tile){
        .weights = t->w.weights + row / FT_PANEL_ROWS * ft_groupwise_panel_words(&t->w),
        .scale = t->w.scale + row,
        .zero = t->w.zero == NULL ? NULL : t->w.zero + row,
        .x = t->x.q + i * t->x.stride,
        .sum = t->x.sum + i * t->x.k_tiles,
        .x_zero = t->x.zero + i * t->x.k_tiles,
        .scale_x = t->x.scale_x + i * t->x.k_tiles,
        .weight_sum = t->weight_sum + row,
        .y = t->y + i * t->y_stride + row,
        .k_blocks = ft_min_size(t->w.k_tile, t->w.k_blocks),
        .blocks_left = t->w.k_blocks,
        .group_blocks_left = t->w.group,
    };
}

FT_INLINE void next_k_tile(k_tile *p, const ft_groupwise_tile *t, size_t row, int bits,
                           size_t digits)
{
    p->weights += p->k_blocks * FT_PANEL_ROWS * (size_t) bits;
    p->x += p->k_blocks * FT_PANEL_K_BLOCK * digits;
    p->sum++;
    p->x_zero++;
    p->scale_x++;
    if (digits == 1)
        p->weight_sum += t->y_stride;
    p->blocks_left -= p->k_blocks;
    p->group_blocks_left -= p->k_blocks;
    if (p->group_blocks_left == 0) {
        prefetch_group(&t->w, row, p->group++);
        p->group_blocks_left = t->w.group;
        p->scale += t->w.stride;
        if (p->zero != NULL)
            p->zero += t->w.stride;
    }
    p->k_blocks = ft_min_size(t->w.k_tile, p->blocks_left);
}

#endif
