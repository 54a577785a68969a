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

enum { ROWS = 16, LINE = 2 * HALVES_WINDOW };

/* A lane's fragment of a 128-byte row of the weights: [k step][upper, lower]. */
typedef uint4 line_bits[2][2];

/*
 * 16-byte load of read-only data that is read once. There are many rows and each is read in
 * 128-byte pieces: L2 prefetch of 256 bytes keeps DRAM accesses in the same page longer (32000 x
 * 4096 on an H200: 67 us instead of 75).
 */
__device__ __forceinline__ uint4 load_passing(const uint16_t *from, bool inside)
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

__device__ __forceinline__ void load_line(line_bits &bits, const uint16_t *upper,
                                          const uint16_t *lower, int at, int left)
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
        int own = at + i * HALVES_WINDOW;
        bits[i][0] = load_passing(upper + own, own < left);
        bits[i][1] = load_passing(lower + own, own < left);
    }
}

/* Token g of each tile of 8. */
template <int EIGHTS>
__device__ __forceinline__ void load_tokens(uint4 (&bits)[EIGHTS][2], const uint16_t *x,
                                            const ft_cuda_float_product &p, int rows, int at,
                                            int left)
{
#pragma unroll
    for (int j = 0; j < EIGHTS; j++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            int own = at + i * HALVES_WINDOW;
            bits[j][i] = make_uint4(0, 0, 0, 0);
            if (8 * j < rows && own < left)
                bits[j][i] = *(const uint4 *) (x + (size_t) (8 * j) * p.k + own);
        }
}

/* A lane's results: weight rows g and g + 8, tokens 2t and 2t + 1. */
__device__ __forceinline__ void put_four(const ft_cuda_float_product &p, const float (&sum)[4],
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

/* blockDim.x = 32; grid = ceil(n / 16). AHEAD stages are in flight. */
template <bool bf16, int EIGHTS, int AHEAD>
static __global__ void __launch_bounds__(32)
    few_kernel(const __grid_constant__ ft_cuda_float_product p)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800 /* not Turing: ft_cuda_halves_takes() */
    int g = threadIdx.x / 4, t = threadIdx.x % 4;
    int rows = (int) p.m - g, left = (int) p.k - 8 * t; /* from the lane's first element */
    size_t first = (size_t) blockIdx.x * ROWS + g, last = p.n - 1;
    const uint16_t *w = (const uint16_t *) p.w + 8 * t;
    const uint16_t *upper = w + min(first, last) * p.k, *lower = w + min(first + 8, last) * p.k;
    const uint16_t *x = (const uint16_t *) p.x + (size_t) g * p.k + 8 * t;
    line_bits line[AHEAD];
    uint4 tokens[2][EIGHTS][2];
    float sum[EIGHTS][4] = {};
#pragma unroll
    for (int i = 0; i < AHEAD; i++)
        load_line(line[i], upper, lower, i * LINE, left);
    ft_wait_for_predecessor();
    load_tokens<EIGHTS>(tokens[0], x, p, rows, 0, left);
    for (int from = 0; from < (int) p.k; from += AHEAD * LINE) {
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            int at = from + i * LINE;
            load_tokens<EIGHTS>(tokens[(i + 1) % 2], x, p, rows, at + LINE, left);
#pragma unroll
            for (int window = 0; window < 2; window++)
#pragma unroll
                for (int j = 0; j < EIGHTS; j++)
                    halves_multiply<bf16>(sum[j], line[i][window][0], line[i][window][1],
                                          tokens[i % 2][j][window]);
            load_line(line[i], upper, lower, at + AHEAD * LINE, left);
        }
    }
    ft_let_successor_begin();
#pragma unroll
    for (int j = 0; j < EIGHTS; j++)
        put_four(p, sum[j], first, (size_t) (8 * j + 2 * t));
#endif
}

/* ------------------------------------------------------------------------------------------ */

template <bool bf16, int EIGHTS, int AHEAD>
static int launch(const ft_cuda_chip *chip, void *stream, const ft_cuda_float_product *p)
{
    return ft_launch(few_kernel<bf16, EIGHTS, AHEAD>, dim3(ft_cover(p->n, ROWS)), 32, 0, stream,
                     chip->overlaps, 1, *p);
}

/* With fewer warps, each keeps more loads in flight. */
template <bool bf16>
static int launch_any(const ft_cuda_chip *chip, void *stream, const ft_cuda_float_product *p)
{
    bool many = p->n > (size_t) (6 * ROWS) * (size_t) chip->multiprocessors;
    if (p->m <= 8)
        return many ? launch<bf16, 1, 4>(chip, stream, p) : launch<bf16, 1, 8>(chip, stream, p);
    return many ? launch<bf16, 2, 4>(chip, stream, p) : launch<bf16, 2, 8>(chip, stream, p);
}

int ft_cuda_halves_few(const ft_cuda_chip *chip, void *stream, const ft_cuda_float_product *p)
{
    return p->x_dtype == FT_BF16 ? launch_any<true>(chip, stream, p)
                                 : launch_any<false>(chip, stream, p);
}
