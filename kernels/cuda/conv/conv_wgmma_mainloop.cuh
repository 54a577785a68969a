/*
 * conv_wgmma_mainloop.cuh - main loop of conv_wgmma.cuh, and accumulation of groups with group-wise
 * quantized weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_CONV_CONV_WGMMA_MAINLOOP_CUH
#define FT_KERNELS_CUDA_CONV_CONV_WGMMA_MAINLOOP_CUH

#include "kernels/cuda/conv/conv_wgmma_tiles.cuh"

#include <cuda_fp16.h>
#include <type_traits>

#ifdef FT_HAS_WGMMA

/* ---- MMAs ----------------------------------------------------------------------------------- */

template <class FORM> using conv_sum = std::conditional_t<FORM::dtype == FT_I8, int32_t, float>;
template <class FORM> using conv_sums = conv_sum<FORM>[FORM::windows / 2];

/* A warpgroup's operands in a stage, and the distances between 32-byte columns of windows. */
typedef struct conv_operands {
    int w, x;     /* bytes from the start of a stage */
    int one, two; /* of x: distance to the second and third 32 bytes of K, in units of 16 bytes */
} conv_operands;

template <class FORM>
__device__ __forceinline__ conv_operands conv_operands_of(const conv_product &p, int team)
{
    conv_operands o;
    int windows = p.beside ? 2 * FORM::windows : FORM::windows;
    o.w = p.beside ? 0 : team * 64 * CONV_STEP;
    o.x = p.w_bytes;
    if (p.beside)
        o.x += team * FORM::windows * (FORM::planes ? CONV_STEP : p.line);
    int apart = windows * p.line / 16; /* stride of boxes */
    o.one = FORM::planes ? 128 : p.line == 32 ? apart : 2;
    o.two = FORM::planes ? 256 : p.line == 32 ? 2 * apart : p.line == 64 ? apart : 4;
    return o;
}

/* Issues the MMA of quarter k of a K block. */
template <class FORM>
__device__ __forceinline__ void conv_multiply(conv_sums<FORM> &sums, const char *stage,
                                              const conv_product &p, const conv_operands &o, int k,
                                              bool add)
{
    constexpr int n = FORM::windows;
    constexpr bool bf16 = FORM::dtype == FT_BF16;
    uint64_t w = ft_wgmma_operand(stage + o.w) + 2 * k;
    int x_offset = (k % 2 == 1 ? o.one : 0) + (k >= 2 ? o.two : 0);
    if constexpr (FORM::dtype == FT_I8)
        ft_wgmma<n>(sums, w, conv_operand(stage + o.x, p.line) + x_offset, add);
    else if constexpr (FORM::planes)
        ft_wgmma_halves_turned<n, bf16>(sums, w,
                                        ft_wgmma_turned(stage + o.x, CONV_PANEL) + x_offset, add);
    else
        ft_wgmma_halves<n, bf16>(sums, w, conv_operand(stage + o.x, p.line) + x_offset, add);
}

/* sums = those of `k_blocks` K blocks. A stage is released while the next one is being multiplied.
 */
template <class FORM>
__device__ __forceinline__ void conv_add_steps(conv_sums<FORM> &sums, const char *ring,
                                               conv_rest &rest, const conv_product &p,
                                               const conv_operands &o, conv_at &at, int steps)
{
    int before = -1;
    bool first_lane = threadIdx.x % 32 == 0;
    for (int i = 0; i < steps; i++, conv_advance(at, p.stages)) {
        const char *stage = ring + at.slot * (p.w_bytes + p.x_bytes);
        ft_barrier_wait(&rest.full[at.slot], at.parity);
        ft_wgmma_begin();
#pragma unroll
        for (int k = 0; k < 4; k++)
            conv_multiply<FORM>(sums, stage, p, o, k, i + k > 0);
        ft_wgmma_commit();
        if (p.stages < 5) { /* too few stages to keep two */
            ft_wgmma_wait<0>();
            before = at.slot;
        } else {
            ft_wgmma_wait<1>();
        }
        if (before >= 0 && first_lane)
            ft_barrier_arrive(&rest.empty[before]);
        before = p.stages < 5 ? -1 : at.slot;
    }
    ft_wgmma_wait<0>();
    if (before >= 0 && first_lane)
        ft_barrier_arrive(&rest.empty[before]);
    ft_wgmma_settle(sums);
}

/* The scales of a lane's two consecutive rows in a group. */
__device__ __forceinline__ float2 conv_scales(const conv_product &p, int row, int group)
{
    row = min(row, p.padded - 2);
    return __half22float2(__ldg((const __half2 *) ((const __half *) p.t.blocks.scale +
                                                   (size_t) group * (unsigned) p.padded + row)));
}

/* total += scale * sums */
template <int n>
__device__ __forceinline__ void conv_scale(float (&total)[n], const float (&sums)[n], float2 scale)
{
#pragma unroll
    for (int i = 0; i < n; i++)
        total[i] = fmaf(sums[i], i % 4 < 2 ? scale.x : scale.y, total[i]);
}

/* One K block whose halves of 32 columns have separate scales. */
template <class FORM>
__device__ __forceinline__ void
conv_add_halves(conv_sums<FORM> &total, conv_sums<FORM> &sums, const char *ring, conv_rest &rest,
                const conv_product &p, const conv_operands &o, conv_at &at, int step, int row)
{
    const char *stage = ring + at.slot * (p.w_bytes + p.x_bytes);
    int last = conv_divide(p.t.window - 1, p.group);
    float2 scale[2];
#pragma unroll
    for (int half = 0; half < 2; half++)
        scale[half] = conv_scales(p, row, min(conv_divide(step * 64 + half * 32, p.group), last));
    ft_barrier_wait(&rest.full[at.slot], at.parity);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        ft_wgmma_begin();
        conv_multiply<FORM>(sums, stage, p, o, 2 * half, false);
        conv_multiply<FORM>(sums, stage, p, o, 2 * half + 1, true);
        ft_wgmma_commit();
        ft_wgmma_wait<0>();
        ft_wgmma_settle(sums);
        if (half == 1 && threadIdx.x % 32 == 0)
            ft_barrier_arrive(&rest.empty[at.slot]);
        conv_scale(total, sums, scale[half]);
    }
    conv_advance(at, p.stages);
}

/*
 * The accumulators of a tile with group-wise quantized weights; `row` is the lane's first weight
 * row.
 */
template <class FORM>
__device__ __forceinline__ void conv_add_groups(conv_sums<FORM> &total, const char *ring,
                                                conv_rest &rest, const conv_product &p,
                                                const conv_operands &o, conv_at &at, int row)
{
    conv_sums<FORM> sums;
#pragma unroll
    for (int i = 0; i < FORM::windows / 2; i++)
        total[i] = 0;
    if (p.group_steps == 0) {
        for (int step = 0; step < p.steps; step++)
            conv_add_halves<FORM>(total, sums, ring, rest, p, o, at, step, row);
        return;
    }
    for (int step = 0, group = 0; step < p.steps; step += p.group_steps, group++) {
        float2 scale = conv_scales(p, row, group);
        conv_add_steps<FORM>(sums, ring, rest, p, o, at, min(p.group_steps, p.steps - step));
        conv_scale(total, sums, scale);
    }
}

#endif
#endif
