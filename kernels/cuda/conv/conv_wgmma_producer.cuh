/*
 * conv_wgmma_producer.cuh - producers of conv_wgmma.cuh: stages are copied and, for group-wise
 * quantized weights, unpacked.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_CONV_CONV_WGMMA_PRODUCER_CUH
#define FT_KERNELS_CUDA_CONV_CONV_WGMMA_PRODUCER_CUH

#include "kernels/cuda/gemm/groupwise/groupwise.cuh"
#include "kernels/cuda/conv/conv_wgmma_load.cuh"

#ifdef FT_HAS_WGMMA

/* ---- Unpacking ------------------------------------------------------------------------------ */

/* A lane's part of the panels of a K block: one row of each, in words of consecutive lines. */
template <int bits, int PANELS> struct conv_packed_fragment {
    uint32_t word[PANELS][2 * bits], zero[PANELS][2];

    /* Row 4g + i of a panel, word i of chunk g, belongs to lane 8i + g. */
    __device__ __forceinline__ void fetch(const char *packed, const char *zeros, int out_channels,
                                          bool has_zeros)
    {
        int lane = threadIdx.x % 32;
        packed += lane / 8 * 4;
        zeros += lane % 8 * 4 + lane / 8;
#pragma unroll
        for (int i = 0; i < PANELS * 2 * bits; i++)
            word[i / (2 * bits)][i % (2 * bits)] =
                *(const uint32_t *) (packed + i * 128 + (lane % 8 ^ i % 8) * 16);
#pragma unroll
        for (int i = 0; i < 2 * PANELS; i++) {
            zero[i / 2][i % 2] = bits == 4 ? 8 : 128;
            if (has_zeros)
                zero[i / 2][i % 2] = *(const uint8_t *) (zeros + i % 2 * out_channels + i / 2 * 32);
        }
    }
};

/* Dequantizes 32 columns of a row to the lane's row of the operand, 16 bytes per store. */
template <int bits, groupwise_x_type kind>
__device__ __forceinline__ void conv_unpack(char *row, const uint32_t *word, uint32_t zero,
                                            int half)
{
    groupwise_unpacker<bits, kind> unpacker;
    uint32_t pair[4][4]; /* of line t: columns 8j + 2t and 8j + 2t + 1 */
    unpacker.set(zero);
#pragma unroll
    for (int t = 0; t < 4; t++) {
        if constexpr (bits == 4) {
            unpacker.nibbles(pair[t], word[t], 0);
        } else {
            unpacker.bytes(pair[t], word[t], 0);
            unpacker.bytes(pair[t] + 2, word[4 + t], 0);
        }
    }
#pragma unroll
    for (int j = 0; j < 4; j++)
        *(uint4 *) (row + ((half * 4 + j) ^ threadIdx.x % 8) * 16) =
            make_uint4(pair[0][j], pair[1][j], pair[2][j], pair[3][j]);
}

/*
 * Unpacks the weights of a stage, 32 words per lane at a time. All loads are issued before the
 * first is needed, because shared memory loads are slow beside tensor cores that read it.
 */
template <class FORM, int PANELS>
__device__ __forceinline__ void conv_unpack_stage(char *stage, const char *packed,
                                                  const char *zeros, const conv_gemm_params &p)
{
    constexpr groupwise_x_type kind = FORM::dtype == FT_F16 ? GROUPWISE_X_F16 : GROUPWISE_X_BF16;
    constexpr int bits = FORM::bits, panel = 256 * bits;
    constexpr int batch = PANELS * bits > 16 ? 16 / bits : PANELS;
    stage += threadIdx.x % 32 * CONV_K_BLOCK;
#pragma unroll 1
    for (int first = 0; first < PANELS; first += batch) {
        conv_packed_fragment<bits, batch> fragment;
        fragment.fetch(packed + first * panel, zeros + first * 32, PANELS * 32,
                       p.t.groupwise.zero != NULL);
#pragma unroll
        for (int i = 0; i < 2 * batch; i++)
            conv_unpack<bits, kind>(stage + (first + i / 2) * 32 * CONV_K_BLOCK,
                                    fragment.word[i / 2] + i % 2 * bits,
                                    fragment.zero[i / 2][i % 2], i % 2);
    }
}

/* Four warps take a stage each, round-robin: unpacking mostly waits, for weights and for fences. */
template <class FORM, class REST>
__device__ __forceinline__ void conv_produce_unpacked(char *stages_smem, REST &storage,
                                                      const conv_gemm_params &p)
{
    int warp_index = (int) threadIdx.x / 32 % 4;
    int tiles = (p.tiles - (int) blockIdx.x + (int) gridDim.x - 1) / (int) gridDim.x;
    ft_pipeline_state state = { warp_index, 0 };
    for (int i = warp_index; i < tiles * p.k_blocks; i += 4) {
        /* warps share slots, and a warp must not mistake an earlier phase for its own */
        ft_pipeline_producer_acquire(storage, state);
        ft_mbarrier_wait(&storage.packed_full[state.stage_index], state.phase);
        char *stage = stages_smem + state.stage_index * (p.w_bytes + p.x_bytes);
        const char *packed = conv_stage_packed(stages_smem, p, state.stage_index),
                   *zeros = conv_stage_zeros(stages_smem, p, state.stage_index);
        if (p.split_windows)
            conv_unpack_stage<FORM, 2>(stage, packed, zeros, p);
        else
            conv_unpack_stage<FORM, 4>(stage, packed, zeros, p);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncwarp();
        if (threadIdx.x % 32 == 0)
            ft_mbarrier_arrive(&storage.full[state.stage_index]);
        state.stage_index += 4;
        if (state.stage_index >= p.stages) {
            state.stage_index -= p.stages;
            state.phase ^= 1;
        }
    }
}

/* ---- Producers ------------------------------------------------------------------------------ */

/* Producer threads: they copy and, with group-wise quantized weights, unpack. */
template <class FORM, class REST>
__device__ __forceinline__ void conv_producer(char *stages_smem, REST &storage,
                                              const conv_gemm_params &p)
{
    if constexpr (FORM::bits > 0) {
        if (threadIdx.x >= CONV_CONSUMERS + CONV_WARPGROUP) {
            asm volatile("setmaxnreg.dec.sync.aligned.u32 88;");
            conv_produce_unpacked<FORM>(stages_smem, storage, p);
            return;
        }
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    }
    if (threadIdx.x == CONV_CONSUMERS)
        conv_produce_windows<FORM>(stages_smem, storage, p);
    else if (FORM::producers > 1 && threadIdx.x == CONV_CONSUMERS + 32)
        conv_produce_weights<FORM>(stages_smem, storage, p);
}

/*
 * Initializes the pipeline barriers; called by one thread before all others start.
 * `consumer_warps`: warps that release a stage.
 */
template <class FORM, class REST>
__device__ __forceinline__ void conv_init_barriers(REST &storage, const conv_gemm_params &p,
                                                   unsigned consumer_warps)
{
    for (int i = 0; i < p.stages; i++) {
        ft_pipeline_init_stage(storage, i, FORM::bits > 0 ? 1 : FORM::producers, consumer_warps);
        if (FORM::bits > 0)
            ft_mbarrier_init(&storage.packed_full[i], FORM::producers);
    }
    ft_mbarrier_fence_init();
    ft_tma_prefetch_map(&p.x);
    ft_tma_prefetch_map(&p.w);
}

#endif
#endif
