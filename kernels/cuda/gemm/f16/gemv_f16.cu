/*
 * gemv_f16.cu - f16 and bf16 GEMV for up to 16 rows: streams the weights once.
 *
 * A warp computes 16 weight rows and is a thread block of its own, so there are no barriers and the
 * device balances the warps evenly. Weights are prefetched into a register pipeline in rows of 128
 * bytes (64 k); the first stages are loaded before the predecessor ends. x comes from L1, one stage
 * ahead.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/f16/mma_f16.cuh"

enum { TILE_N = 16, STAGE_K = 2 * F16_K_STEP };

/* A lane's fragment of a 128-byte row of the weights: [k step][upper, lower]. */
typedef uint4 weight_frag[2][2];

/*
 * 16-byte load of read-only data that is read once. There are many rows and each is read in
 * 128-byte pieces: L2 prefetch of 256 bytes keeps DRAM accesses in the same page longer (32000 x
 * 4096 on an H200: 67 us instead of 75).
 */
__device__ __forceinline__ uint4 load_streaming(const uint16_t *from, bool inside)
{
    uint4 v = make_uint4(0, 0, 0, 0);
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
    if (inside)
        asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                     : "l"(from));
#endif
    return v;
}

__device__ __forceinline__ void load_weights(weight_frag &bits, const uint16_t *upper,
                                             const uint16_t *lower, int at, int k_left)
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
        int own = at + i * F16_K_STEP;
        bits[i][0] = load_streaming(upper + own, own < k_left);
        bits[i][1] = load_streaming(lower + own, own < k_left);
    }
}

/* Token g of each tile of 8. */
template <int TOKEN_TILES>
__device__ __forceinline__ void load_tokens(uint4 (&bits)[TOKEN_TILES][2], const uint16_t *x,
                                            const ft_cuda_float_gemm_args &p, int rows, int at,
                                            int k_left)
{
#pragma unroll
    for (int j = 0; j < TOKEN_TILES; j++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            int own = at + i * F16_K_STEP;
            bits[j][i] = make_uint4(0, 0, 0, 0);
            if (8 * j < rows && own < k_left)
                bits[j][i] = *(const uint4 *) (x + (size_t) (8 * j) * p.k + own);
        }
}

/* A lane's results: weight rows g and g + 8, tokens 2t and 2t + 1. */
__device__ __forceinline__ void store_x4(const ft_cuda_float_gemm_args &p, const float (&sum)[4],
                                         size_t col, size_t row)
{
#pragma unroll
    for (int c = 0; c < 4; c++) {
        size_t own_col = col + c / 2 * 8, own_row = row + c % 2;
        if (own_col >= p.n || own_row >= p.m)
            continue;
        float value = sum[c];
        if (p.bias != NULL)
            value += p.bias[own_col];
        value = ft_activate(p.activation, value);
        ft_store<1>(p.y, p.y_dtype, own_row * p.n + own_col, &value);
    }
}

/* blockDim.x = 32; grid = ceil(n / 16). STAGES stages are in flight. */
template <bool bf16, int TOKEN_TILES, int STAGES>
static __global__ void __launch_bounds__(32)
    gemv_kernel(const __grid_constant__ ft_cuda_float_gemm_args p)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800 /* not Turing: ft_cuda_f16_mma_supports() */
    int g = threadIdx.x / 4, t = threadIdx.x % 4;
    int rows = (int) p.m - g, k_left = (int) p.k - 8 * t; /* from the lane's first element */
    size_t first = (size_t) blockIdx.x * TILE_N + g, last = p.n - 1;
    const uint16_t *w = (const uint16_t *) p.w + 8 * t;
    const uint16_t *upper = w + min(first, last) * p.k, *lower = w + min(first + 8, last) * p.k;
    const uint16_t *x = (const uint16_t *) p.x + (size_t) g * p.k + 8 * t;
    weight_frag w_stages[STAGES];
    uint4 tokens[2][TOKEN_TILES][2];
    float sum[TOKEN_TILES][4] = {};
#pragma unroll
    for (int i = 0; i < STAGES; i++)
        load_weights(w_stages[i], upper, lower, i * STAGE_K, k_left);
    ft_pdl_wait();
    load_tokens<TOKEN_TILES>(tokens[0], x, p, rows, 0, k_left);
    for (int from = 0; from < (int) p.k; from += STAGES * STAGE_K) {
#pragma unroll
        for (int i = 0; i < STAGES; i++) {
            int at = from + i * STAGE_K;
            load_tokens<TOKEN_TILES>(tokens[(i + 1) % 2], x, p, rows, at + STAGE_K, k_left);
#pragma unroll
            for (int k_step = 0; k_step < 2; k_step++)
#pragma unroll
                for (int j = 0; j < TOKEN_TILES; j++)
                    f16_mma_k_step<bf16>(sum[j], w_stages[i][k_step][0], w_stages[i][k_step][1],
                                         tokens[i % 2][j][k_step]);
            load_weights(w_stages[i], upper, lower, at + STAGES * STAGE_K, k_left);
        }
    }
    ft_pdl_launch_dependents();
#pragma unroll
    for (int j = 0; j < TOKEN_TILES; j++)
        store_x4(p, sum[j], first, (size_t) (8 * j + 2 * t));
#endif
}

/* ------------------------------------------------------------------------------------------ */

template <bool bf16, int TOKEN_TILES, int STAGES>
static int launch(const ft_cuda_device_props *props, void *stream, const ft_cuda_float_gemm_args *p)
{
    return ft_launch(gemv_kernel<bf16, TOKEN_TILES, STAGES>, dim3(ft_ceil_div(p->n, TILE_N)), 32, 0,
                     stream, props->has_pdl, 1, *p);
}

/* With fewer warps, each keeps more loads in flight. */
template <bool bf16>
static int launch_for_size(const ft_cuda_device_props *props, void *stream,
                           const ft_cuda_float_gemm_args *p)
{
    bool many_warps = p->n > (size_t) (6 * TILE_N) * (size_t) props->sm_count;
    if (p->m <= 8)
        return many_warps ? launch<bf16, 1, 4>(props, stream, p)
                          : launch<bf16, 1, 8>(props, stream, p);
    return many_warps ? launch<bf16, 2, 4>(props, stream, p) : launch<bf16, 2, 8>(props, stream, p);
}

int ft_cuda_f16_gemv(const ft_cuda_device_props *props, void *stream,
                     const ft_cuda_float_gemm_args *p)
{
    return p->x_dtype == FT_BF16 ? launch_for_size<true>(props, stream, p)
                                 : launch_for_size<false>(props, stream, p);
}
