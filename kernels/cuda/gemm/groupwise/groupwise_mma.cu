/*
 * groupwise_mma.cu - mma.sync GEMM with group-wise quantized weights for many rows, in the
 * accumulation order of groupwise.cuh.
 *
 * A thread block computes four panels of the weights by 16 to 128 tokens, with k tiles in a
 * multistage cp.async pipeline. Weights stay quantized until they are in registers; dequantized
 * weights are never stored. Two warps share a panel and have half of the tokens each. A lane ends
 * up with four neighbouring columns of y and stores them directly; the sums of earlier splits are
 * kept in shared memory, private to each thread.
 *
 * Where there are too few tiles for all SMs, split-K stores partial sums in scratch, and a second
 * kernel adds them in order.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/groupwise/groupwise_mma.cuh"
#include "kernels/cuda/gemm/groupwise/groupwise_tiles.h"

enum {
    PANELS = 4, /* per thread block, each for two warps */
    ROWS = PANELS * GROUPWISE_PANEL_ROWS,
    THREADS = 2 * PANELS * 32,
    X_ROW_BYTES = 2 * GROUPWISE_TILE_K, /* bytes per token in a stage */
    K_TILES_PER_SPLIT = GROUPWISE_SPLIT_K / GROUPWISE_TILE_K
};

/* Compile-time configuration; a warp has M8_TILES * 8 tokens. */
template <int bits, groupwise_x_type kind, bool step_scales, int M8_TILES> struct mma_config {
    static constexpr int tokens = 16 * M8_TILES, terms = groupwise_x_terms<kind>;
    static constexpr int scales = step_scales ? GROUPWISE_TILE_K / GROUPWISE_STEP_K : 1;
    static constexpr int panel = GROUPWISE_TILE_K * GROUPWISE_PANEL_ROWS * bits / 8;
    static constexpr int zeros_offset = panel + scales * 64, own = zeros_offset + scales * 32;
    static constexpr int x_at = PANELS * own, x_term = tokens * X_ROW_BYTES;
    static constexpr int stage = x_at + terms * x_term;
    static constexpr int stages = M8_TILES == 1 ? 4 : terms > 1 ? 2 : 3;
    static constexpr int totals = THREADS * M8_TILES * 32;
    static constexpr int shared = stages * stage + totals;
    static constexpr int blocks_per_sm = M8_TILES > 2 ? 1 : 2; /* thread blocks per SM */
};

/* ---- Loads ---------------------------------------------------------------------------------- */

template <class CONFIG, int bits> struct mma_loader {
    const ft_cuda_groupwise_args &p;
    const mma_params &shape;
    const ft_cuda_groupwise_linear *linear;
    const char *qweights;
    int panel, rows, at, column, first_token;
    bool inside;

    __device__ __forceinline__ mma_loader(const ft_cuda_groupwise_args &p, const mma_params &shape,
                                          int column)
        : p(p), shape(shape), column(column), first_token((int) blockIdx.x * CONFIG::tokens)
    {
        int warp = (int) threadIdx.x / 32;
        panel = (int) blockIdx.y * PANELS + warp / 2;
        inside = panel < shape.all.panels;
        panel = inside ? panel : shape.all.panels - 1;
        int which = groupwise_linear_of(shape.all, panel);
        linear = &p.linear[which];
        rows = shape.all.padded_n[which];
        at = column * (4 * bits) + warp % 2 * (CONFIG::panel / 2);
        qweights = linear->w + (size_t) panel * shape.all.panel_bytes + threadIdx.x % 32 * 16;
    }
    /* This warp's half of its panel. */
    __device__ __forceinline__ void copy_weights(char *stage) const
    {
        int warp = (int) threadIdx.x / 32, lane = (int) threadIdx.x % 32;
        char *to = stage + warp / 2 * CONFIG::own;
#pragma unroll
        for (int i = 0; i < CONFIG::panel / 2; i += GROUPWISE_WARP_BYTES)
            ft_cp_async_16(to + warp % 2 * (CONFIG::panel / 2) + i +
                               groupwise_smem_write_offset(lane),
                           qweights + at + i, inside && at + i < shape.all.panel_bytes);
        /* the first warp of a panel loads scales, the second zero points */
        bool scales = warp % 2 == 0;
        int k_step = scales ? lane / 4 : lane / 2, word = scales ? lane % 4 : lane % 2;
        int own = column + k_step * GROUPWISE_STEP_K;
        if (k_step >= CONFIG::scales || own >= shape.all.k || !inside)
            return;
        size_t index = (size_t) groupwise_group_of(shape.all, own) * rows +
                       panel * GROUPWISE_PANEL_ROWS + word * 8;
        if (scales)
            ft_cp_async_16(to + CONFIG::panel + k_step * 64 + word * 16, linear->scale + index,
                           true);
        else if (linear->zero != NULL)
            ft_cp_async_16(to + CONFIG::zeros_offset + k_step * 32 + word * 16,
                           linear->zero + index + word * 8, true);
    }
    __device__ __forceinline__ void copy_tokens(char *stage) const
    {
#pragma unroll
        for (int term = 0; term < CONFIG::terms; term++)
#pragma unroll
            for (int i = 0; i < CONFIG::tokens * 16; i += THREADS) {
                int chunk = (i + (int) threadIdx.x) % 16, token = (i + (int) threadIdx.x) / 16;
                size_t row = (size_t) (first_token + token);
                ft_cp_async_16(stage + CONFIG::x_at + term * CONFIG::x_term + token * X_ROW_BYTES +
                                   (chunk ^ token % 8) * 16,
                               shape.x + term * shape.x_term + row * shape.x_row +
                                   (column + chunk * 8) * 2,
                               row < p.m && column + chunk * 8 < shape.padded_k);
            }
    }
    __device__ __forceinline__ void advance(int k_tiles)
    {
        column += k_tiles * GROUPWISE_TILE_K;
        at += k_tiles * CONFIG::panel;
    }
};

/* ---- Mainloop ------------------------------------------------------------------------------- */

template <class CONFIG> using mma_acc = groupwise_acc[CONFIG::tokens / 16];

/* Tokens of 8-token tile `i`, 32 columns. */
template <class CONFIG, groupwise_x_type kind>
__device__ __forceinline__ void load_x_frag(uint32_t (&x)[groupwise_x_terms<kind>][4],
                                            const char *stage, int i, int k_step)
{
    int warp = (int) threadIdx.x / 32, lane = (int) threadIdx.x % 32;
    int token = warp % 2 * (CONFIG::tokens / 2) + i * 8 + lane % 8;
    int chunk = (k_step * 4 + lane / 8) ^ lane % 8;
#pragma unroll
    for (int term = 0; term < groupwise_x_terms<kind>; term++)
        ft_ldmatrix_x4(x[term], stage + CONFIG::x_at + term * CONFIG::x_term + token * X_ROW_BYTES +
                                    chunk * 16);
}

/* split += the k tile of a stage, of which `left` columns are in bounds. */
template <class CONFIG, int bits, groupwise_x_type kind, bool step_scales>
__device__ __forceinline__ void mma_k_tile(mma_acc<CONFIG> &split, const char *stage, int k_left,
                                           bool has_zeros)
{
    constexpr int blocks = bits / 4; /* per step */
    int warp = (int) threadIdx.x / 32, lane = (int) threadIdx.x % 32;
    const char *own = stage + warp / 2 * CONFIG::own;
    constexpr groupwise_scaling scaling = groupwise_scaling_of<kind, step_scales>;
    groupwise_unpacker<bits, kind, scaling == GROUPWISE_SCALE_WEIGHTS> unpacker;
    mma_acc<CONFIG> k_tile_acc;
#pragma unroll
    for (int i = 0; i < CONFIG::tokens / 16; i++)
        groupwise_zero_acc(k_tile_acc[i]);
#pragma unroll 1 /* unrolled, loads of all steps come first and need too many registers */
    for (int k_step = 0; k_step < GROUPWISE_TILE_K / GROUPWISE_STEP_K; k_step++) {
        uint32_t w[4][4], x[groupwise_x_terms<kind>][4];
        uint4 block[blocks];
        float scale[4];
        if (k_step * GROUPWISE_STEP_K >= k_left)
            break;
        if (has_zeros && (step_scales || k_step == 0))
            unpacker.set(
                *(const uint32_t *) (own + CONFIG::zeros_offset + k_step * 32 + lane / 4 * 4));
#pragma unroll
        for (int i = 0; i < blocks; i++)
            block[i] = *(const uint4 *) (own + (k_step * blocks + i) * GROUPWISE_WARP_BYTES +
                                         groupwise_smem_read_offset(lane));
        if constexpr (scaling == GROUPWISE_SCALE_WEIGHTS)
            unpacker.load_scales(own + CONFIG::panel + k_step * 64 + lane / 4 * 8);
        unpacker.unpack(w, block);
        if constexpr (scaling == GROUPWISE_SCALE_STEPS)
            groupwise_load_scales(scale, own + CONFIG::panel + k_step * 64 + lane / 4 * 8);
#pragma unroll
        for (int i = 0; i < CONFIG::tokens / 16; i++) {
            load_x_frag<CONFIG, kind>(x, stage, i, k_step);
            if constexpr (scaling == GROUPWISE_SCALE_STEPS) {
                groupwise_acc sum;
                groupwise_zero_acc(sum);
                groupwise_mma_k32<kind>(sum, w, x);
                groupwise_add_scaled(k_tile_acc[i], sum, scale);
            } else {
                groupwise_mma_k32<kind>(k_tile_acc[i], w, x);
            }
        }
    }
    float scale[4] = { 1.0f, 1.0f, 1.0f, 1.0f };
    if constexpr (!step_scales)
        groupwise_load_scales(scale, own + CONFIG::panel + lane / 4 * 8);
#pragma unroll
    for (int i = 0; i < CONFIG::tokens / 16; i++)
        groupwise_add_scaled(split[i], k_tile_acc[i], scale);
}

/* ---- Sums of splits ------------------------------------------------------------------------- */

/* Add a split to the thread's totals, and reset it; `first`: there are none yet. */
template <class CONFIG>
__device__ __forceinline__ void add_split(mma_acc<CONFIG> &split, float4 *totals, bool first)
{
#pragma unroll
    for (int i = 0; i < CONFIG::tokens / 16; i++)
#pragma unroll
        for (int j = 0; j < 2; j++) {
            float4 *own = &totals[(i * 2 + j) * THREADS + threadIdx.x];
            float(&sum)[4] = split[i][j];
            if (!first) {
                float4 before = *own;
                sum[0] = before.x + sum[0];
                sum[1] = before.y + sum[1];
                sum[2] = before.z + sum[2];
                sum[3] = before.w + sum[3];
            }
            *own = make_float4(sum[0], sum[1], sum[2], sum[3]);
            sum[0] = sum[1] = sum[2] = sum[3] = 0.0f;
        }
}

/*
 * Store the thread's totals, to y or as partial sums: from shared memory, because a loop cannot
 * index registers, and unrolled this is most of the kernel's code.
 */
template <class CONFIG>
__device__ __forceinline__ void store_totals(const ft_cuda_groupwise_args &p,
                                             const mma_params &shape, const float4 *totals,
                                             int split)
{
    int warp = (int) threadIdx.x / 32, lane = (int) threadIdx.x % 32;
    int panel = (int) blockIdx.y * PANELS + warp / 2, g = lane / 4, t = lane % 4;
    size_t first = (size_t) blockIdx.x * CONFIG::tokens + warp % 2 * (CONFIG::tokens / 2) + 2 * t;
    if (panel >= shape.all.panels)
        return;
#pragma unroll 1
    for (int i = 0; i < CONFIG::tokens / 8; i++) {
        const float4 *own = &totals[i / 2 * 2 * THREADS + threadIdx.x];
        float4 low = own[0], high = own[THREADS];
        bool odd = i % 2 != 0;
        size_t token = first + 8 * (i / 2) + odd;
        float value[4] = { odd ? low.y : low.x, odd ? low.w : low.z, odd ? high.y : high.x,
                           odd ? high.w : high.z };
        if (token < p.m)
            mma_store_x4(p, shape, split, token, panel, 4 * g, value);
    }
}

/* ---- Kernels -------------------------------------------------------------------------------- */

/* grid = (tiles of tokens, tiles of panels, splits) */
template <int bits, groupwise_x_type kind, bool step_scales, int M8_TILES>
static __global__ void
__launch_bounds__(THREADS, (mma_config<bits, kind, step_scales, M8_TILES>::blocks_per_sm))
    mma_kernel(const __grid_constant__ ft_cuda_groupwise_args p,
               const __grid_constant__ mma_params shape)
{
#if !defined __CUDA_ARCH__ ||                                                                      \
    __CUDA_ARCH__ >= 800 /* not Turing: ft_cuda_groupwise_mma_supports() */
    using form = mma_config<bits, kind, step_scales, M8_TILES>;
    extern __shared__ __align__(128) char shared[];
    float4 *totals = (float4 *) (shared + form::stages * form::stage);
    int split = (int) blockIdx.z * shape.splits_per_block, first = split;
    int column = split * GROUPWISE_SPLIT_K,
        end = column + shape.splits_per_block * GROUPWISE_SPLIT_K;
    mma_loader<form, bits> loader(p, shape, column);
    mma_acc<form> sums;
    end = end < shape.all.k ? end : shape.all.k;
    for (int i = 0; i < form::stages - 1; i++) { /* weights do not depend on the predecessor */
        if (loader.column < end)
            loader.copy_weights(shared + i * form::stage);
        loader.advance(1);
    }
    loader.advance(1 - form::stages);
    ft_pdl_wait();
    for (int i = 0; i < form::stages - 1; i++) {
        if (loader.column < end)
            loader.copy_tokens(shared + i * form::stage);
        loader.advance(1);
        ft_cp_async_commit();
    }
    ft_pdl_launch_dependents();
#pragma unroll
    for (int i = 0; i < M8_TILES; i++)
        groupwise_zero_acc(sums[i]);
    int read_stage = 0, write_stage = form::stages - 1;
    for (; column < end; column += GROUPWISE_TILE_K) {
        ft_cp_async_wait<form::stages - 2>();
        __syncthreads(); /* this stage has arrived, and all warps have read the previous one */
        if (loader.column < end) {
            loader.copy_weights(shared + write_stage * form::stage);
            loader.copy_tokens(shared + write_stage * form::stage);
        }
        loader.advance(1);
        ft_cp_async_commit();
        mma_k_tile<form, bits, kind, step_scales>(sums, shared + read_stage * form::stage,
                                                  end - column, p.linear[0].zero != NULL);
        read_stage = read_stage + 1 == form::stages ? 0 : read_stage + 1;
        write_stage = write_stage + 1 == form::stages ? 0 : write_stage + 1;
        bool last = column + GROUPWISE_TILE_K >= end;
        if (!last && (column / GROUPWISE_TILE_K + 1) % K_TILES_PER_SPLIT != 0)
            continue;
        add_split<form>(sums, totals, split == first || shape.sums != NULL);
        if (last || shape.sums != NULL)
            store_totals<form>(p, shape, totals, split);
        split++;
    }
#endif
}

/* ---- Host ----------------------------------------------------------------------------------- */

template <int bits, groupwise_x_type kind, bool step_scales, int M8_TILES>
static int launch(const ft_cuda_device_props *props, void *stream, const ft_cuda_groupwise_args *p)
{
    using form = mma_config<bits, kind, step_scales, M8_TILES>;
    auto *kernel = mma_kernel<bits, kind, step_scales, M8_TILES>;
    mma_params shape = mma_params_of(p);
    dim3 grid(ft_ceil_div(p->m, form::tokens), ft_ceil_div((size_t) shape.all.panels, PANELS));
    mma_plan_split_k(&shape, p, (size_t) grid.x * grid.y,
                     (size_t) props->sm_count * form::blocks_per_sm);
    grid.z = ft_ceil_div((size_t) shape.all.splits, (unsigned) shape.splits_per_block);
    int status = (int) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            form::shared);
    if (status == 0 && !mma_x_is_ready(p))
        status = ft_cuda_groupwise_convert_x(props, stream, p, &shape);
    if (status == 0)
        status =
            ft_launch(kernel, grid, THREADS, form::shared, stream, props->has_pdl, 1, *p, shape);
    return status != 0 || shape.sums == NULL
               ? status
               : ft_cuda_groupwise_reduce_splits(props, stream, p, &shape);
}

template <int bits, groupwise_x_type kind, bool step_scales>
static int launch_tile(ft_cuda_groupwise_mma_tile tile, const ft_cuda_device_props *props,
                       void *stream, const ft_cuda_groupwise_args *p)
{
    if constexpr (kind == GROUPWISE_X_F32) {
        return tile == FT_CUDA_GROUPWISE_MMA_M16
                   ? launch<bits, kind, step_scales, 1>(props, stream, p)
                   : launch<bits, kind, step_scales, 2>(props, stream, p);
    } else {
        return tile == FT_CUDA_GROUPWISE_MMA_M16
                   ? launch<bits, kind, step_scales, 1>(props, stream, p)
               : tile == FT_CUDA_GROUPWISE_MMA_M128
                   ? launch<bits, kind, step_scales, 8>(props, stream, p)
                   : launch<bits, kind, step_scales, 4>(props, stream, p);
    }
}

template <groupwise_x_type kind>
static int launch_x_type(ft_cuda_groupwise_mma_tile tile, const ft_cuda_device_props *props,
                         void *stream, const ft_cuda_groupwise_args *p)
{
    bool step_scales = groupwise_has_step_scales(p);
    return p->bits == 4  ? step_scales ? launch_tile<4, kind, true>(tile, props, stream, p)
                                       : launch_tile<4, kind, false>(tile, props, stream, p)
            : step_scales ? launch_tile<8, kind, true>(tile, props, stream, p)
                         : launch_tile<8, kind, false>(tile, props, stream, p);
}

/* Grids have up to 65535 rows of x or tiles. */
bool ft_cuda_groupwise_mma_supports(const ft_cuda_device_props *props,
                                    const ft_cuda_groupwise_args *p)
{
    return props->capability >= 80 && p->k < 1u << 20 && p->m <= 65535 &&
           groupwise_shape_of(p).panels <= 65535 * PANELS &&
           props->smem_bytes >= (size_t) mma_config<8, GROUPWISE_X_F16, true, 4>::shared;
}

/* Shared memory of a tile of 128 tokens. */
template <int bits> static size_t large_tile_bytes(const ft_cuda_groupwise_args *p)
{
    return (size_t) (groupwise_has_step_scales(p)
                         ? mma_config<bits, GROUPWISE_X_F16, true, 8>::shared
                         : mma_config<bits, GROUPWISE_X_F16, false, 8>::shared);
}

bool ft_cuda_groupwise_mma_tile_fits(ft_cuda_groupwise_mma_tile tile,
                                     const ft_cuda_device_props *props,
                                     const ft_cuda_groupwise_args *p)
{
    if (p->x_dtype == FT_F32)
        return tile == FT_CUDA_GROUPWISE_MMA_M16 || tile == FT_CUDA_GROUPWISE_MMA_M32;
    if (tile == FT_CUDA_GROUPWISE_MMA_M128)
        return props->smem_bytes >=
               (p->bits == 4 ? large_tile_bytes<4>(p) : large_tile_bytes<8>(p));
    return tile != FT_CUDA_GROUPWISE_MMA_M32;
}

/* Larger tiles where there are enough for all SMs. */
ft_cuda_groupwise_mma_tile ft_cuda_groupwise_mma_select(const ft_cuda_device_props *props,
                                                        const ft_cuda_groupwise_args *p)
{
    size_t panels = (size_t) groupwise_shape_of(p).panels;
    size_t tiles = (p->m + 127) / 128 * ((panels + PANELS - 1) / PANELS);
    if (p->m <= 16)
        return FT_CUDA_GROUPWISE_MMA_M16;
    if (p->x_dtype == FT_F32)
        return FT_CUDA_GROUPWISE_MMA_M32;
    return p->m > 64 && tiles >= (size_t) props->sm_count &&
                   ft_cuda_groupwise_mma_tile_fits(FT_CUDA_GROUPWISE_MMA_M128, props, p)
               ? FT_CUDA_GROUPWISE_MMA_M128
               : FT_CUDA_GROUPWISE_MMA_M64;
}

int ft_cuda_groupwise_mma(ft_cuda_groupwise_mma_tile tile, const ft_cuda_device_props *props,
                          void *stream, const ft_cuda_groupwise_args *p)
{
    return p->x_dtype == FT_F16    ? launch_x_type<GROUPWISE_X_F16>(tile, props, stream, p)
           : p->x_dtype == FT_BF16 ? launch_x_type<GROUPWISE_X_BF16>(tile, props, stream, p)
                                   : launch_x_type<GROUPWISE_X_F32>(tile, props, stream, p);
}

size_t ft_cuda_groupwise_mma_scratch(const ft_cuda_device_props *props, size_t m, size_t n,
                                     size_t k, ft_dtype x_dtype)
{
    size_t max_split_rows = m < MMA_SPLIT_K_MAX_M ? m : MMA_SPLIT_K_MAX_M,
           splits = (k + GROUPWISE_SPLIT_K - 1) / GROUPWISE_SPLIT_K;
    size_t columns = (n + FT_CUDA_MAX_FUSED * GROUPWISE_PANEL_ROWS) / GROUPWISE_PANEL_ROWS *
                     GROUPWISE_PANEL_ROWS;
    (void) props;
    return mma_x_bytes(m, k, x_dtype) + splits * max_split_rows * columns * sizeof(float);
}
