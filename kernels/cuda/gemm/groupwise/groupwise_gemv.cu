/*
 * groupwise_gemv.cu - GEMV with group-wise quantized weights for up to 8 rows: streams the weights
 * once.
 *
 * The time is that of reading the weights, so DRAM must not idle between the end of one GEMV and
 * the start of the next. Each warp has a pipeline, which it fills before the predecessor ends. With
 * 4 bits, where dequantization takes as long as loading, a thread block uses at most half of an
 * SM's shared memory if possible, and dependents launch when its last copies are in flight: their
 * pipelines fill while this kernel reduces. (Launched earlier, they took bandwidth from this
 * kernel: 12288 x 4096 took 10.4 us on an H200 instead of 8.4.) With 8 bits a thread block uses all
 * of an SM's shared memory for deeper pipelines, if it has enough to read.
 *
 * A warp computes a split of 512 columns of a panel and stores its sums in shared memory; after
 * several splits (a phase) these are reduced, one row per lane. Thread blocks process whole panels
 * where these divide evenly, else equal numbers of splits: then a range may start and end within a
 * panel. A thread block computes its part of the last panel first and hands the partial sums to the
 * next block, which needs them last: there is practically no waiting, and the order of additions is
 * that of a single block.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/groupwise/groupwise_gemv_multiply.cuh"

enum {
    FROM_PREV_BLOCK = 2,
    TOTALS = 3 * GROUPWISE_PANEL_ROWS * 4, /* bytes per token */
    READY = 1,
    LARGE_WEIGHTS =
        256 << 10 /* bytes of weights: larger than a pipeline in all of the shared memory */
};

/* ---- Reduction ------------------------------------------------------------------------------ */

/* Partial sums of a token that a thread block hands to the next one, a row per lane. */
__device__ __forceinline__ float *handover_slot(const ft_cuda_groupwise_args &p, unsigned block,
                                                int token, int lane)
{
    return (float *) p.scratch + ((size_t) block * GEMV_MAX_M + token) * GROUPWISE_PANEL_ROWS +
           lane;
}

__device__ __forceinline__ void hand_over_partials(const ft_cuda_groupwise_args &p, float total,
                                                   int token, int lane)
{
    uint32_t *flag = &p.counters[blockIdx.x * GEMV_MAX_M + token];
    *handover_slot(p, blockIdx.x, token, lane) = total;
    __syncwarp();
    if (lane == 0)
        asm volatile("st.release.gpu.u32 [%0], %1;" ::"l"(flag), "r"((uint32_t) READY) : "memory");
}

/* Resets the counter to zero. */
__device__ __forceinline__ float take_partials(const ft_cuda_groupwise_args &p, int token, int lane)
{
    uint32_t *flag = &p.counters[(blockIdx.x - 1) * GEMV_MAX_M + token], found = 0;
    while (lane == 0 && found != READY)
        asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(found) : "l"(flag) : "memory");
    if (lane == 0)
        *flag = 0;
    __syncwarp();
    return __ldcg(handover_slot(p, blockIdx.x - 1, token, lane));
}

/* Store a row per lane. */
__device__ __forceinline__ void store_row(const ft_cuda_groupwise_args &p,
                                          const groupwise_shape &shape, int panel, float total,
                                          int token, int lane)
{
    const ft_cuda_groupwise_linear &linear = p.linear[groupwise_linear_of(shape, panel)];
    size_t row = (size_t) panel * GROUPWISE_PANEL_ROWS + lane;
    if (row >= linear.rows)
        return;
    if (linear.bias != NULL)
        total += linear.bias[row];
    if (p.activation != FT_ACT_NONE)
        total = ft_activate(p.activation, total);
    ft_store<1>(linear.y, p.y_dtype, token * linear.rows + row, &total);
}

/* ---- The kernel ----------------------------------------------------------------------------- */

/* A warp's splits of first .. last - 1 of the thread block's range. */
template <class CONFIG>
__device__ __forceinline__ void multiply(gemv_pipeline<CONFIG> &pipeline, const gemv_params &shape,
                                         const char *x, float *sums, int tokens, int first,
                                         int last)
{
    for (int i = first + (int) threadIdx.x / 32; i < last; i += GEMV_WARPS) {
        gemv_work_item unit(shape.all, pipeline.range, i);
        groupwise_acc sum;
        gemv_split<CONFIG>(sum, pipeline, shape, x, unit.split * GROUPWISE_SPLIT_K);
        gemv_store_acc(sums + (i - first) * tokens * GEMV_ACC_PITCH, sum, tokens, pipeline.lane);
    }
}

/*
 * Partial sums of a token in a panel that continues in the next phase or, FROM_PREV_BLOCK, started
 * in the previous block.
 */
__device__ __forceinline__ float *total_slot(char *shared, const gemv_params &shape, int which,
                                             int token)
{
    return (float *) (shared + shape.totals_offset) + (token * 3 + which) * GROUPWISE_PANEL_ROWS +
           threadIdx.x % 32;
}

/*
 * At the start of a phase: take the previous block's partial sums of a panel that this phase
 * reduces. In the first phase it is too early, because the previous block may not have computed
 * them yet.
 */
__device__ __forceinline__ void take_partials_early(char *shared, const ft_cuda_groupwise_args &p,
                                                    const gemv_params &shape,
                                                    const groupwise_work_range &range, int first,
                                                    int last)
{
    int begins = range.count - range.head, warp = (int) threadIdx.x / 32;
    if (range.head > 0 && first > 0 && first <= begins && begins < last && warp < (int) p.m)
        *total_slot(shared, shape, FROM_PREV_BLOCK, warp) =
            take_partials(p, warp, (int) threadIdx.x % 32);
}

/* Reduce a token's splits i .. until - 1 of one panel. */
__device__ __forceinline__ void
reduce_splits(const float *sums, char *shared, const ft_cuda_groupwise_args &p,
              const gemv_params &shape, const groupwise_work_range &range,
              const gemv_work_item &unit, int i, int end_split, int token)
{
    int lane = (int) threadIdx.x % 32, split_pitch = (int) p.m * GEMV_ACC_PITCH;
    int phase = i / shape.phase, split = unit.split + end_split - i;
    float sum = sums[0];
    if (unit.split > 0 && unit.unit == range.begin)
        sum = (phase == 0 ? take_partials(p, token, lane)
                          : *total_slot(shared, shape, FROM_PREV_BLOCK, token)) +
              sum;
    else if (unit.split > 0)
        sum = *total_slot(shared, shape, (phase + 1) % 2, token) + sum;
#pragma unroll 8
    for (int j = 1; j < end_split - i; j++)
        sum += sums[j * split_pitch];
    if (split == shape.all.splits)
        store_row(p, shape.all, unit.panel, sum, token, lane);
    else if (end_split == range.tail)
        hand_over_partials(p, sum, token, lane);
    else
        *total_slot(shared, shape, phase % 2, token) = sum;
}

/* Reduction in a thread block with whole panels. */
__device__ __forceinline__ void reduce_panels(const float *sums, const ft_cuda_groupwise_args &p,
                                              const gemv_params &shape,
                                              const groupwise_work_range &range)
{
    int tokens = (int) p.m, split_pitch = tokens * GEMV_ACC_PITCH, lane = (int) threadIdx.x % 32;
    int first = groupwise_fast_div(range.begin, shape.all.splits_magic);
    int n_jobs = groupwise_fast_div(range.count, shape.all.splits_magic) * tokens;
    for (int job = (int) threadIdx.x / 32; job < n_jobs; job += GEMV_WARPS) {
        int panel = groupwise_fast_div(job, shape.token_magic), token = job - panel * tokens;
        const float *own =
            sums + panel * shape.all.splits * split_pitch + token * GEMV_ACC_PITCH + lane;
        float total = *own;
#pragma unroll 8
        for (int i = 1; i < shape.all.splits; i++)
            total += own[i * split_pitch];
        store_row(p, shape.all, first + panel, total, token, lane);
    }
}

/* Reduction of a phase, one warp per panel and token. */
__device__ __forceinline__ void reduce_phase(const float *sums, char *shared,
                                             const ft_cuda_groupwise_args &p,
                                             const gemv_params &shape,
                                             const groupwise_work_range &range, int first, int last)
{
    int warp = (int) threadIdx.x / 32, lane = (int) threadIdx.x % 32, job_index = 0;
    int tokens = (int) p.m, split_pitch = tokens * GEMV_ACC_PITCH;
    for (int i = first, end_split; i < last; i = end_split) {
        gemv_work_item unit(shape.all, range, i);
        end_split = i + shape.all.splits - unit.split;
        end_split = i < range.tail && end_split > range.tail ? range.tail : end_split;
        end_split = end_split < last ? end_split : last;
        for (int token = 0; token < tokens; token++)
            if (job_index++ % GEMV_WARPS == warp)
                reduce_splits(sums + (i - first) * split_pitch + token * GEMV_ACC_PITCH + lane,
                              shared, p, shape, range, unit, i, end_split, token);
    }
}

/* grid = thread blocks of `splits_per_block` splits. */
template <class CONFIG>
static __global__ void __launch_bounds__(GEMV_THREADS, CONFIG::kind == GROUPWISE_X_F32 ? 1 : 2)
    gemv_kernel(const __grid_constant__ ft_cuda_groupwise_args p,
                const __grid_constant__ gemv_params shape)
{
#if !defined __CUDA_ARCH__ ||                                                                      \
    __CUDA_ARCH__ >= 800 /* not Turing: ft_cuda_groupwise_gemv_supports() */
    extern __shared__ __align__(128) char shared[];
    char *x = shared + shape.x_offset;
    float *sums = (float *) (x + shape.x_bytes * groupwise_x_terms<CONFIG::kind>);
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int tokens = (int) p.m;
    const groupwise_work_range range(shape.all.panels * shape.all.splits, shape.all.splits,
                                     shape.splits_per_block);
    gemv_pipeline<CONFIG> pipeline(p, shape.all, range, shared, shape.n_stages, (int) warp, lane);
    const char *own = x + ((int) lane % 8 < tokens ? lane % 8 : 0) * shape.x_stride + lane / 8 * 16;
    pipeline.open();
    ft_pdl_wait();
    pipeline.pdl_waited = true;
    if (shape.one_block_per_sm) /* no room for dependents before this block exits */
        ft_pdl_launch_dependents();
    else
        pipeline.trigger_dependents();
    gemv_load_x<CONFIG::kind>(x, p, shape);
    __syncthreads();
    for (int first = 0, last; first < range.count; first = last) {
        last = first + shape.phase < range.count ? first + shape.phase : range.count;
        take_partials_early(shared, p, shape, range, first, last);
        multiply<CONFIG>(pipeline, shape, own, sums, tokens, first, last);
        __syncthreads();
        if (shape.single_phase)
            reduce_panels(sums, p, shape, range);
        else
            reduce_phase(sums, shared, p, shape, range, first, last);
        if (last < range.count)
            __syncthreads();
    }
#endif
}

/* ---- Host ----------------------------------------------------------------------------------- */

/* Bytes of a stage of all pipelines: few_form. */
static size_t stage_bytes(const ft_cuda_groupwise_args *p)
{
    size_t columns = (size_t) GEMV_STAGE_LOADS * 128 / (size_t) p->bits;
    size_t scales = columns / (groupwise_has_step_scales(p) ? GROUPWISE_STEP_K : GROUPWISE_TILE_K);
    return GEMV_WARPS * (GEMV_STAGE_BYTES + scales * (p->linear[0].zero != NULL ? 96 : 64));
}

static size_t split_bytes(size_t tokens)
{
    return sizeof(float) * GEMV_ACC_PITCH * tokens;
}

/* Rows of x are 16 bytes off a multiple of 128 to avoid bank conflicts. */
static size_t x_stride(const ft_cuda_groupwise_args *p)
{
    return (p->k + GROUPWISE_TILE_K - 1) / GROUPWISE_TILE_K * GROUPWISE_TILE_K * 2 + 16;
}

static int terms_of(const ft_cuda_groupwise_args *p)
{
    return p->x_dtype == FT_F32 ? 3 : 1;
}

/* Shared memory except phases and stages beyond two. */
static size_t fixed_bytes(const ft_cuda_groupwise_args *p, size_t tokens)
{
    return 2 * stage_bytes(p) + tokens * (TOTALS + x_stride(p) * terms_of(p));
}

/* Minimum shared memory for full speed. */
static size_t min_bytes(const ft_cuda_groupwise_args *p, size_t tokens)
{
    return fixed_bytes(p, tokens) + 2 * GEMV_WARPS * split_bytes(tokens);
}

/*
 * Shared memory to request. Where each SM gets one thread block, two of them must not share an SM:
 * blocks request more than half of it. Otherwise two blocks share the SM whose predecessor block
 * exits first while another SM idles. (In a Llama 2 7B decode step on an H200, the 128 thread
 * blocks of 4096 x 11008 ran on 122 of 132 SMs and took 11.9 us instead of 7.8.) After a GEMV of
 * the same kind this would delay the prefetch instead: 12288 x 4096 back to back takes 9.8 us
 * instead of 8.5.
 */
static size_t requested_smem(const ft_cuda_device_props *props, const ft_cuda_groupwise_args *p,
                             const gemv_params *s)
{
    size_t bytes = s->totals_offset + TOTALS * p->m;
    return p->back_to_back || s->two_blocks_per_sm ? bytes : groupwise_exclusive_smem(props, bytes);
}

/* Splits per thread block: whole panels, unless equal ranges are clearly faster. */
static int splits_per_block_of(const groupwise_shape *shape, int blocks)
{
    int equal = groupwise_splits_per_block(blocks, shape->panels, shape->splits);
    int by_panels = (shape->panels + blocks - 1) / blocks * shape->splits;
    return by_panels * 5 <= equal * 6 ? by_panels : equal;
}

/* Fraction of warp iterations that have a split to compute. */
static double warp_utilization(const groupwise_shape *shape, int blocks)
{
    int rounds = (splits_per_block_of(shape, blocks) + GEMV_WARPS - 1) / GEMV_WARPS;
    return (double) shape->panels * shape->splits / ((double) rounds * GEMV_WARPS * blocks);
}

/*
 * Shared memory layout for a given share. Where partial sums are handed over, two phases are used,
 * with all of the handed-over panel in the first, so that it is not late.
 */
static void layout_smem(gemv_params *s, const ft_cuda_device_props *props,
                        const ft_cuda_groupwise_args *p, int n_stages)
{
    size_t split = split_bytes(p->m), slot = stage_bytes(p), fixed = fixed_bytes(p, p->m);
    size_t smem_limit = s->one_block_per_sm ? props->smem_bytes : groupwise_half_smem(props);
    for (s->n_stages = 2;
         s->n_stages < n_stages && smem_limit >= min_bytes(p, p->m) + (s->n_stages - 1) * slot;)
        s->n_stages++;
    int max_splits =
        (int) ((smem_limit - fixed - (s->n_stages - 2) * slot) / split) / GEMV_WARPS * GEMV_WARPS;
    bool hands_over = s->splits_per_block % s->all.splits != 0;
    int phase = hands_over && s->splits_per_block / 2 > s->all.splits ? s->splits_per_block / 2
                                                                      : s->splits_per_block;
    s->phase = (phase + GEMV_WARPS - 1) / GEMV_WARPS * GEMV_WARPS;
    s->phase = s->phase < max_splits ? s->phase : max_splits;
    s->single_phase = !hands_over && s->phase >= s->splits_per_block;
    s->x_stride = (uint32_t) x_stride(p);
    s->x_bytes = s->x_stride * (uint32_t) p->m;
    s->x_offset = (uint32_t) (s->n_stages * slot);
    s->totals_offset = (uint32_t) (s->x_offset + s->x_bytes * terms_of(p) + s->phase * split);
}

/*
 * Two thread blocks per SM if that leaves no more warps idle; else one that leaves room for a block
 * of the next kernel, unless the space goes to a deeper pipeline.
 */
static gemv_params params_of(const ft_cuda_device_props *props, const ft_cuda_groupwise_args *p)
{
    gemv_params s = {};
    int blocks = props->sm_count;
    bool fits_half = min_bytes(p, p->m) <= groupwise_half_smem(props);
    s.all = groupwise_shape_of(p);
    bool two_blocks_per_sm = fits_half && p->x_dtype != FT_F32 &&
                             warp_utilization(&s.all, blocks * GEMV_MAX_BLOCKS_PER_SM) >
                                 0.95 * warp_utilization(&s.all, blocks);
    s.two_blocks_per_sm = two_blocks_per_sm;
    s.splits_per_block =
        splits_per_block_of(&s.all, two_blocks_per_sm ? blocks * GEMV_MAX_BLOCKS_PER_SM : blocks);
    size_t bytes = (size_t) s.splits_per_block * GROUPWISE_SPLIT_K * GROUPWISE_PANEL_ROWS;
    s.one_block_per_sm =
        !fits_half || (!two_blocks_per_sm && p->bits == 8 && bytes > LARGE_WEIGHTS);
    s.row_magic = groupwise_div_magic(
        (uint32_t) ((p->k + GROUPWISE_TILE_K - 1) / GROUPWISE_TILE_K * GROUPWISE_TILE_K / 8));
    s.token_magic = groupwise_div_magic((uint32_t) p->m);
    layout_smem(&s, props, p,
                two_blocks_per_sm    ? 2
                : p->bits == 8       ? s.one_block_per_sm ? 4 : 3
                : s.one_block_per_sm ? 2
                                     : 3);
    return s;
}

/* Rows that fit in shared memory at a time. */
size_t ft_cuda_groupwise_gemv_max_m(const ft_cuda_device_props *props,
                                    const ft_cuda_groupwise_args *p)
{
    size_t rows = 0;
    while (rows < GEMV_MAX_M &&
           fixed_bytes(p, rows + 1) + GEMV_WARPS * split_bytes(rows + 1) <= props->smem_bytes)
        rows++;
    return rows;
}

/* Partial sums that thread blocks hand over. */
size_t ft_cuda_groupwise_gemv_scratch(const ft_cuda_device_props *props)
{
    return (size_t) props->sm_count * GEMV_MAX_BLOCKS_PER_SM * GEMV_MAX_M * GROUPWISE_PANEL_ROWS *
           sizeof(float);
}

static bool supports_handover(const ft_cuda_device_props *props, const ft_cuda_groupwise_args *p)
{
    return p->counters != NULL && p->scratch_bytes >= ft_cuda_groupwise_gemv_scratch(props) &&
           props->sm_count * GEMV_MAX_BLOCKS_PER_SM <= FT_CUDA_GROUPWISE_MAX_BLOCKS;
}

/* Limits of groupwise_fast_div() and of 32-bit scale offsets. */
bool ft_cuda_groupwise_gemv_supports(const ft_cuda_device_props *props,
                                     const ft_cuda_groupwise_args *p)
{
    groupwise_shape shape = groupwise_shape_of(p);
    uint64_t panels = (uint64_t) shape.panels, splits = (uint64_t) shape.splits;
    return props->capability >= 80 && p->k < 1u << 20 && panels * splits * splits < 1u << 31 &&
           panels * (p->k + GROUPWISE_PANEL_ROWS) < 1u << 31 &&
           ft_cuda_groupwise_gemv_max_m(props, p) > 0 &&
           (shape.panels <= props->sm_count || supports_handover(props, p));
}

template <class CONFIG>
static int launch(const ft_cuda_device_props *props, void *stream, const ft_cuda_groupwise_args *p)
{
    gemv_params shape = params_of(props, p);
    size_t bytes = requested_smem(props, p, &shape);
    unsigned blocks = ft_ceil_div((size_t) shape.all.panels * shape.all.splits,
                                  (unsigned) shape.splits_per_block);
    cudaError_t status = cudaFuncSetAttribute(
        gemv_kernel<CONFIG>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int) bytes);
    return status != cudaSuccess ? (int) status
                                 : ft_launch(gemv_kernel<CONFIG>, dim3(blocks), GEMV_THREADS, bytes,
                                             stream, props->has_pdl, 1, *p, shape);
}

template <int bits, groupwise_x_type kind, bool step_scales>
static int launch_zeros(const ft_cuda_device_props *props, void *stream,
                        const ft_cuda_groupwise_args *p)
{
    return p->linear[0].zero != NULL
               ? launch<gemv_config<bits, kind, step_scales, true>>(props, stream, p)
               : launch<gemv_config<bits, kind, step_scales, false>>(props, stream, p);
}

template <int bits, groupwise_x_type kind>
static int launch_step_scales(const ft_cuda_device_props *props, void *stream,
                              const ft_cuda_groupwise_args *p)
{
    return groupwise_has_step_scales(p) ? launch_zeros<bits, kind, true>(props, stream, p)
                                        : launch_zeros<bits, kind, false>(props, stream, p);
}

template <groupwise_x_type kind>
static int launch_x_type(const ft_cuda_device_props *props, void *stream,
                         const ft_cuda_groupwise_args *p)
{
    return p->bits == 4 ? launch_step_scales<4, kind>(props, stream, p)
                        : launch_step_scales<8, kind>(props, stream, p);
}

/* Larger m takes several launches. */
int ft_cuda_groupwise_gemv(const ft_cuda_device_props *props, void *stream,
                           const ft_cuda_groupwise_args *p)
{
    size_t max_splits = ft_cuda_groupwise_gemv_max_m(props, p);
    int status = 0;
    for (size_t row = 0; row < p->m && status == 0; row += max_splits) {
        ft_cuda_groupwise_args slice = groupwise_slice_rows(p, row, max_splits);
        status = p->x_dtype == FT_F16    ? launch_x_type<GROUPWISE_X_F16>(props, stream, &slice)
                 : p->x_dtype == FT_BF16 ? launch_x_type<GROUPWISE_X_BF16>(props, stream, &slice)
                                         : launch_x_type<GROUPWISE_X_F32>(props, stream, &slice);
    }
    return status;
}
