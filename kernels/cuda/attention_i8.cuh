/*
 * attention_i8.cuh - the steps of attention on codes, for a warp of 16 queries: scores,
 * probabilities, context.
 *
 * The scores of m16n8k32 lie so that lane t of a row has keys 2t, 2t + 1, 2t + 8 and 2t + 9 of
 * every 16: exactly four of the 16 partial sums that define the sum of a softmax (i8_softmax.h),
 * each added in the order of the keys.  And their four codes are one word of the next product's
 * operand, if the rows of values are taken in the same order, which changes no sum of integers: so
 * nothing moves between lanes but the maximum and the last steps of the sum.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_ATTENTION_I8_CUH
#define FT_KERNELS_CUDA_ATTENTION_I8_CUH

#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/epilogue.cuh"
#include "kernels/cuda/mma.cuh"

enum { WARPS = FT_CUDA_QUERIES / 16, THREADS = 32 * WARPS };
enum { TILE = 64 }; /* keys that are copied and computed at a time */

/*
 * Sums start from the bits of 1.5 * 2^23, so they are floats already: whole numbers beside it.  The
 * sums of 256 products of codes are below 2^22.
 */
#define SEED 0x4b400000
#define SEED_VALUE 12582912.0f

/* 16 queries and a tile of keys, as the products leave them: float bits from SEED on. */
typedef struct scores {
    int32_t of[TILE / 8][4];
} scores;

/* Rows g (0) and g + 8 (1) of a warp. */
typedef struct softmax {
    float scale;      /* of scores, to exponents of 2 */
    float most[2];    /* the largest score, from SEED on */
    float part[2][4]; /* partial sums: lane t has 2t, 2t + 1, 2t + 8, 2t + 9 */
    float factor[2];  /* from exponentials to codes */
} softmax;

/* ---- Scores -----------------------------------------------------------------------------------
 */

/*
 * Elements of a head may be taken in any order that queries and keys share: a lane takes 16 bytes
 * in a row for two products.  `volatile` keeps the compiler from loading four words of one row at
 * once: they would lie beside each other, and be moved for every product that takes two rows'
 * words.
 */
template <int width>
static __device__ __forceinline__ void load_queries(uint32_t q[][4], const uint8_t *area, int row)
{
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < width / 32; i++) {
        bool whole = i < width / 64 * 2;
        int piece = i / 2 * 4 + (whole ? t : t / 2), within = whole ? i % 2 * 8 : t % 2 * 8;
        const uint8_t *word =
            area + ft_panel_offset<width, FT_CUDA_QUERIES>(row + g, piece) + within;
        int below = 8 * (whole ? 64 : 32);
        q[i][0] = *(const volatile uint32_t *) word;
        q[i][1] = *(const volatile uint32_t *) (word + below);
        q[i][2] = *(const volatile uint32_t *) (word + 4);
        q[i][3] = *(const volatile uint32_t *) (word + below + 4);
    }
}

/* Scores of a tile. */
template <int width>
static __device__ __forceinline__ void score(scores *out, const uint32_t q[][4],
                                             const uint8_t *tile)
{
    const int32_t seed[4] = { SEED, SEED, SEED, SEED };
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const uint8_t *whole = tile + ft_panel_offset<64, TILE>(g, t);
    const uint8_t *half =
        tile + ft_panel_offset<width, TILE>(g, width / 64 * 4 + t / 2) + t % 2 * 8;
#pragma unroll
    for (int j = 0; j < TILE / 8; j++) {
#pragma unroll
        for (int p = 0; p < width / 64; p++) {
            uint4 k = *(const uint4 *) (whole + j * 8 * 64 + p * TILE * 64);
            ft_mma_codes_from(out->of[j], p == 0 ? seed : out->of[j], q[2 * p], k.x, k.y);
            ft_mma_codes(out->of[j], q[2 * p + 1], k.z, k.w);
        }
        if (width % 64 != 0) {
            uint2 k = *(const uint2 *) (half + j * 8 * 32);
            ft_mma_codes_from(out->of[j], width < 64 ? seed : out->of[j], q[width / 32 - 1], k.x,
                              k.y);
        }
    }
}

/* The key of element (n, e), relative to the tile. */
static __device__ __forceinline__ int key_of(int n, int e)
{
    return 8 * n + 2 * (threadIdx.x % 4) + e % 2;
}

/* `keys` of the tile exist. */
static __device__ __forceinline__ void raise_most(int32_t most[2], const scores *c, int keys)
{
    if (keys >= TILE) {
#pragma unroll
        for (int i = 0; i < TILE / 2; i++)
            most[i / 2 % 2] = max(most[i / 2 % 2], c->of[i / 4][i % 4]);
        return;
    }
#pragma unroll
    for (int i = 0; i < TILE / 2; i++)
        if (key_of(i / 4, i % 4) < keys)
            most[i / 2 % 2] = max(most[i / 2 % 2], c->of[i / 4][i % 4]);
}

/* From the lanes' largest sums to the rows'. */
static __device__ __forceinline__ void settle_most(softmax *s, int32_t most[2])
{
#pragma unroll
    for (int row = 0; row < 2; row++) {
        most[row] = max(most[row], __shfl_xor_sync(~0u, most[row], 1));
        most[row] = max(most[row], __shfl_xor_sync(~0u, most[row], 2));
        s->most[row] = __int_as_float(most[row]);
    }
}

/* ---- Probabilities ----------------------------------------------------------------------------
 */

/*
 * ft_exp2_codes() with its bits.  Adding SEED_VALUE rounds as rintf() does, and the whole number
 * then lies in the low bits of the mantissa: rintf() itself runs at an eighth of the speed.
 */
static __device__ __forceinline__ float exp2_codes(float y)
{
    const float c[] = FT_EXP2_CODES_POLYNOMIAL;
    y = fmaxf(y, FT_EXP2_CODES_MIN);
    float shifted = y + SEED_VALUE, f = y - (shifted - SEED_VALUE), p = c[0];
#pragma unroll
    for (unsigned i = 1; i < sizeof c / sizeof c[0]; i++)
        p = fmaf(p, f, c[i]);
    return __uint_as_float(__float_as_uint(p) + (__float_as_uint(shifted) << 23));
}

/* Scores become exponentials, those of keys that do not exist 0; the sums grow. */
static __device__ __forceinline__ void exponentials(scores *c, const softmax *s, int keys)
{
#pragma unroll
    for (int i = 0; i < TILE / 2; i++) {
        int32_t *at = &c->of[i / 4][i % 4];
        *at = __float_as_int(exp2_codes((__int_as_float(*at) - s->most[i / 2 % 2]) * s->scale));
    }
    if (keys < TILE)
#pragma unroll
        for (int i = 0; i < TILE / 2; i++)
            if (key_of(i / 4, i % 4) >= keys)
                c->of[i / 4][i % 4] = 0;
}

static __device__ __forceinline__ void add_up(softmax *s, const scores *c)
{
#pragma unroll
    for (int i = 0; i < TILE / 2; i++) {
        float *part = &s->part[i / 2 % 2][i / 4 % 2 * 2 + i % 2];
        *part = *part + __int_as_float(c->of[i / 4][i % 4]);
    }
}

/* The partial sums at a distance of 8 lie in one lane, those of 4 and 2 in others. */
static __device__ __forceinline__ void settle_factor(softmax *s, float p_inverse)
{
#pragma unroll
    for (int row = 0; row < 2; row++) {
        float even = s->part[row][0] + s->part[row][2], odd = s->part[row][1] + s->part[row][3];
        even = even + __shfl_xor_sync(~0u, even, 2);
        odd = odd + __shfl_xor_sync(~0u, odd, 2);
        even = even + __shfl_xor_sync(~0u, even, 1);
        odd = odd + __shfl_xor_sync(~0u, odd, 1);
        s->factor[row] = p_inverse / (even + odd);
    }
}

/* The code in the low byte, as ft_code_bits() leaves it. */
static __device__ __forceinline__ uint32_t code_of(int32_t exponential, float factor)
{
    return __float_as_uint(fminf(__int_as_float(exponential) * factor, 127.0f) + SEED_VALUE);
}

/* The codes as operands of 16 queries and 32 keys, in the order of mix(). */
static __device__ __forceinline__ void encode(uint32_t codes[TILE / 32][4], const scores *c,
                                              const softmax *s)
{
#pragma unroll
    for (int i = 0; i < TILE / 8; i++) {
        const int32_t *a = &c->of[i / 2 * 2][i % 2 * 2], *b = &c->of[i / 2 * 2 + 1][i % 2 * 2];
        float factor = s->factor[i % 2];
        codes[i / 4][i % 4] = ft_pack_codes(code_of(a[0], factor), code_of(a[1], factor),
                                            code_of(b[0], factor), code_of(b[1], factor));
    }
}

/* ---- Context ----------------------------------------------------------------------------------
 */

/*
 * sums += codes times the values of a tile.  The operand needs four keys of one column in a word:
 * ldmatrix brings pairs of columns of two keys, and two byte permutes of two such words give the
 * words of the even and of the odd column, of keys 2t, 2t + 1, 2t + 8 and 2t + 9.  Sums 2j are of
 * the even columns of 16, 2j + 1 of the odd ones.
 */
template <int width>
static __device__ __forceinline__ void mix(int32_t sums[][4], const uint32_t codes[TILE / 32][4],
                                           const uint8_t *tile)
{
#pragma unroll
    for (int i = 0; i < TILE / 32; i++)
#pragma unroll
        for (int j = 0; j < width / 16; j++) {
            uint32_t pair[4];
            int row = 32 * i + (int) threadIdx.x % 32;
            ft_load_transposed(pair, tile + ft_panel_offset<width, TILE>(row, j));
            ft_mma_codes(sums[2 * j], codes[i], __byte_perm(pair[0], pair[1], 0x6420),
                         __byte_perm(pair[2], pair[3], 0x6420));
            ft_mma_codes(sums[2 * j + 1], codes[i], __byte_perm(pair[0], pair[1], 0x7531),
                         __byte_perm(pair[2], pair[3], 0x7531));
        }
}

static __device__ __forceinline__ float context(const ft_cuda_heads &a, int32_t sum)
{
    return ft_dequantize(sum, a.y_scale, 0.0f);
}

/* Columns `column` .. + 3 of a head, of which those exist that lie below its size. */
static __device__ __forceinline__ void store_four(const ft_cuda_heads &a, size_t at, int column,
                                                  const int32_t sum[4])
{
    bool whole = a.head_size % 4 == 0;
    if (column >= a.head_size)
        return;
    if (a.y_inverse > 0.0f) {
        uint32_t word = ft_pack_codes(ft_code_bits(context(a, sum[0]), a.y_inverse),
                                      ft_code_bits(context(a, sum[1]), a.y_inverse),
                                      ft_code_bits(context(a, sum[2]), a.y_inverse),
                                      ft_code_bits(context(a, sum[3]), a.y_inverse));
        uint8_t *y = (uint8_t *) a.y + at;
        if (whole)
            *(uint32_t *) y = word;
        else
            for (int i = 0; i < 4 && column + i < a.head_size; i++)
                y[i] = (uint8_t) (word >> (8 * i));
        return;
    }
    float *y = (float *) a.y + at;
    if (whole)
        *(float4 *) y = make_float4(context(a, sum[0]), context(a, sum[1]), context(a, sum[2]),
                                    context(a, sum[3]));
    else
        for (int i = 0; i < 4 && column + i < a.head_size; i++)
            y[i] = context(a, sum[i]);
}

/* Even and odd columns come together: lane t has columns 4t .. 4t + 3 of each 16. */
template <int width>
static __device__ __forceinline__ void store(const ft_cuda_heads &a, const ft_attention_task &task,
                                             const int32_t sums[][4])
{
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, warp = threadIdx.x / 32;
    size_t cols = (size_t) a.heads * (size_t) a.head_size;
#pragma unroll
    for (int row = 0; row < 2; row++) {
        int query = warp * 16 + g + 8 * row;
        size_t at = (task.first + (size_t) (task.query + query)) * cols + task.column;
        if (query < task.queries)
#pragma unroll
            for (int j = 0; j < width / 16; j++) {
                const int32_t *even = &sums[2 * j][2 * row], *odd = &sums[2 * j + 1][2 * row];
                const int32_t four[4] = { even[0], odd[0], even[1], odd[1] };
                store_four(a, at + (size_t) (16 * j + 4 * t), 16 * j + 4 * t, four);
            }
    }
}

#endif
