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
template <bool bf16>
static __device__ __forceinline__ void dequantize_x4(uint32_t out[2], uint32_t quantized)
{
    if (bf16) {
        out[0] = ft_pack_f16x2<FT_BF16>(ft_unpack_i8(quantized, 0), ft_unpack_i8(quantized, 1));
        out[1] = ft_pack_f16x2<FT_BF16>(ft_unpack_i8(quantized, 2), ft_unpack_i8(quantized, 3));
        return;
    }
    /* An int8 value plus 128 in the low byte of the f16 number 1024 is 1024 plus that sum. */
    const __half2 offset = __floats2half2_rn(1152.0f, 1152.0f);
    uint32_t positive = quantized ^ 0x80808080;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        uint32_t word = __byte_perm(positive, 0x64646464, i == 0 ? 0x4140 : 0x4342);
        __half2 pair = __hsub2(*(__half2 *) &word, offset);
        out[i] = *(uint32_t *) &pair;
    }
}

/* Words of two elements from two rows each, the first row in the low half. */
template <ft_dtype kv_dtype, bool bf16>
static __device__ __forceinline__ void interleave_rows(uint32_t *out, uint32_t first,
                                                       uint32_t second)
{
    if (kv_dtype == FT_I8) { /* four elements */
        dequantize_x4<bf16>(out, __byte_perm(first, second, 0x5140));
        dequantize_x4<bf16>(out + 2, __byte_perm(first, second, 0x7362));
    } else { /* two elements */
        out[0] = __byte_perm(first, second, 0x5410);
        out[1] = __byte_perm(first, second, 0x7632);
    }
}

/* Transposes an 8 x 8 matrix of 16-bit values. A lane holds words of row g before and after. */
static __device__ __forceinline__ uint32_t transpose_8x8(uint32_t word)
{
    uint32_t transposed;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(transposed) : "r"(word));
    return transposed;
}

/*
 * Loads four elements of a query in the order in which the lanes hold the keys: operands of MMAs
 * with k = 16.
 */
template <ft_dtype kv_dtype, int width>
static __device__ __forceinline__ void
load_queries(uint32_t q[width / 16][2], const ft_attend_kv_params &a, const head_columns &of)
{
    constexpr int chunk_elements =
        16 / decode_traits<kv_dtype, width>::element; /* elements of a chunk of a key */
    int g = (int) threadIdx.x % 32 / 4;
    const uint16_t *from = (const uint16_t *) a.q + column_offset(a, of, g);
#pragma unroll
    for (int i = 0; i < width / 16; i++) {
        int at = ((int) threadIdx.x % 4 + i / (chunk_elements / 4) * 4) * chunk_elements +
                 i % (chunk_elements / 4) * 4;
        uint2 word = make_uint2(0, 0);
        if (g < of.count && at < a.head_size)
            word = *(const uint2 *) (from + at);
        q[i][0] = word.x;
        q[i][1] = word.y;
    }
}

/* ---- Softmax and partial sums --------------------------------------------------------------- */

/* Of heads 2t and 2t + 1. `sum` covers this lane's keys only; `y` is in units of `unit`. */
template <int width> struct partial_acc {
    float row_max[2], sum[2], unit;
    float y[width / 16][4]; /* [0], [1]: one element for both heads; [2], [3]: the next element */
};

/* The words of a key for one MMA: two words of an f16 chunk, or one word of int8 values. */
template <ft_dtype kv_dtype, bool bf16>
static __device__ __forceinline__ void key_operand(uint32_t out[2], const uint32_t chunk[4], int i)
{
    if (kv_dtype == FT_I8) {
        dequantize_x4<bf16>(out, chunk[i]);
        return;
    }
    out[0] = chunk[2 * i];
    out[1] = chunk[2 * i + 1];
}

/* s[i]: keys 16i + g and 16i + g + 8 for heads 2t and 2t + 1. */
template <ft_dtype kv_dtype, int width, bool bf16>
static __device__ __forceinline__ void compute_qk(float s[][4], const kv_tile<kv_dtype, width> &r,
                                                  const uint32_t q[width / 16][2])
{
    typedef decode_traits<kv_dtype, width> f;
    constexpr int mmas = width / 16 / f::key_chunks; /* MMAs per chunk */
    int lane = (int) threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < f::keys / 16; i++) {
        s[i][0] = s[i][1] = s[i][2] = s[i][3] = 0.0f;
#pragma unroll
        for (int j = 0; j < f::key_chunks; j++) {
            uint4 low = r.key[2 * i][j][lane], high = r.key[2 * i + 1][j][lane];
            const uint32_t lows[4] = { low.x, low.y, low.z, low.w };
            const uint32_t highs[4] = { high.x, high.y, high.z, high.w };
#pragma unroll
            for (int k = 0; k < mmas; k++) {
                uint32_t even[2], odd[2];
                key_operand<kv_dtype, bf16>(even, lows, k);
                key_operand<kv_dtype, bf16>(odd, highs, k);
                const uint32_t keys[4] = { even[0], odd[0], even[1], odd[1] };
                ft_mma_f16<bf16>(s[i], keys, q[mmas * j + k][0], q[mmas * j + k][1]);
            }
        }
    }
}

/*
 * Online softmax: scores become weights 2^(score - max), and the previous sums are rescaled to the
 * new maximum.
 */
template <ft_dtype kv_dtype, int width>
static __device__ __forceinline__ void
online_softmax(float s[][4], partial_acc<width> *acc,
               const scales<decode_traits<kv_dtype, width>::keys> &scale,
               const ft_attend_kv_params &a, const split_range &of, int base)
{
    typedef decode_traits<kv_dtype, width> f;
    int g = (int) threadIdx.x % 32 / 4;
    float row_max[2] = { acc->row_max[0], acc->row_max[1] }, max_scale = 0.0f, ratio = 1.0f,
          inverse = 1.0f;
#pragma unroll
    for (int i = 0; i < f::keys / 8; i++) {
        int key = base + 8 * i + g;
        float factor = kv_dtype == FT_I8 ? a.score_scale * scale.key[i] : a.score_scale;
#pragma unroll
        for (int head = 0; head < 2; head++) {
            float *at = &s[i / 2][i % 2 * 2 + head];
            *at = is_visible(of, key) ? *at * factor : -INFINITY;
            row_max[head] = fmaxf(row_max[head], *at);
        }
        if (kv_dtype == FT_I8)
            max_scale = fmaxf(max_scale, scale.value[i]);
    }
    if (kv_dtype == FT_I8) {
        /* 2^n, at most the largest scale; a scale of amax / 127 leaves room for 2^-n */
        uint32_t bits = __float_as_uint(fmaxf(ft_column_max(max_scale), acc->unit)) & 0x7f800000;
        inverse = bits > 0 ? __uint_as_float(0x7f000000 - bits) : 0.0f;
        ratio = acc->unit * inverse;
        acc->unit = __uint_as_float(bits);
    }
#pragma unroll
    for (int head = 0; head < 2; head++) {
        row_max[head] = ft_column_max(row_max[head]);
        float rescale = ft_exp2_approx(acc->row_max[head] - row_max[head]);
        float sum = acc->sum[head] * rescale;
        acc->row_max[head] = row_max[head];
#pragma unroll
        for (int i = 0; i < f::keys / 8; i++) {
            float *at = &s[i / 2][i % 2 * 2 + head];
            *at = ft_exp2_approx(*at - row_max[head]);
            sum += *at;
        }
        acc->sum[head] = sum;
#pragma unroll
        for (int j = 0; j < width / 16; j++) {
            acc->y[j][head] *= rescale * ratio;
            acc->y[j][2 + head] *= rescale * ratio;
        }
    }
    if (kv_dtype == FT_I8) {
#pragma unroll
        for (int i = 0; i < f::keys / 8; i++)
#pragma unroll
            for (int head = 0; head < 2; head++)
                s[i / 2][i % 2 * 2 + head] *= scale.value[i] * inverse;
    }
}

/* Loads chunk i of four values, as words. */
template <int words>
static __device__ __forceinline__ void load_words(uint32_t out[words], const uint32_t *from)
{
    if (words == 4)
        *(uint4 *) out = *(const uint4 *) from;
    else
        *(uint2 *) out = *(const uint2 *) from;
}

template <ft_dtype kv_dtype, int width, bool bf16>
static __device__ __forceinline__ void accumulate_pv(partial_acc<width> *acc, const float s[][4],
                                                     const kv_tile<kv_dtype, width> &r)
{
    typedef decode_traits<kv_dtype, width> f;
    constexpr ft_dtype f16_dtype = bf16 ? FT_BF16 : FT_F16;
    constexpr int words = f::value_bytes / 4, pairs = 2 / f::element; /* element pairs per word */
    int lane = (int) threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < f::keys / 16; i++) {
        uint32_t low = transpose_8x8(ft_pack_f16x2<f16_dtype>(s[i][0], s[i][1]));
        uint32_t high = transpose_8x8(ft_pack_f16x2<f16_dtype>(s[i][2], s[i][3]));
#pragma unroll
        for (int j = 0; j < f::value_chunks; j++) {
            __align__(16) uint32_t v[4][words];
#pragma unroll
            for (int k = 0; k < 4; k++)
                load_words<words>(v[k], r.value[4 * i + k][j][lane]);
#pragma unroll
            for (int k = 0; k < words; k++) {
                uint32_t near_words[4], far_words[4];
                interleave_rows<kv_dtype, bf16>(near_words, v[0][k], v[1][k]);
                interleave_rows<kv_dtype, bf16>(far_words, v[2][k], v[3][k]);
#pragma unroll
                for (int l = 0; l < pairs; l++) {
                    const uint32_t values[4] = { near_words[2 * l], near_words[2 * l + 1],
                                                 far_words[2 * l], far_words[2 * l + 1] };
                    ft_mma_f16<bf16>(acc->y[(j * words + k) * pairs + l], values, low, high);
                }
            }
        }
    }
}

#endif
