/*
 * wgmma_epilogue.cuh - from the sums of a warpgroup to codes or halves, for the products
 * of sm_90a.
 *
 * This is the fast way, in registers: y has whole groups of 8 columns, and there is no activation
 * or the gelu of int8 plans.  Rows may have scales where y is floats.  Float32 is in
 * wgmma_float_out.cuh, all other epilogues in wgmma_any_epilogue.cuh.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_INT8_WGMMA_EPILOGUE_CUH
#define FT_KERNELS_CUDA_GEMM_INT8_WGMMA_EPILOGUE_CUH

#include "kernels/cuda/epilogue.cuh"
#include "kernels/cuda/gemm/int8/wgmma_args.cuh"

/*
 * What floats go through on their way out: of each warp 16 rows of 128 bytes, so that its stores
 * are whole lines.  Straight from the registers every store would fill halves of 32-byte sectors:
 * 4096 x 768 x 768 took 20 us instead of 10.
 */
enum { WGMMA_LINE = 8 }; /* chunks of 16 bytes */
typedef uint4 wgmma_lines[16][WGMMA_LINE];

#ifdef FT_HAS_WGMMA

/* ---- Sums, scales, stores ------------------------------------------------------------------- */

/* Sum `i` of the lane's 8 of row g + 8h in block `block`. */
template <int N>
__device__ __forceinline__ int32_t wgmma_sum(const int32_t (&sums)[N], int block, int h, int i)
{
    return sums[16 * block + i / 2 * 4 + 2 * h + i % 2];
}

/*
 * The scales and biases of the lane's 8 columns in each block, four at a time.  While tensor cores
 * read shared memory at its limit, a load from there takes hundreds of clocks: so the next ones are
 * under way while the ones before are in use (volatile: loads stay where they stand).
 */
template <int COLS> struct wgmma_columns_reader {
    uint32_t at;
    float scale[2][4], bias[2][4];

    __device__ __forceinline__ void open(const wgmma_columns<COLS> &columns)
    {
        at = ft_shared_address(&columns) + wgmma_lane_col() * 4;
        fetch(0);
    }
    /* Quad 2b + i is half i of block b; behind the last comes the first. */
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

/* Stores without a branch, which would keep the compiler from mixing the work of two blocks. */
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

/* ---- The steps of an element ---------------------------------------------------------------- */

/*
 * The work of several elements goes step by step through all of them, for the compiler keeps this
 * order where registers are scarce, and an element alone would wait for each of its own steps.  The
 * steps are those of ft_dequantize(), ft_gelu_codes() and ft_quantize(): twelve instructions, of
 * which ten multiply or add.
 */
template <int N> __device__ __forceinline__ void wgmma_gelu(float *value)
{
    constexpr float c[] = FT_GELU_CODES_POLYNOMIAL;
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

/* Four sums of a row, whose own scale is `row`, to real values. */
template <ft_epilogue EPILOGUE, int N>
__device__ __forceinline__ void wgmma_values(float *value, const int32_t (&sums)[N], int block,
                                             int h, int quad, const float (&scale)[4],
                                             const float (&bias)[4], float row)
{
#pragma unroll
    for (int i = 0; i < 4; i++)
        value[i] = (float) wgmma_sum(sums, block, h, 4 * quad + i);
#pragma unroll
    for (int i = 0; i < 4; i++)
        value[i] =
            fmaf(value[i], EPILOGUE == FT_EPILOGUE_ROWS ? row * scale[i] : scale[i], bias[i]);
    if (EPILOGUE == FT_EPILOGUE_GELU)
        wgmma_gelu<4>(value);
}

/* The low bytes of two whole numbers, held in 0 .. 255, before the bytes of `behind`. */
__device__ __forceinline__ uint32_t wgmma_pack_held(uint32_t low, uint32_t high, uint32_t behind)
{
    uint32_t packed;
    asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;"
        : "=r"(packed)
        : "r"(high), "r"(low), "r"(behind));
    return packed;
}

/*
 * Four codes as a word.  A float of n * 2^-149 is a denormal whose bits are the number n: so one
 * operation rounds half to even, adds 128 and makes a whole number, and packing holds it below 256,
 * that is, the code below 128.  `low`: values may lie below -127 steps; those of a gelu with not
 * too fine steps do not.  NaN becomes 127, as in quant.h.
 */
template <bool low>
__device__ __forceinline__ uint32_t wgmma_codes(const float (&value)[4], float inverse)
{
    uint32_t whole[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        whole[i] =
            __float_as_uint(fmaf(value[i] * inverse, __uint_as_float(1), __uint_as_float(128)));
    if (low) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            whole[i] = (uint32_t) max((int32_t) whole[i], 1);
    }
    return wgmma_pack_held(whole[0], whole[1], wgmma_pack_held(whole[2], whole[3], 0)) ^ 0x80808080;
}

/* ---- A result of codes or halves ------------------------------------------------------------ */

/* What is added to nothing: codes have no residual, and some kernels have no registers for one. */
struct wgmma_nothing {
    __device__ __forceinline__ wgmma_nothing() {}
    __device__ __forceinline__ wgmma_nothing(const wgmma_args &, const wgmma_place &, int) {}
    __device__ __forceinline__ void add(float (&)[4], int, int, int) const {}
};

/* Four neighbours of a row as they are stored, and eight: the lane's of a block. */
template <typename Y> struct wgmma_stored;
template <> struct wgmma_stored<int8_t> {
    typedef uint32_t four;
    typedef uint2 eight;

    __device__ __forceinline__ static eight join(four a, four b)
    {
        return { a, b };
    }
};
template <> struct wgmma_stored<__half> {
    typedef uint2 four;
    typedef uint4 eight;

    __device__ __forceinline__ static eight join(four a, four b)
    {
        return { a.x, a.y, b.x, b.y };
    }
};

template <bool low>
__device__ __forceinline__ void wgmma_narrow(uint32_t &to, const float (&value)[4], float inverse)
{
    to = wgmma_codes<low>(value, inverse);
}

template <bool low>
__device__ __forceinline__ void wgmma_narrow(uint2 &to, const float (&value)[4], float)
{
    __half2 first = __floats2half2_rn(value[0], value[1]);
    __half2 second = __floats2half2_rn(value[2], value[3]);
    memcpy(&to.x, &first, sizeof first);
    memcpy(&to.y, &second, sizeof second);
}

/*
 * Where 64 rows of a team go, and what their columns are multiplied by.  Codes and halves go
 * straight from the registers: 4 lanes fill one sector of 32 bytes or two.
 */
template <int COLS, ft_epilogue EPILOGUE, typename Y> struct wgmma_result {
    typedef wgmma_stored<Y> stored;
    Y *y;
    int width, left, down; /* columns of y; columns and rows that are left */
    float inverse;
    wgmma_columns_reader<COLS> columns;

    __device__ __forceinline__ explicit wgmma_result(wgmma_lines &) {}
    __device__ __forceinline__ void open(const wgmma_args &a, const wgmma_place &place, int row,
                                         const wgmma_columns<COLS> &of)
    {
        int col = place.col + wgmma_lane_col();
        row += wgmma_lane_row();
        width = wgmma_end(a, place) - wgmma_first(a, place);
        left = wgmma_end(a, place) - col;
        down = a.m - row;
        inverse = a.y_inverse[place.which];
        columns.open(of);
        y = (Y *) a.y[place.which] + (size_t) row * width + (col - wgmma_first(a, place));
    }
    /* To the 64 rows below. */
    __device__ __forceinline__ void descend()
    {
        y += (size_t) 64 * width;
        down -= 64;
    }
    /* Block `block` of HALVES times 64 rows. */
    template <int HALVES, int N, class ADDED, class ROWS>
    __device__ __forceinline__ void finish(const int32_t (&sums)[HALVES][N], int block,
                                           const ADDED &added, const ROWS &rows)
    {
        typename stored::four four[2 * HALVES][2];
#pragma unroll
        for (int quad = 0; quad < 2; quad++) {
            columns.fetch(2 * block + quad + 1);
#pragma unroll
            for (int i = 0; i < 2 * HALVES; i++) {
                float value[4];
                wgmma_values<EPILOGUE>(value, sums[i / 2], block, i % 2, quad, columns.scale[quad],
                                       columns.bias[quad], rows.of[i]);
                added.add(value, block, i % 2, quad);
                wgmma_narrow<EPILOGUE != FT_EPILOGUE_GELU>(four[i][quad], value, inverse);
            }
        }
#pragma unroll
        for (int i = 0; i < 2 * HALVES; i++) {
            int skip = i / 2 * 64 + i % 2 * 8;
            wgmma_store(y + (size_t) skip * width + block * 32,
                        stored::join(four[i][0], four[i][1]), block * 32 < left && skip < down);
        }
    }
};

#endif
#endif
