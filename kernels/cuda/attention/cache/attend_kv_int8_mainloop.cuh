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

#define ROUND_MAGIC                                                                                \
    12582912.0f /* 1.5 * 2^23: x plus this has the nearest integer in its low bits */
enum { ROUND_MAGIC_BITS = 0x4b400000 };

/* The key, of sixteen, in row g of an MMA. Row g + 8 holds that key plus 8. */
static __device__ __forceinline__ int permuted_key(int g)
{
    return g ^ (g & 1) << 2;
}

static __device__ __forceinline__ uint4 load_chunk(const char *tile, int row, int chunk)
{
    return *(const uint4 *) (tile + row * HEAD_DIM + ((chunk ^ (row & 7)) << 4));
}

/* ---- Queries -------------------------------------------------------------------------------- */

/*
 * Quantized queries of four heads: the fragments of lane l of an MMA, and the scale of each head.
 */
typedef struct quantized_queries {
    uint32_t word[8][32];
    float scale[4];
} quantized_queries;

/* Elements of a query as stored: chunks t and t + 4, eight elements at a time. */
typedef struct raw_query {
    uint4 x8[4];
} raw_query;

/* Loads head g / 2 of a set. */
static __device__ __forceinline__ void load_query(raw_query *to, const ft_attend_kv_params &a,
                                                  const unit &u, int head_set)
{
    int lane = (int) threadIdx.x % 32, t = lane % 4, head = 4 * head_set + lane / 8;
    size_t row = (size_t) u.sequence * (size_t) a.heads + (size_t) (u.first_head + head);
    const uint4 *from = (const uint4 *) a.q + row * (HEAD_DIM / 8);
#pragma unroll
    for (int i = 0; i < 4; i++)
        to->x8[i] = head < u.heads ? from[(t + i / 2 * 4) * 2 + i % 2] : make_uint4(0, 0, 0, 0);
}

/* Quantizes the query; this lane keeps the high (g even) or low bytes. */
static __device__ __forceinline__ void quantize_query(quantized_queries *to, const raw_query &from,
                                                      const ft_attend_kv_params &a)
{
    constexpr float row_max = 16256.0f; /* 127 * 128 */
    int lane = (int) threadIdx.x % 32, g = lane / 4, t = lane % 4;
    float v[32], amax = 0.0f;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        ft_raw_vec<8> bits = { { from.x8[i].x, from.x8[i].y, from.x8[i].z, from.x8[i].w } };
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
    float inverse = amax > 0.0f ? row_max / amax : 0.0f;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        uint32_t bytes[4];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            int quantized =
                __float_as_int(fmaf(v[4 * i + k], inverse, ROUND_MAGIC)) - ROUND_MAGIC_BITS;
            int high = (quantized + 64) >> 7;
            bytes[k] = (uint32_t) (g % 2 == 0 ? high : quantized - 128 * high);
        }
        to->word[i][lane] = __byte_perm(__byte_perm(bytes[0], bytes[1], 0x0040),
                                        __byte_perm(bytes[2], bytes[3], 0x0040), 0x5410);
    }
    if (t == 0 && g % 2 == 0)
        to->scale[g / 2] = amax < INFINITY ? amax / row_max * a.score_scale : NAN;
}

/* ---- Sums ----------------------------------------------------------------------------------- */

/* For head t of each set, output elements from 16g on. `sum` covers this lane's keys only. */
template <int head_sets> struct partial_acc {
    float row_max[head_sets], sum[head_sets], y[head_sets][16];
};

/* s[.][i]: score of key 8i + permuted_key(g) for head t of each set, as integers. */
template <int head_sets>
static __device__ __forceinline__ void compute_qk(float s[head_sets][4], const char *keys,
                                                  const uint32_t q[head_sets][8])
{
    int lane = (int) threadIdx.x % 32, t = lane % 4, row = permuted_key(lane / 4);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        int32_t c[head_sets][4] = {};
#pragma unroll
        for (int j = 0; j < 2; j++) {
            uint4 low = load_chunk(keys, 16 * i + row, t + 4 * j);
            uint4 high = load_chunk(keys, 16 * i + row + 8, t + 4 * j);
            const uint32_t first[4] = { low.x, high.x, low.y, high.y };
            const uint32_t second[4] = { low.z, high.z, low.w, high.w };
#pragma unroll
            for (int head_set = 0; head_set < head_sets; head_set++) {
                ft_mma_i8(c[head_set], first, q[head_set][4 * j], q[head_set][4 * j + 1]);
                ft_mma_i8(c[head_set], second, q[head_set][4 * j + 2], q[head_set][4 * j + 3]);
            }
        }
#pragma unroll
        for (int head_set = 0; head_set < head_sets; head_set++) {
            s[head_set][2 * i] = (float) (128 * c[head_set][0] + c[head_set][1]);
            s[head_set][2 * i + 1] = (float) (128 * c[head_set][2] + c[head_set][3]);
        }
    }
}

/* Scales of one key tile; its weights are integer multiples of `unit`. */
typedef struct tile_scales {
    float rescale, unit; /* `rescale` multiplies the previous sums */
} tile_scales;

/*
 * Online softmax: the scores of a head become weights 2^(score - max), then quantized weights
 * scaled by the value scales.
 */
static __device__ __forceinline__ tile_scales online_softmax(uint32_t quantized[4], float s[4],
                                                             float *row_max, float *sum,
                                                             const float value_scale[4],
                                                             uint32_t visible)
{
    float old_max = *row_max, new_max = old_max, max_weight = 0x1p-100f;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        s[i] = visible >> i & 1 ? s[i] : -INFINITY;
        new_max = fmaxf(new_max, s[i]);
    }
    *row_max = new_max = ft_column_max(new_max);
    tile_scales w = { ft_exp2_approx(old_max - new_max) };
    *sum *= w.rescale;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float p = ft_exp2_approx(s[i] - new_max);
        *sum += p;
        s[i] = visible >> i & 1 ? p * value_scale[i] : 0.0f;
        max_weight = fmaxf(max_weight, s[i]);
    }
    /* 2^n <= max_weight < 2^(n + 1): integers below 2^14 */
    uint32_t bits = __float_as_uint(ft_column_max(max_weight)) & 0x7f800000;
    constexpr float headroom = 16383.0f / 16384.0f;
    float scale = __uint_as_float(0x7f000000u + (13u << 23) - bits) * headroom;
    w.unit = __uint_as_float(bits - (13u << 23)) * (1.0f / headroom);
#pragma unroll
    for (int i = 0; i < 4; i++)
        quantized[i] = __float_as_uint(fmaf(s[i], scale, ROUND_MAGIC));
    return w;
}

/* Transposes an 8 x 8 matrix of 16-bit words. A lane holds words of row g before and after. */
static __device__ __forceinline__ uint32_t transpose_8x8(uint32_t word)
{
    uint32_t transposed;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(transposed) : "r"(word));
    return transposed;
}

/* 14-bit weights of two keys as MMA operands: the high bytes, then the low bytes, transposed. */
static __device__ __forceinline__ uint32_t pack_weights(uint32_t first, uint32_t second)
{
    uint32_t both = __byte_perm(first, second, 0x5410);
    return transpose_8x8(__byte_perm(both >> 7 & 0x007f007f, both & 0x007f007f, 0x6420));
}

/* Transposes a 4 x 4 matrix of bytes. */
static __device__ __forceinline__ void transpose_bytes(uint32_t out[4], const uint32_t in[4])
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
    int lane = (int) threadIdx.x % 32, g = lane / 4, even = 2 * (lane % 4),
        odd = permuted_key(even + 1);
    const int row[4] = { even, even + 8, odd, odd + 8 };
#pragma unroll
    for (int i = 0; i < 4; i++) {
        uint4 chunk = load_chunk(values, row[i], g);
        out[i][0] = chunk.x;
        out[i][1] = chunk.y;
        out[i][2] = chunk.z;
        out[i][3] = chunk.w;
    }
}

template <int head_sets>
static __device__ __forceinline__ void
accumulate_pv(partial_acc<head_sets> *acc, const char *values, const uint32_t weights[head_sets][2],
              const tile_scales w[head_sets])
{
    uint32_t v[2][4][4];
#pragma unroll
    for (int i = 0; i < 2; i++)
        load_values(v[i], values + i * 16 * HEAD_DIM);
#pragma unroll
    for (int k = 0; k < 4; k++) { /* elements from 4k on of the chunk */
        uint32_t transposed[2][4];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const uint32_t block[4] = { v[i][0][k], v[i][1][k], v[i][2][k], v[i][3][k] };
            transpose_bytes(transposed[i], block);
        }
#pragma unroll
        for (int pair = 0; pair < 4; pair += 2) {
            const uint32_t quantized[4] = { transposed[0][pair], transposed[0][pair + 1],
                                            transposed[1][pair], transposed[1][pair + 1] };
#pragma unroll
            for (int head_set = 0; head_set < head_sets; head_set++) {
                int32_t c[4] = {};
                float *y = &acc->y[head_set][4 * k + pair];
                ft_mma_i8(c, quantized, weights[head_set][0], weights[head_set][1]);
                y[0] =
                    fmaf((float) (128 * c[0] + c[1]), w[head_set].unit, y[0] * w[head_set].rescale);
                y[1] =
                    fmaf((float) (128 * c[2] + c[3]), w[head_set].unit, y[1] * w[head_set].rescale);
            }
        }
    }
}

/* Processes KEY_TILE keys from `base` on, of which first .. last are visible to the row. */
template <int head_sets>
static __device__ __forceinline__ void
process_tile(partial_acc<head_sets> *acc, const char *stage, const float *scales,
             const uint32_t q[head_sets][8], const float q_scale[head_sets], int base, int first,
             int last)
{
    int row = permuted_key((int) threadIdx.x % 32 / 4);
    float s[head_sets][4], key_scale[4], value_scale[4];
    uint32_t weights[head_sets][2], visible = 0;
    tile_scales w[head_sets];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int key = 8 * i + row;
        key_scale[i] = scales[key];
        value_scale[i] = scales[KEY_TILE + key];
        visible |= (uint32_t) (base + key >= first && base + key <= last) << i;
    }
    compute_qk<head_sets>(s, stage, q);
#pragma unroll
    for (int head_set = 0; head_set < head_sets; head_set++) {
        uint32_t quantized[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            s[head_set][i] *= q_scale[head_set] * key_scale[i];
        w[head_set] = online_softmax(quantized, s[head_set], &acc->row_max[head_set],
                                     &acc->sum[head_set], value_scale, visible);
        weights[head_set][0] = pack_weights(quantized[0], quantized[1]);
        weights[head_set][1] = pack_weights(quantized[2], quantized[3]);
    }
    accumulate_pv<head_sets>(acc, stage + TILE_BYTES, weights, w);
}

#endif
