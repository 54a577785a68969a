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

enum {
    PANELS = 4, /* per thread block, each for two warps */
    ROWS = PANELS * BLOCKS_PANEL,
    THREADS = 2 * PANELS * 32,
    X_ROW = 2 * BLOCKS_RUN, /* bytes per token in a stage */
    RUNS = BLOCKS_STRETCH / BLOCKS_RUN
};

/* Compile-time configuration; a warp has EIGHTS * 8 tokens. */
template <int bits, blocks_kind kind, bool fine, int EIGHTS> struct tiles_form {
    static constexpr int tokens = 16 * EIGHTS, terms = blocks_terms<kind>;
    static constexpr int scales = fine ? BLOCKS_RUN / BLOCKS_STEP : 1;
    static constexpr int panel = BLOCKS_RUN * BLOCKS_PANEL * bits / 8;
    static constexpr int beside = panel + scales * 64, own = beside + scales * 32;
    static constexpr int x_at = PANELS * own, x_term = tokens * X_ROW;
    static constexpr int stage = x_at + terms * x_term;
    static constexpr int stages = EIGHTS == 1 ? 4 : terms > 1 ? 2 : 3;
    static constexpr int totals = THREADS * EIGHTS * 32;
    static constexpr int shared = stages * stage + totals;
    static constexpr int beside_each_other = EIGHTS > 2 ? 1 : 2; /* thread blocks per SM */
};

/* ---- Loads ---------------------------------------------------------------------------------- */

template <class FORM, int bits> struct tiles_feed {
    const ft_cuda_blocks &p;
    const tiles_shape &shape;
    const ft_cuda_blocks_part *part;
    const char *codes;
    int panel, rows, at, column, first_token;
    bool inside;

    __device__ __forceinline__ tiles_feed(const ft_cuda_blocks &p, const tiles_shape &shape,
                                          int column)
        : p(p), shape(shape), column(column), first_token((int) blockIdx.x * FORM::tokens)
    {
        int warp = (int) threadIdx.x / 32;
        panel = (int) blockIdx.y * PANELS + warp / 2;
        inside = panel < shape.all.panels;
        panel = inside ? panel : shape.all.panels - 1;
        int which = blocks_part_of(shape.all, panel);
        part = &p.part[which];
        rows = shape.all.padded_rows[which];
        at = column * (4 * bits) + warp % 2 * (FORM::panel / 2);
        codes = part->w + (size_t) panel * shape.all.panel_bytes + threadIdx.x % 32 * 16;
    }
    /* This warp's half of its panel. */
    __device__ __forceinline__ void copy_weights(char *stage) const
    {
        int warp = (int) threadIdx.x / 32, lane = (int) threadIdx.x % 32;
        char *to = stage + warp / 2 * FORM::own;
#pragma unroll
        for (int i = 0; i < FORM::panel / 2; i += BLOCKS_BLOCK)
            ft_copy_16(to + warp % 2 * (FORM::panel / 2) + i + blocks_copied(lane), codes + at + i,
                       inside && at + i < shape.all.panel_bytes);
        /* the first warp of a panel loads scales, the second zero points */
        bool scales = warp % 2 == 0;
        int step = scales ? lane / 4 : lane / 2, place = scales ? lane % 4 : lane % 2;
        int own = column + step * BLOCKS_STEP;
        if (step >= FORM::scales || own >= shape.all.k || !inside)
            return;
        size_t index =
            (size_t) blocks_group_of(shape.all, own) * rows + panel * BLOCKS_PANEL + place * 8;
        if (scales)
            ft_copy_16(to + FORM::panel + step * 64 + place * 16, part->scale + index, true);
        else if (part->zero != NULL)
            ft_copy_16(to + FORM::beside + step * 32 + place * 16, part->zero + index + place * 8,
                       true);
    }
    __device__ __forceinline__ void copy_tokens(char *stage) const
    {
#pragma unroll
        for (int term = 0; term < FORM::terms; term++)
#pragma unroll
            for (int i = 0; i < FORM::tokens * 16; i += THREADS) {
                int chunk = (i + (int) threadIdx.x) % 16, token = (i + (int) threadIdx.x) / 16;
                size_t row = (size_t) (first_token + token);
                ft_copy_16(stage + FORM::x_at + term * FORM::x_term + token * X_ROW +
                               (chunk ^ token % 8) * 16,
                           shape.x + term * shape.x_term + row * shape.x_row +
                               (column + chunk * 8) * 2,
                           row < p.m && column + chunk * 8 < shape.padded_k);
            }
    }
    __device__ __forceinline__ void advance(int runs)
    {
        column += runs * BLOCKS_RUN;
        at += runs * FORM::panel;
    }
};

/* ---- Mainloop ------------------------------------------------------------------------------- */

template <class FORM> using tiles_sums = blocks_sums[FORM::tokens / 16];

/* Tokens of 8-token tile `i`, 32 columns. */
template <class FORM, blocks_kind kind>
__device__ __forceinline__ void load_tokens(uint32_t (&x)[blocks_terms<kind>][4], const char *stage,
                                            int i, int step)
{
    int warp = (int) threadIdx.x / 32, lane = (int) threadIdx.x % 32;
    int token = warp % 2 * (FORM::tokens / 2) + i * 8 + lane % 8;
    int chunk = (step * 4 + lane / 8) ^ lane % 8;
#pragma unroll
    for (int term = 0; term < blocks_terms<kind>; term++)
        ft_load_tiles(x[term],
                      stage + FORM::x_at + term * FORM::x_term + token * X_ROW + chunk * 16);
}

/* split += the k tile of a stage, of which `left` columns are in bounds. */
template <class FORM, int bits, blocks_kind kind, bool fine>
__device__ __forceinline__ void multiply_run(tiles_sums<FORM> &stretch, const char *stage, int left,
                                             bool has_zeros)
{
    constexpr int blocks = bits / 4; /* per step */
    int warp = (int) threadIdx.x / 32, lane = (int) threadIdx.x % 32;
    const char *own = stage + warp / 2 * FORM::own;
    blocks_unpacker<bits, kind> unpacker;
    tiles_sums<FORM> run;
#pragma unroll
    for (int i = 0; i < FORM::tokens / 16; i++)
        blocks_clear(run[i]);
#pragma unroll 1 /* unrolled, loads of all steps come first and need too many registers */
    for (int step = 0; step < BLOCKS_RUN / BLOCKS_STEP; step++) {
        uint32_t w[4][4], x[blocks_terms<kind>][4];
        uint4 block[blocks];
        float scale[4];
        if (step * BLOCKS_STEP >= left)
            break;
        if (has_zeros && (fine || step == 0))
            unpacker.set(*(const uint32_t *) (own + FORM::beside + step * 32 + lane / 4 * 4));
#pragma unroll
        for (int i = 0; i < blocks; i++)
            block[i] =
                *(const uint4 *) (own + (step * blocks + i) * BLOCKS_BLOCK + blocks_wanted(lane));
        unpacker.unpack(w, block);
        if constexpr (fine)
            blocks_scales(scale, own + FORM::panel + step * 64 + lane / 4 * 8);
#pragma unroll
        for (int i = 0; i < FORM::tokens / 16; i++) {
            load_tokens<FORM, kind>(x, stage, i, step);
            if constexpr (fine) {
                blocks_sums sum;
                blocks_clear(sum);
                blocks_multiply<kind>(sum, w, x);
                blocks_scale(run[i], sum, scale);
            } else {
                blocks_multiply<kind>(run[i], w, x);
            }
        }
    }
    float scale[4] = { 1.0f, 1.0f, 1.0f, 1.0f };
    if constexpr (!fine)
        blocks_scales(scale, own + FORM::panel + lane / 4 * 8);
#pragma unroll
    for (int i = 0; i < FORM::tokens / 16; i++)
        blocks_scale(stretch[i], run[i], scale);
}

/* ---- Sums of splits ------------------------------------------------------------------------- */

/*
 * Add a split to the running total; `first`: there is none yet. split becomes the sum, which is
 * stored unless it is the last.
 */
template <class FORM>
__device__ __forceinline__ void add_stretch(tiles_sums<FORM> &stretch, float4 *totals, bool first,
                                            bool last)
{
#pragma unroll
    for (int i = 0; i < FORM::tokens / 16; i++)
#pragma unroll
        for (int j = 0; j < 2; j++) {
            float4 *own = &totals[(i * 2 + j) * THREADS + threadIdx.x];
            float(&sum)[4] = stretch[i][j];
            if (!first) {
                float4 before = *own;
                sum[0] = before.x + sum[0];
                sum[1] = before.y + sum[1];
                sum[2] = before.z + sum[2];
                sum[3] = before.w + sum[3];
            }
            if (!last) {
                *own = make_float4(sum[0], sum[1], sum[2], sum[3]);
                sum[0] = sum[1] = sum[2] = sum[3] = 0.0f;
            }
        }
}

/* Store the warp's sums, to y or as partial sums. */
template <class FORM>
__device__ __forceinline__ void put(const ft_cuda_blocks &p, const tiles_shape &shape,
                                    const tiles_sums<FORM> &sums, int stretch)
{
    int warp = (int) threadIdx.x / 32, lane = (int) threadIdx.x % 32;
    int panel = (int) blockIdx.y * PANELS + warp / 2, g = lane / 4, t = lane % 4;
    size_t first = (size_t) blockIdx.x * FORM::tokens + warp % 2 * (FORM::tokens / 2) + 2 * t;
    if (panel >= shape.all.panels)
        return;
#pragma unroll
    for (int i = 0; i < FORM::tokens / 16; i++)
#pragma unroll
        for (int c = 0; c < 2; c++) {
            size_t token = first + 8 * i + c;
            float value[4] = { sums[i][0][c], sums[i][0][c + 2], sums[i][1][c], sums[i][1][c + 2] };
            if (token < p.m)
                tiles_put_four(p, shape, stretch, token, panel, 4 * g, value);
        }
}

/* ---- Kernels -------------------------------------------------------------------------------- */

/* grid = (tiles of tokens, tiles of panels, splits) */
template <int bits, blocks_kind kind, bool fine, int EIGHTS>
static __global__ void __launch_bounds__(THREADS,
                                         (tiles_form<bits, kind, fine, EIGHTS>::beside_each_other))
    tiles_kernel(const __grid_constant__ ft_cuda_blocks p,
                 const __grid_constant__ tiles_shape shape)
{
#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 800 /* not Turing: ft_cuda_blocks_tiles_takes() */
    using form = tiles_form<bits, kind, fine, EIGHTS>;
    extern __shared__ __align__(128) char shared[];
    float4 *totals = (float4 *) (shared + form::stages * form::stage);
    int stretch = (int) blockIdx.z * shape.share, first = stretch;
    int column = stretch * BLOCKS_STRETCH, end = column + shape.share * BLOCKS_STRETCH;
    tiles_feed<form, bits> feed(p, shape, column);
    tiles_sums<form> sums;
    end = end < shape.all.k ? end : shape.all.k;
    for (int i = 0; i < form::stages - 1; i++) { /* weights do not depend on the predecessor */
        if (feed.column < end)
            feed.copy_weights(shared + i * form::stage);
        feed.advance(1);
    }
    feed.advance(1 - form::stages);
    ft_wait_for_predecessor();
    for (int i = 0; i < form::stages - 1; i++) {
        if (feed.column < end)
            feed.copy_tokens(shared + i * form::stage);
        feed.advance(1);
        ft_copy_commit();
    }
    ft_let_successor_begin();
#pragma unroll
    for (int i = 0; i < EIGHTS; i++)
        blocks_clear(sums[i]);
    int slot = 0, into = form::stages - 1;
    for (; column < end; column += BLOCKS_RUN) {
        ft_copy_wait<form::stages - 2>();
        __syncthreads(); /* this stage has arrived, and all warps have read the previous one */
        if (feed.column < end) {
            feed.copy_weights(shared + into * form::stage);
            feed.copy_tokens(shared + into * form::stage);
        }
        feed.advance(1);
        ft_copy_commit();
        multiply_run<form, bits, kind, fine>(sums, shared + slot * form::stage, end - column,
                                             p.part[0].zero != NULL);
        slot = slot + 1 == form::stages ? 0 : slot + 1;
        into = into + 1 == form::stages ? 0 : into + 1;
        bool last = column + BLOCKS_RUN >= end;
        if (!last && (column / BLOCKS_RUN + 1) % RUNS != 0)
            continue;
        if (shape.sums == NULL) {
            add_stretch<form>(sums, totals, stretch == first, last);
        } else {
            put<form>(p, shape, sums, stretch);
#pragma unroll
            for (int i = 0; i < EIGHTS; i++)
                blocks_clear(sums[i]);
        }
        stretch++;
    }
    if (shape.sums == NULL)
        put<form>(p, shape, sums, 0);
#endif
}

/* ---- Host ----------------------------------------------------------------------------------- */

template <int bits, blocks_kind kind, bool fine, int EIGHTS>
static int launch(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p)
{
    using form = tiles_form<bits, kind, fine, EIGHTS>;
    auto *kernel = tiles_kernel<bits, kind, fine, EIGHTS>;
    tiles_shape shape = tiles_shape_of(p);
    dim3 grid(ft_cover(p->m, form::tokens), ft_cover((size_t) shape.all.panels, PANELS));
    tiles_share_out(&shape, p, (size_t) grid.x * grid.y,
                    (size_t) chip->multiprocessors * form::beside_each_other);
    grid.z = ft_cover((size_t) shape.all.stretches, (unsigned) shape.share);
    int status = (int) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            form::shared);
    if (status == 0 && !tiles_are_fed(p))
        status = ft_cuda_blocks_prepare(chip, stream, p, &shape);
    if (status == 0)
        status =
            ft_launch(kernel, grid, THREADS, form::shared, stream, chip->overlaps, 1, *p, shape);
    return status != 0 || shape.sums == NULL ? status
                                             : ft_cuda_blocks_add_up(chip, stream, p, &shape);
}

/* Larger tiles where there are enough for all SMs. */
template <int bits, blocks_kind kind, bool fine>
static int launch_size(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p)
{
    if constexpr (kind == BLOCKS_F32) {
        return p->m <= 16 ? launch<bits, kind, fine, 1>(chip, stream, p)
                          : launch<bits, kind, fine, 2>(chip, stream, p);
    } else {
        size_t panels = (size_t) blocks_shape_of(p).panels;
        size_t tiles = (p->m + 127) / 128 * ((panels + PANELS - 1) / PANELS);
        bool wide = p->m > 64 && tiles >= (size_t) chip->multiprocessors &&
                    chip->shared >= (size_t) tiles_form<bits, kind, fine, 8>::shared;
        return p->m <= 16 ? launch<bits, kind, fine, 1>(chip, stream, p)
               : wide     ? launch<bits, kind, fine, 8>(chip, stream, p)
                          : launch<bits, kind, fine, 4>(chip, stream, p);
    }
}

template <blocks_kind kind>
static int launch_kind(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p)
{
    bool fine = blocks_are_fine(p);
    return p->bits == 4 ? fine ? launch_size<4, kind, true>(chip, stream, p)
                               : launch_size<4, kind, false>(chip, stream, p)
           : fine ? launch_size<8, kind, true>(chip, stream, p)
                        : launch_size<8, kind, false>(chip, stream, p);
}

/* Grids have up to 65535 rows of x or tiles. */
bool ft_cuda_blocks_tiles_takes(const ft_cuda_chip *chip, const ft_cuda_blocks *p)
{
    return chip->capability >= 80 && p->k < 1u << 20 && p->m <= 65535 &&
           blocks_shape_of(p).panels <= 65535 * PANELS &&
           chip->shared >= (size_t) tiles_form<8, BLOCKS_F16, true, 4>::shared;
}

int ft_cuda_blocks_tiles(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p)
{
    return p->x_dtype == FT_F16    ? launch_kind<BLOCKS_F16>(chip, stream, p)
           : p->x_dtype == FT_BF16 ? launch_kind<BLOCKS_BF16>(chip, stream, p)
                                   : launch_kind<BLOCKS_F32>(chip, stream, p);
}

size_t ft_cuda_blocks_tiles_scratch(const ft_cuda_chip *chip, size_t m, size_t n, size_t k,
                                    ft_dtype x_dtype)
{
    size_t split = m < TILES_SPLIT_ROWS ? m : TILES_SPLIT_ROWS,
           stretches = (k + BLOCKS_STRETCH - 1) / BLOCKS_STRETCH;
    size_t columns = (n + FT_CUDA_PARTS * BLOCKS_PANEL) / BLOCKS_PANEL * BLOCKS_PANEL;
    (void) chip;
    return tiles_prepared_bytes(m, k, x_dtype) + stretches * split * columns * sizeof(float);
}
