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
struct rows_form {
    static constexpr ft_dtype dtype = DTYPE;
    static constexpr int bits = BITS, outputs = OUTPUTS, m_tiles = M_TILES;
    static constexpr bool turns = TURNS, general = GENERAL, planes = false;
    static constexpr bool fine = OUTPUTS * M_TILES <= 64; /* registers for groups of 32 columns */
    static constexpr int own = 64 * M_TILES, windows = TURNS ? own : 2 * own;
    static constexpr int threads = CONV_WORKERS + (BITS > 0 ? 2 : 1) * CONV_TEAM;
    static constexpr int loaders = 2; /* producer threads that issue copies */
};

/* Epilogue parameters of a tile's output channels. */
template <int OUTPUTS> struct alignas(16) rows_columns {
    float scale[OUTPUTS], bias[OUTPUTS];
    int32_t excess[OUTPUTS];
};

/* Shared memory after the stages. */
template <class FORM> struct rows_rest {
    rows_columns<FORM::outputs> columns[2]; /* of each warpgroup */
    uint32_t sums[FORM::general ? 2 : 1][FORM::general ? 64 : 1][FORM::outputs + 4];
    uint64_t full[CONV_STAGES], empty[CONV_STAGES], arrived[CONV_STAGES];
};

#ifdef FT_HAS_WGMMA

template <class FORM> using rows_sum = std::conditional_t<FORM::dtype == FT_I8, int32_t, float>;
template <class FORM> using rows_sums = rows_sum<FORM>[FORM::m_tiles][FORM::outputs / 2];

/* ---- MMAs ----------------------------------------------------------------------------------- */

/* A warpgroup's windows in a stage, and the distances to the next ones in units of 16 bytes. */
typedef struct rows_operands {
    int x;              /* bytes from the start of a stage */
    int one, two, half; /* to the second and third 32 bytes, and 64 windows further */
} rows_operands;

template <class FORM>
__device__ __forceinline__ rows_operands rows_operands_of(const conv_product &p, int team)
{
    rows_operands o;
    int apart = FORM::windows * p.line / 16; /* stride of boxes */
    o.x = p.w_bytes + (FORM::turns ? 0 : team * FORM::own * p.line);
    o.one = p.line == 32 ? apart : 2;
    o.two = p.line == 32 ? 2 * apart : p.line == 64 ? apart : 4;
    o.half = 64 * p.line / 16;
    return o;
}

/* Issues the MMAs of quarter k of a K block. */
template <class FORM>
__device__ __forceinline__ void rows_multiply(rows_sums<FORM> &sums, const char *stage,
                                              const conv_product &p, const rows_operands &o, int k,
                                              bool add)
{
    uint64_t w = ft_wgmma_operand(stage) + 2 * k;
    uint64_t x =
        conv_operand(stage + o.x, p.line) + (k % 2 == 1 ? o.one : 0) + (k >= 2 ? o.two : 0);
#pragma unroll
    for (int i = 0; i < FORM::m_tiles; i++)
        if constexpr (FORM::dtype == FT_I8)
            ft_wgmma<FORM::outputs>(sums[i], x + i * o.half, w, add);
        else
            ft_wgmma_halves<FORM::outputs, FORM::dtype == FT_BF16>(sums[i], x + i * o.half, w, add);
}

/* Waits for all MMAs, and releases the previous stage. */
template <class FORM>
__device__ __forceinline__ void rows_settle(rows_sums<FORM> &sums, rows_rest<FORM> &rest,
                                            int before)
{
    ft_wgmma_wait<0>();
    if (before >= 0 && threadIdx.x % 32 == 0)
        ft_barrier_arrive(&rest.empty[before]);
#pragma unroll
    for (int i = 0; i < FORM::m_tiles; i++)
        ft_wgmma_settle(sums[i]);
}

/* sums = those of `k_blocks` K blocks. A stage is released while the next one is being multiplied.
 */
template <class FORM>
__device__ __forceinline__ void rows_add_steps(rows_sums<FORM> &sums, const char *ring,
                                               rows_rest<FORM> &rest, const conv_product &p,
                                               const rows_operands &o, conv_at &at, int steps)
{
    int before = -1;
    for (int i = 0; i < steps; i++, conv_advance(at, p.stages)) {
        const char *stage = ring + at.slot * (p.w_bytes + p.x_bytes);
        ft_barrier_wait(&rest.full[at.slot], at.parity);
        ft_wgmma_begin();
#pragma unroll
        for (int k = 0; k < 4; k++)
            rows_multiply<FORM>(sums, stage, p, o, k, i + k > 0);
        ft_wgmma_commit();
        ft_wgmma_wait<1>();
        if (before >= 0 && threadIdx.x % 32 == 0)
            ft_barrier_arrive(&rest.empty[before]);
        before = at.slot;
    }
    rows_settle<FORM>(sums, rest, before);
}

/* ---- Groups --------------------------------------------------------------------------------- */

/*
 * Index of accumulator o of a lane's eight channels of the 32 channels `block`, for row g or
 * (`down`) g + 8.
 */
template <class FORM> __device__ __forceinline__ constexpr int rows_at(int block, int down, int o)
{
    return FORM::bits > 0 ? 16 * block + o % 4 * 4 + down * 2 + o / 4
                          : 16 * block + o / 2 * 4 + down * 2 + o % 2;
}

/* The scales of a lane's output channels in a group: eight f16 of every 32 channels. */
template <class FORM> struct rows_scales {
    uint4 of[FORM::outputs / 32];

    __device__ __forceinline__ void fetch(const conv_product &p, int output, int group)
    {
        const __half *scale =
            (const __half *) p.t.blocks.scale + (size_t) group * (unsigned) p.padded;
#pragma unroll
        for (int i = 0; i < FORM::outputs / 32; i++)
            of[i] = __ldg((const uint4 *) (scale + min(output + 32 * i, p.padded - 32) +
                                           threadIdx.x % 4 * 8));
    }
};

/* total += scale * sums */
template <class FORM>
__device__ __forceinline__ void rows_scale(rows_sums<FORM> &total, const rows_sums<FORM> &sums,
                                           const rows_scales<FORM> &scales)
{
#pragma unroll
    for (int block = 0; block < FORM::outputs / 32; block++) {
        const __half2 *two = (const __half2 *) &scales.of[block];
#pragma unroll
        for (int o = 0; o < 8; o += 2) {
            float2 scale = __half22float2(two[o / 2]);
#pragma unroll
            for (int i = 0; i < 2 * FORM::m_tiles; i++) {
                int even = rows_at<FORM>(block, i % 2, o), odd = rows_at<FORM>(block, i % 2, o + 1);
                total[i / 2][even] = fmaf(sums[i / 2][even], scale.x, total[i / 2][even]);
                total[i / 2][odd] = fmaf(sums[i / 2][odd], scale.y, total[i / 2][odd]);
            }
        }
    }
}

/* One K block whose halves of 32 columns have separate scales. */
template <class FORM>
__device__ __forceinline__ void rows_add_halves(rows_sums<FORM> &total, rows_sums<FORM> &sums,
                                                const char *ring, rows_rest<FORM> &rest,
                                                const conv_product &p, const rows_operands &o,
                                                conv_at &at, int step, int output)
{
    const char *stage = ring + at.slot * (p.w_bytes + p.x_bytes);
    int last = conv_divide(p.t.window - 1, p.group);
    ft_barrier_wait(&rest.full[at.slot], at.parity);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        rows_scales<FORM> scales;
        ft_wgmma_begin();
        rows_multiply<FORM>(sums, stage, p, o, 2 * half, false);
        rows_multiply<FORM>(sums, stage, p, o, 2 * half + 1, true);
        ft_wgmma_commit();
        scales.fetch(p, output, min(conv_divide(step * 64 + half * 32, p.group), last));
        rows_settle<FORM>(sums, rest, half == 1 ? at.slot : -1);
        rows_scale<FORM>(total, sums, scales);
    }
    conv_advance(at, p.stages);
}

/* The accumulators of a tile with group-wise quantized weights. */
template <class FORM>
__device__ __forceinline__ void rows_add_groups(rows_sums<FORM> &total, const char *ring,
                                                rows_rest<FORM> &rest, const conv_product &p,
                                                const rows_operands &o, conv_at &at, int output)
{
    rows_sums<FORM> sums;
#pragma unroll
    for (int i = 0; i < FORM::m_tiles * FORM::outputs / 2; i++)
        total[i / (FORM::outputs / 2)][i % (FORM::outputs / 2)] = 0;
    if constexpr (FORM::fine)
        if (p.group_steps == 0) {
            for (int step = 0; step < p.steps; step++)
                rows_add_halves<FORM>(total, sums, ring, rest, p, o, at, step, output);
            return;
        }
    for (int step = 0, group = 0; step < p.steps; step += p.group_steps, group++) {
        rows_scales<FORM> scales;
        scales.fetch(p, output, group);
        rows_add_steps<FORM>(sums, ring, rest, p, o, at, min(p.group_steps, p.steps - step));
        rows_scale<FORM>(total, sums, scales);
    }
}

#endif
#endif
