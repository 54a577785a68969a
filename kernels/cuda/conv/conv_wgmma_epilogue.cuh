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
 * Accumulators of CONV_LAID windows pass through shared memory, so that a lane gets consecutive
 * windows. Chunk c of four words of row r is stored at c ^ 2 (r % 4), which avoids bank conflicts.
 */
typedef uint32_t conv_laid[16][CONV_LAID];

__device__ __forceinline__ uint32_t conv_bits(float value)
{
    return __float_as_uint(value);
}

__device__ __forceinline__ uint32_t conv_bits(int32_t value)
{
    return (uint32_t) value;
}

template <class FORM>
__device__ __forceinline__ void conv_lay(conv_laid &laid, const conv_sums<FORM> &sums, int from)
{
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    uint32_t *line = &laid[g][2 * t];
#pragma unroll
    for (int j = 0; j < FORM::windows / 8; j++)
        if (j / (CONV_LAID / 8) == from) {
            uint32_t *to = line + (j ^ g) % 4 * 8; /* and eight rows further */
            *(uint2 *) to = make_uint2(conv_bits(sums[4 * j]), conv_bits(sums[4 * j + 1]));
            *(uint2 *) (to + 8 * CONV_LAID) =
                make_uint2(conv_bits(sums[4 * j + 2]), conv_bits(sums[4 * j + 3]));
        }
}

template <ft_dtype dtype>
static constexpr int conv_size_of = dtype == FT_I8    ? 1
                                    : dtype == FT_F32 ? 4
                                                      : 2;

template <class FORM>
__device__ __forceinline__ float conv_result(uint32_t sum, const conv_numbers &numbers)
{
    return FORM::dtype == FT_I8
               ? ft_dequantize((int32_t) sum - numbers.excess, numbers.scale, numbers.bias)
               : __uint_as_float(sum) + numbers.bias;
}

/* Computes activated results in place, for activations that are no clamp. */
template <class FORM>
__device__ __forceinline__ void conv_activate(conv_laid &laid, const conv_product &p, int output)
{
    int lane = threadIdx.x % 32, m = threadIdx.x % CONV_TEAM / 32 * 16 + lane / 8;
#pragma unroll 1
    for (int row = 0; row < 16; row += 4) {
        uint4 *four = (uint4 *) &laid[row + lane / 8][lane % 8 * 4], sums = *four;
        conv_numbers numbers = conv_numbers_of<FORM>(p, output + conv_output_of<FORM>(m + row));
        float value[4] = { conv_result<FORM>(sums.x, numbers), conv_result<FORM>(sums.y, numbers),
                           conv_result<FORM>(sums.z, numbers), conv_result<FORM>(sums.w, numbers) };
        ft_activate_all<4>(p.t.activation, value);
        *four = make_uint4(conv_bits(value[0]), conv_bits(value[1]), conv_bits(value[2]),
                           conv_bits(value[3]));
    }
}

/* The result of an accumulator, or of an activated value, clamped. */
template <class FORM>
__device__ __forceinline__ float conv_value(const conv_product &p, const conv_numbers &numbers,
                                            uint32_t sum)
{
    float value = p.activates ? __uint_as_float(sum) : conv_result<FORM>(sum, numbers);
    value = value > p.low || !p.ranged ? value : p.low;
    return value < p.high || !p.ranged ? value : p.high;
}

/* Stores N consecutive results. */
template <ft_dtype Y, int N>
__device__ __forceinline__ void conv_store(char *to, const conv_product &p, float (&value)[N])
{
    if constexpr (Y == FT_I8 && N == 16) {
        uint32_t word[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            word[i] = ft_pack_codes(ft_code_bits(value[4 * i], p.t.y_inverse),
                                    ft_code_bits(value[4 * i + 1], p.t.y_inverse),
                                    ft_code_bits(value[4 * i + 2], p.t.y_inverse),
                                    ft_code_bits(value[4 * i + 3], p.t.y_inverse));
        *(uint4 *) to = make_uint4(word[0], word[1], word[2], word[3]);
    } else if constexpr (Y == FT_I8) {
        ft_store_codes_as<FT_I8, N>(to, 0, value, p.t.y_inverse);
    } else {
        ft_store_as<Y, N>(to, 0, value);
    }
}

/*
 * Writes the staged windows from `window` of the segment on. A lane processes N consecutive windows
 * of a row at a time.
 */
template <class FORM, ft_dtype Y, int N>
__device__ __forceinline__ void conv_finish(const conv_laid &laid, const conv_product &p,
                                            int output, int run, int window)
{
    constexpr int across = CONV_LAID / N, rows = 32 / across, size = conv_size_of<Y>;
    int right = threadIdx.x % across * N, down = threadIdx.x % 32 / across;
    int m = threadIdx.x % CONV_TEAM / 32 * 16;
    int first = run * p.run + window + right, image = conv_divide(first, p.positions);
    unsigned positions = (unsigned) p.positions.by;
    size_t at = (size_t) image * (unsigned) p.t.outputs * positions +
                (unsigned) (first - image * p.positions.by);
    if (window + right >= p.run)
        return;
#pragma unroll 1
    for (int row = down; row < 16; row += rows) {
        int own = output + conv_output_of<FORM>(m + row);
        conv_numbers numbers = conv_numbers_of<FORM>(p, own);
        float value[N];
        if constexpr (N == 1) {
            value[0] =
                conv_value<FORM>(p, numbers, laid[row][(right / 4 ^ row % 4 * 2) * 4 + right % 4]);
        } else {
#pragma unroll
            for (int i = 0; i < N; i += 4) {
                uint4 four = *(const uint4 *) &laid[row][((right + i) / 4 ^ row % 4 * 2) * 4];
                value[i] = conv_value<FORM>(p, numbers, four.x);
                value[i + 1] = conv_value<FORM>(p, numbers, four.y);
                value[i + 2] = conv_value<FORM>(p, numbers, four.z);
                value[i + 3] = conv_value<FORM>(p, numbers, four.w);
            }
        }
        if (own < p.t.outputs)
            conv_store<Y, N>((char *) p.t.y + (at + (size_t) own * positions) * size, p, value);
    }
}

/* Uses the widest vector store that is aligned. */
template <class FORM, ft_dtype Y>
__device__ __forceinline__ void conv_finish_as(const conv_laid &laid, const conv_product &p,
                                               int output, int run, int window)
{
    constexpr int most = 16 / conv_size_of<Y>;
    if (p.store_width == most)
        conv_finish<FORM, Y, most>(laid, p, output, run, window);
    else if (most > 4 && p.store_width == 4)
        conv_finish<FORM, Y, 4>(laid, p, output, run, window);
    else
        conv_finish<FORM, Y, 1>(laid, p, output, run, window);
}

/*
 * Writes the warpgroup's 64 channels from `output` on, N windows from `window` of the segment on;
 * `staging` is the warp's staging buffer.
 */
template <class FORM>
__device__ __forceinline__ void conv_put(conv_laid &laid, const conv_product &p, int output,
                                         int run, int window, const conv_sums<FORM> &sums)
{
#pragma unroll 1
    for (int from = 0; from < FORM::windows / CONV_LAID; from++, window += CONV_LAID) {
        conv_lay<FORM>(laid, sums, from);
        __syncwarp();
        if (p.activates) {
            conv_activate<FORM>(laid, p, output);
            __syncwarp();
        }
        if (FORM::dtype == FT_I8 && p.t.y_dtype == FT_I8)
            conv_finish_as<FORM, FT_I8>(laid, p, output, run, window);
        else if (FORM::dtype == FT_I8 && p.t.y_dtype == FT_F32)
            conv_finish_as<FORM, FT_F32>(laid, p, output, run, window);
        else
            conv_finish_as<FORM, FORM::dtype == FT_BF16 ? FT_BF16 : FT_F16>(laid, p, output, run,
                                                                            window);
        __syncwarp();
    }
}

#endif
#endif
