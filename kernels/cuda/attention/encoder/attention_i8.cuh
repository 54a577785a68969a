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
    int32_t acc[CHUNK / 8][4];
} scores;

/* ---- Scores -------------------------------------------------------------------------------- */

/*
 * Elements of a head may be read in any order that queries and keys share: a lane reads 16
 * contiguous bytes for two MMAs. `smem` has TILE rows. `volatile` keeps the compiler from loading
 * four words of one row at once: these would be in adjacent registers and need a move for every MMA
 * that combines words of two rows.
 */
template <int width>
static __device__ __forceinline__ void load_queries(uint32_t q[][4], const uint8_t *smem, int row)
{
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < width / 32; i++) {
        bool full_panel = i < width / 64 * 2;
        int chunk = i / 2 * 4 + (full_panel ? t : t / 2),
            within = full_panel ? i % 2 * 8 : t % 2 * 8;
        const uint8_t *word = smem + ft_panel_offset<width, TILE>(row + g, chunk) + within;
        int below = 8 * (full_panel ? 64 : 32);
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
template <int width, int m_tiles>
static __device__ __forceinline__ void
compute_qk(scores out[m_tiles], const int32_t start[m_tiles][2],
           const uint32_t q[m_tiles][width / 32][4], const uint8_t *tile, int first)
{
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const uint8_t *full_panel = tile + ft_panel_offset<64, TILE>(g, t) + first * 64;
    const uint8_t *half_panel =
        tile + ft_panel_offset<width, TILE>(g, width / 64 * 4 + t / 2) + t % 2 * 8 + first * 32;
#pragma unroll
    for (int j = 0; j < CHUNK / 8; j++) {
#pragma unroll
        for (int b = 0; b < m_tiles; b++) {
            int32_t *acc = out[b].acc[j];
            acc[0] = acc[1] = start[b][0];
            acc[2] = acc[3] = start[b][1];
        }
#pragma unroll
        for (int p = 0; p < width / 64; p++) {
            uint4 k = *(const uint4 *) (full_panel + j * 8 * 64 + p * TILE * 64);
#pragma unroll
            for (int b = 0; b < m_tiles; b++)
                ft_mma_i8(out[b].acc[j], q[b][2 * p], k.x, k.y);
#pragma unroll
            for (int b = 0; b < m_tiles; b++)
                ft_mma_i8(out[b].acc[j], q[b][2 * p + 1], k.z, k.w);
        }
        if (width % 64 != 0) {
            uint2 k = *(const uint2 *) (half_panel + j * 8 * 32);
#pragma unroll
            for (int b = 0; b < m_tiles; b++)
                ft_mma_i8(out[b].acc[j], q[b][width / 32 - 1], k.x, k.y);
        }
    }
}

/* Masks keys from `keys` on, which do not exist: their scores become `masked`. */
static __device__ __forceinline__ void mask_tail(scores *c, int keys, int32_t masked)
{
#pragma unroll
    for (int i = 0; i < CHUNK / 2; i++)
        if (8 * (i / 4) + 2 * ((int) threadIdx.x % 4) + i % 2 >= keys)
            c->acc[i / 4][i % 4] = masked;
}

static __device__ __forceinline__ void update_max(int32_t row_max[2], const scores *c)
{
#pragma unroll
    for (int i = 0; i < CHUNK / 2; i++)
        row_max[i / 2 % 2] = max(row_max[i / 2 % 2], c->acc[i / 4][i % 4]);
}

/* Reduces the maximum of the lanes to the maximum of the rows. */
static __device__ __forceinline__ void reduce_max(int32_t row_max[2])
{
#pragma unroll
    for (int row = 0; row < 2; row++) {
        row_max[row] = max(row_max[row], __shfl_xor_sync(~0u, row_max[row], 1));
        row_max[row] = max(row_max[row], __shfl_xor_sync(~0u, row_max[row], 2));
    }
}

/* ---- Quantized softmax weights -------------------------------------------------------------- */

/*
 * Sums that start from the bits of 2^24 minus the maximum score are floats: 2^24 - distance. The
 * scores of 256 products of int8 values differ by less than 2^23, and in that range floats are
 * integers.
 */
#define MAX_BIAS 0x4b800000u

/*
 * ft_softmax_code() in the lowest byte of the result. 1 - 2^24 step is exact, so u is rounded once,
 * as there. NaN and negative values become 0.
 */
static __device__ __forceinline__ uint32_t softmax_code(int32_t score, float step, float start)
{
    const float c[] = FT_SOFTMAX_CHAIN;
    float q = __saturatef(fmaf(__int_as_float(score), step, start));
#pragma unroll
    for (unsigned i = 0; i < sizeof c / sizeof c[0]; i++)
        q = fmaf(q, q, c[i]);
    return __float_as_uint(fmaf(q, q, FT_SOFTMAX_ROUND));
}

/* Packs the lowest bytes of four words, the first in the lowest byte. */
static __device__ __forceinline__ uint32_t pack_low_bytes(uint32_t a, uint32_t b, uint32_t c,
                                                          uint32_t d)
{
    return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
}

/* Rounds four floats half to even and packs them as int8, the first in the lowest byte. */
static __device__ __forceinline__ uint32_t pack_i8x4(float a, float b, float c, float d)
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
static __device__ __forceinline__ void quantize_weights(uint32_t quantized[4], const scores *c,
                                                        float step)
{
    float start = fmaf(-step, 0x1p24f, 1.0f);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int32_t *a = &c->acc[i / 2 * 2][i % 2 * 2], *b = &c->acc[i / 2 * 2 + 1][i % 2 * 2];
        quantized[i] =
            pack_low_bytes(softmax_code(a[0], step, start), softmax_code(a[1], step, start),
                           softmax_code(b[0], step, start), softmax_code(b[1], step, start));
    }
}

/* ---- Context ------------------------------------------------------------------------------- */

/*
 * Accumulators of 16 queries: weights times values, 2j for the even columns of 16 and 2j + 1 for
 * the odd ones. The sum of the weights is an MMA with ones, so all its columns are equal.
 */
template <int width> struct context_acc {
    int32_t context[width / 8][4];
    int32_t total[4];
};

/*
 * sums += weights times values, from row `first` of a tile on. The operand needs four keys of one
 * column in a word. ldmatrix loads pairs of columns of two keys; two byte permutes of two such
 * words give the words of the even and the odd column, for keys 2t, 2t + 1, 2t + 8 and 2t + 9.
 */
template <int width, int m_tiles>
static __device__ __forceinline__ void accumulate_pv(context_acc<width> to[m_tiles],
                                                     const uint32_t quantized[m_tiles][4],
                                                     const uint8_t *tile, int first)
{
    int row = first + (int) threadIdx.x % 32;
#pragma unroll
    for (int b = 0; b < m_tiles; b++)
        ft_mma_i8(to[b].total, quantized[b], 0x01010101, 0x01010101);
#pragma unroll
    for (int j = 0; j < width / 16; j++) {
        uint32_t pair[4];
        ft_ldmatrix_x4_trans(pair, tile + ft_panel_offset<width, TILE>(row, j));
        uint32_t even[2] = { __byte_perm(pair[0], pair[1], 0x6420),
                             __byte_perm(pair[2], pair[3], 0x6420) };
        uint32_t odd[2] = { __byte_perm(pair[0], pair[1], 0x7531),
                            __byte_perm(pair[2], pair[3], 0x7531) };
#pragma unroll
        for (int b = 0; b < m_tiles; b++) {
            ft_mma_i8(to[b].context[2 * j], quantized[b], even[0], even[1]);
            ft_mma_i8(to[b].context[2 * j + 1], quantized[b], odd[0], odd[1]);
        }
    }
}

/*
 * The quantized context before rounding: ft_quantize(), where the saturating conversion clamps the
 * upper end.
 */
static __device__ __forceinline__ float quantize_context(int32_t sum, float factor,
                                                         const ft_cuda_attention_args &a)
{
    return fmaxf(ft_dequantize(sum, factor, 0.0f) * a.y_inv_scale, -FT_QUANT_MAX);
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
static __device__ __forceinline__ void stage_int8(uint8_t *rows, int stride,
                                                  const context_acc<width> *acc,
                                                  const ft_cuda_attention_args &a)
{
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < width / 8; i++) {
        int j = i / 2, row = i % 2;
        float factor = ft_softmax_factor(a.value_scale, (float) acc->total[2 * row]);
        const int32_t *even = &acc->context[2 * j][2 * row],
                      *odd = &acc->context[2 * j + 1][2 * row];
        *(uint32_t *) (rows + (g + 8 * row) * stride + 16 * j + 4 * t) =
            pack_i8x4(quantize_context(even[0], factor, a), quantize_context(odd[0], factor, a),
                      quantize_context(even[1], factor, a), quantize_context(odd[1], factor, a));
    }
}

template <int width>
static __device__ __forceinline__ void
stage_f32(uint8_t *rows, int stride, const context_acc<width> *acc, const ft_cuda_attention_args &a)
{
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < width / 8; i++) {
        int j = i / 2, row = i % 2;
        float factor = ft_softmax_factor(a.value_scale, (float) acc->total[2 * row]);
        const int32_t *even = &acc->context[2 * j][2 * row],
                      *odd = &acc->context[2 * j + 1][2 * row];
        *(float4 *) (rows + (g + 8 * row) * stride + 64 * j + 16 * t) =
            make_float4(ft_dequantize(even[0], factor, 0.0f), ft_dequantize(odd[0], factor, 0.0f),
                        ft_dequantize(even[1], factor, 0.0f), ft_dequantize(odd[1], factor, 0.0f));
    }
}

/* A warp copies rows of `bytes` bytes from shared memory; `chunks` chunks fill the widest row. */
template <typename chunk, int chunks>
static __device__ __forceinline__ void copy_rows(uint8_t *to, size_t to_stride, const uint8_t *from,
                                                 int stride, int rows, int bytes)
{
#pragma unroll 1
    for (int i = (int) threadIdx.x % 32; i < rows * chunks; i += 32) {
        int row = i / chunks, at = i % chunks * (int) sizeof(chunk);
        if (at < bytes)
            *(chunk *) (to + row * to_stride + at) = *(const chunk *) (from + row * stride + at);
    }
}

/*
 * Writes the warp's queries from `first` on. `smem` is the CTA's shared memory, which is free now.
 */
template <int width, int m_tiles>
static __device__ __forceinline__ void store(const ft_cuda_attention_args &a,
                                             const ft_attention_tile &query_tile, int first,
                                             const context_acc<width> acc[m_tiles], uint8_t *smem)
{
    bool quantized = a.y_inv_scale > 0.0f;
    int element = quantized ? 1 : 4, bytes = a.head_size * element;
    int stride = quantized ? width + 16 : 4 * width; /* avoids bank conflicts of int8 rows g */
    uint8_t *rows = smem + first * stride;
#pragma unroll
    for (int b = 0; b < m_tiles; b++)
        if (quantized)
            stage_int8<width>(rows + 16 * b * stride, stride, &acc[b], a);
        else
            stage_f32<width>(rows + 16 * b * stride, stride, &acc[b], a);
    __syncwarp();
    size_t y_stride = (size_t) a.heads * (size_t) bytes;
    size_t row = query_tile.first + (size_t) (query_tile.query + first);
    uint8_t *y = (uint8_t *) a.y + row * y_stride + query_tile.column * (size_t) element;
    int count = min(16 * m_tiles, query_tile.queries - first);
    if (quantized && bytes % 16 == 0)
        copy_rows<uint4, width / 16>(y, y_stride, rows, stride, count, bytes);
    else if (quantized)
        copy_rows<uint8_t, width>(y, y_stride, rows, stride, count, bytes);
    else
        copy_rows<uint32_t, width>(y, y_stride, rows, stride, count, bytes);
}

#endif
