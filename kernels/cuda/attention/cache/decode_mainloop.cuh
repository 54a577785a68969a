/*
 * decode_mainloop.cuh - inside decode.cu: the arithmetic of one key tile of a warp.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_ATTENTION_CACHE_DECODE_MAINLOOP_CUH
#define FT_KERNELS_CUDA_ATTENTION_CACHE_DECODE_MAINLOOP_CUH

#include "kernels/cuda/attention/cache/decode_load.cuh"
#include "kernels/cuda/ptx/mma.cuh"

/* ---- Operands ------------------------------------------------------------------------------- */

/* Converts four int8 values to f16 or bf16, two words of two; exact. */
template <bool bf16> static __device__ __forceinline__ void widen(uint32_t out[2], uint32_t codes)
{
    if (bf16) {
        out[0] = ft_pack_halves<FT_BF16>(ft_unpack_code(codes, 0), ft_unpack_code(codes, 1));
        out[1] = ft_pack_halves<FT_BF16>(ft_unpack_code(codes, 2), ft_unpack_code(codes, 3));
        return;
    }
    /* An int8 value plus 128 in the low byte of the f16 number 1024 is 1024 plus that sum. */
    const __half2 offset = __floats2half2_rn(1152.0f, 1152.0f);
    uint32_t positive = codes ^ 0x80808080;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        uint32_t word = __byte_perm(positive, 0x64646464, i == 0 ? 0x4140 : 0x4342);
        __half2 pair = __hsub2(*(__half2 *) &word, offset);
        out[i] = *(uint32_t *) &pair;
    }
}

/* Words of two elements from two rows each, the first row in the low half. */
template <ft_dtype stored, bool bf16>
static __device__ __forceinline__ void pair_up(uint32_t *out, uint32_t first, uint32_t second)
{
    if (stored == FT_I8) { /* four elements */
        widen<bf16>(out, __byte_perm(first, second, 0x5140));
        widen<bf16>(out + 2, __byte_perm(first, second, 0x7362));
    } else { /* two elements */
        out[0] = __byte_perm(first, second, 0x5410);
        out[1] = __byte_perm(first, second, 0x7632);
    }
}

/* Transposes an 8 x 8 matrix of 16-bit values. A lane holds words of row g before and after. */
static __device__ __forceinline__ uint32_t turn(uint32_t word)
{
    uint32_t turned;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(turned) : "r"(word));
    return turned;
}

/*
 * Loads four elements of a query in the order in which the lanes hold the keys: operands of MMAs
 * with k = 16.
 */
template <ft_dtype stored, int width>
static __device__ __forceinline__ void load_queries(uint32_t q[width / 16][2],
                                                    const ft_attend_job &a, const columns &of)
{
    constexpr int run = 16 / form<stored, width>::element; /* elements of a chunk of a key */
    int g = (int) threadIdx.x % 32 / 4;
    const uint16_t *from = (const uint16_t *) a.q + column_at(a, of, g);
#pragma unroll
    for (int i = 0; i < width / 16; i++) {
        int at = ((int) threadIdx.x % 4 + i / (run / 4) * 4) * run + i % (run / 4) * 4;
        uint2 word = make_uint2(0, 0);
        if (g < of.count && at < a.head_size)
            word = *(const uint2 *) (from + at);
        q[i][0] = word.x;
        q[i][1] = word.y;
    }
}

/* ---- Softmax and partial sums --------------------------------------------------------------- */

/* Of heads 2t and 2t + 1. `sum` covers this lane's keys only; `y` is in units of `unit`. */
template <int width> struct partial_sums {
    float most[2], sum[2], unit;
    float y[width / 16][4]; /* [0], [1]: one element for both heads; [2], [3]: the next element */
};

/* The words of a key for one MMA: two words of an f16 chunk, or one word of int8 values. */
template <ft_dtype stored, bool bf16>
static __device__ __forceinline__ void key_words(uint32_t out[2], const uint32_t piece[4], int i)
{
    if (stored == FT_I8) {
        widen<bf16>(out, piece[i]);
        return;
    }
    out[0] = piece[2 * i];
    out[1] = piece[2 * i + 1];
}

/* s[i]: keys 16i + g and 16i + g + 8 for heads 2t and 2t + 1. */
template <ft_dtype stored, int width, bool bf16>
static __device__ __forceinline__ void score(float s[][4], const reading<stored, width> &r,
                                             const uint32_t q[width / 16][2])
{
    typedef form<stored, width> f;
    constexpr int products = width / 16 / f::key_pieces; /* MMAs per chunk */
    int lane = (int) threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < f::keys / 16; i++) {
        s[i][0] = s[i][1] = s[i][2] = s[i][3] = 0.0f;
#pragma unroll
        for (int j = 0; j < f::key_pieces; j++) {
            uint4 low = r.key[2 * i][j][lane], high = r.key[2 * i + 1][j][lane];
            const uint32_t lows[4] = { low.x, low.y, low.z, low.w };
            const uint32_t highs[4] = { high.x, high.y, high.z, high.w };
#pragma unroll
            for (int k = 0; k < products; k++) {
                uint32_t even[2], odd[2];
                key_words<stored, bf16>(even, lows, k);
                key_words<stored, bf16>(odd, highs, k);
                const uint32_t keys[4] = { even[0], odd[0], even[1], odd[1] };
                ft_mma_halves<bf16>(s[i], keys, q[products * j + k][0], q[products * j + k][1]);
            }
        }
    }
}

/*
 * Online softmax: scores become weights 2^(score - max), and the previous sums are rescaled to the
 * new maximum.
 */
template <ft_dtype stored, int width>
static __device__ __forceinline__ void weigh(float s[][4], partial_sums<width> *sums,
                                             const scales<form<stored, width>::keys> &scale,
                                             const ft_attend_job &a, const share &of, int base)
{
    typedef form<stored, width> f;
    int g = (int) threadIdx.x % 32 / 4;
    float most[2] = { sums->most[0], sums->most[1] }, worth = 0.0f, ratio = 1.0f, inverse = 1.0f;
#pragma unroll
    for (int i = 0; i < f::keys / 8; i++) {
        int key = base + 8 * i + g;
        float factor = stored == FT_I8 ? a.score_scale * scale.key[i] : a.score_scale;
#pragma unroll
        for (int head = 0; head < 2; head++) {
            float *at = &s[i / 2][i % 2 * 2 + head];
            *at = sees(of, key) ? *at * factor : -INFINITY;
            most[head] = fmaxf(most[head], *at);
        }
        if (stored == FT_I8)
            worth = fmaxf(worth, scale.value[i]);
    }
    if (stored == FT_I8) {
        /* 2^n, at most the largest scale; a scale of amax / 127 leaves room for 2^-n */
        uint32_t bits = __float_as_uint(fmaxf(ft_attend_largest(worth), sums->unit)) & 0x7f800000;
        inverse = bits > 0 ? __uint_as_float(0x7f000000 - bits) : 0.0f;
        ratio = sums->unit * inverse;
        sums->unit = __uint_as_float(bits);
    }
#pragma unroll
    for (int head = 0; head < 2; head++) {
        most[head] = ft_attend_largest(most[head]);
        float shrink = ft_power_of_two(sums->most[head] - most[head]);
        float sum = sums->sum[head] * shrink;
        sums->most[head] = most[head];
#pragma unroll
        for (int i = 0; i < f::keys / 8; i++) {
            float *at = &s[i / 2][i % 2 * 2 + head];
            *at = ft_power_of_two(*at - most[head]);
            sum += *at;
        }
        sums->sum[head] = sum;
#pragma unroll
        for (int j = 0; j < width / 16; j++) {
            sums->y[j][head] *= shrink * ratio;
            sums->y[j][2 + head] *= shrink * ratio;
        }
    }
    if (stored == FT_I8) {
#pragma unroll
        for (int i = 0; i < f::keys / 8; i++)
#pragma unroll
            for (int head = 0; head < 2; head++)
                s[i / 2][i % 2 * 2 + head] *= scale.value[i] * inverse;
    }
}

/* Loads chunk i of four values, as words. */
template <int words>
static __device__ __forceinline__ void fetch(uint32_t out[words], const uint32_t *from)
{
    if (words == 4)
        *(uint4 *) out = *(const uint4 *) from;
    else
        *(uint2 *) out = *(const uint2 *) from;
}

template <ft_dtype stored, int width, bool bf16>
static __device__ __forceinline__ void mix(partial_sums<width> *sums, const float s[][4],
                                           const reading<stored, width> &r)
{
    typedef form<stored, width> f;
    constexpr ft_dtype halves = bf16 ? FT_BF16 : FT_F16;
    constexpr int words = f::value_bytes / 4, pairs = 2 / f::element; /* element pairs per word */
    int lane = (int) threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < f::keys / 16; i++) {
        uint32_t low = turn(ft_pack_halves<halves>(s[i][0], s[i][1]));
        uint32_t high = turn(ft_pack_halves<halves>(s[i][2], s[i][3]));
#pragma unroll
        for (int j = 0; j < f::value_pieces; j++) {
            __align__(16) uint32_t v[4][words];
#pragma unroll
            for (int k = 0; k < 4; k++)
                fetch<words>(v[k], r.value[4 * i + k][j][lane]);
#pragma unroll
            for (int k = 0; k < words; k++) {
                uint32_t near[4], far[4];
                pair_up<stored, bf16>(near, v[0][k], v[1][k]);
                pair_up<stored, bf16>(far, v[2][k], v[3][k]);
#pragma unroll
                for (int l = 0; l < pairs; l++) {
                    const uint32_t values[4] = { near[2 * l], near[2 * l + 1], far[2 * l],
                                                 far[2 * l + 1] };
                    ft_mma_halves<bf16>(sums->y[(j * words + k) * pairs + l], values, low, high);
                }
            }
        }
    }
}

#endif
