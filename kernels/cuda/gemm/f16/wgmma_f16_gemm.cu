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
__device__ __forceinline__ void init_pipeline(f16_smem_tail<SHAPE> &tail, const f16_gemm_params &a,
                                              const f16_block_work &work)
{
    f16_tile_coord coord = f16_tile_coord_of(a, work.first, SHAPE::rows, SHAPE::weights);
    ft_tma_prefetch_map(&a.w[coord.gemm]);
    ft_tma_prefetch_map(&a.x);
    for (int i = 0; i < a.stages; i++)
        ft_pipeline_init_stage(tail, i, 2, SHAPE::consumers / 32);
    ft_mbarrier_fence_init();
}

/* Producer warps. */
template <class SHAPE>
__device__ __forceinline__ void produce(char *stages_smem, f16_smem_tail<SHAPE> &tail,
                                        const f16_gemm_params &a, const f16_block_work &work)
{
    if (threadIdx.x == SHAPE::consumers) {
        f16_produce<SHAPE, true>(stages_smem, tail, a, work);
    } else if (threadIdx.x == SHAPE::consumers + 32) {
        ft_pdl_wait();
        f16_produce<SHAPE, false>(stages_smem, tail, a, work);
        ft_pdl_launch_dependents();
    }
    __syncwarp();
    if (a.cluster_size > 1)
        ft_cluster_wait();
}

template <class SHAPE, bool bf16>
__device__ __forceinline__ void consume(const char *stages_smem, f16_smem_tail<SHAPE> &tail,
                                        const f16_gemm_params &a, const f16_block_work &work)
{
    ft_pipeline_state state = { 0, 0 };
    ft_pdl_wait(); /* earlier kernels may still read the previous contents of y */
    for (int tile = work.first; tile < a.tiles; tile += work.stride) {
        f16_tile_coord coord = f16_tile_coord_of(a, tile, SHAPE::rows, SHAPE::weights);
        f16_out_columns columns = f16_out_columns_of(a, coord);
        f16_acc<SHAPE> sums;
        f16_accumulate_splits<SHAPE, bf16>(stages_smem, tail, a, work, state, sums);
        if (SHAPE::serial_splits || a.cluster_size == 1)
            f16_epilogue<SHAPE>(tail, a, coord, columns, sums);
        else
            f16_cluster_epilogue<SHAPE>(tail, a, coord, columns, work.rank, sums);
    }
}
#endif

/*
 * blockDim.x = SHAPE::threads; grid: tiles x cluster size, or as many thread blocks as are
 * resident.
 */
template <class SHAPE, bool bf16>
static __global__ void __launch_bounds__(SHAPE::threads, SHAPE::blocks_per_sm)
    f16_wgmma_kernel(const __grid_constant__ f16_gemm_params a)
{
#ifdef FT_HAS_WGMMA
    extern __shared__ __align__(1024) char stages_smem[];
    auto &tail = *(f16_smem_tail<SHAPE> *) (stages_smem + a.stages * SHAPE::stage);
    f16_block_work work = f16_block_work_of(a);
    if (threadIdx.x == SHAPE::consumers)
        init_pipeline(tail, a, work);
    __syncthreads();
    if (a.cluster_size > 1)
        ft_cluster_arrive_relaxed();
    if (threadIdx.x < SHAPE::consumers) {
        if (SHAPE::needs_setmaxnreg)
            asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        consume<SHAPE, bf16>(stages_smem, tail, a, work);
    } else {
        if (SHAPE::needs_setmaxnreg)
            asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        produce(stages_smem, tail, a, work);
    }
#endif
}

/* ---- Arguments ------------------------------------------------------------------------------ */

bool ft_cuda_f16_wgmma_same_shape(const ft_cuda_float_gemm_args *p, int count)
{
    bool same = true;
    for (const ft_cuda_float_gemm_args *q = p; same && q < p + count; q++)
        same = p->x == q->x && p->m == q->m && p->n == q->n && p->k == q->k &&
               p->x_dtype == q->x_dtype && p->w_dtype == q->w_dtype && p->y_dtype == q->y_dtype &&
               p->activation == q->activation;
    return same;
}

/* Operands of `count` GEMMs and their common shape. */
static int args_init(f16_gemm_params *a, const ft_cuda_float_gemm_args *p, int count,
                     unsigned weights, unsigned rows)
{
    *a = (f16_gemm_params){};
    unsigned x_rows = p->m < rows ? (unsigned) (p->m + 7) / 8 * 8 : rows;
    size_t bytes = 2 * p->k;
    int status = ft_tma_map_2d(&a->x, p->x, p->m, bytes, x_rows);
    a->store_width = p->n % 4 == 0 ? 4 : p->n % 2 == 0 ? 2 : 1;
    for (int i = 0; i < count && status == 0; i++) {
        status = ft_tma_map_2d(&a->w[i], p[i].w, p->n, bytes, weights);
        a->bias[i] = p[i].bias;
        a->y[i] = p[i].y;
        if ((uintptr_t) p[i].y % 16 != 0)
            a->store_width = 1;
    }
    a->y_dtype = p->y_dtype;
    a->activation = p->activation;
    a->m = (int) p->m;
    a->n = (int) p->n;
    a->k_tiles = (int) ((p->k + F16_TILE_K - 1) / F16_TILE_K);
    a->x_bytes = (int) x_rows * F16_TILE_K_BYTES;
    a->row_tiles = (int) ((p->m + rows - 1) / rows);
    a->col_tiles = (int) ((p->n + weights - 1) / weights);
    a->tiles = a->row_tiles * a->col_tiles * count;
    return status;
}

/* ---- Launch --------------------------------------------------------------------------------- */

typedef struct launch_request {
    const ft_cuda_f16_tile *tile_config;
    int splits;
    const ft_cuda_device_props *props;
    void *stream;
    const ft_cuda_float_gemm_args *p;
    int count;
} launch_request;

/* Thread blocks of a launch and the shared memory of each. */
typedef struct launch_size {
    size_t grid, bytes;
} launch_size;

/*
 * As many stages as fit and the thread block needs; zeros where two stages do not fit.
 */
template <class SHAPE> static launch_size choose_stages(f16_gemm_params *a, const launch_request *r)
{
    size_t blocks_per_sm = (size_t) (r->tile_config->blocks_per_sm < SHAPE::blocks_per_sm
                                         ? r->tile_config->blocks_per_sm
                                         : SHAPE::blocks_per_sm);
    size_t resident_blocks = (size_t) r->props->sm_count * blocks_per_sm, tiles = (size_t) a->tiles;
    size_t grid = a->cluster_size > 1 || tiles < resident_blocks ? tiles : resident_blocks;
    size_t k_tiles_per_tile = (size_t) ((a->k_tiles + a->cluster_size - 1) / a->cluster_size +
                                        SHAPE::k_tiles_per_stage - 1) /
                              SHAPE::k_tiles_per_stage;
    size_t k_tiles = k_tiles_per_tile * ((tiles + grid - 1) / grid);
    /* 1 KiB of shared memory per block is reserved */
    size_t smem_limit = (r->props->smem_bytes + 1024) / blocks_per_sm - 1024;
    size_t tail = sizeof(f16_smem_tail<SHAPE>) + f16_partial_bytes<SHAPE>(a->cluster_size);
    size_t stages = tail < smem_limit ? (smem_limit - tail) / SHAPE::stage : 0;
    if (stages > (size_t) F16_MAX_STAGES)
        stages = (size_t) F16_MAX_STAGES;
    if (stages >= k_tiles)
        stages = k_tiles;
    else if (stages < 2)
        return {};
    a->stages = (int) stages;
    return { grid * (size_t) a->cluster_size, stages * SHAPE::stage + tail };
}

template <class SHAPE, bool bf16> static int launch_kernel(const launch_request *r)
{
    auto *kernel = f16_wgmma_kernel<SHAPE, bf16>;
    f16_gemm_params a;
    int status = args_init(&a, r->p, r->count, SHAPE::weights, SHAPE::rows);
    a.splits = r->splits;
    a.cluster_size = SHAPE::serial_splits ? 1 : r->splits;
    launch_size e = {};
    if (status == 0)
        e = choose_stages<SHAPE>(&a, r);
    if (status == 0 && e.bytes == 0)
        status = (int) cudaErrorNotSupported;
    if (status == 0)
        status = (int) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            (int) e.bytes);
    if (status != 0)
        return status;
    return ft_launch(kernel, dim3((unsigned) e.grid), dim3(SHAPE::threads), e.bytes, r->stream,
                     r->props->has_pdl, (unsigned) a.cluster_size, a);
}

template <class SHAPE> static int launch(const launch_request *r)
{
    return r->p->x_dtype == FT_BF16 ? launch_kernel<SHAPE, true>(r)
                                    : launch_kernel<SHAPE, false>(r);
}

static int launch_serial_splits(const launch_request *r)
{
    int warpgroups = r->tile_config->warpgroups, rows = r->tile_config->rows;
    if (warpgroups == 1 && rows == 64)
        return launch<f16_tile_config<1, 64, true>>(r);
    if (warpgroups == 1 && rows == 128)
        return launch<f16_tile_config<1, 128, true>>(r);
    if (warpgroups == 2 && rows == 128)
        return launch<f16_tile_config<2, 128, true>>(r);
    return (int) cudaErrorNotSupported;
}

static int launch_one_warpgroup(const launch_request *r)
{
    switch (r->tile_config->rows) {
    case 8:
        return launch<f16_tile_config<1, 8, false>>(r);
    case 16:
        return launch<f16_tile_config<1, 16, false>>(r);
    case 32:
        return launch<f16_tile_config<1, 32, false>>(r);
    case 64:
        return launch<f16_tile_config<1, 64, false>>(r);
    case 96:
        return launch<f16_tile_config<1, 96, false>>(r);
    case 128:
        return launch<f16_tile_config<1, 128, false>>(r);
    default:
        return (int) cudaErrorNotSupported;
    }
}

static int launch_two_warpgroups(const launch_request *r)
{
    switch (r->tile_config->rows) {
    case 64:
        return launch<f16_tile_config<2, 64, false>>(r);
    case 128:
        return launch<f16_tile_config<2, 128, false>>(r);
    case 256:
        return launch<f16_tile_config<2, 256, false>>(r);
    default:
        return (int) cudaErrorNotSupported;
    }
}

int ft_cuda_f16_wgmma_launch_tile(const ft_cuda_f16_tile *tile_config, int splits,
                                  const ft_cuda_device_props *props, void *stream,
                                  const ft_cuda_float_gemm_args *p, int count)
{
    launch_request r = { tile_config, splits, props, stream, p, count };
    if (count < 1 || count > FT_CUDA_MAX_FUSED)
        return (int) cudaErrorInvalidValue;
    if (!ft_cuda_f16_wgmma_same_shape(p, count) || splits < 1 || splits > F16_MAX_SPLITS ||
        splits == 3 || (p->k + F16_TILE_K - 1) / F16_TILE_K < (size_t) splits)
        return (int) cudaErrorNotSupported;
    if (!tile_config->cluster_split_k && splits > 1)
        return launch_serial_splits(&r);
    return tile_config->warpgroups == 1 ? launch_one_warpgroup(&r) : launch_two_warpgroups(&r);
}

/* ---- Tile selection ------------------------------------------------------------------------- */

bool ft_cuda_f16_wgmma_supports(const ft_cuda_device_props *props, const ft_cuda_float_gemm_args *p)
{
    return props->has_wgmma && p->x_dtype == p->w_dtype &&
           (p->x_dtype == FT_F16 || p->x_dtype == FT_BF16) && p->k % 8 == 0 && p->k > 0 &&
           p->k < 1u << 26 && p->n < 1u << 26 && p->m < 1u << 26 && (uintptr_t) p->x % 16 == 0 &&
           (uintptr_t) p->w % 16 == 0;
}

static size_t ceil_div(size_t n, size_t of)
{
    return (n + of - 1) / of;
}

/*
 * Split until there are 32 tiles, or 64 where each still has 1024 k: on an H200, 64 thread blocks
 * read weights as fast as 128. (The SM count must not matter: equal bits on every device.)
 */
int ft_cuda_f16_wgmma_splits(size_t n, size_t k)
{
    size_t tiles = ceil_div(n, 64), k_tiles = ceil_div(k, F16_TILE_K), splits = 1;
    while (splits < (size_t) F16_MAX_SPLITS && k_tiles >= 4 * splits &&
           tiles * splits < (k_tiles >= 32 * splits ? 64u : 32u))
        splits *= 2;
    return (int) splits;
}

/*
 * One thread block per SM has more of k in flight than two, but of two one computes during the
 * other's epilogue, and both start at once.
 */
static int blocks_per_sm_of(const ft_cuda_device_props *props, size_t blocks, size_t k)
{
    size_t resident_blocks = (size_t) props->sm_count;
    return blocks > resident_blocks && (blocks <= 2 * resident_blocks || k < 2048) ? 2 : 1;
}

/* The smallest tile of up to 32 rows that covers m. */
static int smallest_tile_rows(size_t m)
{
    return m <= 8 ? 8 : m <= 16 ? 16 : 32;
}

/*
 * Without split-K: the tile shape with the least cost per wave. `cost` is that of a tile measured
 * on an H200: large tiles read fewer bytes per result.
 */
static ft_cuda_f16_tile select_no_split(const ft_cuda_device_props *props,
                                        const ft_cuda_float_gemm_args *p, int count)
{
    static const struct {
        int warpgroups, rows;
        size_t cost, min_m, min_k;
    } tile[] = {
        { 2, 256, 1600, 129, 2048 }, { 2, 128, 800, 65, 0 }, { 1, 128, 440, 65, 0 },
        { 2, 64, 540, 33, 0 },       { 1, 64, 280, 33, 0 },  { 1, 32, 175, 33, 0 },
    };
    size_t rows = (size_t) smallest_tile_rows(p->m), columns = (size_t) count * ceil_div(p->n, 64);
    size_t min_cost = SIZE_MAX, blocks = columns * ceil_div(p->m, rows);
    ft_cuda_f16_tile tile_config = { 1, (int) rows, true, blocks_per_sm_of(props, blocks, p->k) };
    for (size_t i = 0; i < sizeof tile / sizeof tile[0]; i++) {
        columns = (size_t) count * ceil_div(p->n, 64 * (size_t) tile[i].warpgroups);
        blocks = columns * ceil_div(p->m, (size_t) tile[i].rows);
        size_t cost = ceil_div(blocks, (size_t) props->sm_count) * tile[i].cost;
        if (p->m < tile[i].min_m || p->k < tile[i].min_k || cost >= min_cost)
            continue;
        min_cost = cost;
        tile_config = { tile[i].warpgroups, tile[i].rows, true,
                        blocks_per_sm_of(props, blocks, p->k) };
    }
    return tile_config;
}

/*
 * With split-K: serial splits where that leaves few SMs idle, else a cluster while all blocks fit
 * at once (blocks of a cluster have little work and mostly wait). Clusters of four whose pipelines
 * fill an SM cannot be scheduled on all SMs.
 */
static ft_cuda_f16_tile select_split_k(const ft_cuda_device_props *props,
                                       const ft_cuda_float_gemm_args *p, int count, int splits)
{
    size_t columns = (size_t) count * ceil_div(p->n, 64),
           resident_blocks = (size_t) props->sm_count;
    size_t tiles = columns * ceil_div(p->m, 64);
    bool fills_sm = splits == 4 && p->k >= 2048;
    if (p->m > 64 && 3 * tiles >= 2 * resident_blocks && tiles <= resident_blocks)
        return { 1, 64, false, 1 };
    for (int rows = smallest_tile_rows(p->m); rows <= 128; rows *= 2) {
        size_t blocks = columns * ceil_div(p->m, (size_t) rows) * (size_t) splits;
        if (blocks <= (fills_sm ? resident_blocks / 4 * 3 : resident_blocks) ||
            (p->m <= (size_t) rows && rows <= 64))
            return { 1, rows, true, blocks_per_sm_of(props, blocks, p->k / (size_t) splits) };
    }
    if (fills_sm && ceil_div(columns, 2) * ceil_div(p->m, 128) * 4 <= resident_blocks / 4 * 3)
        return { 2, 128, true, 1 };
    if (columns * ceil_div(p->m, 128) <= resident_blocks)
        return { 1, 128, false, 1 };
    return { 2, 128, false, 1 };
}

ft_cuda_f16_tile ft_cuda_f16_wgmma_select(const ft_cuda_device_props *props,
                                          const ft_cuda_float_gemm_args *p, int count)
{
    int splits = ft_cuda_f16_wgmma_splits(p->n, p->k);
    return splits == 1 ? select_no_split(props, p, count) : select_split_k(props, p, count, splits);
}
