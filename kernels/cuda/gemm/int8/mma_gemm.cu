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

enum { TILE_K = 64, SLICE_K = 32 };

/*
 * A thread block's tile, split into `warps_m` x `warps_n` warps. A warp's tokens are a multiple of
 * 16, its columns of 32. The thread count divides the number of 16-byte chunks in 32 k of the
 * tile's columns, or the reverse.
 */
template <int tokens_, int columns_, int warps_m_, int warps_n_, int stages_, int blocks_>
struct mma_tile {
    enum {
        tokens = tokens_,
        columns = columns_,
        warps_m = warps_m_,
        warps_n = warps_n_,
        stages = stages_,
        blocks = blocks_, /* per SM */
        threads = 32 * warps_m * warps_n,
        warp_tokens = tokens / warps_m,
        warp_columns = columns / warps_n,
        x_bytes = tokens * TILE_K,
        stage_bytes = x_bytes + columns * TILE_K,
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
template <typename tile> struct tile_loader {
    enum {
        x_copies = tile::tokens * 4 / tile::threads,
        w_copies = tile::columns * 4 / tile::threads,
        slice_chunks = tile::columns * 2,
    };
    const int8_t *x, *w;
    size_t x_stride, slice_stride;
    unsigned x_dst, w_dst;           /* offset in a stage */
    unsigned x_row_mask, w_row_mask; /* bit i: copy i is in bounds */
    int x_k, w_k;                    /* k before the first chunk of a k tile */
};

template <typename tile>
__device__ __forceinline__ tile_loader<tile> make_loader(const ft_cuda_gemm_args &p,
                                                         uint32_t first_row, uint32_t first_col)
{
    tile_loader<tile> f;
    unsigned row = threadIdx.x / 4, x_chunk = threadIdx.x % 4;
    unsigned slice = threadIdx.x / f.slice_chunks, w_chunk = threadIdx.x % f.slice_chunks;
    size_t padded_n = ft_layout_rows(FT_COL4_4R2_8C, p.n);
    f.x_stride = tile::threads / 4 * p.k;
    f.slice_stride = SLICE_K * padded_n;
    f.x = p.x + (first_row + row) * p.k + 16 * x_chunk;
    f.w = p.w + slice * f.slice_stride + (size_t) first_col * SLICE_K + 16 * w_chunk;
    f.x_dst = row * TILE_K + ((x_chunk ^ row / 2 % 4) << 4);
    f.w_dst = tile::x_bytes + ((threadIdx.x ^ threadIdx.x / 8 % 2 * 4) << 4);
    f.x_k = 16 * (int) x_chunk;
    f.w_k = SLICE_K * (int) slice;
    f.x_row_mask = f.w_row_mask = 0;
#pragma unroll
    for (unsigned i = 0; i < f.x_copies; i++)
        f.x_row_mask |= (first_row + row + i * (tile::threads / 4) < p.m) << i;
#pragma unroll
    for (unsigned i = 0; i < f.w_copies; i++) {
        unsigned chunk = w_chunk + i * tile::threads % f.slice_chunks;
        f.w_row_mask |= (first_col + chunk / 16 * 8 < padded_n) << i;
    }
    return f;
}

/* Copy x of a k tile; `left` k remain from its start. */
template <typename tile>
__device__ __forceinline__ void copy_x_tile(tile_loader<tile> &f, char *stage, int k_left)
{
#pragma unroll
    for (unsigned i = 0; i < f.x_copies; i++)
        ft_cp_async_16(stage + f.x_dst + i * (tile::threads / 4 * TILE_K), f.x + i * f.x_stride,
                       (f.x_row_mask >> i & 1) && f.x_k < k_left);
    f.x += TILE_K;
}

template <typename tile>
__device__ __forceinline__ void copy_w_tile(tile_loader<tile> &f, char *stage, int k_left)
{
#pragma unroll
    for (unsigned i = 0; i < f.w_copies; i++) {
        const unsigned slice = i * tile::threads / f.slice_chunks;
        const unsigned chunk = i * tile::threads % f.slice_chunks;
        ft_cp_async_16(stage + f.w_dst + i * (tile::threads * 16),
                       f.w + slice * f.slice_stride + chunk * 16,
                       (f.w_row_mask >> i & 1) && f.w_k + (int) slice * SLICE_K < k_left);
    }
    f.w += TILE_K / SLICE_K * f.slice_stride;
}

/* A lane's fragment offsets in the first 32 k of a stage. */
typedef struct frag_offsets {
    unsigned x, w;
} frag_offsets;

template <typename tile> __device__ __forceinline__ frag_offsets frag_offsets_of_lane()
{
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
    unsigned row = warp % tile::warps_m * tile::warp_tokens + lane % 16;
    unsigned col = warp / tile::warps_m * tile::warp_columns;
    return frag_offsets{ row * TILE_K + ((lane / 16 ^ row / 2 % 4) << 4),
                         tile::x_bytes + col * SLICE_K + g / 2 * 256 + g % 2 * (128 + 64) +
                             t * 16 };
}

template <typename tile>
__device__ __forceinline__ void load_fragments(fragments<tile> &f, const char *stage,
                                               frag_offsets at, int slice)
{
    const char *x = stage + (at.x ^ slice * 32),
               *w = stage + at.w + slice * (tile::columns * SLICE_K);
    const char *other = stage + (at.w ^ 64) + slice * (tile::columns * SLICE_K);
#pragma unroll
    for (int i = 0; i < tile::warp_tokens / 16; i++)
        ft_ldmatrix_x4(f.x[i], x + i * 16 * TILE_K);
#pragma unroll
    for (int j = 0; j < tile::warp_columns / 32; j++) {
        uint4 low = *(const uint4 *) (w + j * 1024), high = *(const uint4 *) (other + j * 1024);
        f.w[j][0][0] = low.x, f.w[j][0][1] = low.y, f.w[j][0][2] = low.z, f.w[j][0][3] = low.w;
        f.w[j][1][0] = high.x, f.w[j][1][1] = high.y, f.w[j][1][2] = high.z, f.w[j][1][3] = high.w;
    }
}

template <typename tile>
__device__ __forceinline__ void
mma_k32(int32_t (&sum)[tile::warp_tokens / 16][tile::warp_columns / 8][4], const fragments<tile> &f)
{
#pragma unroll
    for (int j = 0; j < tile::warp_columns / 8; j++) {
#pragma unroll
        for (int i = 0; i < tile::warp_tokens / 16; i++)
            ft_mma_i8(sum[i][j], f.x[i], f.w[j / 4][0][j % 4], f.w[j / 4][1][j % 4]);
    }
}

/* Scales and biases are kept in shared memory for the epilogue. */
template <typename tile>
__device__ __forceinline__ void load_column_params(const ft_cuda_gemm_args &p, float *scale,
                                                   uint32_t first_col)
{
    for (unsigned i = threadIdx.x; i < tile::columns; i += tile::threads) {
        bool inside = first_col + i < p.n;
        scale[i] = inside ? ft_column_scale(p, first_col + i) : 0.0f;
        scale[tile::columns + i] = inside ? ft_column_bias(p, first_col + i) : 0.0f;
    }
}

__device__ __forceinline__ void load_x8(float out[8], const float *in)
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
store_tile(const ft_cuda_gemm_args &p, ft_output_layout shape, const float *columns,
           const int32_t (&sum)[tile::warp_tokens / 16][tile::warp_columns / 8][4],
           uint32_t first_row, uint32_t first_col)
{
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
    uint32_t row = first_row + warp % tile::warps_m * tile::warp_tokens + g, m = (uint32_t) p.m;
    unsigned col = warp / tile::warps_m * tile::warp_columns + 8 * t;
#pragma unroll
    for (int j = 0; j < tile::warp_columns / 32; j++) {
        ft_output_x8 out;
        load_x8(out.scale, columns + col + 32 * j);
        load_x8(out.bias, columns + tile::columns + col + 32 * j);
        ft_output_x8_init(out, p, shape, first_col + col + 32 * (unsigned) j);
#pragma unroll 1
        for (int step = 0; step < tile::warp_tokens / 16; step++) {
            int32_t rows_g[8], rows_g8[8];
#pragma unroll
            for (int i = 0; i < tile::warp_tokens / 16; i++) {
                if (i == step) {
#pragma unroll
                    for (int c = 0; c < 8; c++) {
                        rows_g[c] = sum[i][4 * j + c / 2][c % 2];
                        rows_g8[c] = sum[i][4 * j + c / 2][2 + c % 2];
                    }
                }
            }
            uint32_t y_row = row + 16 * (uint32_t) step;
            if (y_row < m)
                ft_output_x8_store<epilogue>(out, p, shape, y_row, rows_g);
            if (y_row + 8 < m)
                ft_output_x8_store<epilogue>(out, p, shape, y_row + 8, rows_g8);
        }
    }
}

/* grid = (tiles of tokens, tiles of columns). */
template <typename tile, ft_epilogue epilogue>
__global__ void __launch_bounds__(tile::threads, tile::blocks)
    mma_kernel(const __grid_constant__ ft_cuda_gemm_args p, const ft_output_layout shape)
{
    extern __shared__ __align__(128) char pipeline_smem[];
    float *columns = (float *) (pipeline_smem + tile::stages * tile::stage_bytes);
    uint32_t first_row = blockIdx.x * tile::tokens, first_col = blockIdx.y * tile::columns;
    int32_t sum[tile::warp_tokens / 16][tile::warp_columns / 8][4] = {};
    frag_offsets at = frag_offsets_of_lane<tile>();
    tile_loader<tile> f = make_loader<tile>(p, first_row, first_col);
    fragments<tile> frag0, frag1;

    /* weights and scales do not depend on the predecessor */
    for (int i = 0; i < tile::stages; i++)
        copy_w_tile(f, pipeline_smem + i * tile::stage_bytes, (int) p.k - i * TILE_K);
    load_column_params<tile>(p, columns, first_col);
    ft_pdl_wait();
    for (int i = 0; i < tile::stages; i++) {
        copy_x_tile(f, pipeline_smem + i * tile::stage_bytes, (int) p.k - i * TILE_K);
        ft_cp_async_commit();
    }
    ft_cp_async_wait<tile::stages - 1>();
    __syncthreads();
    load_fragments(frag0, pipeline_smem, at, 0);
    int stage_index = 0;
    for (int k_left = (int) p.k; k_left > 0; k_left -= TILE_K) {
        char *stage = pipeline_smem + stage_index * tile::stage_bytes;
        stage_index = stage_index + 1 == tile::stages ? 0 : stage_index + 1;
        load_fragments(frag1, stage, at, 1);
        mma_k32<tile>(sum, frag0);
        ft_cp_async_wait<tile::stages - 2>();
        __syncthreads(); /* the next stage has arrived, and all warps have read this one */
        copy_x_tile(f, stage, k_left - tile::stages * TILE_K);
        copy_w_tile(f, stage, k_left - tile::stages * TILE_K);
        ft_cp_async_commit();
        load_fragments(frag0, pipeline_smem + stage_index * tile::stage_bytes, at, 0);
        mma_k32<tile>(sum, frag1);
    }
    ft_pdl_launch_dependents();
    store_tile<tile, epilogue>(p, shape, columns, sum, first_row, first_col);
}

/* ---- Tile selection ------------------------------------------------------------------------ */

template <typename tile> static constexpr ft_mma_tile tile_entry(float fixed, float step)
{
    return ft_mma_tile{ tile::tokens,
                        tile::columns,
                        tile::threads,
                        tile::blocks,
                        tile::shared,
                        TILE_K,
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
const ft_mma_tile ft_mma_large_m_tiles[FT_MMA_LARGE_M_TILES] = {
    tile_entry<mma_tile<192, 128, 4, 2, 4, 1>>(3.34f, 0.425f),
    tile_entry<mma_tile<96, 128, 2, 2, 3, 2>>(2.20f, 0.265f),
    tile_entry<mma_tile<64, 64, 2, 2, 6, 3>>(0.71f, 0.157f),
};

static const ft_mma_tile *tile_at(int index)
{
    return index < FT_MMA_LARGE_M_TILES ? &ft_mma_large_m_tiles[index]
                                        : &ft_mma_small_m_tiles[index - FT_MMA_LARGE_M_TILES];
}

/* Thread blocks per SM on this device; 0: shared memory is too small for one. */
static size_t blocks_per_sm_on(const ft_mma_tile *tile, const ft_cuda_device_props *props)
{
    size_t fit = props->smem_bytes / (size_t) tile->smem_bytes;
    return fit < (size_t) tile->blocks_per_sm ? fit : (size_t) tile->blocks_per_sm;
}

/*
 * Cost model: tiles on one SM share its arithmetic, and tiles that run concurrently share the
 * prologue and epilogue. With the constants of an H200 it selects the fastest tile for 33 of 39
 * measured shapes and loses 1 to 16 % on the others. No other device was measured; there the
 * constants stand for the ratios between tiles.
 */
static float cost_of(const ft_mma_tile *tile, const ft_cuda_device_props *props,
                     const ft_cuda_gemm_args *p)
{
    size_t tiles =
        ft_ceil_div(p->m, (size_t) tile->tokens) * ft_ceil_div(p->n, (size_t) tile->columns);
    size_t tiles_per_sm = ft_ceil_div(tiles, (size_t) props->sm_count);
    size_t waves = ft_ceil_div(tiles_per_sm, blocks_per_sm_on(tile, props));
    size_t k_tiles = ft_ceil_div(p->k, (size_t) tile->tile_k);
    return tile->us_fixed * (float) waves + tile->us_per_k_tile * (float) (k_tiles * tiles_per_sm);
}

extern "C" int ft_cuda_gemm_mma_select_tile(const ft_cuda_device_props *props,
                                            const ft_cuda_gemm_args *p)
{
    int best = -1;
    float min_cost = 0.0f;
    for (int i = 0; i < FT_MMA_LARGE_M_TILES + FT_MMA_SMALL_M_TILES; i++) {
        if (blocks_per_sm_on(tile_at(i), props) == 0)
            continue;
        float cost = cost_of(tile_at(i), props, p);
        if (best < 0 || cost < min_cost) {
            best = i;
            min_cost = cost;
        }
    }
    return best;
}

/* ------------------------------------------------------------------------------------------ */

/* Grids have up to 65535 tiles of columns, the smallest of 32. */
extern "C" bool ft_cuda_gemm_mma_supports(const ft_cuda_device_props *props,
                                          const ft_cuda_gemm_args *p)
{
    return props->capability >= 75 && p->w != NULL && p->k % 16 == 0 && ft_is_aligned(p->x, 16) &&
           ft_is_aligned(p->w, 16) && p->m <= INT32_MAX && p->n <= 65535u * 32 && p->k <= INT32_MAX;
}

extern "C" int ft_cuda_gemm_mma_tile_count(void)
{
    return FT_MMA_LARGE_M_TILES + FT_MMA_SMALL_M_TILES;
}

extern "C" void ft_cuda_gemm_mma_tile_size(int index, int *tokens, int *columns)
{
    *tokens = tile_at(index)->tokens;
    *columns = tile_at(index)->columns;
}

extern "C" bool ft_cuda_gemm_mma_tile_fits(int index, const ft_cuda_device_props *props)
{
    return blocks_per_sm_on(tile_at(index), props) > 0;
}

extern "C" int ft_cuda_gemm_mma_launch_tile(int index, const ft_cuda_device_props *props,
                                            void *stream, const ft_cuda_gemm_args *p)
{
    const ft_mma_tile *tile = tile_at(index);
    ft_mma_kernel *kernel = tile->kernel[ft_epilogue_of(p->activation)];
    cudaError_t status = cudaFuncSetAttribute(
        (const void *) kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, tile->smem_bytes);
    if (status != cudaSuccess)
        return (int) status;
    dim3 grid(ft_ceil_div(p->m, (unsigned) tile->tokens),
              ft_ceil_div(p->n, (unsigned) tile->columns));
    return ft_launch(kernel, grid, (unsigned) tile->threads, (size_t) tile->smem_bytes, stream,
                     props->has_pdl, 1, *p, ft_output_layout_of(p));
}

extern "C" int ft_cuda_gemm_mma(const ft_cuda_device_props *props, void *stream,
                                const ft_cuda_gemm_args *p)
{
    int tile = ft_cuda_gemm_mma_select_tile(props, p);
    return tile < 0 ? (int) cudaErrorNotSupported
                    : ft_cuda_gemm_mma_launch_tile(tile, props, stream, p);
}
