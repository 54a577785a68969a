/*
 * attend_kv_int8_mainloop.cuh - inside attend_kv_int8.cu: the arithmetic of a warp's step.
 *
 * Everything is multiplied as whole numbers of 8 bits: codes as they are; queries, and weights of
 * values, as numbers of 15 and 14 bits, each in two columns of the product, 128 times one plus the
 * other.  A code needs no conversion then, and sums are exact.  The numbers of a query are parts of
 * its largest element, those of weights parts of the largest of a head's 32 keys: in the sum an
 * error of 2^-15 of the largest, where halves would have 2^-12 of each.
 *
 * Rows of tiles are 128 bytes, whose 16-byte piece p lies at p ^ (row % 8).  Row g of a product is
 * key g, and for odd g key g ^ 4: so no two lanes that read at once meet in a bank, of keys (row g,
 * pieces t, t + 4) as of values (piece g, the rows that lane t of a product has).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_ATTENTION_CACHE_ATTEND_KV_INT8_MAINLOOP_CUH
#define FT_KERNELS_CUDA_ATTENTION_CACHE_ATTEND_KV_INT8_MAINLOOP_CUH

#include "kernels/cuda/attention/cache/attend_kv_int8_pipeline.cuh"
#include "kernels/cuda/ptx/mma.cuh"

#define MAGIC 12582912.0f /* 1.5 * 2^23: a float plus this has its nearest whole number below */
enum { MAGIC_BITS = 0x4b400000 };

/* The key, of sixteen, in row g of a product; the one in row g + 8 is 8 more. */
static __device__ __forceinline__ int key_of(int g)
{
    return g ^ (g & 1) << 2;
}

static __device__ __forceinline__ uint4 piece_at(const char *tile, int row, int piece)
{
    return *(const uint4 *) (tile + row * WIDTH + ((piece ^ (row & 7)) << 4));
}

/* ---- Queries -------------------------------------------------------------------------------- */

/* Of a set of four heads: what lane l of a product has of them, and the scale of each. */
typedef struct queries {
    uint32_t word[8][32];
    float scale[4];
} queries;

/* Elements of a query as they lie in memory: of pieces t and t + 4, eight at a time. */
typedef struct query_bits {
    uint4 eight[4];
} query_bits;

/* Of head g / 2 of a set. */
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

/* The high (g even) or low bytes of it. */
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
        amax = fmaxf(amax, fabsf(v[i]) < INFINITY ? fabsf(v[i]) : INFINITY); /* NaN is too */
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

/* Of head t of each set, elements 16g .. of it; `sum` is of this lane's keys only. */
template <int sets> struct partial_sums {
    float most[sets], sum[sets], y[sets][16];
};

/* s[.][i]: key 8i + key_of(g) for head t of each set, as whole numbers. */
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

/* What a step is brought to: its weights are whole numbers of `unit`. */
typedef struct weighing {
    float shrink, unit; /* what was summed before counts `shrink` */
} weighing;

/* Scores of a head become weights 2^(score - most), then weights of codes. */
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
    /* 2^n <= worth < 2^(n + 1): whole numbers below 2^14 */
    uint32_t bits = __float_as_uint(ft_attend_largest(worth)) & 0x7f800000;
    constexpr float less = 16383.0f / 16384.0f;
    float scale = __uint_as_float(0x7f000000u + (13u << 23) - bits) * less;
    w.unit = __uint_as_float(bits - (13u << 23)) * (1.0f / less);
#pragma unroll
    for (int i = 0; i < 4; i++)
        whole[i] = __float_as_uint(fmaf(s[i], scale, MAGIC));
    return w;
}

/* An 8 x 8 matrix of words of 16 bits, turned: a lane has words of row g before and after. */
static __device__ __forceinline__ uint32_t turn(uint32_t word)
{
    uint32_t turned;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(turned) : "r"(word));
    return turned;
}

/* Weights of two keys, 14 bits each, as operands: their high bytes, then their low ones, turned. */
static __device__ __forceinline__ uint32_t operand_of(uint32_t first, uint32_t second)
{
    uint32_t both = __byte_perm(first, second, 0x5410);
    return turn(__byte_perm(both >> 7 & 0x007f007f, both & 0x007f007f, 0x6420));
}

/* A square of four words of four bytes, turned. */
static __device__ __forceinline__ void turn_bytes(uint32_t out[4], const uint32_t in[4])
{
    uint32_t a = __byte_perm(in[0], in[1], 0x5140), b = __byte_perm(in[2], in[3], 0x5140);
    uint32_t c = __byte_perm(in[0], in[1], 0x7362), d = __byte_perm(in[2], in[3], 0x7362);
    out[0] = __byte_perm(a, b, 0x5410);
    out[1] = __byte_perm(a, b, 0x7632);
    out[2] = __byte_perm(c, d, 0x5410);
    out[3] = __byte_perm(c, d, 0x7632);
}

/* The piece of this lane's g of the four values that its t has of sixteen. */
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
    for (int k = 0; k < 4; k++) { /* elements 4k .. of the piece */
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

/* A step: STEP keys from `base` on, of which the row sees first .. last. */
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
