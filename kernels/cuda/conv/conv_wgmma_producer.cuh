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
template <int bits, int PANELS> struct conv_packed {
    uint32_t word[PANELS][2 * bits], zero[PANELS][2];

    /* Row 4g + i of a panel, word i of chunk g, belongs to lane 8i + g. */
    __device__ __forceinline__ void fetch(const char *packed, const char *zeros, int outputs,
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
                zero[i / 2][i % 2] = *(const uint8_t *) (zeros + i % 2 * outputs + i / 2 * 32);
        }
    }
};

/* Dequantizes 32 columns of a row to the lane's row of the operand, 16 bytes per store. */
template <int bits, blocks_kind kind>
__device__ __forceinline__ void conv_unpack(char *row, const uint32_t *word, uint32_t zero,
                                            int half)
{
    blocks_unpacker<bits, kind> unpacker;
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
                                                  const char *zeros, const conv_product &p)
{
    constexpr blocks_kind kind = FORM::dtype == FT_F16 ? BLOCKS_F16 : BLOCKS_BF16;
    constexpr int bits = FORM::bits, panel = 256 * bits;
    constexpr int batch = PANELS * bits > 16 ? 16 / bits : PANELS;
    stage += threadIdx.x % 32 * CONV_STEP;
#pragma unroll 1
    for (int first = 0; first < PANELS; first += batch) {
        conv_packed<bits, batch> own;
        own.fetch(packed + first * panel, zeros + first * 32, PANELS * 32, p.t.blocks.zero != NULL);
#pragma unroll
        for (int i = 0; i < 2 * batch; i++)
            conv_unpack<bits, kind>(stage + (first + i / 2) * 32 * CONV_STEP,
                                    own.word[i / 2] + i % 2 * bits, own.zero[i / 2][i % 2], i % 2);
    }
}

/* Four warps take a stage each, round-robin: unpacking mostly waits, for weights and for fences. */
template <class FORM, class REST>
__device__ __forceinline__ void conv_unpack_all(char *ring, REST &rest, const conv_product &p)
{
    int turn = (int) threadIdx.x / 32 % 4;
    int tiles = (p.tiles - (int) blockIdx.x + (int) gridDim.x - 1) / (int) gridDim.x;
    conv_at at = { turn, 0 };
    for (int i = turn; i < tiles * p.steps; i += 4) {
        /* warps share slots, and a warp must not mistake an earlier phase for its own */
        ft_barrier_wait(&rest.empty[at.slot], at.parity ^ 1);
        ft_barrier_wait(&rest.arrived[at.slot], at.parity);
        char *stage = ring + at.slot * (p.w_bytes + p.x_bytes);
        const char *packed = conv_packed_at(ring, p, at.slot),
                   *zeros = conv_zeros_at(ring, p, at.slot);
        if (p.beside)
            conv_unpack_stage<FORM, 2>(stage, packed, zeros, p);
        else
            conv_unpack_stage<FORM, 4>(stage, packed, zeros, p);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncwarp();
        if (threadIdx.x % 32 == 0)
            ft_barrier_arrive(&rest.full[at.slot]);
        at.slot += 4;
        if (at.slot >= p.stages) {
            at.slot -= p.stages;
            at.parity ^= 1;
        }
    }
}

/* ---- Producers ------------------------------------------------------------------------------ */

/* Producer threads: they copy and, with group-wise quantized weights, unpack. */
template <class FORM, class REST>
__device__ __forceinline__ void conv_serve(char *ring, REST &rest, const conv_product &p)
{
    if constexpr (FORM::bits > 0) {
        if (threadIdx.x >= CONV_WORKERS + CONV_TEAM) {
            asm volatile("setmaxnreg.dec.sync.aligned.u32 88;");
            conv_unpack_all<FORM>(ring, rest, p);
            return;
        }
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    }
    if (threadIdx.x == CONV_WORKERS)
        conv_load_all_windows<FORM>(ring, rest, p);
    else if (FORM::loaders > 1 && threadIdx.x == CONV_WORKERS + 32)
        conv_load_all_weights<FORM>(ring, rest, p);
}

/*
 * Initializes the pipeline barriers; called by one thread before all others start.
 * `consumer_warps`: warps that release a stage.
 */
template <class FORM, class REST>
__device__ __forceinline__ void conv_set_up(REST &rest, const conv_product &p, unsigned readers)
{
    for (int i = 0; i < p.stages; i++) {
        ft_barrier_init(&rest.full[i], FORM::bits > 0 ? 1 : FORM::loaders);
        ft_barrier_init(&rest.empty[i], readers);
        if (FORM::bits > 0)
            ft_barrier_init(&rest.arrived[i], FORM::loaders);
    }
    ft_barriers_ready();
    ft_prefetch_map(&p.x);
    ft_prefetch_map(&p.w);
}

#endif
#endif
