/*
 * groupwise_int8_records.cuh - quantized activations for few tokens, as records of one k tile (128
 * columns).
 *
 * A record contains the int8 values, scales and terms of some tokens in one k tile, contiguous in
 * memory and in the layout of shared memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_INT8_RECORDS_CUH
#define FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_INT8_RECORDS_CUH

#include "kernels/cuda/gemm/groupwise/groupwise_int8.cuh"

/*
 * Launch parameters. A record has 128 int8 values of each token, then a float scale of each group
 * and token, then a term of each.
 */
typedef struct int8_x_records {
    char *at;                       /* [tiles of tokens, k tiles] */
    int k_tiles, groups_per_k_tile; /* groups_per_k_tile: groups per k tile */
    int group;                      /* columns per group */
    int tokens;                     /* per tile */
    int bytes;                      /* per record */
    bool early_dependents; /* the GEMM's thread blocks do not fit next to those of the previous
                              kernel */
} int8_x_records;

/* ---- Quantization of x ---------------------------------------------------------------------- */

/* Four neighbouring elements of a row; zeros beyond its end. */
__device__ __forceinline__ void int8_load_x4(float (&value)[4], const ft_cuda_groupwise_args &p,
                                             size_t row, int column)
{
    if (p.k % 4 == 0 && (uintptr_t) p.x % 16 == 0) {
        ft_raw_vec<4> bits = {};
        if (column < (int) p.k)
            ft_load_raw<4>(bits, p.x, p.x_dtype, row * p.k + column);
        ft_unpack<4>(value, bits, p.x_dtype);
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        value[i] = 0.0f;
        if (column + i < (int) p.k)
            ft_load<1>(value + i, p.x, p.x_dtype, row * p.k + column + i);
    }
}

/* The parameters of a group, of which each lane has four elements. */
__device__ __forceinline__ ft_groupwise_x_params int8_group_params(const float (&value)[4],
                                                                   int group)
{
    int32_t high = 0, minus_low = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        high = max(high, ft_positive_bits(value[i]));
        minus_low = max(minus_low, ft_positive_bits(-value[i]));
    }
    return int8_reduce_params(high, minus_low, group / 4);
}

__device__ __forceinline__ int32_t int8_group_sum(int32_t sum, int group)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
    if (group == GROUPWISE_TILE_K)
        return __reduce_add_sync(~0u, sum);
#endif
    for (int lane_distance = group / 8; lane_distance > 0; lane_distance /= 2)
        sum += __shfl_xor_sync(~0u, sum, lane_distance);
    return sum;
}

/*
 * Quantize four neighbouring elements. They are pairs of two words of int8_k_position(), whose
 * other pairs are in one other lane; after an exchange each lane has one full word. Adds the values
 * less their zero point to `sum`.
 */
template <int bits>
__device__ __forceinline__ uint32_t int8_pack_word(int32_t &sum, const float (&value)[4],
                                                   const ft_groupwise_x_params &params, int lane)
{
    constexpr int lane_distance = bits == 4 ? 4 : 2, shift = bits == 4 ? 16 : 8; /* of a pair */
    uint32_t pair[2];
    bool second = (lane & lane_distance) != 0; /* this lane has the later pairs of a word */
#pragma unroll
    for (int i = 0; i < 2; i++) {
        int32_t low = int8_quantize(value[2 * i], params);
        int32_t high = int8_quantize(value[2 * i + 1], params);
        pair[i] = (uint32_t) (uint8_t) low | (uint32_t) (uint8_t) high << shift;
        sum += low + high - 2 * params.zero;
    }
    uint32_t other = __shfl_xor_sync(~0u, pair[second ? 0 : 1], lane_distance);
    return second ? other | pair[1] << (24 - shift) : pair[0] | other << (24 - shift);
}

/* Offset of the word among those of 32 columns, which eight lanes have. */
template <int bits> __device__ __forceinline__ int int8_word_offset(int lane)
{
    bool second = (lane & (bits == 4 ? 4 : 2)) != 0;
    return int8_k_position<bits>((lane & ~(bits == 4 ? 4 : 2)) * 4 + (second ? 2 : 0));
}

/* A warp quantizes a k tile of a token. grid = (k tiles, ceil(m / warps)) */
template <int bits>
static __global__ void int8_quantize_x_kernel(const __grid_constant__ ft_cuda_groupwise_args p,
                                              const __grid_constant__ int8_x_records all)
{
    int k_tile = (int) blockIdx.x, lane = (int) threadIdx.x, group = all.group;
    int row = (int) (blockIdx.y * blockDim.y + threadIdx.y), token = row % all.tokens;
    float value[4];
    int32_t sum = 0;
    /*
     * The GEMM starts as SMs become free and fills its pipelines; it reads only weights before its
     * own wait.
     */
    if (all.early_dependents)
        ft_pdl_launch_dependents();
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    if (row >= (int) p.m)
        return;
    char *record = all.at + ((size_t) (row / all.tokens) * all.k_tiles + k_tile) * all.bytes;
    int8_load_x4(value, p, (size_t) row, k_tile * GROUPWISE_TILE_K + lane * 4);
    ft_groupwise_x_params params = int8_group_params(value, group);
    uint32_t word = int8_pack_word<bits>(sum, value, params, lane);
    int at = lane / 8 * GROUPWISE_STEP_K + int8_word_offset<bits>(lane % 8);
    *(uint32_t *) (record + token * GROUPWISE_TILE_K + (at / 16 ^ token % 8) * 16 + at % 16) = word;
    sum = int8_group_sum(sum, group);
    if (lane % (group / 4) != 0)
        return;
    char *scales = record + all.tokens * GROUPWISE_TILE_K;
    at = lane / (group / 4) * all.tokens + token;
    ((float *) scales)[at] = params.scale;
    ((int32_t *) scales)[all.groups_per_k_tile * all.tokens + at] =
        ft_int8_x_term(sum, params.zero);
}

/* ---- Reading records ------------------------------------------------------------------------ */

/*
 * x of 32 columns from a record: x[0] and x[1] of 8-token tile `m8_tile`, x[2] and x[3] of the next
 * one, if any.
 */
template <int M8_TILES>
__device__ __forceinline__ void int8_load_x_frag(uint32_t (&x)[4], const char *record, int m8_tile,
                                                 int k_step, int lane)
{
    if constexpr (M8_TILES == 1) {
        const char *own = record + lane / 4 * GROUPWISE_TILE_K + lane % 4 * 4;
#pragma unroll
        for (int i = 0; i < 2; i++)
            x[i] = *(const uint32_t *) (own + ((k_step * 2 + i) ^ lane / 4) * 16);
    } else {
        int token = (m8_tile + lane / 16) * 8 + lane % 8;
        int chunk = (k_step * 2 + lane / 8 % 2) ^ lane % 8;
        ft_ldmatrix_x4(x, record + token * GROUPWISE_TILE_K + chunk * 16);
    }
}

/* ---- Host ----------------------------------------------------------------------------------- */

static inline int8_x_records int8_x_records_of(const ft_cuda_groupwise_args *p, int tokens,
                                               bool early_dependents)
{
    int8_x_records r = {};
    r.at = (char *) p->scratch;
    r.k_tiles = (int) ((p->k + GROUPWISE_TILE_K - 1) / GROUPWISE_TILE_K);
    r.groups_per_k_tile = GROUPWISE_TILE_K / p->group;
    r.group = p->group;
    r.tokens = tokens;
    r.bytes = tokens * (GROUPWISE_TILE_K + r.groups_per_k_tile * 8);
    r.early_dependents = early_dependents;
    return r;
}

template <int bits>
static int int8_quantize_x(const ft_cuda_device_props *props, void *stream,
                           const ft_cuda_groupwise_args *p, const int8_x_records *records)
{
    unsigned warps = p->m <= 16 ? 1 : 8; /* all SMs quantize, but without too many blocks */
    dim3 grid((unsigned) records->k_tiles, ft_ceil_div(p->m, warps));
    return ft_launch(int8_quantize_x_kernel<bits>, grid, dim3(32, warps), 0, stream, props->has_pdl,
                     1, *p, *records);
}

#endif
