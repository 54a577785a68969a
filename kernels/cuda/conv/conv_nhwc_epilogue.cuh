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
__device__ __forceinline__ void
nhwc_store_params(nhwc_epilogue_columns<FORM::out_channels> &columns,
                  const conv_epilogue_params &params, int consumer)
{
    int col = threadIdx.x % CONV_WARPGROUP;
    wgmma_warpgroup_sync(consumer); /* all threads have finished the previous tile */
    if (col < FORM::out_channels) {
        columns.scale[col] = params.scale;
        columns.bias[col] = params.bias;
        columns.zp_correction[col] = params.zp_correction;
    }
    wgmma_warpgroup_sync(consumer);
}

template <class FORM, typename SUM>
__device__ __forceinline__ float nhwc_dequantize(SUM sum, float scale, float bias,
                                                 int32_t zp_correction)
{
    return FORM::dtype == FT_I8 ? ft_dequantize((int32_t) sum - zp_correction, scale, bias)
                                : (float) sum + bias;
}

/*
 * Quantizes four values to int8 in one word and clamps them to the range, as wgmma_quantize_x4()
 * does. Rounding before clamping gives the same values, because rounding is monotonic.
 */
__device__ __forceinline__ uint32_t nhwc_quantize_x4(const conv_gemm_params &p, const float *value)
{
    int32_t integer[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        integer[i] = __float_as_int(
            fmaf(value[i] * p.t.y_inv_scale, __uint_as_float(1), __uint_as_float(128)));
#pragma unroll
    for (int i = 0; i < 4; i++)
        integer[i] = max(integer[i], p.q_min);
    if (p.q_max < 255) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            integer[i] = min(integer[i], p.q_max);
    }
    return wgmma_pack_sat_u8((uint32_t) integer[0], (uint32_t) integer[1],
                             wgmma_pack_sat_u8((uint32_t) integer[2], (uint32_t) integer[3], 0)) ^
           0x80808080;
}

/* Stores eight consecutive channels of a pixel from element `at` on. */
template <ft_dtype Y>
__device__ __forceinline__ void nhwc_store_x8(const conv_gemm_params &p, size_t at,
                                              float (&value)[8], bool inside)
{
    if constexpr (Y == FT_I8) {
        uint2 quantized = { nhwc_quantize_x4(p, value), nhwc_quantize_x4(p, value + 4) };
        wgmma_store((int8_t *) p.t.y + at, quantized, inside);
        return;
    }
    conv_clamp(p, value);
    if constexpr (Y == FT_F32) {
        float4 first = { value[0], value[1], value[2], value[3] };
        float4 second = { value[4], value[5], value[6], value[7] };
        wgmma_store((float *) p.t.y + at, *(const uint4 *) &first, inside);
        wgmma_store((float *) p.t.y + at + 4, *(const uint4 *) &second, inside);
    } else if constexpr (Y != FT_I8) {
        uint4 packed = { ft_pack_f16x2<Y>(value[0], value[1]), ft_pack_f16x2<Y>(value[2], value[3]),
                         ft_pack_f16x2<Y>(value[4], value[5]),
                         ft_pack_f16x2<Y>(value[6], value[7]) };
        wgmma_store((uint16_t *) p.t.y + at, packed, inside);
    }
}

/* Reads the parameters of a lane's eight output channels from shared memory. */
template <typename T> __device__ __forceinline__ void nhwc_load_x8(T (&to)[8], const T *from)
{
    *(uint4 *) to = *(const uint4 *) from;
    *(uint4 *) (to + 4) = *(const uint4 *) (from + 4);
}

/* Writes the warpgroup's windows from `window` of the segment on, directly from registers. */
template <class FORM, ft_dtype Y>
__device__ __forceinline__ void
nhwc_epilogue_direct(const conv_gemm_params &p, const conv_tile_coord &coord, int window,
                     const nhwc_accumulators<FORM> &sums,
                     const nhwc_epilogue_columns<FORM::out_channels> &columns)
{
    int row = window + wgmma_lane_row(), col = wgmma_lane_col();
    size_t at = (size_t) (coord.segment * p.segment + row) * (unsigned) p.t.out_channels +
                (unsigned) (coord.output + col);
#pragma unroll
    for (int block = 0; block < FORM::out_channels / 32; block++) {
        alignas(16) float scale[8], bias[8];
        alignas(16) int32_t zp_correction[8];
        nhwc_load_x8(scale, columns.scale + 32 * block + col);
        nhwc_load_x8(bias, columns.bias + 32 * block + col);
        nhwc_load_x8(zp_correction, columns.zp_correction + 32 * block + col);
        bool inside = coord.output + col + 32 * block < p.t.out_channels;
#pragma unroll
        for (int i = 0; i < 2 * FORM::m_tiles; i++) {
            int row_offset = i / 2 * 64 + i % 2 * 8;
            float value[8];
#pragma unroll
            for (int o = 0; o < 8; o++)
                value[o] = nhwc_dequantize<FORM>(
                    sums[i / 2][nhwc_accumulator_index<FORM>(block, i % 2, o)], scale[o], bias[o],
                    zp_correction[o]);
            nhwc_store_x8<Y>(p, at + (size_t) row_offset * (unsigned) p.t.out_channels + 32 * block,
                             value, inside && row + row_offset < p.segment);
        }
    }
}

/* ---- Epilogue of general kernels ------------------------------------------------------------ */

__device__ __forceinline__ uint32_t nhwc_bits(float value)
{
    return __float_as_uint(value);
}

__device__ __forceinline__ uint32_t nhwc_bits(int32_t value)
{
    return (uint32_t) value;
}

template <class FORM>
__device__ __forceinline__ nhwc_accumulator<FORM> nhwc_from_bits(uint32_t bits)
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
__device__ __forceinline__ void
nhwc_stage_accumulators(uint32_t (&staging)[64][FORM::out_channels + 4],
                        const nhwc_accumulators<FORM> &sums)
{
    int t = threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < FORM::out_channels / 2; i++) {
        int coord = i / 4 * 8 + 2 * t + i % 2, in = coord % 32;
        int output = FORM::bits > 0         ? in % 8 * 4 + in / 8
                     : FORM::dtype == FT_I8 ? in % 8 / 2 * 8 + in / 8 * 2 + in % 2
                                            : in;
        staging[wgmma_lane_row() + i % 4 / 2 * 8][coord - in + output] = nhwc_bits(sums[0][i]);
    }
}

/* Stores N consecutive channels. */
template <ft_dtype Y, int N>
__device__ __forceinline__ void nhwc_store(const conv_gemm_params &p, size_t at, float (&value)[N])
{
    conv_clamp(p, value);
    if constexpr (Y == FT_I8)
        ft_store_quantized_as<FT_I8, N>(p.t.y, at, value, p.t.y_inv_scale);
    else
        ft_store_as<Y, N>(p.t.y, at, value);
}

/* Processes N consecutive channels at a time. */
template <class FORM, ft_dtype Y, int N>
__device__ __forceinline__ void
nhwc_epilogue_staged(const uint32_t (&staging)[64][FORM::out_channels + 4],
                     const conv_gemm_params &p, const conv_tile_coord &coord, int window,
                     const nhwc_epilogue_columns<FORM::out_channels> &columns)
{
    constexpr int per_row = FORM::out_channels / N;
#pragma unroll 1
    for (int i = threadIdx.x % CONV_WARPGROUP; i < 64 * per_row; i += CONV_WARPGROUP) {
        int row_offset = i / per_row, col = i % per_row * N;
        size_t at = (size_t) (coord.segment * p.segment + window + row_offset) *
                        (unsigned) p.t.out_channels +
                    (unsigned) (coord.output + col);
        float value[N];
        if (window + row_offset >= p.segment || coord.output + col >= p.t.out_channels)
            continue;
#pragma unroll
        for (int o = 0; o < N; o++)
            value[o] = nhwc_dequantize<FORM>(nhwc_from_bits<FORM>(staging[row_offset][col + o]),
                                             columns.scale[col + o], columns.bias[col + o],
                                             columns.zp_correction[col + o]);
        if (p.has_activation)
            ft_activate_vec<N>(p.t.activation, value);
        nhwc_store<Y, N>(p, at, value);
    }
}

template <class FORM, ft_dtype Y>
__device__ __forceinline__ void
nhwc_epilogue_as(nhwc_storage<FORM> &storage, const conv_gemm_params &p,
                 const conv_tile_coord &coord, int window, const nhwc_accumulators<FORM> &sums,
                 const nhwc_epilogue_columns<FORM::out_channels> &columns, int consumer)
{
    if constexpr (FORM::general) {
        wgmma_warpgroup_sync(consumer); /* all threads have read the previous tile */
        nhwc_stage_accumulators<FORM>(storage.sums[consumer], sums);
        wgmma_warpgroup_sync(consumer);
        if (p.t.out_channels % 4 == 0 && p.stores_x8)
            nhwc_epilogue_staged<FORM, Y, 4>(storage.sums[consumer], p, coord, window, columns);
        else
            nhwc_epilogue_staged<FORM, Y, 1>(storage.sums[consumer], p, coord, window, columns);
    } else {
        nhwc_epilogue_direct<FORM, Y>(p, coord, window, sums, columns);
    }
}

template <class FORM>
__device__ __forceinline__ void
nhwc_epilogue(nhwc_storage<FORM> &storage, const conv_gemm_params &p, const conv_tile_coord &coord,
              int window, const nhwc_accumulators<FORM> &sums,
              const nhwc_epilogue_columns<FORM::out_channels> &columns, int consumer)
{
    if (FORM::dtype == FT_I8 && p.t.y_dtype == FT_I8)
        nhwc_epilogue_as<FORM, FT_I8>(storage, p, coord, window, sums, columns, consumer);
    else if (FORM::dtype == FT_I8 && p.t.y_dtype == FT_F32)
        nhwc_epilogue_as<FORM, FT_F32>(storage, p, coord, window, sums, columns, consumer);
    else
        nhwc_epilogue_as<FORM, FORM::dtype == FT_BF16 ? FT_BF16 : FT_F16>(storage, p, coord, window,
                                                                          sums, columns, consumer);
}

#endif
#endif
