/*
 * groupwise_mma.cuh - launch parameters and split-K of the MMA kernels.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_MMA_CUH
#define FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_MMA_CUH

#include "kernels/cuda/gemm/groupwise/groupwise.cuh"

enum { MMA_SPLIT_K_MAX_M = 64 /* scratch has room for split-K partial sums of so many tokens */ };

/* Launch parameters. */
typedef struct mma_params {
    groupwise_shape all;
    const char *x;        /* x in tensor core format: rows 16-byte aligned, all terms */
    size_t x_row, x_term; /* bytes */
    int padded_k;         /* of x, a multiple of 8 */
    int splits_per_block; /* splits per thread block */
    float *sums;          /* partial sums [splits, m, columns], or NULL: no split-K */
} mma_params;

/* Store columns column .. + 3 of a panel: results, or partial sums. */
__device__ __forceinline__ void mma_store_x4(const ft_cuda_groupwise_args &p,
                                             const mma_params &shape, int split, size_t token,
                                             int panel, int column, float value[4])
{
    size_t columns = (size_t) shape.all.panels * GROUPWISE_PANEL_ROWS;
    if (shape.sums != NULL) {
        float *to = shape.sums + ((size_t) split * p.m + token) * columns;
        *(float4 *) (to + (size_t) panel * GROUPWISE_PANEL_ROWS + column) =
            make_float4(value[0], value[1], value[2], value[3]);
        return;
    }
    const ft_cuda_groupwise_linear &linear = p.linear[groupwise_linear_of(shape.all, panel)];
    groupwise_store<4>(p, linear, token, (size_t) panel * GROUPWISE_PANEL_ROWS + column, value);
}

/* ---- Host ----------------------------------------------------------------------------------- */

static inline size_t mma_padded_k(size_t k)
{
    return (k + 7) / 8 * 8;
}

/* Whether the tensor cores can read x without conversion. */
static inline bool mma_x_is_ready(const ft_cuda_groupwise_args *p)
{
    return p->x_dtype != FT_F32 && p->k % 8 == 0 && (uintptr_t) p->x % 16 == 0;
}

static inline size_t mma_x_bytes(size_t m, size_t k, ft_dtype x_dtype)
{
    return ((x_dtype == FT_F32 ? 6 : 2) * m * mma_padded_k(k) + 255) / 256 * 256;
}

static inline mma_params mma_params_of(const ft_cuda_groupwise_args *p)
{
    mma_params s = {};
    s.all = groupwise_shape_of(p);
    s.padded_k = (int) mma_padded_k(p->k);
    s.x = mma_x_is_ready(p) ? (const char *) p->x : (const char *) p->scratch;
    s.x_row = 2 * mma_padded_k(p->k);
    s.x_term = s.x_row * p->m;
    s.splits_per_block = s.all.splits;
    return s;
}

/* Split k where there are fewer tiles than resident thread blocks (`room`). */
static inline void mma_plan_split_k(mma_params *s, const ft_cuda_groupwise_args *p, size_t tiles,
                                    size_t resident_blocks)
{
    size_t x_bytes = mma_x_bytes(p->m, p->k, p->x_dtype), ctas = resident_blocks / tiles;
    size_t splits = (size_t) s->all.splits;
    size_t sums = splits * p->m * s->all.panels * GROUPWISE_PANEL_ROWS * sizeof(float);
    if (ctas < 2 || splits < 2 || p->scratch_bytes < x_bytes + sums)
        return;
    ctas = ctas < splits ? ctas : splits;
    s->splits_per_block = (int) ((splits + ctas - 1) / ctas);
    s->sums = (float *) ((char *) p->scratch + x_bytes);
}

/* Convert x to shape->x, where x itself cannot be used. */
int ft_cuda_groupwise_convert_x(const ft_cuda_device_props *props, void *stream,
                                const ft_cuda_groupwise_args *p, const mma_params *shape);

/* Add partial sums in split order, then the epilogue. */
int ft_cuda_groupwise_reduce_splits(const ft_cuda_device_props *props, void *stream,
                                    const ft_cuda_groupwise_args *p, const mma_params *shape);

#endif
