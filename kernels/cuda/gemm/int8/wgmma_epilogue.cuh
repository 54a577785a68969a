/*
 * wgmma_epilogue.cuh - specialized epilogue of the wgmma INT8 GEMM: accumulators to int8 or f16.
 *
 * It works on registers and requires groups of 8 columns and no activation or the GELU of INT8
 * plans. Rows of x may have scales. Float32 outputs are in wgmma_float_out.cuh, all
 * other epilogues in wgmma_any_epilogue.cuh.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_INT8_WGMMA_EPILOGUE_CUH
#define FT_KERNELS_CUDA_GEMM_INT8_WGMMA_EPILOGUE_CUH

#include "kernels/cuda/epilogue.cuh"
#include "kernels/cuda/gemm/int8/wgmma_args.cuh"

/*
 * Staging buffer for float32 outputs: 16 rows of 128 bytes per warp, so that stores are full lines.
 * Stores directly from registers would fill half of each 32-byte sector: 4096 x 768 x 768 took 20
 * us instead of 10.
 */
enum { WGMMA_LINE_CHUNKS = 8 }; /* 16-byte chunks */
typedef uint4 wgmma_line_buffer[16][WGMMA_LINE_CHUNKS];

#ifdef FT_HAS_WGMMA

/* ---- Accumulators, scales, stores ----------------------------------------------------------- */

/* Accumulator `i` of the lane's 8 in row g + 8h of column block `block`. */
template <int N>
__device__ __forceinline__ int32_t wgmma_acc_at(const int32_t (&sums)[N], int block, int h, int i)
{
    return sums[16 * block + i / 2 * 4 + 2 * h + i % 2];
}

/*
 * Scales and biases of the lane's 8 columns in each column block, four at a time. While the tensor
 * cores saturate shared memory bandwidth, a shared memory load takes hundreds of clocks, so the
 * next ones are prefetched while the current ones are in use (volatile keeps the loads in place).
 */
template <int COLS> struct wgmma_col_params_reader {
    uint32_t at;
    float scale[2][4], bias[2][4];

    __device__ __forceinline__ void open(const wgmma_col_params<COLS> &columns)
    {
        at = ft_smem_address(&columns) + wgmma_lane_col() * 4;
        fetch(0);
    }
    /* Quad 2b + i is half i of column block b; after the last comes the first. */
    __device__ __forceinline__ void fetch(int quad)
    {
        int from = quad / 2 % (COLS / 32) * 128 + quad % 2 * 16;
        read(scale[quad % 2], at + from);
        read(bias[quad % 2], at + from + COLS * 4);
    }
    __device__ __forceinline__ static void read(float (&to)[4], uint32_t from)
    {
        asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3])
                     : "r"(from));
    }
};

/* Predicated stores: a branch would keep the compiler from interleaving two column blocks. */
__device__ __forceinline__ void wgmma_store(void *to, uint2 v, bool inside)
{
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %3, 0;\n\t"
                 "@p st.global.v2.b32 [%0], {%1, %2};\n\t}" ::"l"(to),
                 "r"(v.x), "r"(v.y), "r"((int) inside));
}

__device__ __forceinline__ void wgmma_store(void *to, uint4 v, bool inside)
{
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %5, 0;\n\t"
                 "@p st.global.v4.b32 [%0], {%1, %2, %3, %4};\n\t}" ::"l"(to),
                 "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w), "r"((int) inside));
}

/* ---- Per-element arithmetic ------------------------------------------------------------------ */

/*
 * Several elements are processed step by step in lockstep: the compiler keeps this order where
 * registers are scarce, and a single element would wait for the latency of each step. The steps are
 * those of ft_dequantize(), ft_gelu_approx() and ft_quantize(): twelve instructions, ten of which
 * multiply or add.
 */
template <int N> __device__ __forceinline__ void wgmma_gelu(float *value)
{
    constexpr float c[] = FT_GELU_APPROX_POLYNOMIAL;
    float t[N], p[N];
#pragma unroll
    for (int i = 0; i < N; i++)
        t[i] = value[i] * value[i];
#pragma unroll
    for (int i = 0; i < N; i++)
        p[i] = fmaf(c[0], t[i], c[1]);
#pragma unroll
    for (unsigned degree = 2; degree < sizeof c / sizeof c[0]; degree++)
#pragma unroll
        for (int i = 0; i < N; i++)
            p[i] = fmaf(p[i], t[i], c[degree]);
#pragma unroll
    for (int i = 0; i < N; i++)
        p[i] = ft_saturate(fmaf(value[i], p[i], 0.5f));
#pragma unroll
    for (int i = 0; i < N; i++)
        value[i] *= p[i];
}

/* Dequantize four accumulators of a row with row scale `row`. */
template <ft_epilogue EPILOGUE, int N>
__device__ __forceinline__ void
wgmma_dequantize_x4(float *value, const int32_t (&sums)[N], int block, int h, int quad,
                    const float (&scale)[4], const float (&bias)[4], float row)
{
#pragma unroll
    for (int i = 0; i < 4; i++)
        value[i] = (float) wgmma_acc_at(sums, block, h, 4 * quad + i);
#pragma unroll
    for (int i = 0; i < 4; i++)
        value[i] = fmaf(value[i], ft_epilogue_has_row_scales(EPILOGUE) ? row * scale[i] : scale[i],
                        bias[i]);
    if (ft_epilogue_has_gelu(EPILOGUE))
        wgmma_gelu<4>(value);
}

/* Saturate two integers to 0 .. 255 and pack them before the bytes of `upper`. */
__device__ __forceinline__ uint32_t wgmma_pack_sat_u8(uint32_t low, uint32_t high, uint32_t upper)
{
    uint32_t packed;
    asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(packed) : "r"(high), "r"(low), "r"(upper));
    return packed;
}

/*
 * Quantize four values into a word. The denormal float n * 2^-149 has the integer n as its bits, so
 * one FMA rounds half to even, adds 128 and converts to integer, and packing saturates below 256,
 * that is, below quantized 128. `low`: values may be below quantized -127; a GELU with not too
 * small a scale has none. NaN becomes 127, as in quant.h.
 */
template <bool low>
__device__ __forceinline__ uint32_t wgmma_quantize_x4(const float (&value)[4], float inverse)
{
    uint32_t integer[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        integer[i] =
            __float_as_uint(fmaf(value[i] * inverse, __uint_as_float(1), __uint_as_float(128)));
    if (low) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            integer[i] = (uint32_t) max((int32_t) integer[i], 1);
    }
    return wgmma_pack_sat_u8(integer[0], integer[1], wgmma_pack_sat_u8(integer[2], integer[3], 0)) ^
           0x80808080;
}

/* ---- int8 and f16 outputs -------------------------------------------------------------------- */

/* No residual: int8 outputs have none, and some kernels lack the registers. */
struct wgmma_no_residual {
    __device__ __forceinline__ wgmma_no_residual() {}
    __device__ __forceinline__ wgmma_no_residual(const wgmma_args &, const wgmma_tile_coord &, int)
    {
    }
    __device__ __forceinline__ void add(float (&)[4], int, int, int) const {}
};

/*
 * Four and eight neighbours of a row in the output type; eight are a lane's columns of a column
 * block.
 */
template <typename Y> struct wgmma_packed;
template <> struct wgmma_packed<int8_t> {
    typedef uint32_t four;
    typedef uint2 eight;

    __device__ __forceinline__ static eight join(four a, four b)
    {
        return { a, b };
    }
};
template <> struct wgmma_packed<__half> {
    typedef uint2 four;
    typedef uint4 eight;

    __device__ __forceinline__ static eight join(four a, four b)
    {
        return { a.x, a.y, b.x, b.y };
    }
};

template <bool low>
__device__ __forceinline__ void wgmma_convert_x4(uint32_t &to, const float (&value)[4],
                                                 float inverse)
{
    to = wgmma_quantize_x4<low>(value, inverse);
}

template <bool low>
__device__ __forceinline__ void wgmma_convert_x4(uint2 &to, const float (&value)[4], float)
{
    __half2 first = __floats2half2_rn(value[0], value[1]);
    __half2 second = __floats2half2_rn(value[2], value[3]);
    memcpy(&to.x, &first, sizeof first);
    memcpy(&to.y, &second, sizeof second);
}

/*
 * Output rows of a warpgroup, 64 at a time, and the parameters of its columns. int8 and f16 are
 * stored directly from registers: 4 lanes fill one or two sectors of 32 bytes.
 */
template <int COLS, ft_epilogue EPILOGUE, typename Y> struct wgmma_output {
    typedef wgmma_packed<Y> stored;
    Y *y;
    int width, cols_left, rows_left; /* columns of y; remaining columns and rows */
    float inverse;
    wgmma_col_params_reader<COLS> columns;

    __device__ __forceinline__ explicit wgmma_output(wgmma_line_buffer &) {}
    __device__ __forceinline__ void open(const wgmma_args &a, const wgmma_tile_coord &coord,
                                         int row, const wgmma_col_params<COLS> &of)
    {
        int col = coord.col + wgmma_lane_col();
        row += wgmma_lane_row();
        width = wgmma_range_end(a, coord) - wgmma_range_begin(a, coord);
        cols_left = wgmma_range_end(a, coord) - col;
        rows_left = a.m - row;
        inverse = a.y_inv_scale[coord.range_index];
        columns.open(of);
        y = (Y *) a.y[coord.range_index] + (size_t) row * width +
            (col - wgmma_range_begin(a, coord));
    }
    /* Continue with the next 64 rows. */
    __device__ __forceinline__ void next_m64_block()
    {
        y += (size_t) 64 * width;
        rows_left -= 64;
    }
    /* Column block `block` of M64_BLOCKS x 64 rows. */
    template <int M64_BLOCKS, int N, class ADDED, class ROWS>
    __device__ __forceinline__ void finish(const int32_t (&sums)[M64_BLOCKS][N], int block,
                                           const ADDED &residual_frag, const ROWS &rows)
    {
        typename stored::four four[2 * M64_BLOCKS][2];
#pragma unroll
        for (int quad = 0; quad < 2; quad++) {
            columns.fetch(2 * block + quad + 1);
#pragma unroll
            for (int i = 0; i < 2 * M64_BLOCKS; i++) {
                float value[4];
                wgmma_dequantize_x4<EPILOGUE>(value, sums[i / 2], block, i % 2, quad,
                                              columns.scale[quad], columns.bias[quad], rows.of[i]);
                residual_frag.add(value, block, i % 2, quad);
                wgmma_convert_x4<!ft_epilogue_has_gelu(EPILOGUE)>(four[i][quad], value, inverse);
            }
        }
#pragma unroll
        for (int i = 0; i < 2 * M64_BLOCKS; i++) {
            int skip = i / 2 * 64 + i % 2 * 8;
            wgmma_store(y + (size_t) skip * width + block * 32,
                        stored::join(four[i][0], four[i][1]),
                        block * 32 < cols_left && skip < rows_left);
        }
    }
};

#endif
#endif
