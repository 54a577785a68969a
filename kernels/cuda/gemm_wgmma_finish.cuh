/*
 * gemm_wgmma_finish.cuh - from the sums of a warpgroup to y, for the products of sm_90a.
 *
 * Two ways.  The fast one works in registers, for y with whole groups of 8 columns, one scale for
 * all rows, and no activation or the gelu of int8 plans.  The general one goes through shared
 * memory and takes one element at a time, whatever the product asks for.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_WGMMA_FINISH_CUH
#define FT_KERNELS_CUDA_GEMM_WGMMA_FINISH_CUH

#include "kernels/cuda/epilogue.cuh"
#include "kernels/cuda/gemm_wgmma_args.cuh"

#include <cuda_fp16.h>

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
template <int N> __device__ __forceinline__ int32_t wgmma_sum(const int32_t (&sums)[N], int block,
                                                              int h, int i)
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
__device__ __forceinline__ void wgmma_dequantize(float *value, const float *scale, const float *bias)
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
template <int N, bool low>
__device__ __forceinline__ void wgmma_round(float *value, float inverse)
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
__device__ __forceinline__ void
wgmma_finish(const wgmma_args &a, const wgmma_place &place, int row,
             const int32_t (&sums)[ROWS / 64][COLS / 2], const wgmma_columns<COLS> &columns,
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

/* ---- A tile of floats ----------------------------------------------------------------------- */

/* The lane's place when a warp moves lines: chunk l % 8 of rows l / 8, + 4, + 8, + 12. */
__device__ __forceinline__ int wgmma_line_row()
{
    return threadIdx.x % 32 / 8;
}

/* The team's row that this is. */
__device__ __forceinline__ int wgmma_line_team_row()
{
    return threadIdx.x % WGMMA_TEAM / 32 * 16 + wgmma_line_row();
}

/*
 * The residual, in registers: only there does it cost neither a wait behind the product nor room in
 * the ring.  It comes as y is stored: lines of 128 bytes.
 */
template <int COLS> struct wgmma_added<COLS, float> {
    uint4 v[COLS / 32][4];

    __device__ __forceinline__ wgmma_added(const wgmma_args &a, const wgmma_place &place, int row)
    {
        if (a.residual == NULL)
            return;
        int left = place.end - place.col - threadIdx.x % 8 * 4;
        int down = a.m - row - wgmma_line_team_row();
        const float *from = (const float *) a.residual +
                            (size_t) (row + wgmma_line_team_row()) * a.n + place.col +
                            threadIdx.x % 8 * 4;
#pragma unroll
        for (int block = 0; block < COLS / 32; block++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                v[block][i] = wgmma_fetch(from + (size_t) (4 * i) * a.n + block * 32,
                                          block * 32 < left && 4 * i < down);
    }
};

/* Chunks lie so that neither the lanes that write sums nor those that read lines share banks. */
__device__ __forceinline__ int wgmma_float_chunk(int row, int chunk)
{
    return chunk ^ row % 8;
}

__device__ __forceinline__ uint4 wgmma_words(float a, float b, float c, float d)
{
    return { __float_as_uint(a), __float_as_uint(b), __float_as_uint(c), __float_as_uint(d) };
}

__device__ __forceinline__ float4 wgmma_floats(uint4 v)
{
    return { __uint_as_float(v.x), __uint_as_float(v.y), __uint_as_float(v.z),
             __uint_as_float(v.w) };
}

template <int ROWS, int COLS, ft_epilogue EPILOGUE>
__device__ __forceinline__ void
wgmma_finish(const wgmma_args &a, const wgmma_place &place, int row,
             const int32_t (&sums)[1][COLS / 2], const wgmma_columns<COLS> &columns,
             const wgmma_added<COLS, float> &added, wgmma_lines &lines)
{
    wgmma_columns_reader<COLS> ahead(columns);
    int left = place.end - place.col - threadIdx.x % 8 * 4;
    int down = a.m - row - wgmma_line_team_row();
    float *y = (float *) a.y[place.which] + (size_t) (row + wgmma_line_team_row()) * a.part +
               (place.col - place.which * a.part + threadIdx.x % 8 * 4);
#pragma unroll
    for (int block = 0; block < COLS / 32; block++) {
        ahead.fetch(block + 1);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int r = threadIdx.x % 32 / 4 + 8 * h, c = threadIdx.x % 4 * 2;
            float v[8];
#pragma unroll
            for (int i = 0; i < 8; i++)
                v[i] = ft_finish<EPILOGUE>(wgmma_sum(sums[0], block, h, i),
                                           ahead.scale[block % 2][i], ahead.bias[block % 2][i],
                                           FT_ACT_NONE);
            lines[r][wgmma_float_chunk(r, c)] = wgmma_words(v[0], v[1], v[2], v[3]);
            lines[r][wgmma_float_chunk(r, c + 1)] = wgmma_words(v[4], v[5], v[6], v[7]);
        }
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int r = wgmma_line_row() + 4 * i;
            float4 value = wgmma_floats(lines[r][wgmma_float_chunk(r, threadIdx.x % 8)]);
            if (a.residual != NULL) {
                float4 term = wgmma_floats(added.v[block][i]);
                value = { value.x + term.x, value.y + term.y, value.z + term.z, value.w + term.w };
            }
            wgmma_store(y + (size_t) (4 * i) * a.part + block * 32,
                        wgmma_words(value.x, value.y, value.z, value.w),
                        block * 32 < left && 4 * i < down);
        }
        __syncwarp();
    }
}

/* ---- A tile of halves ----------------------------------------------------------------------- */

/* The residual is added before halves are rounded: it comes as sums lie in the lane. */
template <int COLS> struct wgmma_added<COLS, __half> {
    uint4 v[COLS / 32][2];

    __device__ __forceinline__ wgmma_added(const wgmma_args &a, const wgmma_place &place, int row)
    {
        if (a.residual == NULL)
            return;
        int left = place.end - place.col - wgmma_lane_col(), down = a.m - row - wgmma_lane_row();
        const __half *from = (const __half *) a.residual + (size_t) (row + wgmma_lane_row()) * a.n +
                             place.col + wgmma_lane_col();
#pragma unroll
        for (int block = 0; block < COLS / 32; block++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                v[block][h] = wgmma_fetch(from + (size_t) (8 * h) * a.n + block * 32,
                                          block * 32 < left && 8 * h < down);
    }
};

/* A line is 64 columns: two blocks. */
__device__ __forceinline__ int wgmma_half_chunk(int row, int chunk)
{
    return chunk ^ (row % 2 * 4 + row / 2 % 4);
}

__device__ __forceinline__ uint4 wgmma_halves(const float (&v)[8])
{
    __half2 pair[4];
    uint4 words;
#pragma unroll
    for (int i = 0; i < 4; i++)
        pair[i] = __floats2half2_rn(v[2 * i], v[2 * i + 1]);
    memcpy(&words, pair, sizeof words);
    return words;
}

/* value += eight halves */
__device__ __forceinline__ void wgmma_add_halves(float (&value)[8], uint4 words)
{
    __half terms[8];
    memcpy(terms, &words, sizeof terms);
#pragma unroll
    for (int i = 0; i < 8; i++)
        value[i] += __half2float(terms[i]);
}

template <int ROWS, int COLS, ft_epilogue EPILOGUE>
__device__ __forceinline__ void
wgmma_finish(const wgmma_args &a, const wgmma_place &place, int row,
             const int32_t (&sums)[1][COLS / 2], const wgmma_columns<COLS> &columns,
             const wgmma_added<COLS, __half> &added, wgmma_lines &lines)
{
    wgmma_columns_reader<COLS> ahead(columns);
    int left = place.end - place.col - threadIdx.x % 8 * 8;
    int down = a.m - row - wgmma_line_team_row();
    __half *y = (__half *) a.y[place.which] + (size_t) (row + wgmma_line_team_row()) * a.part +
                (place.col - place.which * a.part + threadIdx.x % 8 * 8);
#pragma unroll
    for (int block = 0; block < COLS / 32; block++) {
        ahead.fetch(block + 1);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int r = threadIdx.x % 32 / 4 + 8 * h, c = threadIdx.x % 4 + block % 2 * 4;
            float v[8];
#pragma unroll
            for (int i = 0; i < 8; i++)
                v[i] = ft_finish<EPILOGUE>(wgmma_sum(sums[0], block, h, i),
                                           ahead.scale[block % 2][i], ahead.bias[block % 2][i],
                                           FT_ACT_NONE);
            if (a.residual != NULL)
                wgmma_add_halves(v, added.v[block][h]);
            lines[r][wgmma_half_chunk(r, c)] = wgmma_halves(v);
        }
        if (block % 2 == 0)
            continue;
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int r = wgmma_line_row() + 4 * i;
            uint4 value = lines[r][wgmma_half_chunk(r, threadIdx.x % 8)];
            wgmma_store(y + (size_t) (4 * i) * a.part + block / 2 * 64, value,
                        block / 2 * 64 < left && 4 * i < down);
        }
        __syncwarp();
    }
}

/* ---- A tile, whatever is asked -------------------------------------------------------------- */

__device__ __forceinline__ void wgmma_put(int8_t *y, float value, float inverse)
{
    *y = (int8_t) ft_code_bits(value, inverse);
}

__device__ __forceinline__ void wgmma_put(__half *y, float value, float)
{
    *y = __float2half_rn(value);
}

__device__ __forceinline__ void wgmma_put(float *y, float value, float)
{
    *y = value;
}

template <typename Y>
__device__ __forceinline__ void wgmma_finish_one(const wgmma_args &a, int row, int col, int32_t sum,
                                                 float scale, float bias)
{
    if (a.x_scales != NULL)
        scale = a.x_scales[row] * scale;
    float value = ft_finish<FT_EPILOGUE_ANY>(sum, scale, bias, a.activation);
    if (a.residual != NULL)
        value += (float) ((const Y *) a.residual)[(size_t) row * a.n + col];
    int which = col / a.part;
    Y *y = (Y *) a.y[which] + (size_t) row * a.part + (col - which * a.part);
    wgmma_put(y, value, a.y_inverse[which]);
}

/* Rows of the copy in shared memory are 4 elements longer, so that lanes meet in no bank. */
template <int ROWS, int COLS, typename Y>
__device__ __forceinline__ void
wgmma_finish_any(const wgmma_args &a, const wgmma_place &place,
                 const int32_t (&sums)[ROWS / 64][COLS / 2], const wgmma_columns<COLS> &columns,
                 int32_t (&copy)[ROWS][COLS + 4], int team)
{
#pragma unroll
    for (int half = 0; half < ROWS / 32; half++)
#pragma unroll
        for (int block = 0; block < COLS / 32; block++)
#pragma unroll
            for (int i = 0; i < 8; i++)
                copy[half / 2 * 64 + half % 2 * 8 + wgmma_lane_row()]
                    [32 * block + wgmma_lane_col() + i] =
                        wgmma_sum(sums[half / 2], block, half % 2, i);
    wgmma_sync_team(team);
    for (int i = threadIdx.x % WGMMA_TEAM; i < ROWS * COLS; i += WGMMA_TEAM) {
        int down = i / COLS, right = i % COLS;
        if (place.row + down < a.m && place.col + right < place.end)
            wgmma_finish_one<Y>(a, place.row + down, place.col + right, copy[down][right],
                                columns.scale[right], columns.bias[right]);
    }
}

#endif
#endif
