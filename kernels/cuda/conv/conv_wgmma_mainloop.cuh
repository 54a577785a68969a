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

template <class FORM>
using conv_accumulator = std::conditional_t<FORM::dtype == FT_I8, int32_t, float>;
template <class FORM> using conv_accumulators = conv_accumulator<FORM>[FORM::windows / 2];

/* A warpgroup's operands in a stage, and the distances between 32-byte columns of windows. */
typedef struct conv_operands {
    int w, x; /* bytes from the start of a stage */
    int second_32,
        third_32; /* of x: distance to the second and third 32 bytes of K, in units of 16 bytes */
} conv_operands;

template <class FORM>
__device__ __forceinline__ conv_operands conv_operands_of(const conv_gemm_params &p, int consumer)
{
    conv_operands o;
    int windows = p.split_windows ? 2 * FORM::windows : FORM::windows;
    o.w = p.split_windows ? 0 : consumer * 64 * CONV_K_BLOCK;
    o.x = p.w_bytes;
    if (p.split_windows)
        o.x += consumer * FORM::windows * (FORM::planes ? CONV_K_BLOCK : p.line);
    int box_stride = windows * p.line / 16; /* stride of boxes */
    o.second_32 = FORM::planes ? 128 : p.line == 32 ? box_stride : 2;
    o.third_32 = FORM::planes ? 256 : p.line == 32 ? 2 * box_stride : p.line == 64 ? box_stride : 4;
    return o;
}

/* Issues the MMA of quarter k of a K block. */
template <class FORM>
__device__ __forceinline__ void conv_issue_mma(conv_accumulators<FORM> &sums, const char *stage,
                                               const conv_gemm_params &p, const conv_operands &o,
                                               int k, bool add)
{
    constexpr int n = FORM::windows;
    constexpr bool bf16 = FORM::dtype == FT_BF16;
    uint64_t w = ft_wgmma_descriptor(stage + o.w) + 2 * k;
    int x_offset = (k % 2 == 1 ? o.second_32 : 0) + (k >= 2 ? o.third_32 : 0);
    if constexpr (FORM::dtype == FT_I8)
        ft_wgmma_i8<n>(sums, w, conv_operand_descriptor(stage + o.x, p.line) + x_offset, add);
    else if constexpr (FORM::planes)
        ft_wgmma_f16_trans_b<n, bf16>(
            sums, w, ft_wgmma_descriptor_trans(stage + o.x, CONV_PANEL) + x_offset, add);
    else
        ft_wgmma_f16<n, bf16>(sums, w, conv_operand_descriptor(stage + o.x, p.line) + x_offset,
                              add);
}

/* sums = those of `k_blocks` K blocks. A stage is released while the next one is being multiplied.
 */
template <class FORM>
__device__ __forceinline__ void conv_mainloop(conv_accumulators<FORM> &sums,
                                              const char *stages_smem, conv_storage &storage,
                                              const conv_gemm_params &p, const conv_operands &o,
                                              ft_pipeline_state &state, int k_blocks)
{
    int previous = -1;
    for (int i = 0; i < k_blocks; i++, state.advance(p.stages)) {
        const char *stage = stages_smem + state.stage_index * (p.w_bytes + p.x_bytes);
        ft_pipeline_consumer_wait(storage, state);
        ft_wgmma_fence();
#pragma unroll
        for (int k = 0; k < 4; k++)
            conv_issue_mma<FORM>(sums, stage, p, o, k, i + k > 0);
        ft_wgmma_commit();
        if (p.stages < 5) { /* too few stages to keep two */
            ft_wgmma_wait<0>();
            previous = state.stage_index;
        } else {
            ft_wgmma_wait<1>();
        }
        if (previous >= 0)
            ft_pipeline_consumer_release(storage, previous);
        previous = p.stages < 5 ? -1 : state.stage_index;
    }
    ft_wgmma_wait<0>();
    if (previous >= 0)
        ft_pipeline_consumer_release(storage, previous);
    ft_wgmma_fence_acc(sums);
}

/* The scales of a lane's two consecutive rows in a group. */
__device__ __forceinline__ float2 conv_group_scales(const conv_gemm_params &p, int row, int group)
{
    row = min(row, p.padded_rows - 2);
    return __half22float2(
        __ldg((const __half2 *) ((const __half *) p.t.groupwise.scale +
                                 (size_t) group * (unsigned) p.padded_rows + row)));
}

/* total += scale * sums */
template <int n>
__device__ __forceinline__ void conv_accumulate_scaled(float (&total)[n], const float (&sums)[n],
                                                       float2 scale)
{
#pragma unroll
    for (int i = 0; i < n; i++)
        total[i] = fmaf(sums[i], i % 4 < 2 ? scale.x : scale.y, total[i]);
}

/* One K block whose halves of 32 columns have separate scales. */
template <class FORM>
__device__ __forceinline__ void
conv_mainloop_scaled_halves(conv_accumulators<FORM> &total, conv_accumulators<FORM> &sums,
                            const char *stages_smem, conv_storage &storage,
                            const conv_gemm_params &p, const conv_operands &o,
                            ft_pipeline_state &state, int k_block, int row)
{
    const char *stage = stages_smem + state.stage_index * (p.w_bytes + p.x_bytes);
    int last = conv_divide(p.t.window - 1, p.group);
    float2 scale[2];
#pragma unroll
    for (int half = 0; half < 2; half++)
        scale[half] =
            conv_group_scales(p, row, min(conv_divide(k_block * 64 + half * 32, p.group), last));
    ft_pipeline_consumer_wait(storage, state);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        ft_wgmma_fence();
        conv_issue_mma<FORM>(sums, stage, p, o, 2 * half, false);
        conv_issue_mma<FORM>(sums, stage, p, o, 2 * half + 1, true);
        ft_wgmma_commit();
        ft_wgmma_wait<0>();
        ft_wgmma_fence_acc(sums);
        if (half == 1)
            ft_pipeline_consumer_release(storage, state.stage_index);
        conv_accumulate_scaled(total, sums, scale[half]);
    }
    state.advance(p.stages);
}

/*
 * The accumulators of a tile with group-wise quantized weights; `row` is the lane's first weight
 * row.
 */
template <class FORM>
__device__ __forceinline__ void
conv_mainloop_groupwise(conv_accumulators<FORM> &total, const char *stages_smem,
                        conv_storage &storage, const conv_gemm_params &p, const conv_operands &o,
                        ft_pipeline_state &state, int row)
{
    conv_accumulators<FORM> sums;
#pragma unroll
    for (int i = 0; i < FORM::windows / 2; i++)
        total[i] = 0;
    if (p.group_k_blocks == 0) {
        for (int k_block = 0; k_block < p.k_blocks; k_block++)
            conv_mainloop_scaled_halves<FORM>(total, sums, stages_smem, storage, p, o, state,
                                              k_block, row);
        return;
    }
    for (int k_block = 0, group = 0; k_block < p.k_blocks; k_block += p.group_k_blocks, group++) {
        float2 scale = conv_group_scales(p, row, group);
        conv_mainloop<FORM>(sums, stages_smem, storage, p, o, state,
                            min(p.group_k_blocks, p.k_blocks - k_block));
        conv_accumulate_scaled(total, sums, scale);
    }
}

#endif
#endif
