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
FT_HOST_DEVICE size_t tiles_stride(size_t k)
{
    return (k + 127) / 128 * 128;
}

FT_HOST_DEVICE size_t tiles_offset(size_t row, size_t col, size_t k)
{
    size_t r = row % 32, place = r % 8 / 2 * 8 + r / 8 * 2 + r % 2;
    return (row - r) * tiles_stride(k) + col / 128 * 4096 + place * 128 + col % 128;
}

enum { THREADS = 256 };

/* One thread per 4 neighbouring values of a row; blockDim.x = 256; grid covers the result. */
__global__ void tile_kernel(int8_t *__restrict__ tiles, const int8_t *__restrict__ w, size_t n,
                            size_t k)
{
    size_t i = (size_t) blockIdx.x * THREADS + threadIdx.x, words = tiles_stride(k) / 4;
    size_t row = i / words, col = i % words * 4;
    ft_wait_for_predecessor();
    if (row >= (n + 31) / 32 * 32)
        return;
    bool inside = row < n && col < k;
    size_t from = inside ? ft_offset_col4(row, col, ft_layout_rows(FT_COL4_4R2_8C, n)) : 0;
    *(uint32_t *) (tiles + tiles_offset(row, col, k)) = inside ? *(const uint32_t *) (w + from) : 0;
}

extern "C" size_t ft_cuda_tiles_bytes(size_t n, size_t k)
{
    return (n + 31) / 32 * 32 * tiles_stride(k);
}

extern "C" size_t ft_cuda_tiles_offset(size_t row, size_t col, size_t n, size_t k)
{
    (void) n;
    return tiles_offset(row, col, k);
}

extern "C" int ft_cuda_tile(void *stream, int8_t *tiles, const int8_t *w, size_t n, size_t k)
{
    unsigned blocks = ft_cover(ft_cuda_tiles_bytes(n, k) / 4, THREADS);
    tile_kernel<<<blocks, THREADS, 0, (cudaStream_t) stream>>>(tiles, w, n, k);
    return (int) cudaGetLastError();
}

/* ---- Supported shapes ----------------------------------------------------------------------- */

static bool is_aligned(const void *pointer, size_t bytes)
{
    return (uintptr_t) pointer % bytes == 0;
}

/* TMA requires rows of x and of the weights to start at multiples of 16 bytes. */
extern "C" bool ft_cuda_gemm_wgmma_takes(const ft_cuda_chip *chip, const ft_cuda_product *p)
{
    return chip->has_wgmma && p->tiles != NULL && p->m > 0 && p->n > 0 && p->k > 0 &&
           p->k % 16 == 0 && p->m < 1u << 31 && p->n < 1u << 31 && is_aligned(p->x, 16) &&
           is_aligned(p->tiles, 16) && ft_cuda_product_adds_up(p) &&
           (p->y_dtype == FT_I8 || p->y_dtype == FT_F16 || p->y_dtype == FT_F32) &&
           (p->residual == NULL || p->y_dtype != FT_I8);
}

/* GELU to int8 whose minimum, -0.17, does not reach quantized -127. */
static bool is_fast_gelu(const ft_cuda_product *p)
{
    bool fast = p->activation == FT_ACT_GELU_CODES && p->y_dtype == FT_I8;
    for (int i = 0; i < p->parts; i++)
        fast = fast && p->y_inverse[i] < 700.0f;
    return fast;
}

/*
 * Specialized epilogues: groups of 8 columns stored at once, outputs that are multiples of 32
 * columns; no activation except GELU, or ReLU in small-m kernels, which are bound by memory.
 */
static bool is_fast(const ft_cuda_product *p, bool few)
{
    size_t align = p->y_dtype == FT_I8 ? 8 : 16;
    bool fits = is_aligned(p->residual, 16);
    for (int i = 0; i < p->parts; i++)
        fits = fits && is_aligned(p->y[i], align) && p->width[i] % (p->parts > 1 ? 32 : 8) == 0;
    bool fast =
        p->activation == FT_ACT_NONE || is_fast_gelu(p) || (few && p->activation == FT_ACT_RELU);
    return fits && fast && (p->x_scales == NULL || p->y_dtype != FT_I8);
}

/* Tiles of wgmma_small_m.cu and, where float_only, of wgmma_split_k.cu. */
typedef struct few_tile {
    ft_cuda_wgmma_tile tile;
    const char *name;
    int tokens, cols, blocks;
    bool deep; /* float outputs only */
} few_tile;

static const few_tile few_tiles[] = {
    { FT_CUDA_WGMMA_FEW, "few", 64, 64, 1, false },
    { FT_CUDA_WGMMA_FEW_2, "few/2", 64, 64, 2, false },
    { FT_CUDA_WGMMA_FEW_4, "few/4", 64, 64, 4, false },
    { FT_CUDA_WGMMA_FEW_96, "few96", 64, 96, 1, false },
    { FT_CUDA_WGMMA_DEEP_64_2, "deep64/2", 64, 64, 2, true },
    { FT_CUDA_WGMMA_DEEP_96, "deep96", 64, 96, 1, true },
    { FT_CUDA_WGMMA_DEEP_128_2, "deep128/2", 64, 128, 2, true },
    { FT_CUDA_WGMMA_DEEP_192, "deep192", 64, 192, 1, true },
    { FT_CUDA_WGMMA_PAIR_64_2, "pair64/2", 128, 64, 2, true },
    { FT_CUDA_WGMMA_PAIR_96, "pair96", 128, 96, 1, true },
    { FT_CUDA_WGMMA_PAIR_128_2, "pair128/2", 128, 128, 2, true },
    { FT_CUDA_WGMMA_PAIR_192, "pair192", 128, 192, 1, true },
};

static const few_tile *find_few(ft_cuda_wgmma_tile tile)
{
    for (const few_tile &f : few_tiles)
        if (f.tile == tile)
            return &f;
    return NULL;
}

/* At least one k tile per split. */
static bool few_takes(const few_tile *f, const ft_cuda_product *p)
{
    return p->k > (size_t) (f->blocks - 1) * 128 && !(f->deep && p->y_dtype == FT_I8);
}

extern "C" bool ft_cuda_wgmma_tile_takes(ft_cuda_wgmma_tile tile, const ft_cuda_product *p)
{
    if (tile == FT_CUDA_WGMMA_TURNS_128)
        return is_fast(p, false) && p->residual == NULL &&
               (p->x_scales == NULL || p->y_dtype != FT_F32);
    if (find_few(tile) != NULL)
        return is_fast(p, true) && few_takes(find_few(tile), p);
    return tile == FT_CUDA_WGMMA_GENERAL || is_fast(p, false);
}

/* ---- Tile selection ------------------------------------------------------------------------- */

extern "C" const char *ft_cuda_wgmma_tile_name(ft_cuda_wgmma_tile tile)
{
    const few_tile *few = find_few(tile);
    if (few != NULL)
        return few->name;
    return tile == FT_CUDA_WGMMA_TURNS_64    ? "turns64"
           : tile == FT_CUDA_WGMMA_TURNS_128 ? "turns128"
           : tile == FT_CUDA_WGMMA_TOGETHER  ? "together"
           : tile == FT_CUDA_WGMMA_GENERAL   ? "general"
                                             : "?";
}

/*
 * Split-K of a small tile: enough thread blocks that all SMs read weights. On an H200, 2 and 4
 * splits in us: 128 x 768 x 768 2.9 and 2.5, 128 x 1024 x 1024 2.8 and 3.4, 256 x 768 x 3072 5.5
 * and 5.0. int8 outputs write fewer bytes and prefer fewer splits.
 */
static ft_cuda_wgmma_tile choose_few(size_t tiles, size_t steps, size_t multiprocessors, bool codes)
{
    size_t four = steps < 24 ? multiprocessors * 3 / 4 : multiprocessors * 3 / 2;
    size_t two = codes ? multiprocessors * 5 / 4 : multiprocessors * 2;
    if (tiles * 4 <= four && steps >= 6)
        return FT_CUDA_WGMMA_FEW_4;
    return tiles * 2 <= two && steps >= 4 ? FT_CUDA_WGMMA_FEW_2 : FT_CUDA_WGMMA_FEW;
}

/*
 * Cost model in clocks of the busiest SM, fitted to times on an H200 (m 1024 .. 8192, n 768 ..
 * 4096, k 768 .. 4096). A k tile takes 480 clocks for 64 tokens, for 128 tokens 740 with ping-pong
 * and 815 with cooperative warpgroups, bound by shared memory bandwidth. The overhead of a tile and
 * of a launch depends on the output type.
 */
typedef struct finish_clocks {
    size_t turns_64, turns_128, together; /* per tile */
    size_t launch_128, launch_together;   /* beyond a launch of the 64-row ping-pong tile */
} finish_clocks;

static finish_clocks finish_clocks_of(const ft_cuda_product *p)
{
    if (p->y_dtype == FT_F32)
        return { 2100, 4100, 5300, 2700, 950 };
    if (p->y_dtype == FT_F16)
        return { 1300, 1000, 3400, 4000, 1500 };
    if (p->activation == FT_ACT_GELU_CODES)
        return { 1900, 2400, 4000, 5300, 1300 };
    return { 1200, 1200, 3200, 3900, 950 };
}

static ft_cuda_wgmma_tile choose_large(size_t m, size_t columns, size_t steps,
                                       size_t multiprocessors, const ft_cuda_product *p)
{
    finish_clocks finish = finish_clocks_of(p);
    size_t own_64 = ft_cover((m + 63) / 64 * columns, (unsigned) multiprocessors);
    size_t own_128 = ft_cover((m + 127) / 128 * columns, (unsigned) multiprocessors);
    size_t turns_64 = own_64 * (480 * steps + finish.turns_64);
    size_t turns_128 = own_128 * (740 * steps + finish.turns_128) + finish.launch_128;
    size_t together = own_128 * (815 * steps + finish.together) + finish.launch_together;
    if (ft_cuda_wgmma_tile_takes(FT_CUDA_WGMMA_TURNS_128, p) && turns_128 < turns_64 &&
        turns_128 < together)
        return FT_CUDA_WGMMA_TURNS_128;
    return together < turns_64 ? FT_CUDA_WGMMA_TOGETHER : FT_CUDA_WGMMA_TURNS_64;
}

/* Number of column tiles of `cols` columns. */
static size_t tiles_across(const ft_cuda_product *p, size_t cols)
{
    size_t tiles = 0;
    for (int i = 0; i < p->parts; i++)
        tiles += (p->width[i] + cols - 1) / cols;
    return tiles;
}

/*
 * Cost model of a split-K tile in clocks, only the terms in which tiles differ. DRAM delivers 16
 * bytes per clock to each SM when all read, L2 about 48 to each SM with a thread block; splits
 * exchange partial sums. H200, us: 128 x 4096 x 11008 16.7 with M128_N64_SPLIT2, 18.7 with 96
 * columns, 19.7 with M128_N128_SPLIT2.
 */
static size_t deep_clocks(const few_tile *f, const ft_cuda_product *p, size_t multiprocessors)
{
    size_t steps = (p->k + 127) / 128 / (size_t) f->blocks;
    size_t taken = steps * (size_t) (f->tokens + f->cols) * 128 / 48;
    size_t memory = p->n * p->k / multiprocessors / 16;
    size_t exchanged = f->blocks > 1 ? (size_t) (f->tokens * f->cols) / 6 : 0;
    return (taken > memory ? taken : memory) + exchanged;
}

/*
 * The split-K tile that streams the weights fastest for small m, large k and float outputs, as in
 * decoders: among those whose thread blocks have an SM each and keep enough SMs reading.
 */
static bool choose_deep(ft_cuda_wgmma_tile *out, const ft_cuda_product *p, size_t multiprocessors)
{
    size_t least = SIZE_MAX, rows = (p->m + 63) / 64;
    *out = FT_CUDA_WGMMA_FEW_96;
    if (p->y_dtype == FT_I8 || p->m > 256 || p->k < 2048)
        return false;
    for (const few_tile &f : few_tiles) {
        size_t tiles = (p->m + (size_t) f.tokens - 1) / (size_t) f.tokens;
        size_t blocks = tiles * tiles_across(p, (size_t) f.cols) * (size_t) f.blocks;
        bool fits = f.deep && (f.tokens == 64) == (rows == 1) && blocks <= multiprocessors &&
                    blocks >= multiprocessors * (rows > 1 ? 45 : 70) / 100;
        size_t clocks = fits ? deep_clocks(&f, p, multiprocessors) : SIZE_MAX;
        if (clocks < least) {
            least = clocks;
            *out = f.tile;
        }
    }
    size_t blocks = rows * tiles_across(p, 96);
    return least < SIZE_MAX || (blocks > multiprocessors && blocks <= 2 * multiprocessors);
}

extern "C" ft_cuda_wgmma_tile ft_cuda_wgmma_choose(const ft_cuda_chip *chip,
                                                   const ft_cuda_product *p)
{
    size_t multiprocessors = (size_t) chip->multiprocessors, steps = (p->k + 127) / 128;
    size_t rows = (p->m + 63) / 64, small = rows * tiles_across(p, 64);
    bool codes = p->y_dtype == FT_I8;
    ft_cuda_wgmma_tile deep;
    if (!is_fast(p, true))
        return FT_CUDA_WGMMA_GENERAL;
    if (choose_deep(&deep, p, multiprocessors))
        return deep;
    if (small <= (codes ? 2 * multiprocessors : multiprocessors)) /* two thread blocks per SM */
        return choose_few(small, steps, multiprocessors, codes);
    if (codes && rows * tiles_across(p, 96) <= 2 * multiprocessors)
        return FT_CUDA_WGMMA_FEW_96;
    if (!is_fast(p, false))
        return FT_CUDA_WGMMA_GENERAL;
    return choose_large(p->m, tiles_across(p, 192), steps, multiprocessors, p);
}

extern "C" int ft_cuda_wgmma_run(ft_cuda_wgmma_tile tile, const ft_cuda_chip *chip, void *stream,
                                 const ft_cuda_product *p)
{
    if (!ft_cuda_wgmma_tile_takes(tile, p))
        return (int) cudaErrorInvalidValue;
    const few_tile *few = find_few(tile);
    if (few != NULL)
        return (few->deep ? ft_cuda_wgmma_deep : ft_cuda_wgmma_few)(tile, chip, stream, p);
    if (p->y_dtype == FT_I8)
        return ft_cuda_wgmma_codes(tile, chip, stream, p);
    return ft_cuda_wgmma_floats(tile, chip, stream, p);
}

extern "C" int ft_cuda_gemm_wgmma(const ft_cuda_chip *chip, void *stream, const ft_cuda_product *p)
{
    return ft_cuda_wgmma_run(ft_cuda_wgmma_choose(chip, p), chip, stream, p);
}
