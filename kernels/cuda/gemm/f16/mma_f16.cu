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

enum { WEIGHTS = 128, STEP = 64, LINE = 2 * STEP, THREADS = 256, STAGES = 3 };

/* Eight warps, `warps_n` of them along the weight rows. */
template <int TOKENS_> struct halves_tile {
    static constexpr int tokens = TOKENS_, down = tokens == 128 ? 2 : 4, across = 8 / down;
    static constexpr int warp_weights = WEIGHTS / down, warp_tokens = tokens / across;
    static constexpr int stage = (WEIGHTS + tokens) * LINE;
    static constexpr int beside = tokens == 128 ? 1 : 2; /* thread blocks per SM */
    static constexpr int sums_row = WEIGHTS + 4;         /* floats */
    static constexpr int sums = tokens * sums_row * 4;
    static constexpr int shared = sums > STAGES *stage ? sums : STAGES *stage;
};

template <class TILE> using halves_sums = float[TILE::warp_weights / 16][TILE::warp_tokens / 8][4];

/*
 * A thread's part of the copies of `COUNT` rows: one 16-byte chunk of every 32nd row. Out-of-bounds
 * elements become zeros.
 */
template <int COUNT> struct halves_feed {
    const uint16_t *from;
    uint32_t stride;
    uint32_t inside; /* bit i: row 32 i of the thread exists */
    int left;        /* of k, from the thread's first element */
    unsigned to;

    __device__ __forceinline__ halves_feed(const void *matrix, size_t first, size_t count, size_t k,
                                           unsigned at)
    {
        unsigned chunk = threadIdx.x % 8, row = threadIdx.x / 8;
        from = (const uint16_t *) matrix + (first + row) * k + chunk * 8;
        stride = THREADS / 8 * (uint32_t) k;
        inside = 0;
#pragma unroll
        for (int i = 0; i < COUNT * 8 / THREADS; i++)
            inside |= (uint32_t) (first + row + i * (THREADS / 8) < count) << i;
        left = (int) k - (int) chunk * 8;
        to = at + row * LINE + ((chunk ^ row % 2 * 4) << 4);
    }
    /* The next k tile. */
    __device__ __forceinline__ void copy(char *stage)
    {
#pragma unroll
        for (int i = 0; i < COUNT * 8 / THREADS; i++)
            ft_copy_16(stage + to + i * (THREADS / 8 * LINE), from + i * (size_t) stride,
                       (inside >> i & 1) && left > 0);
        from += STEP;
        left -= STEP;
    }
};

/* The lane's 16 bytes of a row in one k step. */
__device__ __forceinline__ uint4 read_row(const char *rows, unsigned row, int window)
{
    unsigned chunk = window * 4 + threadIdx.x % 4;
    return *(const uint4 *) (rows + row * LINE + ((chunk ^ row % 2 * 4) << 4));
}

template <class TILE, bool bf16>
__device__ __forceinline__ void multiply(halves_sums<TILE> &sum, const char *stage)
{
    unsigned warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4;
    unsigned weight = warp % TILE::down * TILE::warp_weights + g;
    unsigned token = warp / TILE::down * TILE::warp_tokens + g;
#pragma unroll
    for (int window = 0; window < STEP / HALVES_WINDOW; window++) {
        uint4 x[TILE::warp_tokens / 8];
#pragma unroll
        for (int j = 0; j < TILE::warp_tokens / 8; j++)
            x[j] = read_row(stage + WEIGHTS * LINE, token + 8 * j, window);
#pragma unroll
        for (int i = 0; i < TILE::warp_weights / 16; i++) {
            uint4 upper = read_row(stage, weight + 16 * i, window);
            uint4 lower = read_row(stage, weight + 16 * i + 8, window);
#pragma unroll
            for (int j = 0; j < TILE::warp_tokens / 8; j++)
                halves_multiply<bf16>(sum[i][j], upper, lower, x[j]);
        }
    }
}

/* Accumulators to shared memory as [token][column]. */
template <class TILE>
__device__ __forceinline__ void lay_down(float *to, const halves_sums<TILE> &sum)
{
    unsigned warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    unsigned col = warp % TILE::down * TILE::warp_weights + g;
    unsigned row = warp / TILE::down * TILE::warp_tokens + 2 * t;
#pragma unroll
    for (int i = 0; i < TILE::warp_weights / 16; i++)
#pragma unroll
        for (int j = 0; j < TILE::warp_tokens / 8; j++)
#pragma unroll
            for (int c = 0; c < 4; c++)
                to[(row + 8 * j + c % 2) * TILE::sums_row + col + 16 * i + c / 2 * 8] =
                    sum[i][j][c];
}

/* Store four columns of a row of y, fewer at its end. */
__device__ __forceinline__ void put_four(const ft_cuda_float_product &p, const float *sums,
                                         size_t row, size_t col, bool whole)
{
    float value[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        value[i] = sums[i];
        if (p.bias != NULL && col + i < p.n)
            value[i] += p.bias[col + i];
    }
    ft_activate_all<4>(p.activation, value);
    if (whole) {
        ft_store<4>(p.y, p.y_dtype, row * p.n + col, value);
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (col + i < p.n)
            ft_store<1>(p.y, p.y_dtype, row * p.n + col + i, value + i);
}

template <class TILE>
__device__ __forceinline__ void put(const ft_cuda_float_product &p, const float *sums,
                                    size_t first_row, size_t first_col)
{
    unsigned right = threadIdx.x % (WEIGHTS / 4) * 4;
    bool whole = p.n % 4 == 0 && (uintptr_t) p.y % 16 == 0;
    if (first_col + right >= p.n)
        return;
    for (unsigned token = threadIdx.x / (WEIGHTS / 4); token < TILE::tokens;
         token += THREADS / (WEIGHTS / 4))
        if (first_row + token < p.m)
            put_four(p, sums + token * TILE::sums_row + right, first_row + token, first_col + right,
                     whole);
}

/* grid = (tiles of tokens, tiles of weights) */
template <class TILE, bool bf16>
static __global__ void __launch_bounds__(THREADS, TILE::beside)
    halves_kernel(const __grid_constant__ ft_cuda_float_product p)
{
    extern __shared__ __align__(128) char shared[];
    size_t first_row = (size_t) blockIdx.x * TILE::tokens,
           first_col = (size_t) blockIdx.y * WEIGHTS;
    halves_sums<TILE> sum = {};
    halves_feed<WEIGHTS> w(p.w, first_col, p.n, p.k, 0);
    halves_feed<TILE::tokens> x(p.x, first_row, p.m, p.k, WEIGHTS * LINE);
    for (int i = 0; i < STAGES - 1; i++) /* weights do not depend on the predecessor */
        w.copy(shared + i * TILE::stage);
    ft_wait_for_predecessor();
    for (int i = 0; i < STAGES - 1; i++) {
        x.copy(shared + i * TILE::stage);
        ft_copy_commit();
    }
    ft_let_successor_begin();
    int slot = 0, into = STAGES - 1;
    for (int left = (int) p.k; left > 0; left -= STEP) {
        ft_copy_wait<STAGES - 2>();
        __syncthreads(); /* this stage has arrived, and all warps have read the previous one */
        w.copy(shared + into * TILE::stage);
        x.copy(shared + into * TILE::stage);
        ft_copy_commit();
        multiply<TILE, bf16>(sum, shared + slot * TILE::stage);
        slot = slot + 1 == STAGES ? 0 : slot + 1;
        into = into + 1 == STAGES ? 0 : into + 1;
    }
    ft_copy_wait<0>();
    __syncthreads();
    lay_down<TILE>((float *) shared, sum);
    __syncthreads();
    put<TILE>(p, (const float *) shared, first_row, first_col);
}

/* ---- Host ----------------------------------------------------------------------------------- */

template <class TILE, bool bf16>
static int launch(const ft_cuda_chip *chip, void *stream, const ft_cuda_float_product *p)
{
    auto *kernel = halves_kernel<TILE, bf16>;
    cudaError_t status =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, TILE::shared);
    if (status != cudaSuccess)
        return (int) status;
    dim3 grid(ft_cover(p->m, TILE::tokens), ft_cover(p->n, WEIGHTS));
    return ft_launch(kernel, grid, THREADS, TILE::shared, stream, chip->overlaps, 1, *p);
}

/* Larger tiles where there are enough for all SMs. */
template <bool bf16>
static int launch_any(const ft_cuda_chip *chip, void *stream, const ft_cuda_float_product *p)
{
    size_t tiles = (p->m + 127) / 128 * ((p->n + WEIGHTS - 1) / WEIGHTS);
    if (p->m <= 64 || tiles < (size_t) chip->multiprocessors)
        return launch<halves_tile<64>, bf16>(chip, stream, p);
    return launch<halves_tile<128>, bf16>(chip, stream, p);
}

int ft_cuda_halves(const ft_cuda_chip *chip, void *stream, const ft_cuda_float_product *p)
{
    return p->x_dtype == FT_BF16 ? launch_any<true>(chip, stream, p)
                                 : launch_any<false>(chip, stream, p);
}

/*
 * Copies are 16 bytes wide. Turing has no bf16 and too little shared memory for a tile of 128
 * tokens.
 */
bool ft_cuda_halves_takes(const ft_cuda_chip *chip, const ft_cuda_float_product *p)
{
    return p->x_dtype == p->w_dtype && (p->x_dtype == FT_F16 || p->x_dtype == FT_BF16) &&
           chip->capability >= 80 && p->k % 8 == 0 && p->k < 1u << 26 &&
           (uintptr_t) p->x % 16 == 0 && (uintptr_t) p->w % 16 == 0 &&
           chip->shared >= (size_t) halves_tile<128>::shared && p->n <= (size_t) 65535 * WEIGHTS &&
           p->m <= INT32_MAX;
}

/*
 * The choice between families of kernels never depends on m, and the kernels of a family return the
 * same bits.
 */
extern "C" int ft_cuda_float_steady(const ft_cuda_chip *chip, void *stream,
                                    const ft_cuda_float_product *p)
{
    if (p->m == 0 || p->n == 0)
        return (int) cudaSuccess;
    if (ft_cuda_wgmma_halves_takes(chip, p))
        return ft_cuda_wgmma_halves(chip, stream, p, 1);
    if (!ft_cuda_halves_takes(chip, p))
        return ft_cuda_float_few(chip, stream, p);
    return p->m <= FT_CUDA_HALVES_FEW ? ft_cuda_halves_few(chip, stream, p)
                                      : ft_cuda_halves(chip, stream, p);
}
