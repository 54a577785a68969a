/*
 * conv_nhwc_mainloop.cuh - main loop of conv_nhwc.cuh, and accumulation of groups with group-wise
 * quantized weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_CONV_CONV_NHWC_MAINLOOP_CUH
#define FT_KERNELS_CUDA_CONV_CONV_NHWC_MAINLOOP_CUH

#include "kernels/cuda/conv/conv_wgmma_producer.cuh"

#include <type_traits>

/*
 * Kernel traits: dtype of the windows, bits of group-wise weights or 0, output channels of a tile,
 * and multiples of 64 windows per warpgroup.
 */
template <ft_dtype DTYPE, int BITS, int OUTPUTS, int M_TILES, bool TURNS, bool GENERAL>
struct nhwc_traits {
    static constexpr ft_dtype dtype = DTYPE;
    static constexpr int bits = BITS, out_channels = OUTPUTS, m_tiles = M_TILES;
    static constexpr bool pingpong = TURNS, general = GENERAL, planes = false;
    static constexpr bool has_fine_groups =
        OUTPUTS * M_TILES <= 64; /* registers for groups of 32 columns */
    static constexpr int own = 64 * M_TILES, windows = TURNS ? own : 2 * own;
    static constexpr int threads = CONV_CONSUMERS + (BITS > 0 ? 2 : 1) * CONV_WARPGROUP;
    static constexpr int producers = 2; /* producer threads that issue copies */
};

/* Epilogue parameters of a tile's output channels. */
template <int OUTPUTS> struct alignas(16) nhwc_epilogue_columns {
    float scale[OUTPUTS], bias[OUTPUTS];
    int32_t zp_correction[OUTPUTS];
};

/* Shared memory after the stages. */
template <class FORM> struct nhwc_storage {
    nhwc_epilogue_columns<FORM::out_channels> columns[2]; /* of each warpgroup */
    uint32_t sums[FORM::general ? 2 : 1][FORM::general ? 64 : 1][FORM::out_channels + 4];
    uint64_t full[CONV_MAX_STAGES], empty[CONV_MAX_STAGES], packed_full[CONV_MAX_STAGES];
};

#ifdef FT_HAS_WGMMA

template <class FORM>
using nhwc_accumulator = std::conditional_t<FORM::dtype == FT_I8, int32_t, float>;
template <class FORM>
using nhwc_accumulators = nhwc_accumulator<FORM>[FORM::m_tiles][FORM::out_channels / 2];

/* ---- MMAs ----------------------------------------------------------------------------------- */

/* A warpgroup's windows in a stage, and the distances to the next ones in units of 16 bytes. */
typedef struct nhwc_operands {
    int x; /* bytes from the start of a stage */
    int second_32, third_32,
        m64_stride; /* to the second and third 32 bytes, and 64 windows further */
} nhwc_operands;

template <class FORM>
__device__ __forceinline__ nhwc_operands nhwc_operands_of(const conv_gemm_params &p, int consumer)
{
    nhwc_operands o;
    int box_stride = FORM::windows * p.line / 16; /* stride of boxes */
    o.x = p.w_bytes + (FORM::pingpong ? 0 : consumer * FORM::own * p.line);
    o.second_32 = p.line == 32 ? box_stride : 2;
    o.third_32 = p.line == 32 ? 2 * box_stride : p.line == 64 ? box_stride : 4;
    o.m64_stride = 64 * p.line / 16;
    return o;
}

/* Issues the MMAs of quarter k of a K block. */
template <class FORM>
__device__ __forceinline__ void nhwc_issue_mma(nhwc_accumulators<FORM> &sums, const char *stage,
                                               const conv_gemm_params &p, const nhwc_operands &o,
                                               int k, bool add)
{
    uint64_t w = ft_wgmma_descriptor(stage) + 2 * k;
    uint64_t x = conv_operand_descriptor(stage + o.x, p.line) + (k % 2 == 1 ? o.second_32 : 0) +
                 (k >= 2 ? o.third_32 : 0);
#pragma unroll
    for (int i = 0; i < FORM::m_tiles; i++)
        if constexpr (FORM::dtype == FT_I8)
            ft_wgmma_i8<FORM::out_channels>(sums[i], x + i * o.m64_stride, w, add);
        else
            ft_wgmma_f16<FORM::out_channels, FORM::dtype == FT_BF16>(sums[i], x + i * o.m64_stride,
                                                                     w, add);
}

/* Waits for all MMAs, and releases the previous stage. */
template <class FORM>
__device__ __forceinline__ void nhwc_wait_mma(nhwc_accumulators<FORM> &sums,
                                              nhwc_storage<FORM> &storage, int previous)
{
    ft_wgmma_wait<0>();
    if (previous >= 0)
        ft_pipeline_consumer_release(storage, previous);
#pragma unroll
    for (int i = 0; i < FORM::m_tiles; i++)
        ft_wgmma_fence_acc(sums[i]);
}

/* sums = those of `k_blocks` K blocks. A stage is released while the next one is being multiplied.
 */
template <class FORM>
__device__ __forceinline__ void nhwc_mainloop(nhwc_accumulators<FORM> &sums,
                                              const char *stages_smem, nhwc_storage<FORM> &storage,
                                              const conv_gemm_params &p, const nhwc_operands &o,
                                              ft_pipeline_state &state, int k_blocks)
{
    int previous = -1;
    for (int i = 0; i < k_blocks; i++, state.advance(p.stages)) {
        const char *stage = stages_smem + state.stage_index * (p.w_bytes + p.x_bytes);
        ft_pipeline_consumer_wait(storage, state);
        ft_wgmma_fence();
#pragma unroll
        for (int k = 0; k < 4; k++)
            nhwc_issue_mma<FORM>(sums, stage, p, o, k, i + k > 0);
        ft_wgmma_commit();
        ft_wgmma_wait<1>();
        if (previous >= 0)
            ft_pipeline_consumer_release(storage, previous);
        previous = state.stage_index;
    }
    nhwc_wait_mma<FORM>(sums, storage, previous);
}

/* ---- Groups --------------------------------------------------------------------------------- */

/*
 * Index of accumulator o of a lane's eight channels of the 32 channels `block`, for row g or
 * (`down`) g + 8.
 */
template <class FORM>
__device__ __forceinline__ constexpr int nhwc_accumulator_index(int block, int down, int o)
{
    return FORM::bits > 0 ? 16 * block + o % 4 * 4 + down * 2 + o / 4
                          : 16 * block + o / 2 * 4 + down * 2 + o % 2;
}

/* The scales of a lane's output channels in a group: eight f16 of every 32 channels. */
template <class FORM> struct nhwc_group_scales {
    uint4 of[FORM::out_channels / 32];

    __device__ __forceinline__ void fetch(const conv_gemm_params &p, int output, int group)
    {
        const __half *scale =
            (const __half *) p.t.groupwise.scale + (size_t) group * (unsigned) p.padded_rows;
#pragma unroll
        for (int i = 0; i < FORM::out_channels / 32; i++)
            of[i] = __ldg((const uint4 *) (scale + min(output + 32 * i, p.padded_rows - 32) +
                                           threadIdx.x % 4 * 8));
    }
};

/* total += scale * sums */
template <class FORM>
__device__ __forceinline__ void nhwc_accumulate_scaled(nhwc_accumulators<FORM> &total,
                                                       const nhwc_accumulators<FORM> &sums,
                                                       const nhwc_group_scales<FORM> &scales)
{
#pragma unroll
    for (int block = 0; block < FORM::out_channels / 32; block++) {
        const __half2 *third_32 = (const __half2 *) &scales.of[block];
#pragma unroll
        for (int o = 0; o < 8; o += 2) {
            float2 scale = __half22float2(third_32[o / 2]);
#pragma unroll
            for (int i = 0; i < 2 * FORM::m_tiles; i++) {
                int even = nhwc_accumulator_index<FORM>(block, i % 2, o),
                    odd = nhwc_accumulator_index<FORM>(block, i % 2, o + 1);
                total[i / 2][even] = fmaf(sums[i / 2][even], scale.x, total[i / 2][even]);
                total[i / 2][odd] = fmaf(sums[i / 2][odd], scale.y, total[i / 2][odd]);
            }
        }
    }
}

/* One K block whose halves of 32 columns have separate scales. */
template <class FORM>
__device__ __forceinline__ void
nhwc_mainloop_scaled_halves(nhwc_accumulators<FORM> &total, nhwc_accumulators<FORM> &sums,
                            const char *stages_smem, nhwc_storage<FORM> &storage,
                            const conv_gemm_params &p, const nhwc_operands &o,
                            ft_pipeline_state &state, int k_block, int output)
{
    const char *stage = stages_smem + state.stage_index * (p.w_bytes + p.x_bytes);
    int last = conv_divide(p.t.window - 1, p.group);
    ft_pipeline_consumer_wait(storage, state);
#pragma unroll
    for (int m64_stride = 0; m64_stride < 2; m64_stride++) {
        nhwc_group_scales<FORM> scales;
        ft_wgmma_fence();
        nhwc_issue_mma<FORM>(sums, stage, p, o, 2 * m64_stride, false);
        nhwc_issue_mma<FORM>(sums, stage, p, o, 2 * m64_stride + 1, true);
        ft_wgmma_commit();
        scales.fetch(p, output, min(conv_divide(k_block * 64 + m64_stride * 32, p.group), last));
        nhwc_wait_mma<FORM>(sums, storage, m64_stride == 1 ? state.stage_index : -1);
        nhwc_accumulate_scaled<FORM>(total, sums, scales);
    }
    state.advance(p.stages);
}

/* The accumulators of a tile with group-wise quantized weights. */
template <class FORM>
__device__ __forceinline__ void
nhwc_mainloop_groupwise(nhwc_accumulators<FORM> &total, const char *stages_smem,
                        nhwc_storage<FORM> &storage, const conv_gemm_params &p,
                        const nhwc_operands &o, ft_pipeline_state &state, int output)
{
    nhwc_accumulators<FORM> sums;
#pragma unroll
    for (int i = 0; i < FORM::m_tiles * FORM::out_channels / 2; i++)
        total[i / (FORM::out_channels / 2)][i % (FORM::out_channels / 2)] = 0;
    if constexpr (FORM::has_fine_groups)
        if (p.group_k_blocks == 0) {
            for (int k_block = 0; k_block < p.k_blocks; k_block++)
                nhwc_mainloop_scaled_halves<FORM>(total, sums, stages_smem, storage, p, o, state,
                                                  k_block, output);
            return;
        }
    for (int k_block = 0, group = 0; k_block < p.k_blocks; k_block += p.group_k_blocks, group++) {
        nhwc_group_scales<FORM> scales;
        scales.fetch(p, output, group);
        nhwc_mainloop<FORM>(sums, stages_smem, storage, p, o, state,
                            min(p.group_k_blocks, p.k_blocks - k_block));
        nhwc_accumulate_scaled<FORM>(total, sums, scales);
    }
}

#endif
#endif
