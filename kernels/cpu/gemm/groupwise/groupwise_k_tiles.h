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
enum { AHEAD = 16384, AHEAD_GROUPS = 16 };

FT_INLINE void fetch(const void *base, size_t offset)
{
    __builtin_prefetch((const void *) ((uintptr_t) base + offset), 0, 2);
}

/* Prefetches the scales of a later group, in this panel or the next. */
FT_INLINE void fetch_group(const ft_panel_weights *w, size_t row, size_t group)
{
    size_t groups = w->groups, next = group + AHEAD_GROUPS;
    size_t at =
        next < groups ? next * w->stride + row : next % groups * w->stride + row + FT_PANEL_ROWS;
    fetch(w->scale, 2 * at);
    if (w->zero != NULL)
        fetch(w->zero, at);
}

/* A k_tile of a panel, and the operands of the first of the rows of x. */
typedef struct part {
    const uint32_t *codes;
    const uint16_t *scale;
    const uint8_t *zero; /* may be NULL */
    const int8_t *x;
    const int32_t *sum;
    const float *unit;
    float *y;
    size_t spans;
    size_t left, left_of_group,
        group; /* k_blocks that remain in the row and in the group, and the index of the group */
} part;

/*
 * The first k_tile of row i of x and the panel that starts at `row`. After the last one,
 * next_k_tile() yields an empty one.
 */
FT_INLINE part first_part(const ft_panel_tile *t, size_t i, size_t row)
{
    return (part){
        .codes = t->w.codes + row / FT_PANEL_ROWS * ft_panel_words(&t->w),
        .scale = t->w.scale + row,
        .zero = t->w.zero == NULL ? NULL : t->w.zero + row,
        .x = t->x.bytes + i * t->x.stride,
        .sum = t->x.sum + i * t->x.parts * (size_t) t->x.planes,
        .unit = t->x.unit + i * t->x.parts,
        .y = t->y + i * t->y_stride + row,
        .spans = ft_min_size(t->w.part, t->w.spans),
        .left = t->w.spans,
        .left_of_group = t->w.group,
    };
}

FT_INLINE void next_part(part *p, const ft_panel_tile *t, size_t row, int bits, size_t planes)
{
    p->codes += p->spans * FT_PANEL_ROWS * (size_t) bits;
    p->x += p->spans * FT_PANEL_SPAN * planes;
    p->sum += planes;
    p->unit++;
    p->left -= p->spans;
    p->left_of_group -= p->spans;
    if (p->left_of_group == 0) {
        fetch_group(&t->w, row, p->group++);
        p->left_of_group = t->w.group;
        p->scale += t->w.stride;
        if (p->zero != NULL)
            p->zero += t->w.stride;
    }
    p->spans = ft_min_size(t->w.part, p->left);
}

#endif
