/*
 * groupwise.cuh - the fixed accumulation order of GEMM with group-wise quantized weights, and
 * dequantization.
 *
 * Columns are divided into splits of 512, and these into k tiles of 128. A k tile is accumulated by
 * the tensor cores from zero, 16 columns per instruction; its sums are multiplied by the scale and
 * added to those of the split, one k tile after the other. Splits are added from first to last. The
 * bits depend neither on the number of rows of x nor on which warp, thread block or kernel computes
 * a split.
 *
 * A weight minus its zero point is an integer of at most 9 bits and a sign, exact in f16; below 256
 * it is exact in bf16. float32 activations are split into three bf16 terms, so that products with
 * them are exact too.
 *
 * Where the group size is not a multiple of 128, a k tile has several scales. Then weights are
 * scaled before they are multiplied: the product of scale and integer is rounded to the type of x,
 * and the sums of a k tile are added to those of the split as they are. Rounding moves a weight by
 * at most 2^-12 of itself in f16 and 2^-9 in bf16. That is less than 1/15 of a step of the integer,
 * except for 8 bits in bf16, where large weights move by up to a quarter of a step, or half of one
 * with zero points; the weights of a bf16 checkpoint are rounded alike. With float32 activations
 * weights stay exact: the sums of each 32 columns are scaled, added up to a k tile, and k tiles to
 * a split.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_CUH
#define FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_CUH

#include "kernels/cuda/gemm/groupwise/groupwise.h"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/ptx/cp_async.cuh"
#include "kernels/cuda/ptx/mma.cuh"
#include "kernels/cuda/rows.cuh"

enum {
    GROUPWISE_STEP_K = 32, /* columns that are unpacked together */
    GROUPWISE_TILE_K = 128,
    GROUPWISE_SPLIT_K = 512,
    GROUPWISE_PANEL_ROWS = 32, /* weight rows */
    GROUPWISE_WARP_BYTES = 512 /* bytes that a warp reads at once */
};

/* Type of x in the tensor cores. */
typedef enum groupwise_x_type {
    GROUPWISE_X_F16,
    GROUPWISE_X_BF16,
    GROUPWISE_X_F32 /* three bf16 terms */
} groupwise_x_type;

template <groupwise_x_type kind>
static constexpr int groupwise_x_terms = kind == GROUPWISE_X_F32 ? 3 : 1;

/* Launch parameters, including precomputed divisors. */
typedef struct groupwise_shape {
    int panels;                      /* of all linears */
    int first[FT_CUDA_MAX_FUSED];    /* first panel of each linear; `panels` beyond the last one */
    int padded_n[FT_CUDA_MAX_FUSED]; /* rows of scales and zero points */
    int splits;
    int k;     /* columns */
    int group; /* columns of a group, never 0 */
    uint32_t group_magic,
        splits_magic; /* groupwise_div_magic() of k steps per group, and of splits */
    int panel_bytes;
} groupwise_shape;

/*
 * Multiplier for groupwise_fast_div() by n: exact while number * n is below 2^31. An integer
 * division is about twenty instructions, and kernels divide often.
 */
static inline uint32_t groupwise_div_magic(uint32_t n)
{
    return (uint32_t) (((1ull << 31) + n - 1) / n);
}

__device__ __forceinline__ int groupwise_fast_div(int number, uint32_t inverse)
{
    return (int) ((uint64_t) number * inverse >> 31);
}

/* Group index of a column. */
__device__ __forceinline__ int groupwise_group_of(const groupwise_shape &shape, int column)
{
    return groupwise_fast_div(column / GROUPWISE_STEP_K, shape.group_magic);
}

static inline groupwise_shape groupwise_shape_of(const ft_cuda_groupwise_args *p)
{
    groupwise_shape s = {};
    for (int i = 0; i < FT_CUDA_MAX_FUSED; i++) {
        s.first[i] = s.panels;
        if (i >= p->n_linears)
            continue;
        s.padded_n[i] = (int) ft_layout_rows(FT_PANEL32, p->linear[i].rows);
        s.panels += s.padded_n[i] / GROUPWISE_PANEL_ROWS;
    }
    s.k = (int) p->k;
    s.splits = (s.k + GROUPWISE_SPLIT_K - 1) / GROUPWISE_SPLIT_K;
    s.group = p->group == 0 ? INT32_MAX : p->group;
    s.group_magic = p->group == 0 ? 0 : groupwise_div_magic((uint32_t) p->group / GROUPWISE_STEP_K);
    s.splits_magic = groupwise_div_magic((uint32_t) s.splits);
    s.panel_bytes = (int) ft_panel_bytes(GROUPWISE_PANEL_ROWS, p->k, p->bits);
    return s;
}

/* What scales multiply. */
typedef enum groupwise_scaling {
    GROUPWISE_SCALE_K_TILES, /* sums of a k tile: all its columns have one scale */
    GROUPWISE_SCALE_WEIGHTS, /* weights, rounded to the type of x */
    GROUPWISE_SCALE_STEPS    /* sums of 32 columns, with float32 activations */
} groupwise_scaling;

template <groupwise_x_type kind, bool step_scales>
static constexpr groupwise_scaling groupwise_scaling_of =
    !step_scales              ? GROUPWISE_SCALE_K_TILES
    : kind == GROUPWISE_X_F32 ? GROUPWISE_SCALE_STEPS
                              : GROUPWISE_SCALE_WEIGHTS;

/* Whether every 32 columns need their own scale. */
__host__ __device__ static inline bool groupwise_has_step_scales(const ft_cuda_groupwise_args *p)
{
    return p->group % GROUPWISE_TILE_K != 0;
}

/* The linear that a panel belongs to; `panel` becomes its index there. */
__device__ __forceinline__ int groupwise_linear_of(const groupwise_shape &shape, int &panel)
{
    int linear = 0;
#pragma unroll
    for (int i = 1; i < FT_CUDA_MAX_FUSED; i++)
        linear = panel >= shape.first[i] ? i : linear;
    panel -= shape.first[linear];
    return linear;
}

/*
 * Shared memory offset of a lane's 16 bytes. Lane (g, t) = (lane / 4, lane % 4) reads chunk g of
 * line t, which is stored at g ^ 2t to avoid bank conflicts. groupwise_smem_write_offset: where the
 * lane's chunk of global memory is stored.
 */
__device__ __forceinline__ unsigned groupwise_smem_read_offset(unsigned lane)
{
    return lane % 4 * 128 + (lane / 4 ^ lane % 4 * 2) * 16;
}

__device__ __forceinline__ unsigned groupwise_smem_write_offset(unsigned lane)
{
    return lane / 8 * 128 + (lane % 8 ^ lane / 8 * 2) * 16;
}

/* Wait for the oldest stage of a cp.async pipeline of 2, 3 or 4 stages. */
__device__ __forceinline__ void groupwise_wait_stage(int slots)
{
    if (slots == 2)
        ft_cp_async_wait<1>();
    else if (slots == 3)
        ft_cp_async_wait<2>();
    else
        ft_cp_async_wait<3>();
}

/* ---- Dequantization ------------------------------------------------------------------------- */

template <ft_dtype dtype>
__device__ __forceinline__ uint32_t groupwise_sub_x2(uint32_t a, uint32_t b)
{
    if constexpr (dtype == FT_F16) {
        __half2 difference = __hsub2(*(__half2 *) &a, *(__half2 *) &b);
        return *(uint32_t *) &difference;
    } else {
        __nv_bfloat162 difference = __hsub2(*(__nv_bfloat162 *) &a, *(__nv_bfloat162 *) &b);
        return *(uint32_t *) &difference;
    }
}

/*
 * word & mask | magic as one lop3: with two constants the compiler emits two instructions, and an
 * SM issues these at only half the rate of additions.
 */
__device__ __forceinline__ uint32_t groupwise_and_or(uint32_t word, uint32_t mask, uint32_t magic)
{
#ifdef __CUDA_ARCH__
    uint32_t picked;
    asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(picked) : "r"(word), "r"(mask), "r"(magic));
    return picked;
#else
    return (word & mask) | magic;
#endif
}

/* The lower or upper f16 of a word, twice: the compiler makes it a modifier of the operand. */
__device__ __forceinline__ uint32_t groupwise_twice(uint32_t two, int index)
{
    __half2 pair = *(__half2 *) &two;
    __half2 twice = index == 0 ? __low2half2(pair) : __high2half2(pair);
    return *(uint32_t *) &twice;
}

__device__ __forceinline__ uint32_t groupwise_mul_f16x2(uint32_t a, uint32_t b)
{
    __half2 product = __hmul2(*(__half2 *) &a, *(__half2 *) &b);
    return *(uint32_t *) &product;
}

/*
 * A factor as the sum of two bf16: products of an f16 number with an integer of 5 bits are rounded
 * once, because those of the rest are exact.
 */
struct groupwise_bf16_factor {
    uint32_t high, rest; /* twice each */

    __device__ __forceinline__ void set(float factor)
    {
        high = ft_pack_f16x2<FT_BF16>(factor, factor);
        float left = factor - __uint_as_float(high << 16);
        rest = ft_pack_f16x2<FT_BF16>(left, left);
    }
    __device__ __forceinline__ uint32_t times(uint32_t integers) const
    {
#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 800 /* Turing has no kernel that calls this */
        __nv_bfloat162 a = *(__nv_bfloat162 *) &integers, b = *(const __nv_bfloat162 *) &rest;
        __nv_bfloat162 product = __hfma2(a, *(const __nv_bfloat162 *) &high, __hmul2(a, b));
        return *(uint32_t *) &product;
#else
        return integers;
#endif
    }
};

/*
 * Unpacks four rows of a lane, subtracts zero points, and multiplies by scales if these apply to
 * weights. A 4-bit value in the low bits of 1024 as f16, or of 128 as bf16, is that number plus the
 * value; 8-bit values do not fit into the bf16 mantissa and go through float.
 */
template <int bits, groupwise_x_type kind, bool scales = false> struct groupwise_unpacker {
    static constexpr bool half = kind == GROUPWISE_X_F16;
    uint32_t low[4], high[4];
    uint32_t scale[4]; /* f16 twice, or float */
    groupwise_bf16_factor factor[4];

    /* Symmetric: zero points in the middle of the range. */
    __device__ __forceinline__ groupwise_unpacker()
    {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            low[i] = half        ? bits == 4 ? 0x64086408 : 0x64806480
                     : bits == 4 ? 0x43084308
                                 : 0x4b000080;
            high[i] = 0xd480d480; /* -72 */
        }
    }
    /* Zero points of the four rows, a byte each. */
    __device__ __forceinline__ void set(uint32_t zeros)
    {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if constexpr (half || bits == 4)
                low[i] = __byte_perm(zeros, half ? 0x64 : 0x43, 0x4040 + 0x101 * i);
            else
                low[i] = __byte_perm(zeros, 0x4b000000, 0x7440 + i);
            if constexpr (half)
                high[i] = groupwise_sub_x2<FT_F16>(0x63806380, low[i]); /* 960 - (1024 + zero) */
        }
    }
    /* Scales of two rows, i and i + 1. */
    __device__ __forceinline__ void set_scales(uint32_t two, int i)
    {
#pragma unroll
        for (int j = 0; j < 2; j++) {
            float value = j == 0 ? __low2float(*(__half2 *) &two) : __high2float(*(__half2 *) &two);
            if constexpr (half)
                scale[i + j] = groupwise_twice(two, j);
            else if constexpr (bits == 4)
                factor[i + j].set(value);
            else
                scale[i + j] = __float_as_uint(value);
        }
    }
    /* Scales of the four rows. */
    __device__ __forceinline__ void set_scales(const ft_raw_vec<2> &four)
    {
        set_scales(four.word[0], 0);
        set_scales(four.word[1], 2);
    }
    /* The same, from shared memory. */
    __device__ __forceinline__ void load_scales(const void *at)
    {
        set_scales(*(const ft_raw_vec<2> *) at);
    }
    __device__ __forceinline__ uint32_t scaled(uint32_t integers, int i) const
    {
        if constexpr (!scales)
            return integers;
        else if constexpr (half)
            return groupwise_mul_f16x2(integers, scale[i]);
        else
            return factor[i].times(integers);
    }
    /* Eight 4-bit values of row i: pairs of columns 2t, 2t + 1 of each 8. */
    __device__ __forceinline__ void nibbles(uint32_t pair[4], uint32_t word, int i) const
    {
        if constexpr (half) {
            const uint32_t sixteenth = 0x2c002c00; /* 1 / 16 */
#pragma unroll
            for (int j = 0; j < 4; j += 2) {
                uint32_t equal = groupwise_and_or(word >> 4 * j, 0x000f000f, 0x64006400);
                uint32_t odd = groupwise_and_or(word >> 4 * j, 0x00f000f0, 0x64006400);
                __half2 value = __hfma2(*(__half2 *) &odd, *(const __half2 *) &sixteenth,
                                        *(const __half2 *) &high[i]);
                pair[j] = scaled(groupwise_sub_x2<FT_F16>(equal, low[i]), i);
                pair[j + 1] = scaled(*(uint32_t *) &value, i);
            }
        } else {
#pragma unroll
            for (int j = 0; j < 4; j++)
                pair[j] =
                    scaled(groupwise_sub_x2<FT_BF16>(
                               groupwise_and_or(word >> 4 * j, 0x000f000f, 0x43004300), low[i]),
                           i);
        }
    }
    /* Four 8-bit values of row i: columns 2t, 2t + 1, 2t + 8, 2t + 9. */
    __device__ __forceinline__ void bytes(uint32_t pair[2], uint32_t word, int i) const
    {
#pragma unroll
        for (int j = 0; j < 2; j++) {
            if constexpr (half) {
                pair[j] =
                    scaled(groupwise_sub_x2<FT_F16>(
                               __byte_perm(word, 0x64646464, j == 0 ? 0x4140 : 0x4342), low[i]),
                           i);
            } else {
                float zero = __uint_as_float(low[i]), value[2];
#pragma unroll
                for (int c = 0; c < 2; c++)
                    value[c] =
                        __uint_as_float(__byte_perm(word, 0x4b000000, 0x7440 + 2 * j + c)) - zero;
                if constexpr (scales)
                    pair[j] = ft_pack_f16x2<FT_BF16>(__uint_as_float(scale[i]) * value[0],
                                                     __uint_as_float(scale[i]) * value[1]);
                else
                    pair[j] =
                        __byte_perm(__float_as_uint(value[0]), __float_as_uint(value[1]), 0x7632);
            }
        }
    }
    /* 32 columns of the four rows, from one 16-byte load of 4-bit values or two of 8-bit values. */
    __device__ __forceinline__ void unpack(uint32_t (&pair)[4][4],
                                           const uint4 (&block)[bits / 4]) const
    {
        const uint32_t word[4] = { block[0].x, block[0].y, block[0].z, block[0].w };
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if constexpr (bits == 4) {
                nibbles(pair[i], word[i], i);
            } else {
                const uint4 &next = block[bits / 4 - 1];
                const uint32_t more[4] = { next.x, next.y, next.z, next.w };
                bytes(pair[i], word[i], i);
                bytes(pair[i] + 2, more[i], i);
            }
        }
    }
};

/* ---- Accumulators --------------------------------------------------------------------------- */

/*
 * A lane's accumulators of 32 rows and eight tokens: sum[i][c] is row 4g + 2i + c / 2, token 2t + c
 * % 2.
 */
typedef float groupwise_acc[2][4];

/* sum += w . x for 32 columns; x[term] from ft_ldmatrix_x4(), four tiles of 8 columns. */
template <groupwise_x_type kind>
__device__ __forceinline__ void groupwise_mma_k32(groupwise_acc &sum, const uint32_t (&w)[4][4],
                                                  const uint32_t (&x)[groupwise_x_terms<kind>][4])
{
#pragma unroll
    for (int half = 0; half < 4; half += 2)
#pragma unroll
        for (int term = 0; term < groupwise_x_terms<kind>; term++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const uint32_t a[4] = { w[2 * i][half], w[2 * i + 1][half], w[2 * i][half + 1],
                                        w[2 * i + 1][half + 1] };
                ft_mma_f16<kind != GROUPWISE_X_F16>(sum[i], a, x[term][half], x[term][half + 1]);
            }
}

__device__ __forceinline__ void groupwise_zero_acc(groupwise_acc &sum)
{
#pragma unroll
    for (int i = 0; i < 8; i++)
        sum[i / 4][i % 4] = 0.0f;
}

/* to += scale * sum, with the scales of the four rows. */
__device__ __forceinline__ void groupwise_add_scaled(groupwise_acc &to, const groupwise_acc &sum,
                                                     const float (&scale)[4])
{
#pragma unroll
    for (int i = 0; i < 8; i++)
        to[i / 4][i % 4] = fmaf(scale[i / 2], sum[i / 4][i % 4], to[i / 4][i % 4]);
}

/* Four f16 scales as floats. */
__device__ __forceinline__ void groupwise_unpack_scales(float (&scale)[4],
                                                        const ft_raw_vec<2> &bits)
{
    ft_raw_vec<4> four;
    four.word[0] = bits.word[0];
    four.word[1] = bits.word[1];
    ft_unpack_as<FT_F16, 4>(scale, four);
}

/* The same, from shared memory. */
__device__ __forceinline__ void groupwise_load_scales(float (&scale)[4], const void *at)
{
    groupwise_unpack_scales(scale, *(const ft_raw_vec<2> *) at);
}

/* Split floats into three bf16 terms that add up exactly (unless the last one underflows). */
__device__ __forceinline__ void groupwise_split_bf16x3(uint32_t (&term)[3], float low, float high)
{
#pragma unroll
    for (int i = 0; i < 3; i++) {
        term[i] = ft_pack_f16x2<FT_BF16>(low, high);
        low -= __uint_as_float(term[i] << 16);
        high -= __uint_as_float(term[i] & 0xffff0000);
    }
}

/* ---- Output --------------------------------------------------------------------------------- */

/* Bias, activation, and store of N neighbouring columns of a row of y, fewer at its end. */
template <int N>
__device__ __forceinline__ void groupwise_store(const ft_cuda_groupwise_args &p,
                                                const ft_cuda_groupwise_linear &linear,
                                                size_t token, size_t row, float *value)
{
    bool vectorized = linear.rows % N == 0 && (uintptr_t) linear.y % 16 == 0;
#pragma unroll
    for (int i = 0; i < N; i++)
        if (linear.bias != NULL && row + i < linear.rows)
            value[i] += linear.bias[row + i];
    ft_activate_vec<N>(p.activation, value);
    if (vectorized && row < linear.rows) {
        ft_store<N>(linear.y, p.y_dtype, token * linear.rows + row, value);
        return;
    }
#pragma unroll
    for (int i = 0; i < N; i++)
        if (row + i < linear.rows)
            ft_store<1>(linear.y, p.y_dtype, token * linear.rows + row + i, value + i);
}

/* ---- Work distribution ----------------------------------------------------------------------- */

/*
 * A thread block's contiguous range of the splits of all panels or tiles. It processes the end of
 * its range first, because it may share the last tile with the next block and the first tile with
 * the previous one.
 */
struct groupwise_work_range {
    int begin, count, head, tail; /* head, tail: splits of shared tiles */

    __device__ __forceinline__ groupwise_work_range(int all, int splits, int share)
    {
        begin = (int) blockIdx.x * share;
        count = all - begin < share ? all - begin : share;
        head = (splits - begin % splits) % splits;
        tail = (begin + count) % splits;
    }
    __device__ __forceinline__ int at(int i) const
    {
        return begin + (i < tail           ? count - tail + i
                        : i < count - head ? head + i - tail
                                           : i - (count - head));
    }
};

/* Splits per thread block: whole panels or tiles, unless equal ranges are clearly faster. */
static inline int groupwise_splits_per_block(int blocks, int tiles, int splits)
{
    int equal = (tiles * splits + blocks - 1) / blocks;
    int by_tiles = (tiles + blocks - 1) / blocks * splits;
    return equal < splits || by_tiles * 16 <= equal * 17 ? by_tiles : equal;
}

/* The GEMM restricted to rows `first` .. of x, at most `most` of them. */
static inline ft_cuda_groupwise_args groupwise_slice_rows(const ft_cuda_groupwise_args *p,
                                                          size_t first, size_t max_rows)
{
    ft_cuda_groupwise_args slice = *p;
    slice.m = p->m - first < max_rows ? p->m - first : max_rows;
    slice.x = (char *) p->x + first * p->k * ft_dtype_size(p->x_dtype);
    for (int i = 0; i < p->n_linears; i++)
        slice.linear[i].y =
            (char *) p->linear[i].y + first * p->linear[i].rows * ft_dtype_size(p->y_dtype);
    return slice;
}

/* Largest shared memory size with which two thread blocks fit on an SM. */
static inline size_t groupwise_half_smem(const ft_cuda_device_props *props)
{
    enum { RESERVED = 1024, ALIGNED = 256 }; /* reserved per block; allocation granularity */
    return (props->smem_bytes + RESERVED) / 2 - RESERVED - ALIGNED;
}

/* Shared memory to request for at most one thread block per SM: more than half. */
static inline size_t groupwise_exclusive_smem(const ft_cuda_device_props *props, size_t bytes)
{
    size_t min_bytes = groupwise_half_smem(props) + 512;
    return bytes > min_bytes ? bytes : min_bytes;
}

/* ---- Launchers of kernels ------------------------------------------------------------------- */

bool ft_cuda_groupwise_gemv_supports(const ft_cuda_device_props *props,
                                     const ft_cuda_groupwise_args *p);
size_t ft_cuda_groupwise_gemv_max_m(const ft_cuda_device_props *props,
                                    const ft_cuda_groupwise_args *p); /* per launch */
size_t ft_cuda_groupwise_gemv_scratch(const ft_cuda_device_props *props);
int ft_cuda_groupwise_gemv(const ft_cuda_device_props *props, void *stream,
                           const ft_cuda_groupwise_args *p);
bool ft_cuda_groupwise_mma_supports(const ft_cuda_device_props *props,
                                    const ft_cuda_groupwise_args *p);
size_t ft_cuda_groupwise_mma_scratch(const ft_cuda_device_props *props, size_t m, size_t n,
                                     size_t k, ft_dtype x_dtype);
bool ft_cuda_groupwise_wgmma_supports(const ft_cuda_device_props *props,
                                      const ft_cuda_groupwise_args *p);
bool ft_cuda_groupwise_simt_supports(const ft_cuda_device_props *props,
                                     const ft_cuda_groupwise_args *p);
int ft_cuda_groupwise_simt(const ft_cuda_device_props *props, void *stream,
                           const ft_cuda_groupwise_args *p);
bool ft_cuda_groupwise_int8_supports(const ft_cuda_device_props *props,
                                     const ft_cuda_groupwise_args *p);
size_t ft_cuda_groupwise_int8_scratch(size_t m, size_t k);

#endif
