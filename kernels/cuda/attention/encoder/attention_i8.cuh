/*
 * attention_i8.cuh - int8 attention (kernels/softmax.h) for one warp: scores, quantized softmax
 * weights, context.
 *
 * A warp has one or two tiles of 16 queries and processes 32 keys at a time. In the accumulator of
 * m16n8k32, lane t of a row holds keys 2t, 2t + 1, 2t + 8 and 2t + 9 of every 16. Their four
 * quantized weights are one operand word of the next MMA if the rows of values are read in the same
 * order, which changes no integer sum. Only the row maximum crosses lanes, twice per row.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_ATTENTION_ENCODER_ATTENTION_I8_CUH
#define FT_KERNELS_CUDA_ATTENTION_ENCODER_ATTENTION_I8_CUH

#include "kernels/cuda/attention/attention.cuh"
#include "kernels/cuda/epilogue.cuh"
#include "kernels/cuda/ptx/mma.cuh"
#include "kernels/softmax.h"

enum { WARPS = 4, THREADS = 32 * WARPS };
enum { TILE = 64 };  /* rows of keys or values per copy */
enum { CHUNK = 32 }; /* keys per computation */

/* Accumulators of 16 queries and a chunk of keys. */
typedef struct scores {
    int32_t of[CHUNK / 8][4];
} scores;

/* ---- Scores -------------------------------------------------------------------------------- */

/*
 * Elements of a head may be read in any order that queries and keys share: a lane reads 16
 * contiguous bytes for two MMAs. `smem` has TILE rows. `volatile` keeps the compiler from loading
 * four words of one row at once: these would be in adjacent registers and need a move for every MMA
 * that combines words of two rows.
 */
template <int width>
static __device__ __forceinline__ void load_queries(uint32_t q[][4], const uint8_t *area, int row)
{
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < width / 32; i++) {
        bool whole = i < width / 64 * 2;
        int piece = i / 2 * 4 + (whole ? t : t / 2), within = whole ? i % 2 * 8 : t % 2 * 8;
        const uint8_t *word = area + ft_panel_offset<width, TILE>(row + g, piece) + within;
        int below = 8 * (whole ? 64 : 32);
        q[i][0] = *(const volatile uint32_t *) word;
        q[i][1] = *(const volatile uint32_t *) (word + below);
        q[i][2] = *(const volatile uint32_t *) (word + 4);
        q[i][3] = *(const volatile uint32_t *) (word + below + 4);
    }
}

/*
 * Scores of the keys from row `first` of a tile on. Row g starts from start[0], row g + 8 from
 * start[1].
 */
template <int width, int blocks>
static __device__ __forceinline__ void score(scores out[blocks], const int32_t start[blocks][2],
                                             const uint32_t q[blocks][width / 32][4],
                                             const uint8_t *tile, int first)
{
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const uint8_t *whole = tile + ft_panel_offset<64, TILE>(g, t) + first * 64;
    const uint8_t *half =
        tile + ft_panel_offset<width, TILE>(g, width / 64 * 4 + t / 2) + t % 2 * 8 + first * 32;
#pragma unroll
    for (int j = 0; j < CHUNK / 8; j++) {
#pragma unroll
        for (int b = 0; b < blocks; b++) {
            int32_t *of = out[b].of[j];
            of[0] = of[1] = start[b][0];
            of[2] = of[3] = start[b][1];
        }
#pragma unroll
        for (int p = 0; p < width / 64; p++) {
            uint4 k = *(const uint4 *) (whole + j * 8 * 64 + p * TILE * 64);
#pragma unroll
            for (int b = 0; b < blocks; b++)
                ft_mma_codes(out[b].of[j], q[b][2 * p], k.x, k.y);
#pragma unroll
            for (int b = 0; b < blocks; b++)
                ft_mma_codes(out[b].of[j], q[b][2 * p + 1], k.z, k.w);
        }
        if (width % 64 != 0) {
            uint2 k = *(const uint2 *) (half + j * 8 * 32);
#pragma unroll
            for (int b = 0; b < blocks; b++)
                ft_mma_codes(out[b].of[j], q[b][width / 32 - 1], k.x, k.y);
        }
    }
}

/* Masks keys from `keys` on, which do not exist: their scores become `masked`. */
static __device__ __forceinline__ void forget(scores *c, int keys, int32_t nothing)
{
#pragma unroll
    for (int i = 0; i < CHUNK / 2; i++)
        if (8 * (i / 4) + 2 * ((int) threadIdx.x % 4) + i % 2 >= keys)
            c->of[i / 4][i % 4] = nothing;
}

static __device__ __forceinline__ void raise_most(int32_t most[2], const scores *c)
{
#pragma unroll
    for (int i = 0; i < CHUNK / 2; i++)
        most[i / 2 % 2] = max(most[i / 2 % 2], c->of[i / 4][i % 4]);
}

/* Reduces the maximum of the lanes to the maximum of the rows. */
static __device__ __forceinline__ void settle_most(int32_t most[2])
{
#pragma unroll
    for (int row = 0; row < 2; row++) {
        most[row] = max(most[row], __shfl_xor_sync(~0u, most[row], 1));
        most[row] = max(most[row], __shfl_xor_sync(~0u, most[row], 2));
    }
}

/* ---- Quantized softmax weights -------------------------------------------------------------- */

/*
 * Sums that start from the bits of 2^24 minus the maximum score are floats: 2^24 - distance. The
 * scores of 256 products of int8 values differ by less than 2^23, and in that range floats are
 * integers.
 */
#define FROM_LARGEST 0x4b800000u

/*
 * 1 - 2^24 step is exact, so u is rounded once, as in ft_softmax_code(). NaN and negative values
 * become 0.
 */
static __device__ __forceinline__ float unrounded_code(int32_t score, float step, float start)
{
    const float c[] = FT_SOFTMAX_POLYNOMIAL;
    float u = __saturatef(fmaf(__int_as_float(score), step, start)), q = c[0];
#pragma unroll
    for (unsigned i = 1; i < sizeof c / sizeof c[0]; i++)
        q = fmaf(q, u, c[i]);
    q = q * q;
    return q * q;
}

/* Rounds four floats half to even and packs them as int8, the first in the lowest byte. */
static __device__ __forceinline__ uint32_t pack_rounded(float a, float b, float c, float d)
{
    uint32_t word;
    asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, 0;"
        : "=r"(word)
        : "r"(__float2int_rn(d)), "r"(__float2int_rn(c)));
    asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %0;"
        : "+r"(word)
        : "r"(__float2int_rn(b)), "r"(__float2int_rn(a)));
    return word;
}

/*
 * Quantizes the weights into an operand of 16 queries and 32 keys, in the key order of
 * accumulate_pv().
 */
static __device__ __forceinline__ void encode(uint32_t codes[4], const scores *c, float step)
{
    float start = fmaf(-step, 0x1p24f, 1.0f);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int32_t *a = &c->of[i / 2 * 2][i % 2 * 2], *b = &c->of[i / 2 * 2 + 1][i % 2 * 2];
        codes[i] =
            pack_rounded(unrounded_code(a[0], step, start), unrounded_code(a[1], step, start),
                         unrounded_code(b[0], step, start), unrounded_code(b[1], step, start));
    }
}

/* ---- Context ------------------------------------------------------------------------------- */

/*
 * Accumulators of 16 queries: weights times values, 2j for the even columns of 16 and 2j + 1 for
 * the odd ones. The sum of the weights is an MMA with ones, so all its columns are equal.
 */
template <int width> struct sums {
    int32_t context[width / 8][4];
    int32_t total[4];
};

/*
 * sums += weights times values, from row `first` of a tile on. The operand needs four keys of one
 * column in a word. ldmatrix loads pairs of columns of two keys; two byte permutes of two such
 * words give the words of the even and the odd column, for keys 2t, 2t + 1, 2t + 8 and 2t + 9.
 */
template <int width, int blocks>
static __device__ __forceinline__ void mix(sums<width> to[blocks], const uint32_t codes[blocks][4],
                                           const uint8_t *tile, int first)
{
    int row = first + (int) threadIdx.x % 32;
#pragma unroll
    for (int b = 0; b < blocks; b++)
        ft_mma_codes(to[b].total, codes[b], 0x01010101, 0x01010101);
#pragma unroll
    for (int j = 0; j < width / 16; j++) {
        uint32_t pair[4];
        ft_load_transposed(pair, tile + ft_panel_offset<width, TILE>(row, j));
        uint32_t even[2] = { __byte_perm(pair[0], pair[1], 0x6420),
                             __byte_perm(pair[2], pair[3], 0x6420) };
        uint32_t odd[2] = { __byte_perm(pair[0], pair[1], 0x7531),
                            __byte_perm(pair[2], pair[3], 0x7531) };
#pragma unroll
        for (int b = 0; b < blocks; b++) {
            ft_mma_codes(to[b].context[2 * j], codes[b], even[0], even[1]);
            ft_mma_codes(to[b].context[2 * j + 1], codes[b], odd[0], odd[1]);
        }
    }
}

/*
 * The quantized context before rounding: ft_quantize(), where the saturating conversion clamps the
 * upper end.
 */
static __device__ __forceinline__ float code_of(int32_t sum, float factor, const ft_cuda_heads &a)
{
    return fmaxf(ft_dequantize(sum, factor, 0.0f) * a.y_inverse, -127.0f);
}

/*
 * The result goes through shared memory. Lanes hold scattered groups of four columns; the unrolled
 * code that wrote these at any alignment was most of the kernel's code and a fifth of its time.
 */

/*
 * Writes 16 queries. Even and odd columns are interleaved: lane t has columns 4t .. 4t + 3 of each
 * 16.
 */
template <int width>
static __device__ __forceinline__ void put_codes(uint8_t *rows, int stride, const sums<width> *of,
                                                 const ft_cuda_heads &a)
{
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < width / 8; i++) {
        int j = i / 2, row = i % 2;
        float factor = ft_softmax_factor(a.value_scale, (float) of->total[2 * row]);
        const int32_t *even = &of->context[2 * j][2 * row], *odd = &of->context[2 * j + 1][2 * row];
        *(uint32_t *) (rows + (g + 8 * row) * stride + 16 * j + 4 * t) =
            pack_rounded(code_of(even[0], factor, a), code_of(odd[0], factor, a),
                         code_of(even[1], factor, a), code_of(odd[1], factor, a));
    }
}

template <int width>
static __device__ __forceinline__ void put_floats(uint8_t *rows, int stride, const sums<width> *of,
                                                  const ft_cuda_heads &a)
{
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < width / 8; i++) {
        int j = i / 2, row = i % 2;
        float factor = ft_softmax_factor(a.value_scale, (float) of->total[2 * row]);
        const int32_t *even = &of->context[2 * j][2 * row], *odd = &of->context[2 * j + 1][2 * row];
        *(float4 *) (rows + (g + 8 * row) * stride + 64 * j + 16 * t) =
            make_float4(ft_dequantize(even[0], factor, 0.0f), ft_dequantize(odd[0], factor, 0.0f),
                        ft_dequantize(even[1], factor, 0.0f), ft_dequantize(odd[1], factor, 0.0f));
    }
}

/* A warp copies rows of `bytes` bytes from shared memory; `chunks` chunks fill the widest row. */
template <typename piece, int pieces>
static __device__ __forceinline__ void copy_rows(uint8_t *to, size_t to_stride, const uint8_t *from,
                                                 int stride, int rows, int bytes)
{
#pragma unroll 1
    for (int i = (int) threadIdx.x % 32; i < rows * pieces; i += 32) {
        int row = i / pieces, at = i % pieces * (int) sizeof(piece);
        if (at < bytes)
            *(piece *) (to + row * to_stride + at) = *(const piece *) (from + row * stride + at);
    }
}

/*
 * Writes the warp's queries from `first` on. `smem` is the CTA's shared memory, which is free now.
 */
template <int width, int blocks>
static __device__ __forceinline__ void store(const ft_cuda_heads &a, const ft_attention_task &task,
                                             int first, const sums<width> of[blocks], uint8_t *area)
{
    bool codes = a.y_inverse > 0.0f;
    int element = codes ? 1 : 4, bytes = a.head_size * element;
    int stride = codes ? width + 16 : 4 * width; /* avoids bank conflicts of int8 rows g */
    uint8_t *rows = area + first * 4 * width;
#pragma unroll
    for (int b = 0; b < blocks; b++)
        if (codes)
            put_codes<width>(rows + 16 * b * stride, stride, &of[b], a);
        else
            put_floats<width>(rows + 16 * b * stride, stride, &of[b], a);
    __syncwarp();
    size_t y_stride = (size_t) a.heads * (size_t) bytes;
    size_t row = task.first + (size_t) (task.query + first);
    uint8_t *y = (uint8_t *) a.y + row * y_stride + task.column * (size_t) element;
    int count = min(16 * blocks, task.queries - first);
    if (codes && bytes % 16 == 0)
        copy_rows<uint4, width / 16>(y, y_stride, rows, stride, count, bytes);
    else if (codes)
        copy_rows<uint8_t, width>(y, y_stride, rows, stride, count, bytes);
    else
        copy_rows<uint32_t, width>(y, y_stride, rows, stride, count, bytes);
}

#endif
