/*
 * gemm_wgmma_finish.cuh - from the sums of a warpgroup to codes, for the products of sm_90a.
 *
 * This is the fast way, in registers: y has whole groups of 8 columns, all rows have one scale, and
 * there is no activation or the gelu of int8 plans.  Floats are in gemm_wgmma_floats.cuh, all other
 * epilogues in gemm_wgmma_any.cuh.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_WGMMA_FINISH_CUH
#define FT_KERNELS_CUDA_GEMM_WGMMA_FINISH_CUH

#include "kernels/cuda/epilogue.cuh"
#include "kernels/cuda/gemm_wgmma_args.cuh"

/*
 * What floats go through on their way out: of each warp 16 rows of 128 bytes, so that its stores
 * are whole lines.  Straight from the registers every store would fill halves of 32-byte sectors:
 * 4096 x 768 x 768 took 20 us instead of 10.
 */
enum { WGMMA_LINE = 8 }; /* chunks of 16 bytes */
typedef uint4 wgmma_lines[16][WGMMA_LINE];

#ifdef FT_HAS_WGMMA

/* ---- Columns -------------------------------------------------------------------------------- */

/*
 * The scales and biases of the lane's 8 columns in each block of 32.  While tensor cores read
 * shared memory at its limit, a load from there takes hundreds of clocks: so those of the next
 * block are under way while one is finished (volatile: they stay where they stand).
 */
template <int COLS> struct wgmma_columns_reader {
    uint32_t at;
    float scale[2][8], bias[2][8];

    __device__ __forceinline__ explicit wgmma_columns_reader(const wgmma_columns<COLS> &columns)
        : at(ft_shared_address(&columns) + wgmma_lane_col() * 4)
    {
        fetch(0);
    }
    __device__ __forceinline__ static void read(float (&to)[8], uint32_t from)
    {
        asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3])
                     : "r"(from));
        asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(to[4]), "=f"(to[5]), "=f"(to[6]), "=f"(to[7])
                     : "r"(from + 16));
    }
    __device__ __forceinline__ void fetch(int block)
    {
        if (block < COLS / 32) {
            read(scale[block % 2], at + block * 128);
            read(bias[block % 2], at + COLS * 4 + block * 128);
        }
    }
};

/* The same for 4 columns at a time, of which the first and the last in turns. */
template <int COLS> struct wgmma_quads_reader {
    uint32_t at;
    float scale[2][4], bias[2][4];

    __device__ __forceinline__ explicit wgmma_quads_reader(const wgmma_columns<COLS> &columns)
        : at(ft_shared_address(&columns) + wgmma_lane_col() * 4)
    {
        fetch(0);
    }
    __device__ __forceinline__ static void read(float (&to)[4], uint32_t from)
    {
        asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3])
                     : "r"(from));
    }
    __device__ __forceinline__ void fetch(int quad)
    {
        read(scale[quad], at);
        read(bias[quad], at + COLS * 4);
        at += quad == 0 ? 16 : 112;
    }
};

/* Sum `i` of the lane's 8 of row g + 8h in block `block`. */
template <int N>
__device__ __forceinline__ int32_t wgmma_sum(const int32_t (&sums)[N], int block, int h, int i)
{
    return sums[16 * block + i / 2 * 4 + 2 * h + i % 2];
}

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

/* ---- A tile of codes ------------------------------------------------------------------------ */

/*
 * The work of several elements goes step by step through all of them, for the compiler keeps this
 * order where registers are scarce, and an element alone would wait for each of its own steps.  The
 * steps are those of ft_dequantize(), ft_gelu_codes() and ft_code_bits().
 */
template <int N>
__device__ __forceinline__ void wgmma_dequantize(float *value, const float *scale,
                                                 const float *bias)
{
#pragma unroll
    for (int i = 0; i < N; i++)
        value[i] = fmaf(value[i], scale[i], bias[i]);
}

template <int N> __device__ __forceinline__ void wgmma_gelu(float *value)
{
    constexpr float c[] = FT_GELU_CODES_POLYNOMIAL;
    float u[N], q[N];
#pragma unroll
    for (int i = 0; i < N; i++)
        u[i] = fminf(fabsf(value[i]), FT_GELU_CODES_RANGE);
#pragma unroll
    for (int i = 0; i < N; i++)
        q[i] = fmaf(c[0], u[i], c[1]);
#pragma unroll
    for (unsigned degree = 2; degree < sizeof c / sizeof c[0]; degree++)
#pragma unroll
        for (int i = 0; i < N; i++)
            q[i] = fmaf(q[i], u[i], c[degree]);
#pragma unroll
    for (int i = 0; i < N; i++)
        value[i] = fmaxf(value[i], 0.0f);
#pragma unroll
    for (int i = 0; i < N; i++)
        value[i] = fmaf(u[i], q[i], value[i]);
}

/* `low`: values may lie below -127 steps; those of a gelu with not too fine steps do not. */
template <int N, bool low> __device__ __forceinline__ void wgmma_round(float *value, float inverse)
{
#pragma unroll
    for (int i = 0; i < N; i++)
        value[i] *= inverse;
#pragma unroll
    for (int i = 0; i < N; i++)
        value[i] = fminf(value[i], 127.0f);
    if (low) {
#pragma unroll
        for (int i = 0; i < N; i++)
            value[i] = fmaxf(value[i], -127.0f);
    }
#pragma unroll
    for (int i = 0; i < N; i++)
        value[i] += 12582912.0f;
}

/* The low bytes of four floats. */
__device__ __forceinline__ uint32_t wgmma_pack(const float *value)
{
    return ft_pack_codes(__float_as_uint(value[0]), __float_as_uint(value[1]),
                         __float_as_uint(value[2]), __float_as_uint(value[3]));
}

/* Four sums of a row to codes. */
template <ft_epilogue EPILOGUE>
__device__ __forceinline__ uint32_t wgmma_codes(const int32_t (&sum)[4], const float (&scale)[4],
                                                const float (&bias)[4], float inverse)
{
    float value[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        value[i] = (float) sum[i];
    wgmma_dequantize<4>(value, scale, bias);
    if (EPILOGUE == FT_EPILOGUE_GELU)
        wgmma_gelu<4>(value);
    wgmma_round<4, EPILOGUE != FT_EPILOGUE_GELU>(value, inverse);
    return wgmma_pack(value);
}

/* What a tile fetches ahead for its floats; nothing for codes. */
template <int COLS, typename Y> struct wgmma_added {
    __device__ __forceinline__ wgmma_added(const wgmma_args &, const wgmma_place &, int) {}
};

/* Rows of the team begin at `row`. */
template <int ROWS, int COLS, ft_epilogue EPILOGUE>
__device__ __forceinline__ void wgmma_finish(const wgmma_args &a, const wgmma_place &place, int row,
                                             const int32_t (&sums)[ROWS / 64][COLS / 2],
                                             const wgmma_columns<COLS> &columns,
                                             const wgmma_added<COLS, int8_t> &, wgmma_lines &)
{
    wgmma_quads_reader<COLS> ahead(columns);
    float inverse = a.y_inverse[place.which];
    int left = place.end - place.col - wgmma_lane_col(), down = a.m - row - wgmma_lane_row();
    int8_t *y = (int8_t *) a.y[place.which] + (size_t) (row + wgmma_lane_row()) * a.part +
                (place.col + wgmma_lane_col() - place.which * a.part);
#pragma unroll
    for (int block = 0; block < COLS / 32; block++) {
        uint32_t word[ROWS / 32][2];
#pragma unroll
        for (int quad = 0; quad < 2; quad++) {
            if (block + 1 < COLS / 32 || quad == 0)
                ahead.fetch(quad ^ 1);
#pragma unroll
            for (int half = 0; half < ROWS / 32; half++) {
                int32_t own[4];
#pragma unroll
                for (int i = 0; i < 4; i++)
                    own[i] = wgmma_sum(sums[half / 2], block, half % 2, 4 * quad + i);
                word[half][quad] =
                    wgmma_codes<EPILOGUE>(own, ahead.scale[quad], ahead.bias[quad], inverse);
            }
        }
#pragma unroll
        for (int half = 0; half < ROWS / 32; half++) {
            int skip = half / 2 * 64 + half % 2 * 8;
            wgmma_store(y + (size_t) skip * a.part + block * 32,
                        uint2{ word[half][0], word[half][1] }, block * 32 < left && skip < down);
        }
    }
}

#endif
#endif
