/*
 * blocks_few.cu - products with weights in blocks for up to 8 rows: weights stream through once.
 *
 * Reading the weights is all the time, so there is one block a multiprocessor, which keeps copies
 * of 64 KB under way from its first moment to its last: eight warps with a ring each, filled before
 * the predecessor has ended.  A lane copies 16 bytes at a time, from anywhere to the place where no
 * reads meet in a bank.
 *
 * The eight warps share a stretch of 1,024 columns of a panel: each multiplies a run and leaves its
 * sums in shared memory.  Then warp i adds those of token i in the order of blocks.cuh, a row a
 * lane, while the copies go on.  Stretches are dealt out evenly, so a block may begin and end amid
 * a panel.  What it has of the panel at its end it computes first and hands over to its neighbour,
 * who needs it last: nobody waits, and the order of additions is that of a single block.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/blocks_few.cuh"

enum {
    SUMS_ROW = BLOCKS_PANEL + 4, /* so that the lanes of a store meet in no bank */
    FLAG = 1
};

/* A round's sums of each warp in shared memory, [tokens][SUMS_ROW], before their scales. */
static __host__ __device__ __forceinline__ int sums_bytes(size_t tokens)
{
    return (int) (tokens + 1) * SUMS_ROW * (int) sizeof(float);
}

/* Of a launch. */
typedef struct few_shape {
    blocks_shape all;
    uint32_t x_stride; /* bytes of a row of x in shared memory */
    uint32_t x_bytes;  /* of all rows, of a term */
} few_shape;

/* ---- One run -------------------------------------------------------------------------------- */

/* Four tiles of 8 columns of x, from `column` on, as each term has them. */
template <blocks_kind kind>
__device__ __forceinline__ void load_tokens(uint32_t (&x)[blocks_terms<kind>][4], const char *row,
                                            const few_shape &shape, int column)
{
#pragma unroll
    for (int term = 0; term < blocks_terms<kind>; term++)
        ft_load_tiles(x[term], row + term * shape.x_bytes + column * 2);
}

/* The warp's run of a stretch; column: its first.  Scales that are left to apply become *scale. */
template <int bits, blocks_kind kind, bool fine>
__device__ __forceinline__ void multiply_run(blocks_sums &run, float *scale,
                                             few_ring<bits, fine> &ring, const few_shape &shape,
                                             const char *x, int column, bool has_zeros)
{
    using stage = few_stage<bits, fine>;
    constexpr int blocks = bits / 4; /* of a step */
    blocks_unpacker<bits, kind> unpacker;
    blocks_clear(run);
#pragma unroll
    for (int piece = 0; piece < stage::stages; piece++) {
        few_bits<bits, fine> own;
        own.read(ring.wait(), ring.lane, has_zeros);
        ring.release();
        unpacker.set(own.zeros[0]);
        if (!fine && piece == 0)
            *scale = own.scale[0][0];
#pragma unroll
        for (int step = 0; step < BLOCKS / blocks; step++) {
            uint32_t w[4][4], tokens[blocks_terms<kind>][4];
            if (column >= shape.all.k)
                break;
            load_tokens<kind>(tokens, x, shape, column);
            uint4 block[blocks];
#pragma unroll
            for (int i = 0; i < blocks; i++)
                block[i] = own.block[step * blocks + i];
            if constexpr (fine) {
                blocks_sums sum;
                blocks_clear(sum);
                unpacker.set(own.zeros[step]);
                unpacker.unpack(w, block);
                blocks_multiply<kind>(sum, w, tokens);
                blocks_scale(run, sum, own.scale[step]);
            } else {
                unpacker.unpack(w, block);
                blocks_multiply<kind>(run, w, tokens);
            }
            column += BLOCKS_STEP;
        }
    }
}

/* The lane's sums, for everybody. */
__device__ __forceinline__ void lay_down(float *sums, const blocks_sums &run, float scale,
                                         int tokens, unsigned lane)
{
    int g = (int) lane / 4, t = (int) lane % 4;
#pragma unroll
    for (int c = 0; c < 2; c++)
        if (2 * t + c < tokens)
            *(float4 *) &sums[(2 * t + c) * SUMS_ROW + 4 * g] =
                make_float4(run[0][c], run[0][c + 2], run[1][c], run[1][c + 2]);
    sums[tokens * SUMS_ROW + lane] = scale;
}

/* ---- Adding up ------------------------------------------------------------------------------ */

/* Sums of a token that a block hands over to the next one, a row a lane. */
__device__ __forceinline__ float *handed(const ft_cuda_blocks &p, unsigned block, unsigned token,
                                         unsigned lane)
{
    return (float *) p.scratch + ((size_t) block * TOKENS + token) * BLOCKS_PANEL + lane;
}

__device__ __forceinline__ void hand_over(const ft_cuda_blocks &p, float total, unsigned token,
                                          unsigned lane)
{
    *handed(p, blockIdx.x, token, lane) = total;
    __threadfence();
    __syncwarp();
    if (lane == 0)
        atomicExch(&p.counters[blockIdx.x * TOKENS + token], (uint32_t) FLAG);
}

/* Leaves the counter as it was before. */
__device__ __forceinline__ float take_over(const ft_cuda_blocks &p, unsigned token, unsigned lane)
{
    uint32_t *flag = &p.counters[(blockIdx.x - 1) * TOKENS + token];
    if (lane == 0) {
        while (atomicAdd(flag, 0) != FLAG)
            ;
        *flag = 0;
        __threadfence();
    }
    __syncwarp();
    return __ldcg(handed(p, blockIdx.x - 1, token, lane));
}

/* Warp `token` has the sums of a row in each lane. */
__device__ __forceinline__ void put(const ft_cuda_blocks &p, const blocks_shape &shape, int panel,
                                    float total, unsigned token, unsigned lane)
{
    const ft_cuda_blocks_part &part = p.part[blocks_part_of(shape, panel)];
    size_t row = (size_t) panel * BLOCKS_PANEL + lane;
    if (row >= part.rows)
        return;
    if (part.bias != NULL)
        total += part.bias[row];
    total = ft_activate(p.activation, total);
    ft_store<1>(part.y, p.y_dtype, token * part.rows + row, &total);
}

/* ---- x -------------------------------------------------------------------------------------- */

/* Eight neighbours; zeros beyond the end of the row. */
template <blocks_kind kind>
__device__ __forceinline__ void fetch_eight(uint4 (&term)[blocks_terms<kind>], void *x, size_t row,
                                            int k, int column)
{
    constexpr ft_dtype dtype = kind == BLOCKS_F16 ? FT_F16 : kind == BLOCKS_BF16 ? FT_BF16 : FT_F32;
    uint32_t word[4][blocks_terms<kind>];
    ft_bits<8> bits = {};
    bool whole = k % 8 == 0 && (uintptr_t) x % 16 == 0;
    if (whole && column < k) {
        ft_fetch_as<dtype, 8>(bits, x, row * k + column);
    } else if (!whole) {
        for (int i = 0; i < 8 && column + i < k; i++) {
            ft_bits<1> one;
            ft_fetch_as<dtype, 1>(one, x, row * k + column + i);
            if constexpr (dtype == FT_F32)
                bits.word[i] = one.word[0];
            else
                bits.word[i / 2] |= one.word[0] << 16 * (i % 2);
        }
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if constexpr (kind == BLOCKS_F32)
            blocks_split(word[i], __uint_as_float(bits.word[2 * i]),
                         __uint_as_float(bits.word[2 * i + 1]));
        else
            word[i][0] = bits.word[i];
    }
#pragma unroll
    for (int i = 0; i < blocks_terms<kind>; i++)
        term[i] = make_uint4(word[0][i], word[1][i], word[2][i], word[3][i]);
}

/* All of x to shared memory, zeros up to the end of the last run. */
template <blocks_kind kind>
__device__ __forceinline__ void fetch_tokens(char *x, const ft_cuda_blocks &p,
                                             const few_shape &shape)
{
    int eights = (shape.all.k + BLOCKS_RUN - 1) / BLOCKS_RUN * (BLOCKS_RUN / 8);
    for (int row = 0; row < (int) p.m; row++)
        for (int i = (int) threadIdx.x; i < eights; i += THREADS) {
            uint4 term[blocks_terms<kind>];
            fetch_eight<kind>(term, p.x, (size_t) row, shape.all.k, i * 8);
#pragma unroll
            for (int j = 0; j < blocks_terms<kind>; j++)
                *(uint4 *) (x + j * shape.x_bytes + row * shape.x_stride + i * 16) = term[j];
        }
}

/* ---- The kernel ----------------------------------------------------------------------------- */

/* Warp `token` adds the runs of a stretch, each `apart` floats further, to what it has so far. */
__device__ __forceinline__ void add_stretch(float &total, const ft_cuda_blocks &p,
                                            const blocks_shape &shape, const few_range &range,
                                            const float *sums, int i, unsigned token, unsigned lane)
{
    int unit = range.at(i), panel = blocks_divide(unit, shape.per_panel);
    int stretch = unit - panel * shape.stretches, column = stretch * BLOCKS_STRETCH;
    int rows = (int) p.m, apart = (rows + 1) * SUMS_ROW;
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < TEAM; j++)
        if (column + j * BLOCKS_RUN < shape.k)
            sum = fmaf(sums[j * apart + rows * SUMS_ROW + lane],
                       sums[j * apart + token * SUMS_ROW + lane], sum);
    if (stretch > 0 && unit == range.begin)
        total = take_over(p, token, lane);
    total = stretch == 0 ? sum : total + sum;
    if (stretch + 1 == shape.stretches)
        put(p, shape, panel, total, token, lane);
    else if (i + 1 == range.tail)
        hand_over(p, total, token, lane);
}

/* grid = at most one block for each panel. */
template <int bits, blocks_kind kind, bool fine>
static __global__ void __launch_bounds__(THREADS, 1)
    few_kernel(const __grid_constant__ ft_cuda_blocks p, const __grid_constant__ few_shape shape)
{
#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 800 /* Turing: ft_cuda_blocks_few_takes() */
    extern __shared__ __align__(128) char shared[];
    int rows = (int) p.m, apart = (rows + 1) * SUMS_ROW; /* floats of a warp */
    float *sums = (float *) shared;
    char *rings = shared + 2 * WARPS * sums_bytes(p.m);
    char *x = rings + WARPS * SLOTS * few_stage<bits, fine>::bytes;
    const few_range range(shape.all);
    few_ring<bits, fine> ring(p, shape.all, range, rings);
    unsigned warp = ring.warp, lane = ring.lane;
    ring.open();
    ft_wait_for_predecessor();
    fetch_tokens<kind>(x, p, shape);
    __syncthreads();
    ft_let_successor_begin();

    int token = (int) lane % 8, seat = (int) warp % TEAM;
    const char *row = x + (token < rows ? token : 0) * shape.x_stride + lane / 8 * 16;
    bool has_zeros = p.part[0].zero != NULL;
    float total = 0.0f, *round = sums;
    for (int i = 0; i < range.count; i += TEAMS) {
        int own = i + (int) warp / TEAM;
        if (own < range.count) {
            int unit = range.at(own), panel = blocks_divide(unit, shape.all.per_panel);
            int stretch = unit - panel * shape.all.stretches;
            blocks_sums run;
            float scale = 1.0f;
            multiply_run<bits, kind, fine>(run, &scale, ring, shape, row,
                                           stretch * BLOCKS_STRETCH + seat * BLOCKS_RUN, has_zeros);
            lay_down(round + warp * apart, run, scale, rows, lane);
        }
        __syncthreads();
        if ((int) warp < rows)
            for (int j = 0; j < TEAMS && i + j < range.count; j++)
                add_stretch(total, p, shape.all, range, round + j * TEAM * apart, i + j, warp,
                            lane);
        round = round == sums ? sums + WARPS * apart : sums;
    }
#endif
}

/* ---- Host ----------------------------------------------------------------------------------- */

/* Rows of x 16 bytes off a multiple of 128, so that no rows of a tile meet in a bank. */
static few_shape shape_of(const ft_cuda_blocks *p)
{
    few_shape shape = {};
    shape.all = blocks_shape_of(p);
    shape.x_stride = (uint32_t) ((p->k + BLOCKS_RUN - 1) / BLOCKS_RUN * BLOCKS_RUN * 2 + 16);
    shape.x_bytes = shape.x_stride * (uint32_t) p->m;
    return shape;
}

static size_t ring_bytes(const ft_cuda_blocks *p)
{
    bool fine = blocks_are_fine(p);
    int bytes = p->bits == 4 ? fine ? few_stage<4, true>::bytes : few_stage<4, false>::bytes
                : fine       ? few_stage<8, true>::bytes
                             : few_stage<8, false>::bytes;
    return (size_t) bytes * WARPS * SLOTS;
}

/* How many rows there is room for at a time. */
static size_t most_rows(const ft_cuda_chip *chip, const ft_cuda_blocks *p)
{
    size_t taken = 2 * WARPS * sums_bytes(0) + ring_bytes(p);
    size_t row = (size_t) shape_of(p).x_stride * (p->x_dtype == FT_F32 ? 3 : 1) +
                 2 * WARPS * SUMS_ROW * sizeof(float);
    size_t rows = chip->shared > taken ? (chip->shared - taken) / row : 0;
    return rows < TOKENS ? rows : TOKENS;
}

/* What neighbours hand over, where a block may end amid a panel. */
size_t ft_cuda_blocks_few_scratch(const ft_cuda_chip *chip)
{
    return (size_t) chip->multiprocessors * TOKENS * BLOCKS_PANEL * sizeof(float);
}

static bool can_hand_over(const ft_cuda_chip *chip, const ft_cuda_blocks *p)
{
    return p->counters != NULL && p->scratch_bytes >= ft_cuda_blocks_few_scratch(chip) &&
           chip->multiprocessors <= FT_CUDA_BLOCKS_NEIGHBOURS;
}

/* blocks_divide() takes so many stretches, and scales are counted in 32 bits. */
bool ft_cuda_blocks_few_takes(const ft_cuda_chip *chip, const ft_cuda_blocks *p)
{
    blocks_shape shape = blocks_shape_of(p);
    uint64_t panels = (uint64_t) shape.panels, stretches = (uint64_t) shape.stretches;
    return chip->capability >= 80 && p->k < 1u << 20 && panels * stretches * stretches < 1u << 31 &&
           panels * (p->k + BLOCKS_PANEL) < 1u << 31 && most_rows(chip, p) > 0 &&
           (shape.panels <= chip->multiprocessors || can_hand_over(chip, p));
}

template <int bits, blocks_kind kind, bool fine>
static int launch(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p)
{
    auto *kernel = few_kernel<bits, kind, fine>;
    few_shape shape = shape_of(p);
    size_t bytes = (size_t) (2 * WARPS * sums_bytes(p->m)) + ring_bytes(p) +
                   (size_t) shape.x_bytes * blocks_terms<kind>;
    unsigned most = (unsigned) chip->multiprocessors, panels = (unsigned) shape.all.panels;
    cudaError_t status =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int) bytes);
    if (status != cudaSuccess)
        return (int) status;
    return ft_launch(kernel, dim3(panels < most ? panels : most), THREADS, bytes, stream,
                     chip->overlaps, 1, *p, shape);
}

template <int bits, blocks_kind kind>
static int launch_either(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p)
{
    return blocks_are_fine(p) ? launch<bits, kind, true>(chip, stream, p)
                              : launch<bits, kind, false>(chip, stream, p);
}

template <blocks_kind kind>
static int launch_kind(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p)
{
    return p->bits == 4 ? launch_either<4, kind>(chip, stream, p)
                        : launch_either<8, kind>(chip, stream, p);
}

/* More rows than there is room for are several products. */
int ft_cuda_blocks_few(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p)
{
    ft_cuda_blocks some = *p;
    size_t most = most_rows(chip, p);
    int status = 0;
    for (size_t row = 0; row < p->m && status == 0; row += some.m) {
        some.m = p->m - row < most ? p->m - row : most;
        some.x = (char *) p->x + row * p->k * ft_dtype_size(p->x_dtype);
        for (int i = 0; i < p->parts; i++)
            some.part[i].y =
                (char *) p->part[i].y + row * p->part[i].rows * ft_dtype_size(p->y_dtype);
        status = p->x_dtype == FT_F16    ? launch_kind<BLOCKS_F16>(chip, stream, &some)
                 : p->x_dtype == FT_BF16 ? launch_kind<BLOCKS_BF16>(chip, stream, &some)
                                         : launch_kind<BLOCKS_F32>(chip, stream, &some);
    }
    return status;
}
