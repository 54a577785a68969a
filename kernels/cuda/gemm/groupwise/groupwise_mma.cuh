/*
 * groupwise_mma.cuh - launch parameters and split-K of the MMA kernels.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_MMA_CUH
#define FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_MMA_CUH

#include "kernels/cuda/gemm/groupwise/groupwise.cuh"

enum { TILES_SPLIT_ROWS = 64 /* scratch has room for split-K partial sums of so many tokens */ };

/* Launch parameters. */
typedef struct tiles_shape {
    blocks_shape all;
    const char *x;        /* x in tensor core format: rows 16-byte aligned, all terms */
    size_t x_row, x_term; /* bytes */
    int padded_k;         /* of x, a multiple of 8 */
    int share;            /* splits per thread block */
    float *sums;          /* partial sums [splits, m, columns], or NULL: no split-K */
} tiles_shape;

/* Store columns column .. + 3 of a panel: results, or partial sums. */
__device__ __forceinline__ void tiles_put_four(const ft_cuda_blocks &p, const tiles_shape &shape,
                                               int stretch, size_t token, int panel, int column,
                                               float value[4])
{
    size_t columns = (size_t) shape.all.panels * BLOCKS_PANEL;
    if (shape.sums != NULL) {
        float *to = shape.sums + ((size_t) stretch * p.m + token) * columns;
        *(float4 *) (to + (size_t) panel * BLOCKS_PANEL + column) =
            make_float4(value[0], value[1], value[2], value[3]);
        return;
    }
    const ft_cuda_blocks_part &part = p.part[blocks_part_of(shape.all, panel)];
    blocks_put<4>(p, part, token, (size_t) panel * BLOCKS_PANEL + column, value);
}

/* ---- Host ----------------------------------------------------------------------------------- */

static inline size_t tiles_padded(size_t k)
{
    return (k + 7) / 8 * 8;
}

/* Whether the tensor cores can read x without conversion. */
static inline bool tiles_are_fed(const ft_cuda_blocks *p)
{
    return p->x_dtype != FT_F32 && p->k % 8 == 0 && (uintptr_t) p->x % 16 == 0;
}

static inline size_t tiles_prepared_bytes(size_t m, size_t k, ft_dtype x_dtype)
{
    return ((x_dtype == FT_F32 ? 6 : 2) * m * tiles_padded(k) + 255) / 256 * 256;
}

static inline tiles_shape tiles_shape_of(const ft_cuda_blocks *p)
{
    tiles_shape s = {};
    s.all = blocks_shape_of(p);
    s.padded_k = (int) tiles_padded(p->k);
    s.x = tiles_are_fed(p) ? (const char *) p->x : (const char *) p->scratch;
    s.x_row = 2 * tiles_padded(p->k);
    s.x_term = s.x_row * p->m;
    s.share = s.all.stretches;
    return s;
}

/* Split k where there are fewer tiles than resident thread blocks (`room`). */
static inline void tiles_share_out(tiles_shape *s, const ft_cuda_blocks *p, size_t tiles,
                                   size_t room)
{
    size_t ready = tiles_prepared_bytes(p->m, p->k, p->x_dtype), shares = room / tiles;
    size_t stretches = (size_t) s->all.stretches;
    size_t sums = stretches * p->m * s->all.panels * BLOCKS_PANEL * sizeof(float);
    if (shares < 2 || stretches < 2 || p->scratch_bytes < ready + sums)
        return;
    shares = shares < stretches ? shares : stretches;
    s->share = (int) ((stretches + shares - 1) / shares);
    s->sums = (float *) ((char *) p->scratch + ready);
}

/* Convert x to shape->x, where x itself cannot be used. */
int ft_cuda_blocks_prepare(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p,
                           const tiles_shape *shape);

/* Add partial sums in split order, then the epilogue. */
int ft_cuda_blocks_add_up(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p,
                          const tiles_shape *shape);

#endif
