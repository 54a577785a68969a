/*
 * groupwise_int8_wgmma.cuh - operands of groupwise_int8_wgmma.cu: quantized x, and the cp.async
 * stages of weights and x in shared memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_INT8_WGMMA_CUH
#define FT_KERNELS_CUDA_GEMM_GROUPWISE_GROUPWISE_INT8_WGMMA_CUH

#include "kernels/cuda/gemm/groupwise/groupwise_int8_records.cuh"

/* Launch parameters: int8 x [m, k], and scales with negated zero points of x [groups, m padded]. */
typedef struct int8_wgmma_params {
    groupwise_shape all;
    int8_t *quantized;
    float2 *scale;
    int padded_m;
} int8_wgmma_params;

enum { INT8_WGMMA_STEPS = GROUPWISE_TILE_K / GROUPWISE_STEP_K };

/*
 * A thread block has WARPGROUPS * 64 rows of weights and TOKENS tokens, a stage a k tile of both:
 * x in the layout of wgmma, panels each with their scales, and parameters of x. A k tile has GROUPS
 * groups.
 */
template <int BITS, int WARPGROUPS, int TOKENS, int STAGES, int GROUPS> struct int8_wgmma_config {
    static constexpr int bits = BITS, tokens = TOKENS, half = TOKENS / 2, stages = STAGES;
    static constexpr int groups = GROUPS, steps = INT8_WGMMA_STEPS / GROUPS; /* steps of a group */
    static constexpr int panels = 2 * WARPGROUPS, threads = 128 * WARPGROUPS;
    static constexpr int panel = GROUPWISE_TILE_K * GROUPWISE_PANEL_ROWS * BITS / 8;
    static constexpr int step_bytes = panel / INT8_WGMMA_STEPS;
    static constexpr int own = panel + GROUPS * 64;
    static constexpr int panels_at = tokens * GROUPWISE_TILE_K;
    static constexpr int scales_at = panels_at + panels * own; /* of x */
    static constexpr int bytes = scales_at + GROUPS * tokens * 8;
    static constexpr int stage = (bytes + 1023) / 1024 * 1024, shared = STAGES * stage;
    static constexpr int rows = panels * GROUPWISE_PANEL_ROWS, pitch = rows + 4; /* of results */
    static constexpr int blocks_per_sm = WARPGROUPS == 1 ? 2 : 1;
    static_assert(tokens * pitch * 4 <= shared, "results fit into the stages");
};

/* ---- Quantization of x ---------------------------------------------------------------------- */

/* A warp quantizes a k tile of a token. grid = (k tiles, ceil(m / 8)) */
template <int bits>
static __global__ void
int8_quantize_k_tiles_kernel(const __grid_constant__ ft_cuda_groupwise_args p,
                             const __grid_constant__ int8_wgmma_params shape)
{
    int lane = (int) threadIdx.x, column = (int) blockIdx.x * GROUPWISE_TILE_K + lane * 4;
    size_t row = (size_t) blockIdx.y * blockDim.y + threadIdx.y;
    float value[4];
    int32_t sum = 0; /* weights without zero points do not need it */
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    if (row >= p.m)
        return;
    int8_load_x4(value, p, row, column);
    ft_groupwise_x_params x = int8_group_params(value, shape.all.group);
    uint32_t word = int8_pack_word<bits>(sum, value, x, lane);
    *(uint32_t *) (shape.quantized + row * p.k + column / 32 * 32 +
                   int8_word_offset<bits>(lane % 8)) = word;
    if (column % shape.all.group == 0)
        shape.scale[(size_t) (column / shape.all.group) * shape.padded_m + row] =
            make_float2(x.scale, -(float) x.zero);
}

/* ---- Stages --------------------------------------------------------------------------------- */

/* Two warps copy a panel, one of them its scales. */
template <class CONFIG>
__device__ __forceinline__ void int8_copy_weights(char *stage, const ft_cuda_groupwise_args &p,
                                                  const int8_wgmma_params &shape, int first_panel,
                                                  int column)
{
    int warp = (int) threadIdx.x / 32, lane = (int) threadIdx.x % 32;
    int panel = first_panel + warp / 2;
    bool inside = panel < shape.all.panels;
    panel = inside ? panel : shape.all.panels - 1;
    int which = groupwise_linear_of(shape.all, panel);
    const ft_cuda_groupwise_linear &linear = p.linear[which];
    int at = column * (4 * CONFIG::bits) + warp % 2 * (CONFIG::panel / 2);
    const char *from = linear.w + (size_t) panel * shape.all.panel_bytes + lane * 16 + at;
    char *own = stage + CONFIG::panels_at + warp / 2 * CONFIG::own;
    char *to = own + warp % 2 * (CONFIG::panel / 2) + groupwise_smem_write_offset((unsigned) lane);
#pragma unroll
    for (int i = 0; i < CONFIG::panel / 2; i += GROUPWISE_WARP_BYTES)
        ft_cp_async_16(to + i, from + i, inside);
    if (warp % 2 == 0 && lane < 4 * CONFIG::groups)
        ft_cp_async_16(own + CONFIG::panel + lane * 16,
                       linear.scale +
                           (size_t) (column / shape.all.group + lane / 4) *
                               shape.all.padded_n[which] +
                           panel * GROUPWISE_PANEL_ROWS + lane % 4 * 8,
                       inside);
}

/* x and its parameters. */
template <class CONFIG>
__device__ __forceinline__ void int8_copy_tokens(char *stage, const ft_cuda_groupwise_args &p,
                                                 const int8_wgmma_params &shape, int first_token,
                                                 int column)
{
    constexpr int chunks = CONFIG::tokens / 2;
#pragma unroll
    for (int i = 0; i < CONFIG::tokens * 8 / CONFIG::threads; i++) {
        int token = (int) threadIdx.x / 8 + i * (CONFIG::threads / 8);
        int chunk = (int) threadIdx.x % 8;
        size_t row = (size_t) (first_token + token);
        ft_cp_async_16(stage + token * GROUPWISE_TILE_K + (chunk ^ token % 8) * 16,
                       shape.quantized + row * p.k + column + chunk * 16, row < p.m);
    }
#pragma unroll
    for (int i = 0; i < CONFIG::groups * chunks; i += CONFIG::threads) {
        int own = i + (int) threadIdx.x;
        if (own < CONFIG::groups * chunks)
            ft_cp_async_16(stage + CONFIG::scales_at + own * 16,
                           shape.scale +
                               (size_t) (column / shape.all.group + own / chunks) * shape.padded_m +
                               first_token + own % chunks * 2,
                           true);
    }
}

#endif
