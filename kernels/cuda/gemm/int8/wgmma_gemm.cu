/*
 * wgmma_gemm.cu - wgmma INT8 GEMM on sm_90a: supported shapes, tile selection, and prepacking of
 * weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/gemm/int8/wgmma_kernels.h"
#include "kernels/layout.h"

/* ---- Prepacked weights ---------------------------------------------------------------------- */

/*
 * Layout: groups of 32 rows, each in blocks of 32 rows x 128 k, so a stage of a tile is a few
 * contiguous 4 KiB blocks, which DRAM delivers faster than many pieces of 128 bytes. Padding is
 * zero. Row v = 8i + g of a packed group holds row 8 (g / 2) + g % 2 + 2i: after the GEMM, the
 * columns of a lane are 8 neighbours.
 */
FT_HOST_DEVICE size_t prepacked_stride(size_t k)
{
    return (k + 127) / 128 * 128;
}

FT_HOST_DEVICE size_t prepacked_row_offset(size_t row, size_t col, size_t k)
{
    size_t r = row % 32, packed_row = r % 8 / 2 * 8 + r / 8 * 2 + r % 2;
    return (row - r) * prepacked_stride(k) + col / 128 * 4096 + packed_row * 128 + col % 128;
}

enum { THREADS = 256 };

/* One thread per 4 neighbouring values of a row; blockDim.x = 256; grid covers the result. */
__global__ void prepack_kernel(int8_t *__restrict__ tiles, const int8_t *__restrict__ w, size_t n,
                               size_t k)
{
    size_t i = (size_t) blockIdx.x * THREADS + threadIdx.x, words = prepacked_stride(k) / 4;
    size_t row = i / words, col = i % words * 4;
    ft_pdl_wait();
    if (row >= (n + 31) / 32 * 32)
        return;
    bool inside = row < n && col < k;
    size_t from = inside ? ft_offset_col4(row, col, ft_layout_rows(FT_COL4_4R2_8C, n)) : 0;
    *(uint32_t *) (tiles + prepacked_row_offset(row, col, k)) =
        inside ? *(const uint32_t *) (w + from) : 0;
}

extern "C" size_t ft_cuda_prepacked_bytes(size_t n, size_t k)
{
    return (n + 31) / 32 * 32 * prepacked_stride(k);
}

extern "C" size_t ft_cuda_prepacked_offset(size_t row, size_t col, size_t n, size_t k)
{
    (void) n;
    return prepacked_row_offset(row, col, k);
}

extern "C" int ft_cuda_prepack(void *stream, int8_t *tiles, const int8_t *w, size_t n, size_t k)
{
    unsigned blocks = ft_ceil_div(ft_cuda_prepacked_bytes(n, k) / 4, THREADS);
    prepack_kernel<<<blocks, THREADS, 0, (cudaStream_t) stream>>>(tiles, w, n, k);
    return (int) cudaGetLastError();
}

/* ---- Supported shapes ----------------------------------------------------------------------- */

/* TMA requires rows of x and of the weights to start at multiples of 16 bytes. */
extern "C" bool ft_cuda_gemm_wgmma_supports(const ft_cuda_device_props *props,
                                            const ft_cuda_gemm_args *p)
{
    return props->has_wgmma && p->prepacked != NULL && p->m > 0 && p->n > 0 && p->k > 0 &&
           p->k % 16 == 0 && p->m < 1u << 31 && p->n < 1u << 31 && ft_is_aligned(p->x, 16) &&
           ft_is_aligned(p->prepacked, 16) && ft_cuda_gemm_args_valid(p) &&
           (p->y_dtype == FT_I8 || p->y_dtype == FT_F16 || p->y_dtype == FT_F32) &&
           (p->residual == NULL || p->y_dtype != FT_I8);
}

/* GELU to float16, or to int8 whose minimum, -0.17, does not reach quantized -127; no residual. */
static bool has_fast_gelu(const ft_cuda_gemm_args *p)
{
    bool fast = p->activation == FT_ACT_GELU_APPROX && p->y_dtype != FT_F32 && p->residual == NULL;
    for (int i = 0; i < p->n_outputs; i++)
        fast = fast && (p->y_dtype != FT_I8 || p->y_inv_scale[i] < 700.0f);
    return fast;
}

/*
 * Specialized epilogues: groups of 8 columns stored at once, outputs that are multiples of 32
 * columns; no activation except GELU, or ReLU in small-m kernels, which are bound by memory.
 */
static bool has_fast_epilogue(const ft_cuda_gemm_args *p, bool small_m)
{
    size_t align = p->y_dtype == FT_I8 ? 8 : 16;
    bool fits = ft_is_aligned(p->residual, 16);
    for (int i = 0; i < p->n_outputs; i++)
        fits = fits && ft_is_aligned(p->y[i], align) && p->width[i] % (p->n_outputs > 1 ? 32 : 8) == 0;
    bool fast = p->activation == FT_ACT_NONE || has_fast_gelu(p) ||
                (small_m && p->activation == FT_ACT_RELU);
    return fits && fast;
}

/* Tiles of wgmma_small_m.cu and, where float_only, of wgmma_split_k.cu. */
typedef struct small_m_tile {
    ft_cuda_wgmma_tile tile;
    const char *name;
    int tokens, cols, blocks;
    bool float_only; /* float outputs without GELU only */
} small_m_tile;

static const small_m_tile small_m_tiles[] = {
    { FT_CUDA_WGMMA_SMALL_M_64, "small_m64", 64, 64, 1, false },
    { FT_CUDA_WGMMA_SMALL_M_64_SPLIT2, "small_m64/2", 64, 64, 2, false },
    { FT_CUDA_WGMMA_SMALL_M_64_SPLIT4, "small_m64/4", 64, 64, 4, false },
    { FT_CUDA_WGMMA_SMALL_M_96, "small_m96", 64, 96, 1, false },
    { FT_CUDA_WGMMA_M64_N64_SPLIT2, "64x64/2", 64, 64, 2, true },
    { FT_CUDA_WGMMA_M64_N96, "64x96", 64, 96, 1, true },
    { FT_CUDA_WGMMA_M64_N128_SPLIT2, "64x128/2", 64, 128, 2, true },
    { FT_CUDA_WGMMA_M64_N192, "64x192", 64, 192, 1, true },
    { FT_CUDA_WGMMA_M128_N64_SPLIT2, "128x64/2", 128, 64, 2, true },
    { FT_CUDA_WGMMA_M128_N96, "128x96", 128, 96, 1, true },
    { FT_CUDA_WGMMA_M128_N128_SPLIT2, "128x128/2", 128, 128, 2, true },
    { FT_CUDA_WGMMA_M128_N192, "128x192", 128, 192, 1, true },
};

static const small_m_tile *find_small_m(ft_cuda_wgmma_tile tile)
{
    for (const small_m_tile &f : small_m_tiles)
        if (f.tile == tile)
            return &f;
    return NULL;
}

/* Split-K tiles have no kernels for int8 outputs and GELU. */
static bool has_split_k_epilogue(const ft_cuda_gemm_args *p)
{
    return p->y_dtype != FT_I8 && p->activation != FT_ACT_GELU_APPROX;
}

/* At least one k tile per split. */
static bool small_m_supports(const small_m_tile *f, const ft_cuda_gemm_args *p)
{
    return p->k > (size_t) (f->blocks - 1) * 128 && (!f->float_only || has_split_k_epilogue(p));
}

extern "C" bool ft_cuda_wgmma_tile_supports(ft_cuda_wgmma_tile tile, const ft_cuda_gemm_args *p)
{
    if (tile == FT_CUDA_WGMMA_PINGPONG_128)
        return has_fast_epilogue(p, false) && p->residual == NULL &&
               (p->x_scales == NULL || p->y_dtype != FT_F32);
    if (find_small_m(tile) != NULL)
        return has_fast_epilogue(p, true) && small_m_supports(find_small_m(tile), p);
    return tile == FT_CUDA_WGMMA_ANY_EPILOGUE || has_fast_epilogue(p, false);
}

/* ---- Tile selection ------------------------------------------------------------------------- */

extern "C" const char *ft_cuda_wgmma_tile_name(ft_cuda_wgmma_tile tile)
{
    const small_m_tile *small_m = find_small_m(tile);
    if (small_m != NULL)
        return small_m->name;
    return tile == FT_CUDA_WGMMA_PINGPONG_64       ? "pingpong64"
           : tile == FT_CUDA_WGMMA_PINGPONG_128    ? "pingpong128"
           : tile == FT_CUDA_WGMMA_COOPERATIVE_128 ? "cooperative128"
           : tile == FT_CUDA_WGMMA_ANY_EPILOGUE    ? "general"
                                                   : "?";
}

/*
 * Split-K of a small tile: enough thread blocks that all SMs read weights. On an H200, 2 and 4
 * splits in us: 128 x 768 x 768 2.9 and 2.5, 128 x 1024 x 1024 2.8 and 3.4, 256 x 768 x 3072 5.5
 * and 5.0. int8 outputs write fewer bytes and prefer fewer splits.
 */
static ft_cuda_wgmma_tile select_small_m(size_t tiles, size_t k_tiles, size_t sm_count,
                                         bool int8_out)
{
    size_t four = k_tiles < 24 ? sm_count * 3 / 4 : sm_count * 3 / 2;
    size_t two = int8_out ? sm_count * 5 / 4 : sm_count * 2;
    if (tiles * 4 <= four && k_tiles >= 6)
        return FT_CUDA_WGMMA_SMALL_M_64_SPLIT4;
    return tiles * 2 <= two && k_tiles >= 4 ? FT_CUDA_WGMMA_SMALL_M_64_SPLIT2
                                            : FT_CUDA_WGMMA_SMALL_M_64;
}

/*
 * Cost model in clocks of the busiest SM, fitted to times on an H200 (m 1024 .. 8192, n 768 ..
 * 4096, k 768 .. 4096). A k tile takes 480 clocks for 64 tokens, for 128 tokens 740 with ping-pong
 * and 815 with cooperative warpgroups, bound by shared memory bandwidth. The overhead of a tile and
 * of a launch depends on the output type.
 */
typedef struct epilogue_clocks {
    size_t pingpong_64, pingpong_128, cooperative; /* per tile */
    size_t launch_128, launch_cooperative; /* beyond a launch of the 64-row ping-pong tile */
} epilogue_clocks;

static epilogue_clocks epilogue_clocks_of(const ft_cuda_gemm_args *p)
{
    if (p->y_dtype == FT_F32)
        return { 2100, 4100, 5300, 2700, 950 };
    if (p->y_dtype == FT_F16)
        return { 1300, 1000, 3400, 4000, 1500 };
    if (p->activation == FT_ACT_GELU_APPROX)
        return { 1900, 2400, 4000, 5300, 1300 };
    return { 1200, 1200, 3200, 3900, 950 };
}

static ft_cuda_wgmma_tile select_large_m(size_t m, size_t columns, size_t k_tiles, size_t sm_count,
                                         const ft_cuda_gemm_args *p)
{
    epilogue_clocks finish = epilogue_clocks_of(p);
    size_t tiles_per_sm_64 = ft_ceil_div((m + 63) / 64 * columns, (unsigned) sm_count);
    size_t tiles_per_sm_128 = ft_ceil_div((m + 127) / 128 * columns, (unsigned) sm_count);
    size_t pingpong_64 = tiles_per_sm_64 * (480 * k_tiles + finish.pingpong_64);
    size_t pingpong_128 =
        tiles_per_sm_128 * (740 * k_tiles + finish.pingpong_128) + finish.launch_128;
    size_t cooperative =
        tiles_per_sm_128 * (815 * k_tiles + finish.cooperative) + finish.launch_cooperative;
    if (ft_cuda_wgmma_tile_supports(FT_CUDA_WGMMA_PINGPONG_128, p) && pingpong_128 < pingpong_64 &&
        pingpong_128 < cooperative)
        return FT_CUDA_WGMMA_PINGPONG_128;
    return cooperative < pingpong_64 ? FT_CUDA_WGMMA_COOPERATIVE_128 : FT_CUDA_WGMMA_PINGPONG_64;
}

/* Number of column tiles of `cols` columns. */
static size_t tiles_across(const ft_cuda_gemm_args *p, size_t cols)
{
    size_t tiles = 0;
    for (int i = 0; i < p->n_outputs; i++)
        tiles += (p->width[i] + cols - 1) / cols;
    return tiles;
}

/*
 * Cost model of a split-K tile in clocks, only the terms in which tiles differ. DRAM delivers 16
 * bytes per clock to each SM when all read, L2 about 48 to each SM with a thread block; splits
 * exchange partial sums. H200, us: 128 x 4096 x 11008 16.7 with M128_N64_SPLIT2, 18.7 with 96
 * columns, 19.7 with M128_N128_SPLIT2.
 */
static size_t split_k_clocks(const small_m_tile *f, const ft_cuda_gemm_args *p, size_t sm_count)
{
    size_t k_tiles = (p->k + 127) / 128 / (size_t) f->blocks;
    size_t taken = k_tiles * (size_t) (f->tokens + f->cols) * 128 / 48;
    size_t memory = p->n * p->k / sm_count / 16;
    size_t exchanged = f->blocks > 1 ? (size_t) (f->tokens * f->cols) / 6 : 0;
    return (taken > memory ? taken : memory) + exchanged;
}

/*
 * The split-K tile that streams the weights fastest for small m, large k and float outputs, as in
 * decoders: among those whose thread blocks have an SM each and keep enough SMs reading.
 */
static bool select_split_k(ft_cuda_wgmma_tile *out, const ft_cuda_gemm_args *p, size_t sm_count)
{
    size_t min_clocks = SIZE_MAX, rows = (p->m + 63) / 64;
    *out = FT_CUDA_WGMMA_SMALL_M_96;
    if (!has_split_k_epilogue(p) || p->m > 256 || p->k < 2048)
        return false;
    for (const small_m_tile &f : small_m_tiles) {
        size_t tiles = (p->m + (size_t) f.tokens - 1) / (size_t) f.tokens;
        size_t blocks = tiles * tiles_across(p, (size_t) f.cols) * (size_t) f.blocks;
        bool fits = f.float_only && (f.tokens == 64) == (rows == 1) && blocks <= sm_count &&
                    blocks >= sm_count * (rows > 1 ? 45 : 70) / 100;
        size_t clocks = fits ? split_k_clocks(&f, p, sm_count) : SIZE_MAX;
        if (clocks < min_clocks) {
            min_clocks = clocks;
            *out = f.tile;
        }
    }
    size_t blocks = rows * tiles_across(p, 96);
    return min_clocks < SIZE_MAX || (blocks > sm_count && blocks <= 2 * sm_count);
}

extern "C" ft_cuda_wgmma_tile ft_cuda_wgmma_select(const ft_cuda_device_props *props,
                                                   const ft_cuda_gemm_args *p)
{
    size_t sm_count = (size_t) props->sm_count, k_tiles = (p->k + 127) / 128;
    size_t rows = (p->m + 63) / 64, small = rows * tiles_across(p, 64);
    bool int8_out = p->y_dtype == FT_I8;
    ft_cuda_wgmma_tile float_only;
    if (!has_fast_epilogue(p, true))
        return FT_CUDA_WGMMA_ANY_EPILOGUE;
    if (select_split_k(&float_only, p, sm_count))
        return float_only;
    if (small <= (int8_out ? 2 * sm_count : sm_count)) /* two thread blocks per SM */
        return select_small_m(small, k_tiles, sm_count, int8_out);
    if (int8_out && rows * tiles_across(p, 96) <= 2 * sm_count)
        return FT_CUDA_WGMMA_SMALL_M_96;
    if (!int8_out && rows == 1) /* 32 x 28672 x 4096 on an H200: 32.0 us, PINGPONG_64 37.0 */
        return FT_CUDA_WGMMA_SMALL_M_64;
    if (!has_fast_epilogue(p, false))
        return FT_CUDA_WGMMA_ANY_EPILOGUE;
    return select_large_m(p->m, tiles_across(p, 192), k_tiles, sm_count, p);
}

extern "C" int ft_cuda_wgmma_launch(ft_cuda_wgmma_tile tile, const ft_cuda_device_props *props,
                                    void *stream, const ft_cuda_gemm_args *p)
{
    if (!ft_cuda_wgmma_tile_supports(tile, p))
        return (int) cudaErrorInvalidValue;
    const small_m_tile *small_m = find_small_m(tile);
    if (small_m != NULL)
        return (small_m->float_only ? ft_cuda_wgmma_split_k : ft_cuda_wgmma_small_m)(tile, props,
                                                                                     stream, p);
    if (p->y_dtype == FT_I8)
        return ft_cuda_wgmma_int8_out(tile, props, stream, p);
    return ft_cuda_wgmma_float_out(tile, props, stream, p);
}

extern "C" int ft_cuda_gemm_wgmma(const ft_cuda_device_props *props, void *stream,
                                  const ft_cuda_gemm_args *p)
{
    return ft_cuda_wgmma_launch(ft_cuda_wgmma_select(props, p), props, stream, p);
}
