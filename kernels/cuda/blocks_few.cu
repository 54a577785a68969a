/*
 * blocks_few.cu - products with weights in blocks for up to 8 rows: weights stream through once.
 *
 * Reading the weights is all the time, so there is one block a multiprocessor, which keeps copies
 * of 64 KB under way from its first moment to its last: each warp has a ring, filled before the
 * predecessor has ended.  A lane copies 16 bytes at a time, from anywhere to the place where no
 * reads meet in a bank.
 *
 * Eight warps, a team, share a stretch of 1,024 columns of a panel: each multiplies a run, leaves
 * its sums in shared memory and goes on.  Other warps add the sums up, in the order of blocks.cuh,
 * a row a lane.  Stretches are dealt out evenly, so a block may begin and end amid a panel.  What
 * it has of the panel at its end it computes first and hands over to its neighbour, who needs it
 * last: nobody waits, and the order of additions is that of a single block.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/blocks_few.cuh"
#include "kernels/cuda/team.cuh"

enum {
    WORKERS = FEW_TEAMS * FEW_TEAM, /* warps that multiply, and those that add up */
    ADDERS = 4,
    THREADS = 32 * (WORKERS + ADDERS),
    SUMS_ROW = BLOCKS_PANEL + 4,   /* so that the lanes of a store meet in no bank */
    ROUNDS = 2,                    /* whose sums are in shared memory at a time */
    LAID_DOWN = 1,                 /* barriers: the sums of a round are there ... */
    ADDED_UP = LAID_DOWN + ROUNDS, /* ... and are needed no more */
    FLAG = 1
};

/*
 * In shared memory: sums of each warp before their scales, [tokens][SUMS_ROW], and the scales; then
 * what each token has of its panel so far.
 */
static __host__ __device__ __forceinline__ size_t sums_bytes(size_t tokens)
{
    return (ROUNDS * WORKERS * (tokens + 1) * SUMS_ROW + tokens * BLOCKS_PANEL) * sizeof(float);
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
__device__ __forceinline__ void
multiply_run(blocks_sums &run, float *scale, few_ring<bits, fine> &ring,
             blocks_unpacker<bits, kind> &unpacker, const few_shape &shape, const char *x,
             int column, bool has_zeros)
{
    using stage = few_stage<bits, fine>;
    constexpr int blocks = bits / 4; /* of a step */
    blocks_clear(run);
#pragma unroll
    for (int piece = 0; piece < stage::stages; piece++) {
        few_bits<bits, fine> own;
        own.read(ring.wait(), ring.lane, has_zeros);
        ring.release();
        if (!fine && has_zeros)
            unpacker.set(own.zeros[0]);
        if (!fine && piece == 0)
            *scale = own.scale[0][0];
#pragma unroll
        for (int step = 0; step < FEW_BLOCKS / blocks; step++) {
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
                if (has_zeros)
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
                                         int tokens, int lane)
{
    int g = lane / 4, t = lane % 4;
#pragma unroll
    for (int c = 0; c < 2; c++)
        if (2 * t + c < tokens)
            *(float4 *) &sums[(2 * t + c) * SUMS_ROW + 4 * g] =
                make_float4(run[0][c], run[0][c + 2], run[1][c], run[1][c + 2]);
    sums[tokens * SUMS_ROW + lane] = scale;
}

/* ---- Adding up ------------------------------------------------------------------------------ */

/* Sums of a token that a block hands over to the next one, a row a lane. */
__device__ __forceinline__ float *handed(const ft_cuda_blocks &p, unsigned block, int token,
                                         int lane)
{
    return (float *) p.scratch + ((size_t) block * FEW_TOKENS + token) * BLOCKS_PANEL + lane;
}

__device__ __forceinline__ void hand_over(const ft_cuda_blocks &p, float total, int token, int lane)
{
    *handed(p, blockIdx.x, token, lane) = total;
    __threadfence();
    __syncwarp();
    if (lane == 0)
        atomicExch(&p.counters[blockIdx.x * FEW_TOKENS + token], (uint32_t) FLAG);
}

/* Leaves the counter as it was before. */
__device__ __forceinline__ float take_over(const ft_cuda_blocks &p, int token, int lane)
{
    uint32_t *flag = &p.counters[(blockIdx.x - 1) * FEW_TOKENS + token];
    if (lane == 0) {
        while (atomicAdd(flag, 0) != FLAG)
            ;
        *flag = 0;
        __threadfence();
    }
    __syncwarp();
    return __ldcg(handed(p, blockIdx.x - 1, token, lane));
}

/* A warp has the sums of a row in each lane. */
__device__ __forceinline__ void put(const ft_cuda_blocks &p, const blocks_shape &shape, int panel,
                                    float total, int token, int lane)
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
        for (int i = (int) threadIdx.x; i < eights; i += (int) blockDim.x) {
            uint4 term[blocks_terms<kind>];
            fetch_eight<kind>(term, p.x, (size_t) row, shape.all.k, i * 8);
#pragma unroll
            for (int j = 0; j < blocks_terms<kind>; j++)
                *(uint4 *) (x + j * shape.x_bytes + row * shape.x_stride + i * 16) = term[j];
        }
}

/* ---- The kernel ----------------------------------------------------------------------------- */

/* A warp of a team: its runs of the block's stretches. */
template <int bits, blocks_kind kind, bool fine>
__device__ __forceinline__ void multiply(few_ring<bits, fine> &ring, const few_shape &shape,
                                         const char *x, float *sums, int tokens, bool has_zeros)
{
    int count = ring.range.count, apart = (tokens + 1) * SUMS_ROW, token = ring.lane % 8;
    blocks_unpacker<bits, kind> unpacker;
    x += (token < tokens ? token : 0) * shape.x_stride + ring.lane / 8 * 16;
    for (int i = 0, round = 0; i < count; i += FEW_TEAMS, round++) {
        int own = i + ring.warp / FEW_TEAM, which = round % ROUNDS;
        blocks_sums run;
        float scale = 1.0f;
        if (own < count) {
            few_unit unit(shape.all, ring.range, own);
            multiply_run<bits, kind, fine>(
                run, &scale, ring, unpacker, shape, x,
                unit.stretch * BLOCKS_STRETCH + ring.warp % FEW_TEAM * BLOCKS_RUN, has_zeros);
        }
        if (round >= ROUNDS)
            ft_team_wait(ADDED_UP + which, THREADS);
        if (own < count)
            lay_down(sums + (which * WORKERS + ring.warp) * apart, run, scale, tokens, ring.lane);
        ft_team_arrive(LAID_DOWN + which, THREADS);
    }
}

/* What a token has of a panel so far, and a stretch's sums, added up from run to run. */
__device__ __forceinline__ void add_stretch(float &total, float sum, const ft_cuda_blocks &p,
                                            const blocks_shape &shape, const few_range &range,
                                            const few_unit &unit, bool ends, int token, int lane)
{
    if (unit.stretch > 0 && unit.unit == range.begin)
        total = take_over(p, token, lane);
    total = unit.stretch == 0 ? sum : total + sum;
    if (unit.stretch + 1 == shape.stretches)
        put(p, shape, unit.panel, total, token, lane);
    else if (ends)
        hand_over(p, total, token, lane);
}

/* A warp that adds up: of `own` and every ADDERS-th token from there on. */
__device__ __forceinline__ void add_up(const ft_cuda_blocks &p, const blocks_shape &shape,
                                       const few_range &range, float *sums, int own, int lane)
{
    int tokens = (int) p.m, apart = (tokens + 1) * SUMS_ROW;
    float *total = sums + ROUNDS * WORKERS * apart + lane; /* a row of lanes a token */
    for (int i = 0, round = 0; i < range.count; i += FEW_TEAMS, round++) {
        ft_team_wait(LAID_DOWN + round % ROUNDS, THREADS);
        for (int j = i; j < i + FEW_TEAMS && j < range.count; j++) {
            few_unit unit(shape, range, j);
            const float *from =
                sums + (round % ROUNDS * FEW_TEAMS + j - i) * FEW_TEAM * apart + lane;
            float scale[FEW_TEAM];
#pragma unroll
            for (int run = 0; run < FEW_TEAM; run++)
                scale[run] = from[run * apart + tokens * SUMS_ROW];
#pragma unroll 1
            for (int token = own; token < tokens; token += ADDERS) {
                float sum = 0.0f;
#pragma unroll
                for (int run = 0; run < FEW_TEAM; run++)
                    if (unit.stretch * BLOCKS_STRETCH + run * BLOCKS_RUN < shape.k)
                        sum = fmaf(scale[run], from[run * apart + token * SUMS_ROW], sum);
                add_stretch(total[token * BLOCKS_PANEL], sum, p, shape, range, unit,
                            j + 1 == range.tail, token, lane);
            }
        }
        if (i + ROUNDS * FEW_TEAMS < range.count)
            ft_team_arrive(ADDED_UP + round % ROUNDS, THREADS);
    }
}

/* grid = at most one block for each panel. */
template <int bits, blocks_kind kind, bool fine>
static __global__ void __launch_bounds__(THREADS, 1)
    few_kernel(const __grid_constant__ ft_cuda_blocks p, const __grid_constant__ few_shape shape)
{
#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 800 /* Turing: ft_cuda_blocks_few_takes() */
    extern __shared__ __align__(128) char shared[];
    float *sums = (float *) shared;
    char *rings = shared + sums_bytes(p.m);
    char *x = rings + WORKERS * FEW_SLOTS * few_stage<bits, fine>::bytes;
    int warp = (int) threadIdx.x / 32, lane = (int) threadIdx.x % 32;
    const few_range range(shape.all);
    few_ring<bits, fine> ring(p, shape.all, range, rings, warp, lane);
    if (warp < WORKERS)
        ring.open();
    ft_wait_for_predecessor();
    fetch_tokens<kind>(x, p, shape);
    __syncthreads();
    ft_let_successor_begin();
    if (warp < WORKERS)
        multiply<bits, kind, fine>(ring, shape, x, sums, (int) p.m, p.part[0].zero != NULL);
    else
        add_up(p, shape.all, range, sums, warp - WORKERS, lane);
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
    return (size_t) bytes * WORKERS * FEW_SLOTS;
}

/* How many rows there is room for at a time. */
size_t ft_cuda_blocks_few_rows(const ft_cuda_chip *chip, const ft_cuda_blocks *p)
{
    size_t taken = sums_bytes(0) + ring_bytes(p);
    size_t row = (size_t) shape_of(p).x_stride * (p->x_dtype == FT_F32 ? 3 : 1) + sums_bytes(1) -
                 sums_bytes(0);
    size_t rows = chip->shared > taken ? (chip->shared - taken) / row : 0;
    return rows < FEW_TOKENS ? rows : FEW_TOKENS;
}

/* What neighbours hand over, where a block may end amid a panel. */
size_t ft_cuda_blocks_few_scratch(const ft_cuda_chip *chip)
{
    return (size_t) chip->multiprocessors * FEW_TOKENS * BLOCKS_PANEL * sizeof(float);
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
           panels * (p->k + BLOCKS_PANEL) < 1u << 31 && ft_cuda_blocks_few_rows(chip, p) > 0 &&
           (shape.panels <= chip->multiprocessors || can_hand_over(chip, p));
}

template <int bits, blocks_kind kind, bool fine>
static int launch(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p)
{
    auto *kernel = few_kernel<bits, kind, fine>;
    few_shape shape = shape_of(p);
    size_t sums = sums_bytes(p->m);
    size_t bytes = sums + ring_bytes(p) + (size_t) shape.x_bytes * blocks_terms<kind>;
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
    size_t most = ft_cuda_blocks_few_rows(chip, p);
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
