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
    TAKEN = 2,
    TOTALS = 3 * BLOCKS_PANEL * 4, /* bytes per token */
    FLAG = 1,
    LONG = 256 << 10 /* bytes of weights: larger than a pipeline in all of the shared memory */
};

/* ---- Reduction ------------------------------------------------------------------------------ */

/* Partial sums of a token that a thread block hands to the next one, a row per lane. */
__device__ __forceinline__ float *handed(const ft_cuda_blocks &p, unsigned block, int token,
                                         int lane)
{
    return (float *) p.scratch + ((size_t) block * FEW_TOKENS + token) * BLOCKS_PANEL + lane;
}

__device__ __forceinline__ void hand_over(const ft_cuda_blocks &p, float total, int token, int lane)
{
    uint32_t *flag = &p.counters[blockIdx.x * FEW_TOKENS + token];
    *handed(p, blockIdx.x, token, lane) = total;
    __syncwarp();
    if (lane == 0)
        asm volatile("st.release.gpu.u32 [%0], %1;" ::"l"(flag), "r"((uint32_t) FLAG) : "memory");
}

/* Resets the counter to zero. */
__device__ __forceinline__ float take_over(const ft_cuda_blocks &p, int token, int lane)
{
    uint32_t *flag = &p.counters[(blockIdx.x - 1) * FEW_TOKENS + token], found = 0;
    while (lane == 0 && found != FLAG)
        asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(found) : "l"(flag) : "memory");
    if (lane == 0)
        *flag = 0;
    __syncwarp();
    return __ldcg(handed(p, blockIdx.x - 1, token, lane));
}

/* Store a row per lane. */
__device__ __forceinline__ void put(const ft_cuda_blocks &p, const blocks_shape &shape, int panel,
                                    float total, int token, int lane)
{
    const ft_cuda_blocks_part &part = p.part[blocks_part_of(shape, panel)];
    size_t row = (size_t) panel * BLOCKS_PANEL + lane;
    if (row >= part.rows)
        return;
    if (part.bias != NULL)
        total += part.bias[row];
    if (p.activation != FT_ACT_NONE)
        total = ft_activate(p.activation, total);
    ft_store<1>(part.y, p.y_dtype, token * part.rows + row, &total);
}

/* ---- The kernel ----------------------------------------------------------------------------- */

/* A warp's splits of first .. last - 1 of the thread block's range. */
template <class FORM>
__device__ __forceinline__ void multiply(few_ring<FORM> &ring, const few_shape &shape,
                                         const char *x, float *sums, int tokens, int first,
                                         int last)
{
    for (int i = first + (int) threadIdx.x / 32; i < last; i += FEW_WARPS) {
        few_unit unit(shape.all, ring.range, i);
        blocks_sums sum;
        few_multiply<FORM>(sum, ring, shape, x, unit.stretch * BLOCKS_STRETCH);
        few_lay_down(sums + (i - first) * tokens * FEW_SUMS_ROW, sum, tokens, ring.lane);
    }
}

/*
 * Partial sums of a token in a panel that continues in the next phase or, TAKEN, started in the
 * previous block.
 */
__device__ __forceinline__ float *total_of(char *shared, const few_shape &shape, int which,
                                           int token)
{
    return (float *) (shared + shape.totals_at) + (token * 3 + which) * BLOCKS_PANEL +
           threadIdx.x % 32;
}

/*
 * At the start of a phase: take the previous block's partial sums of a panel that this phase
 * reduces. In the first phase it is too early, because the previous block may not have computed
 * them yet.
 */
__device__ __forceinline__ void take_early(char *shared, const ft_cuda_blocks &p,
                                           const few_shape &shape, const blocks_range &range,
                                           int first, int last)
{
    int begins = range.count - range.head, warp = (int) threadIdx.x / 32;
    if (range.head > 0 && first > 0 && first <= begins && begins < last && warp < (int) p.m)
        *total_of(shared, shape, TAKEN, warp) = take_over(p, warp, (int) threadIdx.x % 32);
}

/* Reduce a token's splits i .. until - 1 of one panel. */
__device__ __forceinline__ void add_stretches(const float *sums, char *shared,
                                              const ft_cuda_blocks &p, const few_shape &shape,
                                              const blocks_range &range, const few_unit &unit,
                                              int i, int until, int token)
{
    int lane = (int) threadIdx.x % 32, each = (int) p.m * FEW_SUMS_ROW;
    int phase = i / shape.phase, stretch = unit.stretch + until - i;
    float sum = sums[0];
    if (unit.stretch > 0 && unit.unit == range.begin)
        sum =
            (phase == 0 ? take_over(p, token, lane) : *total_of(shared, shape, TAKEN, token)) + sum;
    else if (unit.stretch > 0)
        sum = *total_of(shared, shape, (phase + 1) % 2, token) + sum;
#pragma unroll 8
    for (int j = 1; j < until - i; j++)
        sum += sums[j * each];
    if (stretch == shape.all.stretches)
        put(p, shape.all, unit.panel, sum, token, lane);
    else if (until == range.tail)
        hand_over(p, sum, token, lane);
    else
        *total_of(shared, shape, phase % 2, token) = sum;
}

/* Reduction in a thread block with whole panels. */
__device__ __forceinline__ void add_all(const float *sums, const ft_cuda_blocks &p,
                                        const few_shape &shape, const blocks_range &range)
{
    int tokens = (int) p.m, each = tokens * FEW_SUMS_ROW, lane = (int) threadIdx.x % 32;
    int first = blocks_divide(range.begin, shape.all.per_panel);
    int jobs = blocks_divide(range.count, shape.all.per_panel) * tokens;
    for (int job = (int) threadIdx.x / 32; job < jobs; job += FEW_WARPS) {
        int panel = blocks_divide(job, shape.per_token), token = job - panel * tokens;
        const float *own = sums + panel * shape.all.stretches * each + token * FEW_SUMS_ROW + lane;
        float total = *own;
#pragma unroll 8
        for (int i = 1; i < shape.all.stretches; i++)
            total += own[i * each];
        put(p, shape.all, first + panel, total, token, lane);
    }
}

/* Reduction of a phase, one warp per panel and token. */
__device__ __forceinline__ void add_up(const float *sums, char *shared, const ft_cuda_blocks &p,
                                       const few_shape &shape, const blocks_range &range, int first,
                                       int last)
{
    int warp = (int) threadIdx.x / 32, lane = (int) threadIdx.x % 32, turn = 0;
    int tokens = (int) p.m, each = tokens * FEW_SUMS_ROW;
    for (int i = first, until; i < last; i = until) {
        few_unit unit(shape.all, range, i);
        until = i + shape.all.stretches - unit.stretch;
        until = i < range.tail && until > range.tail ? range.tail : until;
        until = until < last ? until : last;
        for (int token = 0; token < tokens; token++)
            if (turn++ % FEW_WARPS == warp)
                add_stretches(sums + (i - first) * each + token * FEW_SUMS_ROW + lane, shared, p,
                              shape, range, unit, i, until, token);
    }
}

/* grid = thread blocks of `splits_per_block` splits. */
template <class FORM>
static __global__ void __launch_bounds__(FEW_THREADS, FORM::kind == BLOCKS_F32 ? 1 : 2)
    few_kernel(const __grid_constant__ ft_cuda_blocks p, const __grid_constant__ few_shape shape)
{
#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 800 /* not Turing: ft_cuda_blocks_few_takes() */
    extern __shared__ __align__(128) char shared[];
    char *x = shared + shape.x_at;
    float *sums = (float *) (x + shape.x_bytes * blocks_terms<FORM::kind>);
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int tokens = (int) p.m;
    const blocks_range range(shape.all.panels * shape.all.stretches, shape.all.stretches,
                             shape.share);
    few_ring<FORM> ring(p, shape.all, range, shared, shape.slots, (int) warp, lane);
    const char *own = x + ((int) lane % 8 < tokens ? lane % 8 : 0) * shape.x_stride + lane / 8 * 16;
    ring.open();
    ft_wait_for_predecessor();
    ring.waited = true;
    if (shape.alone) /* no room for dependents before this block exits */
        ft_let_successor_begin();
    else
        ring.tell();
    few_fetch_tokens<FORM::kind>(x, p, shape);
    __syncthreads();
    for (int first = 0, last; first < range.count; first = last) {
        last = first + shape.phase < range.count ? first + shape.phase : range.count;
        take_early(shared, p, shape, range, first, last);
        multiply<FORM>(ring, shape, own, sums, tokens, first, last);
        __syncthreads();
        if (shape.simple)
            add_all(sums, p, shape, range);
        else
            add_up(sums, shared, p, shape, range, first, last);
        if (last < range.count)
            __syncthreads();
    }
#endif
}

/* ---- Host ----------------------------------------------------------------------------------- */

/* Bytes of a stage of all pipelines: few_form. */
static size_t slot_bytes(const ft_cuda_blocks *p)
{
    size_t columns = (size_t) FEW_BLOCKS * 128 / (size_t) p->bits;
    size_t scales = columns / (blocks_are_fine(p) ? BLOCKS_STEP : BLOCKS_RUN);
    return FEW_WARPS * (FEW_STAGE + scales * (p->part[0].zero != NULL ? 96 : 64));
}

static size_t stretch_bytes(size_t tokens)
{
    return sizeof(float) * FEW_SUMS_ROW * tokens;
}

/* Rows of x are 16 bytes off a multiple of 128 to avoid bank conflicts. */
static size_t x_stride(const ft_cuda_blocks *p)
{
    return (p->k + BLOCKS_RUN - 1) / BLOCKS_RUN * BLOCKS_RUN * 2 + 16;
}

static int terms_of(const ft_cuda_blocks *p)
{
    return p->x_dtype == FT_F32 ? 3 : 1;
}

/* Shared memory except phases and stages beyond two. */
static size_t fixed_bytes(const ft_cuda_blocks *p, size_t tokens)
{
    return 2 * slot_bytes(p) + tokens * (TOTALS + x_stride(p) * terms_of(p));
}

/* Minimum shared memory for full speed. */
static size_t least_bytes(const ft_cuda_blocks *p, size_t tokens)
{
    return fixed_bytes(p, tokens) + 2 * FEW_WARPS * stretch_bytes(tokens);
}

/*
 * Shared memory to request. Where each SM gets one thread block, two of them must not share an SM:
 * blocks request more than half of it. Otherwise two blocks share the SM whose predecessor block
 * exits first while another SM idles. (In a Llama 2 7B decode step on an H200, the 128 thread
 * blocks of 4096 x 11008 ran on 122 of 132 SMs and took 11.9 us instead of 7.8.) After a GEMV of
 * the same kind this would delay the prefetch instead: 12288 x 4096 back to back takes 9.8 us
 * instead of 8.5.
 */
static size_t asked_of(const ft_cuda_chip *chip, const ft_cuda_blocks *p, const few_shape *s)
{
    size_t bytes = s->totals_at + TOTALS * p->m;
    return p->in_a_row || s->beside ? bytes : blocks_apart(chip, bytes);
}

/* Splits per thread block: whole panels, unless equal ranges are clearly faster. */
static int share_of(const blocks_shape *shape, int blocks)
{
    int even = blocks_share(blocks, shape->panels, shape->stretches);
    int whole = (shape->panels + blocks - 1) / blocks * shape->stretches;
    return whole * 5 <= even * 6 ? whole : even;
}

/* Fraction of warp iterations that have a split to compute. */
static double use_of(const blocks_shape *shape, int blocks)
{
    int rounds = (share_of(shape, blocks) + FEW_WARPS - 1) / FEW_WARPS;
    return (double) shape->panels * shape->stretches / ((double) rounds * FEW_WARPS * blocks);
}

/*
 * Shared memory layout for a given share. Where partial sums are handed over, two phases are used,
 * with all of the handed-over panel in the first, so that it is not late.
 */
static void lay_out(few_shape *s, const ft_cuda_chip *chip, const ft_cuda_blocks *p, int slots)
{
    size_t stretch = stretch_bytes(p->m), slot = slot_bytes(p), fixed = fixed_bytes(p, p->m);
    size_t room = s->alone ? chip->shared : blocks_half_of(chip);
    for (s->slots = 2; s->slots < slots && room >= least_bytes(p, p->m) + (s->slots - 1) * slot;)
        s->slots++;
    int most = (int) ((room - fixed - (s->slots - 2) * slot) / stretch) / FEW_WARPS * FEW_WARPS;
    bool shares = s->share % s->all.stretches != 0;
    int phase = shares && s->share / 2 > s->all.stretches ? s->share / 2 : s->share;
    s->phase = (phase + FEW_WARPS - 1) / FEW_WARPS * FEW_WARPS;
    s->phase = s->phase < most ? s->phase : most;
    s->simple = !shares && s->phase >= s->share;
    s->x_stride = (uint32_t) x_stride(p);
    s->x_bytes = s->x_stride * (uint32_t) p->m;
    s->x_at = (uint32_t) (s->slots * slot);
    s->totals_at = (uint32_t) (s->x_at + s->x_bytes * terms_of(p) + s->phase * stretch);
}

/*
 * Two thread blocks per SM if that leaves no more warps idle; else one that leaves room for a block
 * of the next kernel, unless the space goes to a deeper pipeline.
 */
static few_shape shape_of(const ft_cuda_chip *chip, const ft_cuda_blocks *p)
{
    few_shape s = {};
    int blocks = chip->multiprocessors;
    bool halves = least_bytes(p, p->m) <= blocks_half_of(chip);
    s.all = blocks_shape_of(p);
    bool beside = halves && p->x_dtype != FT_F32 &&
                  use_of(&s.all, blocks * FEW_BESIDE) > 0.95 * use_of(&s.all, blocks);
    s.beside = beside;
    s.share = share_of(&s.all, beside ? blocks * FEW_BESIDE : blocks);
    size_t bytes = (size_t) s.share * BLOCKS_STRETCH * BLOCKS_PANEL;
    s.alone = !halves || (!beside && p->bits == 8 && bytes > LONG);
    s.per_row = blocks_inverse((uint32_t) ((p->k + BLOCKS_RUN - 1) / BLOCKS_RUN * BLOCKS_RUN / 8));
    s.per_token = blocks_inverse((uint32_t) p->m);
    lay_out(&s, chip, p, beside ? 2 : p->bits == 8 ? s.alone ? 4 : 3 : s.alone ? 2 : 3);
    return s;
}

/* Rows that fit in shared memory at a time. */
size_t ft_cuda_blocks_few_rows(const ft_cuda_chip *chip, const ft_cuda_blocks *p)
{
    size_t rows = 0;
    while (rows < FEW_TOKENS &&
           fixed_bytes(p, rows + 1) + FEW_WARPS * stretch_bytes(rows + 1) <= chip->shared)
        rows++;
    return rows;
}

/* Partial sums that thread blocks hand over. */
size_t ft_cuda_blocks_few_scratch(const ft_cuda_chip *chip)
{
    return (size_t) chip->multiprocessors * FEW_BESIDE * FEW_TOKENS * BLOCKS_PANEL * sizeof(float);
}

static bool can_hand_over(const ft_cuda_chip *chip, const ft_cuda_blocks *p)
{
    return p->counters != NULL && p->scratch_bytes >= ft_cuda_blocks_few_scratch(chip) &&
           chip->multiprocessors * FEW_BESIDE <= FT_CUDA_BLOCKS_NEIGHBOURS;
}

/* Limits of blocks_divide() and of 32-bit scale offsets. */
bool ft_cuda_blocks_few_takes(const ft_cuda_chip *chip, const ft_cuda_blocks *p)
{
    blocks_shape shape = blocks_shape_of(p);
    uint64_t panels = (uint64_t) shape.panels, stretches = (uint64_t) shape.stretches;
    return chip->capability >= 80 && p->k < 1u << 20 && panels * stretches * stretches < 1u << 31 &&
           panels * (p->k + BLOCKS_PANEL) < 1u << 31 && ft_cuda_blocks_few_rows(chip, p) > 0 &&
           (shape.panels <= chip->multiprocessors || can_hand_over(chip, p));
}

template <class FORM>
static int launch(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p)
{
    few_shape shape = shape_of(chip, p);
    size_t bytes = asked_of(chip, p, &shape);
    unsigned blocks =
        ft_cover((size_t) shape.all.panels * shape.all.stretches, (unsigned) shape.share);
    cudaError_t status = cudaFuncSetAttribute(
        few_kernel<FORM>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int) bytes);
    return status != cudaSuccess ? (int) status
                                 : ft_launch(few_kernel<FORM>, dim3(blocks), FEW_THREADS, bytes,
                                             stream, chip->overlaps, 1, *p, shape);
}

template <int bits, blocks_kind kind, bool fine>
static int launch_zeros(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p)
{
    return p->part[0].zero != NULL ? launch<few_form<bits, kind, fine, true>>(chip, stream, p)
                                   : launch<few_form<bits, kind, fine, false>>(chip, stream, p);
}

template <int bits, blocks_kind kind>
static int launch_fine(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p)
{
    return blocks_are_fine(p) ? launch_zeros<bits, kind, true>(chip, stream, p)
                              : launch_zeros<bits, kind, false>(chip, stream, p);
}

template <blocks_kind kind>
static int launch_kind(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p)
{
    return p->bits == 4 ? launch_fine<4, kind>(chip, stream, p)
                        : launch_fine<8, kind>(chip, stream, p);
}

/* Larger m takes several launches. */
int ft_cuda_blocks_few(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p)
{
    size_t most = ft_cuda_blocks_few_rows(chip, p);
    int status = 0;
    for (size_t row = 0; row < p->m && status == 0; row += most) {
        ft_cuda_blocks some = blocks_some_rows(p, row, most);
        status = p->x_dtype == FT_F16    ? launch_kind<BLOCKS_F16>(chip, stream, &some)
                 : p->x_dtype == FT_BF16 ? launch_kind<BLOCKS_BF16>(chip, stream, &some)
                                         : launch_kind<BLOCKS_F32>(chip, stream, &some);
    }
    return status;
}
