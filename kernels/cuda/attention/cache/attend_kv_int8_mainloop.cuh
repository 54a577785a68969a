/*
 * attend_kv_int8_mainloop.cuh - inside attend_kv_int8.cu: the arithmetic of one key tile of a warp.
 *
 * All MMAs are int8. Keys and values enter as they are stored. Queries and softmax weights are
 * quantized to 15 and 14 bits and occupy two columns of the MMA each: 128 times the one plus the
 * other. Cached values therefore need no conversion, and the integer sums are exact. A query is
 * scaled by its largest element, and the weights by the largest of a head's 32 keys. The error in
 * the sum is 2^-15 of the largest element, where f16 would have 2^-12 of each element.
 *
 * Rows of a tile are 128 bytes with the 16-byte chunk p at p ^ (row % 8). Row g of an MMA is key g,
 * and key g ^ 4 for odd g. This avoids bank conflicts for keys (row g, chunks t and t + 4) and for
 * values (chunk g, the rows that lane t of an MMA holds).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_ATTENTION_CACHE_ATTEND_KV_INT8_MAINLOOP_CUH
#define FT_KERNELS_CUDA_ATTENTION_CACHE_ATTEND_KV_INT8_MAINLOOP_CUH

#include "kernels/cuda/attention/cache/attend_kv_int8_pipeline.cuh"
#include "kernels/cuda/ptx/mma.cuh"

#define MAGIC 12582912.0f /* 1.5 * 2^23: x plus this has the nearest integer in its low bits */
enum { MAGIC_BITS = 0x4b400000 };

/* The key, of sixteen, in row g of an MMA. Row g + 8 holds that key plus 8. */
static __device__ __forceinline__ int key_of(int g)
{
    return g ^ (g & 1) << 2;
}

static __device__ __forceinline__ uint4 piece_at(const char *tile, int row, int piece)
{
    return *(const uint4 *) (tile + row * WIDTH + ((piece ^ (row & 7)) << 4));
}

/* ---- Queries -------------------------------------------------------------------------------- */

/*
 * Quantized queries of four heads: the fragments of lane l of an MMA, and the scale of each head.
 */
typedef struct queries {
    uint32_t word[8][32];
    float scale[4];
} queries;

/* Elements of a query as stored: chunks t and t + 4, eight elements at a time. */
typedef struct query_bits {
    uint4 eight[4];
} query_bits;

/* Loads head g / 2 of a set. */
static __device__ __forceinline__ void fetch_query(query_bits *to, const ft_attend_job &a,
                                                   const unit &u, int set)
{
    int lane = (int) threadIdx.x % 32, t = lane % 4, head = 4 * set + lane / 8;
    size_t row = (size_t) u.sequence * (size_t) a.heads + (size_t) (u.first_head + head);
    const uint4 *from = (const uint4 *) a.q + row * (WIDTH / 8);
#pragma unroll
    for (int i = 0; i < 4; i++)
        to->eight[i] = head < u.heads ? from[(t + i / 2 * 4) * 2 + i % 2] : make_uint4(0, 0, 0, 0);
}

/* Quantizes the query; this lane keeps the high (g even) or low bytes. */
static __device__ __forceinline__ void make_query(queries *to, const query_bits &from,
                                                  const ft_attend_job &a)
{
    constexpr float most = 16256.0f; /* 127 * 128 */
    int lane = (int) threadIdx.x % 32, g = lane / 4, t = lane % 4;
    float v[32], amax = 0.0f;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        ft_bits<8> bits = { { from.eight[i].x, from.eight[i].y, from.eight[i].z,
                              from.eight[i].w } };
        if (a.q_dtype == FT_F16)
            ft_unpack_as<FT_F16, 8>(v + 8 * i, bits);
        else
            ft_unpack_as<FT_BF16, 8>(v + 8 * i, bits);
    }
#pragma unroll
    for (int i = 0; i < 32; i++)
        amax = fmaxf(amax, fabsf(v[i]) < INFINITY ? fabsf(v[i]) : INFINITY); /* or NaN */
    amax = fmaxf(amax, __shfl_xor_sync(~0u, amax, 1));
    amax = fmaxf(amax, __shfl_xor_sync(~0u, amax, 2));
    float inverse = amax > 0.0f ? most / amax : 0.0f;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        uint32_t byte[4];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            int whole = __float_as_int(fmaf(v[4 * i + k], inverse, MAGIC)) - MAGIC_BITS;
            int high = (whole + 64) >> 7;
            byte[k] = (uint32_t) (g % 2 == 0 ? high : whole - 128 * high);
        }
        to->word[i][lane] = __byte_perm(__byte_perm(byte[0], byte[1], 0x0040),
                                        __byte_perm(byte[2], byte[3], 0x0040), 0x5410);
    }
    if (t == 0 && g % 2 == 0)
        to->scale[g / 2] = amax < INFINITY ? amax / most * a.score_scale : NAN;
}

/* ---- Sums ----------------------------------------------------------------------------------- */

/* For head t of each set, output elements from 16g on. `sum` covers this lane's keys only. */
template <int sets> struct partial_sums {
    float most[sets], sum[sets], y[sets][16];
};

/* s[.][i]: score of key 8i + permuted_key(g) for head t of each set, as integers. */
template <int sets>
static __device__ __forceinline__ void score(float s[sets][4], const char *keys,
                                             const uint32_t q[sets][8])
{
    int lane = (int) threadIdx.x % 32, t = lane % 4, row = key_of(lane / 4);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        int32_t c[sets][4] = {};
#pragma unroll
        for (int j = 0; j < 2; j++) {
            uint4 low = piece_at(keys, 16 * i + row, t + 4 * j);
            uint4 high = piece_at(keys, 16 * i + row + 8, t + 4 * j);
            const uint32_t first[4] = { low.x, high.x, low.y, high.y };
            const uint32_t second[4] = { low.z, high.z, low.w, high.w };
#pragma unroll
            for (int set = 0; set < sets; set++) {
                ft_mma_codes(c[set], first, q[set][4 * j], q[set][4 * j + 1]);
                ft_mma_codes(c[set], second, q[set][4 * j + 2], q[set][4 * j + 3]);
            }
        }
#pragma unroll
        for (int set = 0; set < sets; set++) {
            s[set][2 * i] = (float) (128 * c[set][0] + c[set][1]);
            s[set][2 * i + 1] = (float) (128 * c[set][2] + c[set][3]);
        }
    }
}

/* Scales of one key tile; its weights are integer multiples of `unit`. */
typedef struct weighing {
    float shrink, unit; /* `rescale` multiplies the previous sums */
} weighing;

/*
 * Online softmax: the scores of a head become weights 2^(score - max), then quantized weights
 * scaled by the value scales.
 */
static __device__ __forceinline__ weighing weigh(uint32_t whole[4], float s[4], float *most,
                                                 float *sum, const float value_scale[4],
                                                 uint32_t seen)
{
    float before = *most, after = before, worth = 0x1p-100f;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        s[i] = seen >> i & 1 ? s[i] : -INFINITY;
        after = fmaxf(after, s[i]);
    }
    *most = after = ft_attend_largest(after);
    weighing w = { ft_power_of_two(before - after) };
    *sum *= w.shrink;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float p = ft_power_of_two(s[i] - after);
        *sum += p;
        s[i] = seen >> i & 1 ? p * value_scale[i] : 0.0f;
        worth = fmaxf(worth, s[i]);
    }
    /* 2^n <= max_weight < 2^(n + 1): integers below 2^14 */
    uint32_t bits = __float_as_uint(ft_attend_largest(worth)) & 0x7f800000;
    constexpr float less = 16383.0f / 16384.0f;
    float scale = __uint_as_float(0x7f000000u + (13u << 23) - bits) * less;
    w.unit = __uint_as_float(bits - (13u << 23)) * (1.0f / less);
#pragma unroll
    for (int i = 0; i < 4; i++)
        whole[i] = __float_as_uint(fmaf(s[i], scale, MAGIC));
    return w;
}

/* Transposes an 8 x 8 matrix of 16-bit words. A lane holds words of row g before and after. */
static __device__ __forceinline__ uint32_t turn(uint32_t word)
{
    uint32_t turned;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(turned) : "r"(word));
    return turned;
}

/* 14-bit weights of two keys as MMA operands: the high bytes, then the low bytes, transposed. */
static __device__ __forceinline__ uint32_t operand_of(uint32_t first, uint32_t second)
{
    uint32_t both = __byte_perm(first, second, 0x5410);
    return turn(__byte_perm(both >> 7 & 0x007f007f, both & 0x007f007f, 0x6420));
}

/* Transposes a 4 x 4 matrix of bytes. */
static __device__ __forceinline__ void turn_bytes(uint32_t out[4], const uint32_t in[4])
{
    uint32_t a = __byte_perm(in[0], in[1], 0x5140), b = __byte_perm(in[2], in[3], 0x5140);
    uint32_t c = __byte_perm(in[0], in[1], 0x7362), d = __byte_perm(in[2], in[3], 0x7362);
    out[0] = __byte_perm(a, b, 0x5410);
    out[1] = __byte_perm(a, b, 0x7632);
    out[2] = __byte_perm(c, d, 0x5410);
    out[3] = __byte_perm(c, d, 0x7632);
}

/* Loads chunk g of the four values, of sixteen, that lane t of an MMA holds. */
static __device__ __forceinline__ void load_values(uint32_t out[4][4], const char *values)
{
    int lane = (int) threadIdx.x % 32, g = lane / 4, even = 2 * (lane % 4), odd = key_of(even + 1);
    const int row[4] = { even, even + 8, odd, odd + 8 };
#pragma unroll
    for (int i = 0; i < 4; i++) {
        uint4 piece = piece_at(values, row[i], g);
        out[i][0] = piece.x;
        out[i][1] = piece.y;
        out[i][2] = piece.z;
        out[i][3] = piece.w;
    }
}

template <int sets>
static __device__ __forceinline__ void mix(partial_sums<sets> *sums, const char *values,
                                           const uint32_t weights[sets][2], const weighing w[sets])
{
    uint32_t v[2][4][4];
#pragma unroll
    for (int i = 0; i < 2; i++)
        load_values(v[i], values + i * 16 * WIDTH);
#pragma unroll
    for (int k = 0; k < 4; k++) { /* elements from 4k on of the chunk */
        uint32_t turned[2][4];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const uint32_t square[4] = { v[i][0][k], v[i][1][k], v[i][2][k], v[i][3][k] };
            turn_bytes(turned[i], square);
        }
#pragma unroll
        for (int half = 0; half < 4; half += 2) {
            const uint32_t codes[4] = { turned[0][half], turned[0][half + 1], turned[1][half],
                                        turned[1][half + 1] };
#pragma unroll
            for (int set = 0; set < sets; set++) {
                int32_t c[4] = {};
                float *y = &sums->y[set][4 * k + half];
                ft_mma_codes(c, codes, weights[set][0], weights[set][1]);
                y[0] = fmaf((float) (128 * c[0] + c[1]), w[set].unit, y[0] * w[set].shrink);
                y[1] = fmaf((float) (128 * c[2] + c[3]), w[set].unit, y[1] * w[set].shrink);
            }
        }
    }
}

/* Processes KEY_TILE keys from `base` on, of which first .. last are visible to the row. */
template <int sets>
static __device__ __forceinline__ void
add_step(partial_sums<sets> *sums, const char *stage, const float *scales,
         const uint32_t q[sets][8], const float q_scale[sets], int base, int first, int last)
{
    int row = key_of((int) threadIdx.x % 32 / 4);
    float s[sets][4], key_scale[4], value_scale[4];
    uint32_t weights[sets][2], seen = 0;
    weighing w[sets];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int key = 8 * i + row;
        key_scale[i] = scales[key];
        value_scale[i] = scales[STEP + key];
        seen |= (uint32_t) (base + key >= first && base + key <= last) << i;
    }
    score<sets>(s, stage, q);
#pragma unroll
    for (int set = 0; set < sets; set++) {
        uint32_t whole[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            s[set][i] *= q_scale[set] * key_scale[i];
        w[set] = weigh(whole, s[set], &sums->most[set], &sums->sum[set], value_scale, seen);
        weights[set][0] = operand_of(whole[0], whole[1]);
        weights[set][1] = operand_of(whole[2], whole[3]);
    }
    mix<sets>(sums, stage + TILE, weights, w);
}

#endif
