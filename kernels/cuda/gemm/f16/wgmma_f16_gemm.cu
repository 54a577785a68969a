/*
 * wgmma_f16_gemm.cu - kernels of wgmma_f16_gemm.h and tile selection.
 *
 * Small m is bound by reading weights: tiles have 64 weight rows so that every SM has some, and
 * split-K creates more where there are too few. Large m is bound by L2 reads of the SMs: tiles are
 * as large as the accumulator registers allow.
 *
 * Without clusters a thread block is persistent and prefetches the weights of its next tile during
 * the epilogue. The thread blocks of a cluster compute one tile and exit.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/f16/wgmma_f16_gemm.cuh"
#include "kernels/cuda/gemm/f16/wgmma_f16_epilogue.cuh"

#ifdef FT_HAS_WGMMA

/* One thread, before all others start. */
template <class SHAPE>
__device__ __forceinline__ void set_up(steady_rest<SHAPE> &rest, const steady_args &a,
                                       const steady_part &part)
{
    steady_place place = steady_place_of(a, part.first, SHAPE::rows, SHAPE::weights);
    ft_prefetch_map(&a.w[place.gemm]);
    ft_prefetch_map(&a.x);
    for (int i = 0; i < a.stages; i++) {
        ft_barrier_init(&rest.full[i], 2);
        ft_barrier_init(&rest.empty[i], SHAPE::workers / 32);
    }
    ft_barriers_ready();
}

/* Producer warps. */
template <class SHAPE>
__device__ __forceinline__ void load(char *ring, steady_rest<SHAPE> &rest, const steady_args &a,
                                     const steady_part &part)
{
    if (threadIdx.x == SHAPE::workers) {
        steady_load<SHAPE, true>(ring, rest, a, part);
    } else if (threadIdx.x == SHAPE::workers + 32) {
        ft_wait_for_predecessor();
        steady_load<SHAPE, false>(ring, rest, a, part);
        ft_let_successor_begin();
    }
    __syncwarp();
    if (a.blocks > 1)
        ft_cluster_wait();
}

template <class SHAPE, bool bf16>
__device__ __forceinline__ void work(const char *ring, steady_rest<SHAPE> &rest,
                                     const steady_args &a, const steady_part &part)
{
    steady_position at = { 0, 0 };
    ft_wait_for_predecessor(); /* earlier kernels may still read the previous contents of y */
    for (int tile = part.first; tile < a.tiles; tile += part.stride) {
        steady_place place = steady_place_of(a, tile, SHAPE::rows, SHAPE::weights);
        steady_columns columns = steady_columns_of(a, place);
        steady_sums<SHAPE> sums;
        steady_add_up<SHAPE, bf16>(ring, rest, a, part, at, sums);
        if (SHAPE::in_turns || a.blocks == 1)
            steady_finish_own<SHAPE>(rest, a, place, columns, sums);
        else
            steady_exchange<SHAPE>(rest, a, place, columns, part.rank, sums);
    }
}
#endif

/*
 * blockDim.x = SHAPE::threads; grid: tiles x cluster size, or as many thread blocks as are
 * resident.
 */
template <class SHAPE, bool bf16>
static __global__ void __launch_bounds__(SHAPE::threads, SHAPE::beside)
    steady_kernel(const __grid_constant__ steady_args a)
{
#ifdef FT_HAS_WGMMA
    extern __shared__ __align__(1024) char ring[];
    auto &rest = *(steady_rest<SHAPE> *) (ring + a.stages * SHAPE::stage);
    steady_part part = steady_part_of(a);
    if (threadIdx.x == SHAPE::workers)
        set_up(rest, a, part);
    __syncthreads();
    if (a.blocks > 1)
        ft_cluster_begin();
    if (threadIdx.x < SHAPE::workers) {
        if (SHAPE::crowded)
            asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        work<SHAPE, bf16>(ring, rest, a, part);
    } else {
        if (SHAPE::crowded)
            asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        load(ring, rest, a, part);
    }
#endif
}

/* ---- Arguments ------------------------------------------------------------------------------ */

static bool are_alike(const ft_cuda_float_product *p, const ft_cuda_float_product *q)
{
    return p->x == q->x && p->m == q->m && p->n == q->n && p->k == q->k &&
           p->x_dtype == q->x_dtype && p->w_dtype == q->w_dtype && p->y_dtype == q->y_dtype &&
           p->activation == q->activation;
}

/* Operands of `count` GEMMs and their common shape. */
static int args_init(steady_args *a, const ft_cuda_float_product *p, int count, unsigned weights,
                     unsigned rows)
{
    *a = (steady_args){};
    unsigned x_rows = p->m < rows ? (unsigned) (p->m + 7) / 8 * 8 : rows;
    size_t bytes = 2 * p->k;
    int status = ft_map_codes(&a->x, p->x, p->m, bytes, x_rows);
    a->together = p->n % 4 == 0 ? 4 : p->n % 2 == 0 ? 2 : 1;
    for (int i = 0; i < count && status == 0; i++) {
        if (!are_alike(p, &p[i]))
            return (int) cudaErrorNotSupported;
        status = ft_map_codes(&a->w[i], p[i].w, p->n, bytes, weights);
        a->bias[i] = p[i].bias;
        a->y[i] = p[i].y;
        if ((uintptr_t) p[i].y % 16 != 0)
            a->together = 1;
    }
    a->y_dtype = p->y_dtype;
    a->activation = p->activation;
    a->m = (int) p->m;
    a->n = (int) p->n;
    a->steps = (int) ((p->k + STEADY_STEP - 1) / STEADY_STEP);
    a->x_bytes = (int) x_rows * STEADY_LINE;
    a->row_tiles = (int) ((p->m + rows - 1) / rows);
    a->col_tiles = (int) ((p->n + weights - 1) / weights);
    a->tiles = a->row_tiles * a->col_tiles * count;
    return status;
}

/* ---- Launch --------------------------------------------------------------------------------- */

typedef struct request {
    const ft_cuda_halves_form *form;
    int ranges;
    const ft_cuda_chip *chip;
    void *stream;
    const ft_cuda_float_product *p;
    int count;
} request;

/* Thread blocks of a launch and the shared memory of each. */
typedef struct extent {
    size_t grid, bytes;
} extent;

/*
 * As many stages as fit and the thread block needs; zeros where two stages do not fit.
 */
template <class SHAPE> static extent lay_out(steady_args *a, const request *r)
{
    size_t beside = (size_t) (r->form->beside < SHAPE::beside ? r->form->beside : SHAPE::beside);
    size_t slots = (size_t) r->chip->multiprocessors * beside, tiles = (size_t) a->tiles;
    size_t grid = a->blocks > 1 || tiles < slots ? tiles : slots;
    size_t way =
        (size_t) ((a->steps + a->blocks - 1) / a->blocks + SHAPE::depth - 1) / SHAPE::depth;
    size_t steps = way * ((tiles + grid - 1) / grid);
    /* 1 KiB of shared memory per block is reserved */
    size_t room = (r->chip->shared + 1024) / beside - 1024;
    size_t rest = sizeof(steady_rest<SHAPE>) + steady_share_room<SHAPE>(a->blocks);
    size_t stages = rest < room ? (room - rest) / SHAPE::stage : 0;
    if (stages > (size_t) STEADY_STAGES)
        stages = (size_t) STEADY_STAGES;
    if (stages >= steps)
        stages = steps;
    else if (stages < 2)
        return {};
    a->stages = (int) stages;
    return { grid * (size_t) a->blocks, stages * SHAPE::stage + rest };
}

template <class SHAPE, bool bf16> static int launch_kernel(const request *r)
{
    auto *kernel = steady_kernel<SHAPE, bf16>;
    steady_args a;
    int status = args_init(&a, r->p, r->count, SHAPE::weights, SHAPE::rows);
    a.ranges = r->ranges;
    a.blocks = SHAPE::in_turns ? 1 : r->ranges;
    extent e = {};
    if (status == 0)
        e = lay_out<SHAPE>(&a, r);
    if (status == 0 && e.bytes == 0)
        status = (int) cudaErrorNotSupported;
    if (status == 0)
        status = (int) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            (int) e.bytes);
    if (status != 0)
        return status;
    return ft_launch(kernel, dim3((unsigned) e.grid), dim3(SHAPE::threads), e.bytes, r->stream,
                     r->chip->overlaps, (unsigned) a.blocks, a);
}

template <class SHAPE> static int launch(const request *r)
{
    return r->p->x_dtype == FT_BF16 ? launch_kernel<SHAPE, true>(r)
                                    : launch_kernel<SHAPE, false>(r);
}

static int launch_in_turns(const request *r)
{
    int teams = r->form->teams, rows = r->form->rows;
    if (teams == 1 && rows == 64)
        return launch<steady_shape<1, 64, true>>(r);
    if (teams == 1 && rows == 128)
        return launch<steady_shape<1, 128, true>>(r);
    if (teams == 2 && rows == 128)
        return launch<steady_shape<2, 128, true>>(r);
    return (int) cudaErrorNotSupported;
}

static int launch_single(const request *r)
{
    switch (r->form->rows) {
    case 8:
        return launch<steady_shape<1, 8, false>>(r);
    case 16:
        return launch<steady_shape<1, 16, false>>(r);
    case 32:
        return launch<steady_shape<1, 32, false>>(r);
    case 64:
        return launch<steady_shape<1, 64, false>>(r);
    case 128:
        return launch<steady_shape<1, 128, false>>(r);
    default:
        return (int) cudaErrorNotSupported;
    }
}

static int launch_pair(const request *r)
{
    switch (r->form->rows) {
    case 64:
        return launch<steady_shape<2, 64, false>>(r);
    case 128:
        return launch<steady_shape<2, 128, false>>(r);
    case 256:
        return launch<steady_shape<2, 256, false>>(r);
    default:
        return (int) cudaErrorNotSupported;
    }
}

int ft_cuda_wgmma_halves_with(const ft_cuda_halves_form *form, int ranges, const ft_cuda_chip *chip,
                              void *stream, const ft_cuda_float_product *p, int count)
{
    request r = { form, ranges, chip, stream, p, count };
    if (count < 1 || count > FT_CUDA_PARTS)
        return (int) cudaErrorInvalidValue;
    if (ranges < 1 || ranges > STEADY_RANGES || ranges == 3 ||
        (p->k + STEADY_STEP - 1) / STEADY_STEP < (size_t) ranges)
        return (int) cudaErrorNotSupported;
    if (!form->spread && ranges > 1)
        return launch_in_turns(&r);
    return form->teams == 1 ? launch_single(&r) : launch_pair(&r);
}

/* ---- Tile selection ------------------------------------------------------------------------- */

bool ft_cuda_wgmma_halves_takes(const ft_cuda_chip *chip, const ft_cuda_float_product *p)
{
    return chip->has_wgmma && p->x_dtype == p->w_dtype &&
           (p->x_dtype == FT_F16 || p->x_dtype == FT_BF16) && p->k % 8 == 0 && p->k > 0 &&
           p->k < 1u << 26 && p->n < 1u << 26 && p->m < 1u << 26 && (uintptr_t) p->x % 16 == 0 &&
           (uintptr_t) p->w % 16 == 0;
}

static size_t cover(size_t n, size_t of)
{
    return (n + of - 1) / of;
}

/*
 * Split until there are 32 tiles, or 64 where each still has 1024 k: on an H200, 64 thread blocks
 * read weights as fast as 128. (The SM count must not matter: equal bits on every device.)
 */
int ft_cuda_wgmma_halves_ranges(size_t n, size_t k)
{
    size_t tiles = cover(n, 64), steps = cover(k, STEADY_STEP), ranges = 1;
    while (ranges < (size_t) STEADY_RANGES && steps >= 4 * ranges &&
           tiles * ranges < (steps >= 32 * ranges ? 64u : 32u))
        ranges *= 2;
    return (int) ranges;
}

/*
 * One thread block per SM has more of k in flight than two, but of two one computes during the
 * other's epilogue, and both start at once.
 */
static int beside_of(const ft_cuda_chip *chip, size_t blocks, size_t k)
{
    size_t slots = (size_t) chip->multiprocessors;
    return blocks > slots && (blocks <= 2 * slots || k < 2048) ? 2 : 1;
}

/* The smallest tile of up to 32 rows that covers m. */
static int fitting_rows(size_t m)
{
    return m <= 8 ? 8 : m <= 16 ? 16 : 32;
}

/*
 * Without split-K: the tile shape with the least cost per wave. `cost` is that of a tile measured
 * on an H200: large tiles read fewer bytes per result.
 */
static ft_cuda_halves_form form_of_one(const ft_cuda_chip *chip, const ft_cuda_float_product *p,
                                       int count)
{
    static const struct {
        int teams, rows;
        size_t cost, least_m, least_k;
    } tile[] = {
        { 2, 256, 1600, 129, 2048 }, { 2, 128, 800, 65, 0 }, { 1, 128, 440, 65, 0 },
        { 2, 64, 540, 33, 0 },       { 1, 64, 280, 33, 0 },  { 1, 32, 175, 33, 0 },
    };
    size_t rows = (size_t) fitting_rows(p->m), columns = (size_t) count * cover(p->n, 64);
    size_t least = SIZE_MAX, blocks = columns * cover(p->m, rows);
    ft_cuda_halves_form form = { 1, (int) rows, true, beside_of(chip, blocks, p->k) };
    for (size_t i = 0; i < sizeof tile / sizeof tile[0]; i++) {
        columns = (size_t) count * cover(p->n, 64 * (size_t) tile[i].teams);
        blocks = columns * cover(p->m, (size_t) tile[i].rows);
        size_t cost = cover(blocks, (size_t) chip->multiprocessors) * tile[i].cost;
        if (p->m < tile[i].least_m || p->k < tile[i].least_k || cost >= least)
            continue;
        least = cost;
        form = { tile[i].teams, tile[i].rows, true, beside_of(chip, blocks, p->k) };
    }
    return form;
}

/*
 * With split-K: serial splits where that leaves few SMs idle, else a cluster while all blocks fit
 * at once (blocks of a cluster have little work and mostly wait). Clusters of four whose pipelines
 * fill an SM cannot be scheduled on all SMs.
 */
static ft_cuda_halves_form form_of_several(const ft_cuda_chip *chip, const ft_cuda_float_product *p,
                                           int count, int ranges)
{
    size_t columns = (size_t) count * cover(p->n, 64), slots = (size_t) chip->multiprocessors;
    size_t tiles = columns * cover(p->m, 64);
    bool wide = ranges == 4 && p->k >= 2048;
    if (p->m > 64 && 3 * tiles >= 2 * slots && tiles <= slots)
        return { 1, 64, false, 1 };
    for (int rows = fitting_rows(p->m); rows <= 128; rows *= 2) {
        size_t blocks = columns * cover(p->m, (size_t) rows) * (size_t) ranges;
        if (blocks <= (wide ? slots / 4 * 3 : slots) || (p->m <= (size_t) rows && rows <= 64))
            return { 1, rows, true, beside_of(chip, blocks, p->k / (size_t) ranges) };
    }
    if (wide && cover(columns, 2) * cover(p->m, 128) * 4 <= slots / 4 * 3)
        return { 2, 128, true, 1 };
    if (columns * cover(p->m, 128) <= slots)
        return { 1, 128, false, 1 };
    return { 2, 128, false, 1 };
}

ft_cuda_halves_form ft_cuda_wgmma_halves_form(const ft_cuda_chip *chip,
                                              const ft_cuda_float_product *p, int count)
{
    int ranges = ft_cuda_wgmma_halves_ranges(p->n, p->k);
    return ranges == 1 ? form_of_one(chip, p, count) : form_of_several(chip, p, count, ranges);
}

int ft_cuda_wgmma_halves(const ft_cuda_chip *chip, void *stream, const ft_cuda_float_product *p,
                         int count)
{
    ft_cuda_halves_form form = ft_cuda_wgmma_halves_form(chip, p, count);
    return ft_cuda_wgmma_halves_with(&form, ft_cuda_wgmma_halves_ranges(p->n, p->k), chip, stream,
                                     p, count);
}
