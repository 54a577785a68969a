/*
 * conv_nhwc_epilogue.cuh - epilogue of conv_nhwc.cuh: from accumulators to NHWC output.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_CONV_CONV_NHWC_EPILOGUE_CUH
#define FT_KERNELS_CUDA_CONV_CONV_NHWC_EPILOGUE_CUH

#include "kernels/cuda/conv/conv_nhwc_mainloop.cuh"
#include "kernels/cuda/gemm/int8/wgmma_epilogue.cuh"

#ifdef FT_HAS_WGMMA

/* ---- Epilogue ------------------------------------------------------------------------------- */

/*
 * Each thread of a warpgroup provides the epilogue parameters of one output channel for the others.
 */
template <class FORM>
__device__ __forceinline__ void rows_keep(rows_columns<FORM::outputs> &columns,
                                          const conv_numbers &numbers, int team)
{
    int right = threadIdx.x % CONV_TEAM;
    wgmma_sync_team(team); /* all threads have finished the previous tile */
    if (right < FORM::outputs) {
        columns.scale[right] = numbers.scale;
        columns.bias[right] = numbers.bias;
        columns.excess[right] = numbers.excess;
    }
    wgmma_sync_team(team);
}

template <class FORM, typename SUM>
__device__ __forceinline__ float rows_result(SUM sum, float scale, float bias, int32_t excess)
{
    return FORM::dtype == FT_I8 ? ft_dequantize((int32_t) sum - excess, scale, bias)
                                : (float) sum + bias;
}

/*
 * Quantizes four values to int8 in one word and clamps them to the range; wgmma_codes() explains
 * how. Rounding before clamping gives the same values, because rounding is monotonic.
 */
__device__ __forceinline__ uint32_t rows_codes(const conv_product &p, const float *value)
{
    int32_t whole[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        whole[i] = __float_as_int(
            fmaf(value[i] * p.t.y_inverse, __uint_as_float(1), __uint_as_float(128)));
#pragma unroll
    for (int i = 0; i < 4; i++)
        whole[i] = max(whole[i], p.lowest);
    if (p.highest < 255) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            whole[i] = min(whole[i], p.highest);
    }
    return wgmma_pack_held((uint32_t) whole[0], (uint32_t) whole[1],
                           wgmma_pack_held((uint32_t) whole[2], (uint32_t) whole[3], 0)) ^
           0x80808080;
}

/* Stores eight consecutive channels of a pixel from element `at` on. */
template <ft_dtype Y>
__device__ __forceinline__ void rows_store_eight(const conv_product &p, size_t at,
                                                 float (&value)[8], bool inside)
{
    if constexpr (Y == FT_I8) {
        uint2 codes = { rows_codes(p, value), rows_codes(p, value + 4) };
        wgmma_store((int8_t *) p.t.y + at, codes, inside);
        return;
    }
    conv_to_range(p, value);
    if constexpr (Y == FT_F32) {
        float4 first = { value[0], value[1], value[2], value[3] };
        float4 second = { value[4], value[5], value[6], value[7] };
        wgmma_store((float *) p.t.y + at, *(const uint4 *) &first, inside);
        wgmma_store((float *) p.t.y + at + 4, *(const uint4 *) &second, inside);
    } else if constexpr (Y != FT_I8) {
        uint4 packed = { ft_pack_halves<Y>(value[0], value[1]),
                         ft_pack_halves<Y>(value[2], value[3]),
                         ft_pack_halves<Y>(value[4], value[5]),
                         ft_pack_halves<Y>(value[6], value[7]) };
        wgmma_store((uint16_t *) p.t.y + at, packed, inside);
    }
}

/* Reads the parameters of a lane's eight output channels from shared memory. */
template <typename T> __device__ __forceinline__ void rows_read_eight(T (&to)[8], const T *from)
{
    *(uint4 *) to = *(const uint4 *) from;
    *(uint4 *) (to + 4) = *(const uint4 *) (from + 4);
}

/* Writes the warpgroup's windows from `window` of the segment on, directly from registers. */
template <class FORM, ft_dtype Y>
__device__ __forceinline__ void rows_finish(const conv_product &p, const conv_place &place,
                                            int window, const rows_sums<FORM> &sums,
                                            const rows_columns<FORM::outputs> &columns)
{
    int row = window + wgmma_lane_row(), right = wgmma_lane_col();
    size_t at = (size_t) (place.run * p.run + row) * (unsigned) p.t.outputs +
                (unsigned) (place.output + right);
#pragma unroll
    for (int block = 0; block < FORM::outputs / 32; block++) {
        alignas(16) float scale[8], bias[8];
        alignas(16) int32_t excess[8];
        rows_read_eight(scale, columns.scale + 32 * block + right);
        rows_read_eight(bias, columns.bias + 32 * block + right);
        rows_read_eight(excess, columns.excess + 32 * block + right);
        bool inside = place.output + right + 32 * block < p.t.outputs;
#pragma unroll
        for (int i = 0; i < 2 * FORM::m_tiles; i++) {
            int down = i / 2 * 64 + i % 2 * 8;
            float value[8];
#pragma unroll
            for (int o = 0; o < 8; o++)
                value[o] = rows_result<FORM>(sums[i / 2][rows_at<FORM>(block, i % 2, o)], scale[o],
                                             bias[o], excess[o]);
            rows_store_eight<Y>(p, at + (size_t) down * (unsigned) p.t.outputs + 32 * block, value,
                                inside && row + down < p.run);
        }
    }
}

/* ---- Epilogue of general kernels ------------------------------------------------------------ */

__device__ __forceinline__ uint32_t rows_bits(float value)
{
    return __float_as_uint(value);
}

__device__ __forceinline__ uint32_t rows_bits(int32_t value)
{
    return (uint32_t) value;
}

template <class FORM> __device__ __forceinline__ rows_sum<FORM> rows_number(uint32_t bits)
{
    if constexpr (FORM::dtype == FT_I8)
        return (int32_t) bits;
    else
        return __uint_as_float(bits);
}

/*
 * Writes the accumulators to shared memory. f16 weights are not interleaved here: they are in their
 * own order.
 */
template <class FORM>
__device__ __forceinline__ void rows_lay(uint32_t (&laid)[64][FORM::outputs + 4],
                                         const rows_sums<FORM> &sums)
{
    int t = threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < FORM::outputs / 2; i++) {
        int place = i / 4 * 8 + 2 * t + i % 2, in = place % 32;
        int output = FORM::bits > 0         ? in % 8 * 4 + in / 8
                     : FORM::dtype == FT_I8 ? in % 8 / 2 * 8 + in / 8 * 2 + in % 2
                                            : in;
        laid[wgmma_lane_row() + i % 4 / 2 * 8][place - in + output] = rows_bits(sums[0][i]);
    }
}

/* Stores N consecutive channels. */
template <ft_dtype Y, int N>
__device__ __forceinline__ void rows_store(const conv_product &p, size_t at, float (&value)[N])
{
    conv_to_range(p, value);
    if constexpr (Y == FT_I8)
        ft_store_codes_as<FT_I8, N>(p.t.y, at, value, p.t.y_inverse);
    else
        ft_store_as<Y, N>(p.t.y, at, value);
}

/* Processes N consecutive channels at a time. */
template <class FORM, ft_dtype Y, int N>
__device__ __forceinline__ void
rows_finish_laid(const uint32_t (&laid)[64][FORM::outputs + 4], const conv_product &p,
                 const conv_place &place, int window, const rows_columns<FORM::outputs> &columns)
{
    constexpr int across = FORM::outputs / N;
#pragma unroll 1
    for (int i = threadIdx.x % CONV_TEAM; i < 64 * across; i += CONV_TEAM) {
        int down = i / across, right = i % across * N;
        size_t at = (size_t) (place.run * p.run + window + down) * (unsigned) p.t.outputs +
                    (unsigned) (place.output + right);
        float value[N];
        if (window + down >= p.run || place.output + right >= p.t.outputs)
            continue;
#pragma unroll
        for (int o = 0; o < N; o++)
            value[o] = rows_result<FORM>(rows_number<FORM>(laid[down][right + o]),
                                         columns.scale[right + o], columns.bias[right + o],
                                         columns.excess[right + o]);
        if (p.activates)
            ft_activate_all<N>(p.t.activation, value);
        rows_store<Y, N>(p, at, value);
    }
}

template <class FORM, ft_dtype Y>
__device__ __forceinline__ void
rows_put_as(rows_rest<FORM> &rest, const conv_product &p, const conv_place &place, int window,
            const rows_sums<FORM> &sums, const rows_columns<FORM::outputs> &columns, int team)
{
    if constexpr (FORM::general) {
        wgmma_sync_team(team); /* all threads have read the previous tile */
        rows_lay<FORM>(rest.sums[team], sums);
        wgmma_sync_team(team);
        if (p.t.outputs % 4 == 0 && p.eights)
            rows_finish_laid<FORM, Y, 4>(rest.sums[team], p, place, window, columns);
        else
            rows_finish_laid<FORM, Y, 1>(rest.sums[team], p, place, window, columns);
    } else {
        rows_finish<FORM, Y>(p, place, window, sums, columns);
    }
}

template <class FORM>
__device__ __forceinline__ void
rows_put(rows_rest<FORM> &rest, const conv_product &p, const conv_place &place, int window,
         const rows_sums<FORM> &sums, const rows_columns<FORM::outputs> &columns, int team)
{
    if (FORM::dtype == FT_I8 && p.t.y_dtype == FT_I8)
        rows_put_as<FORM, FT_I8>(rest, p, place, window, sums, columns, team);
    else if (FORM::dtype == FT_I8 && p.t.y_dtype == FT_F32)
        rows_put_as<FORM, FT_F32>(rest, p, place, window, sums, columns, team);
    else
        rows_put_as<FORM, FORM::dtype == FT_BF16 ? FT_BF16 : FT_F16>(rest, p, place, window, sums,
                                                                     columns, team);
}

#endif
#endif
