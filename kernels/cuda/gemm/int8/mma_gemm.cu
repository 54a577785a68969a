/*
 * mma_gemm.cu - mma.sync INT8 GEMM for many rows: weights are read directly in COL4_4R2_8C.
 *
 * 32 rows of w by 32 k are 1,024 contiguous bytes of that layout, and two 16-byte loads per lane
 * split them into the B fragments of four instructions without any shuffle: word i of lane (g, t) =
 * (lane / 4, lane % 4) belongs to instruction i, whose column g is row 8 (g / 2) + g % 2 + 2 i of
 * w. A lane therefore ends up with columns 8t .. 8t + 7 of rows g and g + 8, which is one vector
 * store.
 *
 * A thread block iterates over k tiles of 64 in a multistage cp.async pipeline. Both operands are
 * swizzled in 16-byte chunks to avoid bank conflicts: rows of x (64 bytes) by chunk ^= row / 2 % 4,
 * weights by bit 6 ^= bit 7. Fragments are double-buffered: those of the second half of a k tile
 * are loaded while the first half is multiplied.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/ptx/cp_async.cuh"
#include "kernels/cuda/gemm/int8/mma_gemm.cuh"
#include "kernels/cuda/gemm/int8/store_out.cuh"
#include "kernels/cuda/ptx/mma.cuh"
#include "kernels/layout.h"

enum { STEP = 64, SLAB = 32 };

/*
 * A thread block's tile, split into `warps_m` x `warps_n` warps. A warp's tokens are a multiple of
 * 16, its columns of 32. The thread count divides the number of 16-byte chunks in 32 k of the
 * tile's columns, or the reverse.
 */
template <int tokens_, int columns_, int down_, int across_, int stages_, int blocks_>
struct mma_tile {
    enum {
        tokens = tokens_,
        columns = columns_,
        down = down_,
        across = across_,
        stages = stages_,
        blocks = blocks_, /* per SM */
        threads = 32 * down * across,
        warp_tokens = tokens / down,
        warp_columns = columns / across,
        x_bytes = tokens * STEP,
        stage_bytes = x_bytes + columns * STEP,
        shared = stages * stage_bytes + columns * 2 * (int) sizeof(float),
    };
};

/* A warp's fragments for 32 k. */
template <typename tile> struct fragments {
    uint32_t x[tile::warp_tokens / 16][4];
    uint32_t w[tile::warp_columns / 32][2][4];
};

/*
 * A thread's part of the global-to-shared copies: the first chunk of x and of w and the strides to
 * the others, which are uniform across threads. Row bounds are checked once, here.
 */
template <typename tile> struct feed {
    enum {
        x_copies = tile::tokens * 4 / tile::threads,
        w_copies = tile::columns * 4 / tile::threads,
        slab_chunks = tile::columns * 2,
    };
    const int8_t *x, *w;
    size_t x_stride, slab_stride;
    unsigned x_to, w_to;     /* offset in a stage */
    unsigned x_rows, w_rows; /* bit i: copy i is in bounds */
    int x_at, w_at;          /* k before the first chunk of a k tile */
};

template <typename tile>
__device__ __forceinline__ feed<tile> open_feed(const ft_cuda_product &p, uint32_t first_row,
                                                uint32_t first_col)
{
    feed<tile> f;
    unsigned row = threadIdx.x / 4, x_chunk = threadIdx.x % 4;
    unsigned slab = threadIdx.x / f.slab_chunks, w_chunk = threadIdx.x % f.slab_chunks;
    size_t padded_n = ft_layout_rows(FT_COL4_4R2_8C, p.n);
    f.x_stride = tile::threads / 4 * p.k;
    f.slab_stride = SLAB * padded_n;
    f.x = p.x + (first_row + row) * p.k + 16 * x_chunk;
    f.w = p.w + slab * f.slab_stride + (size_t) first_col * SLAB + 16 * w_chunk;
    f.x_to = row * STEP + ((x_chunk ^ row / 2 % 4) << 4);
    f.w_to = tile::x_bytes + ((threadIdx.x ^ threadIdx.x / 8 % 2 * 4) << 4);
    f.x_at = 16 * (int) x_chunk;
    f.w_at = SLAB * (int) slab;
    f.x_rows = f.w_rows = 0;
#pragma unroll
    for (unsigned i = 0; i < f.x_copies; i++)
        f.x_rows |= (first_row + row + i * (tile::threads / 4) < p.m) << i;
#pragma unroll
    for (unsigned i = 0; i < f.w_copies; i++) {
        unsigned chunk = w_chunk + i * tile::threads % f.slab_chunks;
        f.w_rows |= (first_col + chunk / 16 * 8 < padded_n) << i;
    }
    return f;
}

/* Copy x of a k tile; `left` k remain from its start. */
template <typename tile>
__device__ __forceinline__ void feed_x(feed<tile> &f, char *stage, int left)
{
#pragma unroll
    for (unsigned i = 0; i < f.x_copies; i++)
        ft_copy_16(stage + f.x_to + i * (tile::threads / 4 * STEP), f.x + i * f.x_stride,
                   (f.x_rows >> i & 1) && f.x_at < left);
    f.x += STEP;
}

template <typename tile>
__device__ __forceinline__ void feed_w(feed<tile> &f, char *stage, int left)
{
#pragma unroll
    for (unsigned i = 0; i < f.w_copies; i++) {
        const unsigned slab = i * tile::threads / f.slab_chunks;
        const unsigned chunk = i * tile::threads % f.slab_chunks;
        ft_copy_16(stage + f.w_to + i * (tile::threads * 16),
                   f.w + slab * f.slab_stride + chunk * 16,
                   (f.w_rows >> i & 1) && f.w_at + (int) slab * SLAB < left);
    }
    f.w += STEP / SLAB * f.slab_stride;
}

/* A lane's fragment offsets in the first 32 k of a stage. */
typedef struct places {
    unsigned x, w;
} places;

template <typename tile> __device__ __forceinline__ places places_of_lane()
{
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
    unsigned row = warp % tile::down * tile::warp_tokens + lane % 16;
    unsigned col = warp / tile::down * tile::warp_columns;
    return places{ row * STEP + ((lane / 16 ^ row / 2 % 4) << 4),
                   tile::x_bytes + col * SLAB + g / 2 * 256 + g % 2 * (128 + 64) + t * 16 };
}

template <typename tile>
__device__ __forceinline__ void load(fragments<tile> &f, const char *stage, places at, int slab)
{
    const char *x = stage + (at.x ^ slab * 32), *w = stage + at.w + slab * (tile::columns * SLAB);
    const char *other = stage + (at.w ^ 64) + slab * (tile::columns * SLAB);
#pragma unroll
    for (int i = 0; i < tile::warp_tokens / 16; i++)
        ft_load_tiles(f.x[i], x + i * 16 * STEP);
#pragma unroll
    for (int j = 0; j < tile::warp_columns / 32; j++) {
        uint4 low = *(const uint4 *) (w + j * 1024), high = *(const uint4 *) (other + j * 1024);
        f.w[j][0][0] = low.x, f.w[j][0][1] = low.y, f.w[j][0][2] = low.z, f.w[j][0][3] = low.w;
        f.w[j][1][0] = high.x, f.w[j][1][1] = high.y, f.w[j][1][2] = high.z, f.w[j][1][3] = high.w;
    }
}

template <typename tile>
__device__ __forceinline__ void
multiply(int32_t (&sum)[tile::warp_tokens / 16][tile::warp_columns / 8][4],
         const fragments<tile> &f)
{
#pragma unroll
    for (int j = 0; j < tile::warp_columns / 8; j++) {
#pragma unroll
        for (int i = 0; i < tile::warp_tokens / 16; i++)
            ft_mma_codes(sum[i][j], f.x[i], f.w[j / 4][0][j % 4], f.w[j / 4][1][j % 4]);
    }
}

/* Scales and biases are kept in shared memory for the epilogue. */
template <typename tile>
__device__ __forceinline__ void stage_columns(const ft_cuda_product &p, float *scale,
                                              uint32_t first_col)
{
    for (unsigned i = threadIdx.x; i < tile::columns; i += tile::threads) {
        bool inside = first_col + i < p.n;
        scale[i] = inside ? ft_column_scale(p, first_col + i) : 0.0f;
        scale[tile::columns + i] = inside ? ft_column_bias(p, first_col + i) : 0.0f;
    }
}

__device__ __forceinline__ void load_eight(float out[8], const float *in)
{
#pragma unroll
    for (int i = 0; i < 8; i += 4) {
        float4 four = *(const float4 *) (in + i);
        out[i] = four.x, out[i + 1] = four.y, out[i + 2] = four.z, out[i + 3] = four.w;
    }
}

/*
 * Epilogue of the warp, 16 rows at a time. The loop must not be unrolled, and registers are
 * selected by branches: unrolled, the epilogue is 100 to 400 KB of code that runs once, and
 * instruction fetches took 3 to 11 us per tile.
 */
template <typename tile, ft_epilogue epilogue>
__device__ __forceinline__ void
put(const ft_cuda_product &p, ft_out_shape shape, const float *columns,
    const int32_t (&sum)[tile::warp_tokens / 16][tile::warp_columns / 8][4], uint32_t first_row,
    uint32_t first_col)
{
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
    uint32_t row = first_row + warp % tile::down * tile::warp_tokens + g, m = (uint32_t) p.m;
    unsigned col = warp / tile::down * tile::warp_columns + 8 * t;
#pragma unroll
    for (int j = 0; j < tile::warp_columns / 32; j++) {
        ft_out out;
        load_eight(out.scale, columns + col + 32 * j);
        load_eight(out.bias, columns + tile::columns + col + 32 * j);
        ft_out_open(out, p, shape, first_col + col + 32 * (unsigned) j);
#pragma unroll 1
        for (int step = 0; step < tile::warp_tokens / 16; step++) {
            int32_t upper[8], lower[8];
#pragma unroll
            for (int i = 0; i < tile::warp_tokens / 16; i++) {
                if (i == step) {
#pragma unroll
                    for (int c = 0; c < 8; c++) {
                        upper[c] = sum[i][4 * j + c / 2][c % 2];
                        lower[c] = sum[i][4 * j + c / 2][2 + c % 2];
                    }
                }
            }
            uint32_t y_row = row + 16 * (uint32_t) step;
            if (y_row < m)
                ft_out_eight<epilogue>(out, p, shape, y_row, upper);
            if (y_row + 8 < m)
                ft_out_eight<epilogue>(out, p, shape, y_row + 8, lower);
        }
    }
}

/* grid = (tiles of tokens, tiles of columns). */
template <typename tile, ft_epilogue epilogue>
__global__ void __launch_bounds__(tile::threads, tile::blocks)
    mma_kernel(const __grid_constant__ ft_cuda_product p, const ft_out_shape shape)
{
    extern __shared__ __align__(128) char ring[];
    float *columns = (float *) (ring + tile::stages * tile::stage_bytes);
    uint32_t first_row = blockIdx.x * tile::tokens, first_col = blockIdx.y * tile::columns;
    int32_t sum[tile::warp_tokens / 16][tile::warp_columns / 8][4] = {};
    places at = places_of_lane<tile>();
    feed<tile> f = open_feed<tile>(p, first_row, first_col);
    fragments<tile> even, odd;

    /* weights and scales do not depend on the predecessor */
    for (int i = 0; i < tile::stages; i++)
        feed_w(f, ring + i * tile::stage_bytes, (int) p.k - i * STEP);
    stage_columns<tile>(p, columns, first_col);
    ft_wait_for_predecessor();
    for (int i = 0; i < tile::stages; i++) {
        feed_x(f, ring + i * tile::stage_bytes, (int) p.k - i * STEP);
        ft_copy_commit();
    }
    ft_copy_wait<tile::stages - 1>();
    __syncthreads();
    load(even, ring, at, 0);
    int slot = 0;
    for (int left = (int) p.k; left > 0; left -= STEP) {
        char *stage = ring + slot * tile::stage_bytes;
        slot = slot + 1 == tile::stages ? 0 : slot + 1;
        load(odd, stage, at, 1);
        multiply<tile>(sum, even);
        ft_copy_wait<tile::stages - 2>();
        __syncthreads(); /* the next stage has arrived, and all warps have read this one */
        feed_x(f, stage, left - tile::stages * STEP);
        feed_w(f, stage, left - tile::stages * STEP);
        ft_copy_commit();
        load(even, ring + slot * tile::stage_bytes, at, 0);
        multiply<tile>(sum, odd);
    }
    ft_let_successor_begin();
    put<tile, epilogue>(p, shape, columns, sum, first_row, first_col);
}

/* ---- Tile selection ------------------------------------------------------------------------ */

template <typename tile> static constexpr ft_mma_tile entry(float fixed, float step)
{
    return ft_mma_tile{ tile::tokens,
                        tile::columns,
                        tile::threads,
                        tile::blocks,
                        tile::shared,
                        STEP,
                        fixed,
                        step,
                        { mma_kernel<tile, FT_EPILOGUE_NONE>, mma_kernel<tile, FT_EPILOGUE_GELU>,
                          mma_kernel<tile, FT_EPILOGUE_ANY> } };
}

/*
 * Measured on an H200. Warp tiles of 48 x 64 need 202 registers and do not spill. 192 x 128 is best
 * where there are enough tiles (4096 x 768 x 3072: 27.6 us, 15.1 of which are mma instructions; 96
 * x 128: 28.7), 96 x 128 with fewer tiles (1024 x 3072 x 768: 11.6 against 20.8 us), 64 x 64 with
 * very few (512 x 768 x 768: 5.4 against 8.5 us). 256 x 128 and 128 x 128 were never better by more
 * than 5 %. Three stages let two thread blocks of 96 x 128 share the 100 KiB of sm_86 and sm_89.
 */
const ft_mma_tile ft_mma_many[FT_MMA_MANY] = {
    entry<mma_tile<192, 128, 4, 2, 4, 1>>(3.34f, 0.425f),
    entry<mma_tile<96, 128, 2, 2, 3, 2>>(2.20f, 0.265f),
    entry<mma_tile<64, 64, 2, 2, 6, 3>>(0.71f, 0.157f),
};

static const ft_mma_tile *tile_at(int index)
{
    return index < FT_MMA_MANY ? &ft_mma_many[index] : &ft_mma_few[index - FT_MMA_MANY];
}

/* Thread blocks per SM on this device; 0: shared memory is too small for one. */
static size_t blocks_on(const ft_mma_tile *tile, const ft_cuda_chip *chip)
{
    size_t fit = chip->shared / (size_t) tile->shared;
    return fit < (size_t) tile->blocks ? fit : (size_t) tile->blocks;
}

static size_t divide_up(size_t a, size_t b)
{
    return (a + b - 1) / b;
}

/*
 * Cost model: tiles on one SM share its arithmetic, and tiles that run concurrently share the
 * prologue and epilogue. With the constants of an H200 it selects the fastest tile for 33 of 39
 * measured shapes and loses 1 to 16 % on the others. No other device was measured; there the
 * constants stand for the ratios between tiles.
 */
static float cost_of(const ft_mma_tile *tile, const ft_cuda_chip *chip, const ft_cuda_product *p)
{
    size_t tiles = divide_up(p->m, (size_t) tile->tokens) * divide_up(p->n, (size_t) tile->columns);
    size_t share = divide_up(tiles, (size_t) chip->multiprocessors);
    size_t rounds = divide_up(share, blocks_on(tile, chip));
    size_t steps = divide_up(p->k, (size_t) tile->depth);
    return tile->fixed * (float) rounds + tile->step * (float) (steps * share);
}

static int best_tile(const ft_cuda_chip *chip, const ft_cuda_product *p)
{
    int best = -1;
    float least = 0.0f;
    for (int i = 0; i < FT_MMA_MANY + FT_MMA_FEW; i++) {
        if (blocks_on(tile_at(i), chip) == 0)
            continue;
        float cost = cost_of(tile_at(i), chip, p);
        if (best < 0 || cost < least) {
            best = i;
            least = cost;
        }
    }
    return best;
}

/* ------------------------------------------------------------------------------------------ */

static bool is_aligned(const void *pointer, size_t bytes)
{
    return (uintptr_t) pointer % bytes == 0;
}

/* Grids have up to 65535 tiles of columns, the smallest of 32. */
extern "C" bool ft_cuda_gemm_mma_takes(const ft_cuda_chip *chip, const ft_cuda_product *p)
{
    return chip->capability >= 75 && p->w != NULL && p->k % 16 == 0 && is_aligned(p->x, 16) &&
           is_aligned(p->w, 16) && p->m <= INT32_MAX && p->n <= 65535u * 32 && p->k <= INT32_MAX;
}

extern "C" int ft_cuda_gemm_mma_tiles(void)
{
    return FT_MMA_MANY + FT_MMA_FEW;
}

extern "C" int ft_cuda_gemm_mma_with(int index, const ft_cuda_chip *chip, void *stream,
                                     const ft_cuda_product *p)
{
    const ft_mma_tile *tile = tile_at(index);
    ft_mma_kernel *kernel = tile->kernel[ft_epilogue_of(p->activation)];
    cudaError_t status = cudaFuncSetAttribute(
        (const void *) kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, tile->shared);
    if (status != cudaSuccess)
        return (int) status;
    dim3 grid(ft_cover(p->m, (unsigned) tile->tokens), ft_cover(p->n, (unsigned) tile->columns));
    return ft_launch(kernel, grid, (unsigned) tile->threads, (size_t) tile->shared, stream,
                     chip->overlaps, 1, *p, ft_out_shape_of(p));
}

extern "C" int ft_cuda_gemm_mma(const ft_cuda_chip *chip, void *stream, const ft_cuda_product *p)
{
    int tile = best_tile(chip, p);
    return tile < 0 ? (int) cudaErrorNotSupported : ft_cuda_gemm_mma_with(tile, chip, stream, p);
}
