/*
 * mma_f16.cu - f16 and bf16 GEMM for many rows in the accumulation order of mma_f16.cuh, and kernel
 * selection for batch-invariant float GEMM.
 *
 * A thread block computes 128 weight rows by 128 or 64 tokens, with k tiles of 64 in a multistage
 * cp.async pipeline. Rows in shared memory have 128 bytes, and 16-byte chunk c of row r is stored
 * at c ^ 4 (r % 2), so loads are free of bank conflicts. Results leave through shared memory,
 * because a lane holds neighbouring tokens and not neighbouring columns.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/ptx/cp_async.cuh"
#include "kernels/cuda/gemm/f16/mma_f16.cuh"
#include "kernels/cuda/gemm/f16/wgmma_f16_gemm.h"

enum { TILE_N = 128, TILE_K = 64, ROW_BYTES = 2 * TILE_K, THREADS = 256, STAGES = 3 };

/* Eight warps, `warps_n` of them along the weight rows. */
template <int TILE_M> struct f16_mma_tile {
    static constexpr int tile_m = TILE_M, warps_n = tile_m == 128 ? 2 : 4, warps_m = 8 / warps_n;
    static constexpr int warp_n = TILE_N / warps_n, warp_m = tile_m / warps_m;
    static constexpr int stage = (TILE_N + tile_m) * ROW_BYTES;
    static constexpr int blocks_per_sm = tile_m == 128 ? 1 : 2; /* thread blocks per SM */
    static constexpr int acc_pitch = TILE_N + 4;                /* floats */
    static constexpr int acc = tile_m * acc_pitch * 4;
    static constexpr int shared = acc > STAGES *stage ? acc : STAGES *stage;
};

template <class TILE> using f16_mma_acc = float[TILE::warp_n / 16][TILE::warp_m / 8][4];

/*
 * A thread's part of the copies of `COUNT` rows: one 16-byte chunk of every 32nd row. Out-of-bounds
 * elements become zeros.
 */
template <int COUNT> struct f16_mma_loader {
    const uint16_t *from;
    uint32_t stride;
    uint32_t row_mask; /* bit i: row 32 i of the thread exists */
    int k_left;        /* of k, from the thread's first element */
    unsigned to;

    __device__ __forceinline__ f16_mma_loader(const void *matrix, size_t first, size_t count,
                                              size_t k, unsigned at)
    {
        unsigned chunk = threadIdx.x % 8, row = threadIdx.x / 8;
        from = (const uint16_t *) matrix + (first + row) * k + chunk * 8;
        stride = THREADS / 8 * (uint32_t) k;
        row_mask = 0;
#pragma unroll
        for (int i = 0; i < COUNT * 8 / THREADS; i++)
            row_mask |= (uint32_t) (first + row + i * (THREADS / 8) < count) << i;
        k_left = (int) k - (int) chunk * 8;
        to = at + row * ROW_BYTES + ((chunk ^ row % 2 * 4) << 4);
    }
    /* The next k tile. */
    __device__ __forceinline__ void copy(char *stage)
    {
#pragma unroll
        for (int i = 0; i < COUNT * 8 / THREADS; i++)
            ft_cp_async_16(stage + to + i * (THREADS / 8 * ROW_BYTES), from + i * (size_t) stride,
                           (row_mask >> i & 1) && k_left > 0);
        from += TILE_K;
        k_left -= TILE_K;
    }
};

/* The lane's 16 bytes of a row in one k step. */
__device__ __forceinline__ uint4 load_fragment(const char *rows, unsigned row, int k_step)
{
    unsigned chunk = k_step * 4 + threadIdx.x % 4;
    return *(const uint4 *) (rows + row * ROW_BYTES + ((chunk ^ row % 2 * 4) << 4));
}

template <class TILE, bool bf16>
__device__ __forceinline__ void multiply(f16_mma_acc<TILE> &sum, const char *stage)
{
    unsigned warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4;
    unsigned weight = warp % TILE::warps_n * TILE::warp_n + g;
    unsigned token = warp / TILE::warps_n * TILE::warp_m + g;
#pragma unroll
    for (int k_step = 0; k_step < TILE_K / F16_K_STEP; k_step++) {
        uint4 x[TILE::warp_m / 8];
#pragma unroll
        for (int j = 0; j < TILE::warp_m / 8; j++)
            x[j] = load_fragment(stage + TILE_N * ROW_BYTES, token + 8 * j, k_step);
#pragma unroll
        for (int i = 0; i < TILE::warp_n / 16; i++) {
            uint4 upper = load_fragment(stage, weight + 16 * i, k_step);
            uint4 lower = load_fragment(stage, weight + 16 * i + 8, k_step);
#pragma unroll
            for (int j = 0; j < TILE::warp_m / 8; j++)
                f16_mma_k_step<bf16>(sum[i][j], upper, lower, x[j]);
        }
    }
}

/* Accumulators to shared memory as [token][column]. */
template <class TILE>
__device__ __forceinline__ void store_acc(float *to, const f16_mma_acc<TILE> &sum)
{
    unsigned warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    unsigned col = warp % TILE::warps_n * TILE::warp_n + g;
    unsigned row = warp / TILE::warps_n * TILE::warp_m + 2 * t;
#pragma unroll
    for (int i = 0; i < TILE::warp_n / 16; i++)
#pragma unroll
        for (int j = 0; j < TILE::warp_m / 8; j++)
#pragma unroll
            for (int c = 0; c < 4; c++)
                to[(row + 8 * j + c % 2) * TILE::acc_pitch + col + 16 * i + c / 2 * 8] =
                    sum[i][j][c];
}

/* Store four columns of a row of y, fewer at its end. */
__device__ __forceinline__ void store_x4(const ft_cuda_float_gemm_args &p, const float *acc,
                                         size_t row, size_t col, bool vectorized)
{
    float value[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        value[i] = acc[i];
        if (p.bias != NULL && col + i < p.n)
            value[i] += p.bias[col + i];
    }
    ft_activate_vec<4>(p.activation, value);
    if (vectorized) {
        ft_store<4>(p.y, p.y_dtype, row * p.n + col, value);
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (col + i < p.n)
            ft_store<1>(p.y, p.y_dtype, row * p.n + col + i, value + i);
}

template <class TILE>
__device__ __forceinline__ void store_tile(const ft_cuda_float_gemm_args &p, const float *acc,
                                           size_t first_row, size_t first_col)
{
    unsigned right = threadIdx.x % (TILE_N / 4) * 4;
    bool vectorized = p.n % 4 == 0 && (uintptr_t) p.y % 16 == 0;
    if (first_col + right >= p.n)
        return;
    for (unsigned token = threadIdx.x / (TILE_N / 4); token < TILE::tile_m;
         token += THREADS / (TILE_N / 4))
        if (first_row + token < p.m)
            store_x4(p, acc + token * TILE::acc_pitch + right, first_row + token, first_col + right,
                     vectorized);
}

/* grid = (tiles of tokens, tiles of weights) */
template <class TILE, bool bf16>
static __global__ void __launch_bounds__(THREADS, TILE::blocks_per_sm)
    f16_mma_kernel(const __grid_constant__ ft_cuda_float_gemm_args p)
{
    extern __shared__ __align__(128) char shared[];
    size_t first_row = (size_t) blockIdx.x * TILE::tile_m, first_col = (size_t) blockIdx.y * TILE_N;
    f16_mma_acc<TILE> sum = {};
    f16_mma_loader<TILE_N> w(p.w, first_col, p.n, p.k, 0);
    f16_mma_loader<TILE::tile_m> x(p.x, first_row, p.m, p.k, TILE_N * ROW_BYTES);
    for (int i = 0; i < STAGES - 1; i++) /* weights do not depend on the predecessor */
        w.copy(shared + i * TILE::stage);
    ft_pdl_wait();
    for (int i = 0; i < STAGES - 1; i++) {
        x.copy(shared + i * TILE::stage);
        ft_cp_async_commit();
    }
    ft_pdl_launch_dependents();
    int read_stage = 0, write_stage = STAGES - 1;
    for (int k_left = (int) p.k; k_left > 0; k_left -= TILE_K) {
        ft_cp_async_wait<STAGES - 2>();
        __syncthreads(); /* this stage has arrived, and all warps have read the previous one */
        w.copy(shared + write_stage * TILE::stage);
        x.copy(shared + write_stage * TILE::stage);
        ft_cp_async_commit();
        multiply<TILE, bf16>(sum, shared + read_stage * TILE::stage);
        read_stage = read_stage + 1 == STAGES ? 0 : read_stage + 1;
        write_stage = write_stage + 1 == STAGES ? 0 : write_stage + 1;
    }
    ft_cp_async_wait<0>();
    __syncthreads();
    store_acc<TILE>((float *) shared, sum);
    __syncthreads();
    store_tile<TILE>(p, (const float *) shared, first_row, first_col);
}

/* ---- Host ----------------------------------------------------------------------------------- */

template <class TILE, bool bf16>
static int launch(const ft_cuda_device_props *props, void *stream, const ft_cuda_float_gemm_args *p)
{
    auto *kernel = f16_mma_kernel<TILE, bf16>;
    cudaError_t status =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, TILE::shared);
    if (status != cudaSuccess)
        return (int) status;
    dim3 grid(ft_ceil_div(p->m, TILE::tile_m), ft_ceil_div(p->n, TILE_N));
    return ft_launch(kernel, grid, THREADS, TILE::shared, stream, props->has_pdl, 1, *p);
}

template <bool bf16>
static int launch_tile(ft_cuda_f16_mma_tile tile, const ft_cuda_device_props *props, void *stream,
                       const ft_cuda_float_gemm_args *p)
{
    return tile == FT_CUDA_F16_MMA_M64 ? launch<f16_mma_tile<64>, bf16>(props, stream, p)
                                       : launch<f16_mma_tile<128>, bf16>(props, stream, p);
}

/* Larger tiles where there are enough for all SMs. */
ft_cuda_f16_mma_tile ft_cuda_f16_mma_select(const ft_cuda_device_props *props,
                                            const ft_cuda_float_gemm_args *p)
{
    size_t tiles = (p->m + 127) / 128 * ((p->n + TILE_N - 1) / TILE_N);
    return p->m <= 64 || tiles < (size_t) props->sm_count ? FT_CUDA_F16_MMA_M64
                                                          : FT_CUDA_F16_MMA_M128;
}

int ft_cuda_f16_mma(ft_cuda_f16_mma_tile tile, const ft_cuda_device_props *props, void *stream,
                    const ft_cuda_float_gemm_args *p)
{
    return p->x_dtype == FT_BF16 ? launch_tile<true>(tile, props, stream, p)
                                 : launch_tile<false>(tile, props, stream, p);
}

/*
 * Copies are 16 bytes wide. Turing has no bf16 and too little shared memory for a tile of 128
 * tokens.
 */
bool ft_cuda_f16_mma_supports(const ft_cuda_device_props *props, const ft_cuda_float_gemm_args *p)
{
    return p->x_dtype == p->w_dtype && (p->x_dtype == FT_F16 || p->x_dtype == FT_BF16) &&
           props->capability >= 80 && p->k % 8 == 0 && p->k < 1u << 26 &&
           (uintptr_t) p->x % 16 == 0 && (uintptr_t) p->w % 16 == 0 &&
           props->smem_bytes >= (size_t) f16_mma_tile<128>::shared &&
           p->n <= (size_t) 65535 * TILE_N && p->m <= INT32_MAX;
}
