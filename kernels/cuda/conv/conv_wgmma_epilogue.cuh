/*
 * conv_wgmma_epilogue.cuh - epilogue of conv_wgmma.cuh: from accumulators to NCHW output.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_CONV_CONV_WGMMA_EPILOGUE_CUH
#define FT_KERNELS_CUDA_CONV_CONV_WGMMA_EPILOGUE_CUH

#include "kernels/cuda/conv/conv_wgmma_mainloop.cuh"

#ifdef FT_HAS_WGMMA

/*
 * Accumulators of CONV_STAGED_WINDOWS windows pass through shared memory, so that a lane gets
 * consecutive windows. Chunk c of four words of row r is stored at c ^ 2 (r % 4), which avoids bank
 * conflicts.
 */
typedef uint32_t conv_staging[16][CONV_STAGED_WINDOWS];

__device__ __forceinline__ uint32_t conv_bits(float value)
{
    return __float_as_uint(value);
}

__device__ __forceinline__ uint32_t conv_bits(int32_t value)
{
    return (uint32_t) value;
}

template <class FORM>
__device__ __forceinline__ void
conv_stage_accumulators(conv_staging &staging, const conv_accumulators<FORM> &sums, int from)
{
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    uint32_t *line = &staging[g][2 * t];
#pragma unroll
    for (int j = 0; j < FORM::windows / 8; j++)
        if (j / (CONV_STAGED_WINDOWS / 8) == from) {
            uint32_t *to = line + (j ^ g) % 4 * 8; /* and eight rows further */
            *(uint2 *) to = make_uint2(conv_bits(sums[4 * j]), conv_bits(sums[4 * j + 1]));
            *(uint2 *) (to + 8 * CONV_STAGED_WINDOWS) =
                make_uint2(conv_bits(sums[4 * j + 2]), conv_bits(sums[4 * j + 3]));
        }
}

template <ft_dtype dtype>
static constexpr int conv_element_size = dtype == FT_I8    ? 1
                                         : dtype == FT_F32 ? 4
                                                           : 2;

template <class FORM>
__device__ __forceinline__ float conv_dequantize(uint32_t sum, const conv_epilogue_params &params)
{
    return FORM::dtype == FT_I8
               ? ft_dequantize((int32_t) sum - params.zp_correction, params.scale, params.bias)
               : __uint_as_float(sum) + params.bias;
}

/* Computes activated results in place, for activations that are no clamp. */
template <class FORM>
__device__ __forceinline__ void conv_activate(conv_staging &staging, const conv_gemm_params &p,
                                              int output)
{
    int lane = threadIdx.x % 32, m = threadIdx.x % CONV_WARPGROUP / 32 * 16 + lane / 8;
#pragma unroll 1
    for (int row = 0; row < 16; row += 4) {
        uint4 *four = (uint4 *) &staging[row + lane / 8][lane % 8 * 4], sums = *four;
        conv_epilogue_params params =
            conv_epilogue_params_of<FORM>(p, output + conv_row_output<FORM>(m + row));
        float value[4] = { conv_dequantize<FORM>(sums.x, params),
                           conv_dequantize<FORM>(sums.y, params),
                           conv_dequantize<FORM>(sums.z, params),
                           conv_dequantize<FORM>(sums.w, params) };
        ft_activate_vec<4>(p.t.activation, value);
        *four = make_uint4(conv_bits(value[0]), conv_bits(value[1]), conv_bits(value[2]),
                           conv_bits(value[3]));
    }
}

/* The result of an accumulator, or of an activated value, clamped. */
template <class FORM>
__device__ __forceinline__ float conv_output_value(const conv_gemm_params &p,
                                                   const conv_epilogue_params &params, uint32_t sum)
{
    float value = p.has_activation ? __uint_as_float(sum) : conv_dequantize<FORM>(sum, params);
    value = value > p.low || !p.clamps_output ? value : p.low;
    return value < p.high || !p.clamps_output ? value : p.high;
}

/* Stores N consecutive results. */
template <ft_dtype Y, int N>
__device__ __forceinline__ void conv_store(char *to, const conv_gemm_params &p, float (&value)[N])
{
    if constexpr (Y == FT_I8 && N == 16) {
        uint32_t word[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            word[i] = ft_pack_i8x4(ft_quantize_bits(value[4 * i], p.t.y_inv_scale),
                                   ft_quantize_bits(value[4 * i + 1], p.t.y_inv_scale),
                                   ft_quantize_bits(value[4 * i + 2], p.t.y_inv_scale),
                                   ft_quantize_bits(value[4 * i + 3], p.t.y_inv_scale));
        *(uint4 *) to = make_uint4(word[0], word[1], word[2], word[3]);
    } else if constexpr (Y == FT_I8) {
        ft_store_quantized_as<FT_I8, N>(to, 0, value, p.t.y_inv_scale);
    } else {
        ft_store_as<Y, N>(to, 0, value);
    }
}

/*
 * Writes the staged windows from `window` of the segment on. A lane processes N consecutive windows
 * of a row at a time.
 */
template <class FORM, ft_dtype Y, int N>
__device__ __forceinline__ void conv_activate_clamp(const conv_staging &staging,
                                                    const conv_gemm_params &p, int output,
                                                    int segment, int window)
{
    constexpr int per_row = CONV_STAGED_WINDOWS / N, rows = 32 / per_row,
                  size = conv_element_size<Y>;
    int col = threadIdx.x % per_row * N, row_offset = threadIdx.x % 32 / per_row;
    int m = threadIdx.x % CONV_WARPGROUP / 32 * 16;
    int first = segment * p.segment + window + col, image = conv_divide(first, p.out_pixels);
    unsigned out_pixels = (unsigned) p.out_pixels.divisor;
    size_t at = (size_t) image * (unsigned) p.t.out_channels * out_pixels +
                (unsigned) (first - image * p.out_pixels.divisor);
    if (window + col >= p.segment)
        return;
#pragma unroll 1
    for (int row = row_offset; row < 16; row += rows) {
        int out_channel = output + conv_row_output<FORM>(m + row);
        conv_epilogue_params params = conv_epilogue_params_of<FORM>(p, out_channel);
        float value[N];
        if constexpr (N == 1) {
            value[0] = conv_output_value<FORM>(p, params,
                                               staging[row][(col / 4 ^ row % 4 * 2) * 4 + col % 4]);
        } else {
#pragma unroll
            for (int i = 0; i < N; i += 4) {
                uint4 four = *(const uint4 *) &staging[row][((col + i) / 4 ^ row % 4 * 2) * 4];
                value[i] = conv_output_value<FORM>(p, params, four.x);
                value[i + 1] = conv_output_value<FORM>(p, params, four.y);
                value[i + 2] = conv_output_value<FORM>(p, params, four.z);
                value[i + 3] = conv_output_value<FORM>(p, params, four.w);
            }
        }
        if (out_channel < p.t.out_channels)
            conv_store<Y, N>((char *) p.t.y + (at + (size_t) out_channel * out_pixels) * size, p,
                             value);
    }
}

/* Uses the widest vector store that is aligned. */
template <class FORM, ft_dtype Y>
__device__ __forceinline__ void conv_store_outputs(const conv_staging &staging,
                                                   const conv_gemm_params &p, int output,
                                                   int segment, int window)
{
    constexpr int max_vector = 16 / conv_element_size<Y>;
    if (p.store_width == max_vector)
        conv_activate_clamp<FORM, Y, max_vector>(staging, p, output, segment, window);
    else if (max_vector > 4 && p.store_width == 4)
        conv_activate_clamp<FORM, Y, 4>(staging, p, output, segment, window);
    else
        conv_activate_clamp<FORM, Y, 1>(staging, p, output, segment, window);
}

/*
 * Writes the warpgroup's 64 channels from `output` on, N windows from `window` of the segment on;
 * `staging` is the warp's staging buffer.
 */
template <class FORM>
__device__ __forceinline__ void conv_epilogue(conv_staging &staging, const conv_gemm_params &p,
                                              int output, int segment, int window,
                                              const conv_accumulators<FORM> &sums)
{
#pragma unroll 1
    for (int from = 0; from < FORM::windows / CONV_STAGED_WINDOWS;
         from++, window += CONV_STAGED_WINDOWS) {
        conv_stage_accumulators<FORM>(staging, sums, from);
        __syncwarp();
        if (p.has_activation) {
            conv_activate<FORM>(staging, p, output);
            __syncwarp();
        }
        if (FORM::dtype == FT_I8 && p.t.y_dtype == FT_I8)
            conv_store_outputs<FORM, FT_I8>(staging, p, output, segment, window);
        else if (FORM::dtype == FT_I8 && p.t.y_dtype == FT_F32)
            conv_store_outputs<FORM, FT_F32>(staging, p, output, segment, window);
        else
            conv_store_outputs<FORM, FORM::dtype == FT_BF16 ? FT_BF16 : FT_F16>(staging, p, output,
                                                                                segment, window);
        __syncwarp();
    }
}

#endif
#endif
