/*
 * groupwise_gemv.cu - products with weights in blocks for up to 8 rows: weights stream through once.
 *
 * Reading the weights is all the time, so the memory must not wait for the end of one product and
 * the begin of the next.  Each warp has a ring, which it fills before the predecessor has ended. Of
 * four bits, whose arithmetic takes as long as their way, a block takes half of a multiprocessor
 * at most while there is room in that, and the next product is told to begin when this one's last
 * copies are under way: its ring fills while this one adds up.  (Told earlier, it took the memory's
 * time from this one: 12288 x 4096 took 10.4 us on an H200 instead of 8.4.)  Of eight bits a block
 * takes all of a multiprocessor for longer rings, if it has enough to read.
 *
 * A warp multiplies a stretch of 512 columns of a panel and leaves its sums in shared memory; after
 * some stretches, a phase, these are added up, a row a lane.  Blocks have whole panels where these
 * divide well, or else the same number of stretches: then one may begin and end amid a panel.  What
 * it has of the panel at its end it computes in its first phase and hands over to its neighbour,
 * who needs it last: nobody waits, and the order of additions is that of a single block.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/groupwise/groupwise_gemv_multiply.cuh"

enum {
    TAKEN = 2,
    TOTALS = 3 * BLOCKS_PANEL * 4, /* bytes of a token */
    FLAG = 1,
    LONG = 256 << 10 /* bytes of codes: more than a ring of all shared memory has */
};

/* ---- Adding up ------------------------------------------------------------------------------ */

/* Sums of a token that a block hands over to the next one, a row a lane. */
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

/* Leaves the counter as it was before. */
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
    if (p.activation != FT_ACT_NONE)
        total = ft_activate(p.activation, total);
    ft_store<1>(part.y, p.y_dtype, token * part.rows + row, &total);
}

/* ---- The kernel ----------------------------------------------------------------------------- */

/* A warp's stretches of first .. last - 1 of the block's range. */
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

/* What a token has of a panel that goes on in the next phase, or, TAKEN, that began elsewhere. */
__device__ __forceinline__ float *total_of(char *shared, const few_shape &shape, int which,
                                           int token)
{
    return (float *) (shared + shape.totals_at) + (token * 3 + which) * BLOCKS_PANEL +
           threadIdx.x % 32;
}

/*
 * At the begin of a phase: the neighbour's part of a panel that is added up in it.  In the first
 * phase it is too early to ask, for the neighbour may not even have computed it then.
 */
__device__ __forceinline__ void take_early(char *shared, const ft_cuda_blocks &p,
                                           const few_shape &shape, const blocks_range &range,
                                           int first, int last)
{
    int begins = range.count - range.head, warp = (int) threadIdx.x / 32;
    if (range.head > 0 && first > 0 && first <= begins && begins < last && warp < (int) p.m)
        *total_of(shared, shape, TAKEN, warp) = take_over(p, warp, (int) threadIdx.x % 32);
}

/* A token's sums of the stretches i .. until - 1, of one panel. */
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

/* All of a block that has whole panels. */
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

/* The stretches of a phase, those of each panel and token by one warp. */
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

/* grid = blocks of `share` stretches. */
template <class FORM>
static __global__ void __launch_bounds__(FEW_THREADS, FORM::kind == BLOCKS_F32 ? 1 : 2)
    few_kernel(const __grid_constant__ ft_cuda_blocks p, const __grid_constant__ few_shape shape)
{
#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 800 /* Turing: ft_cuda_blocks_few_takes() */
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
    if (shape.alone) /* there is no room before this block ends */
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

/* A slot of all rings: few_form. */
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

/* Rows of x 16 bytes off a multiple of 128, so that no rows of a tile meet in a bank. */
static size_t x_stride(const ft_cuda_blocks *p)
{
    return (p->k + BLOCKS_RUN - 1) / BLOCKS_RUN * BLOCKS_RUN * 2 + 16;
}

static int terms_of(const ft_cuda_blocks *p)
{
    return p->x_dtype == FT_F32 ? 3 : 1;
}

/* Shared memory but for what phases leave behind, and for more slots than two. */
static size_t fixed_bytes(const ft_cuda_blocks *p, size_t tokens)
{
    return 2 * slot_bytes(p) + tokens * (TOTALS + x_stride(p) * terms_of(p));
}

/* The least that a block takes, if it has what it wants. */
static size_t least_bytes(const ft_cuda_blocks *p, size_t tokens)
{
    return fixed_bytes(p, tokens) + 2 * FEW_WARPS * stretch_bytes(tokens);
}

/*
 * What a block asks for.  Two of a product that has one for each multiprocessor take more than half
 * each: else they share one wherever the predecessor's blocks end first, another one stays idle,
 * and the product takes the time of these two.  (In Llama 2 7B's step, on an H200, the 128 blocks
 * of 4096 x 11008 lay on 122 of 132 and took 11.9 us instead of 7.8.)  Behind a product of the same
 * kind, whose blocks have a multiprocessor each, that would keep rings from being filled early:
 * 12288 x 4096 again and again takes 9.8 us instead of 8.5.
 */
static size_t asked_of(const ft_cuda_chip *chip, const ft_cuda_blocks *p, const few_shape *s)
{
    size_t bytes = s->totals_at + TOTALS * p->m;
    return p->in_a_row || s->beside ? bytes : blocks_apart(chip, bytes);
}

/* Stretches of a block: whole panels, if that is not much slower than equal shares. */
static int share_of(const blocks_shape *shape, int blocks)
{
    int even = blocks_share(blocks, shape->panels, shape->stretches);
    int whole = (shape->panels + blocks - 1) / blocks * shape->stretches;
    return whole * 5 <= even * 6 ? whole : even;
}

/* How much of the time warps have a stretch, of their rounds through a block's share. */
static double use_of(const blocks_shape *shape, int blocks)
{
    int rounds = (share_of(shape, blocks) + FEW_WARPS - 1) / FEW_WARPS;
    return (double) shape->panels * shape->stretches / ((double) rounds * FEW_WARPS * blocks);
}

/*
 * Rings and phases, when the share is known.  Two phases where something is handed over, if all of
 * that is in the first one: so it is not late.
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
 * Two blocks of the product may be beside each other, if that leaves no more warps idle; else there
 * is room for one of the next product, if not for a longer ring.
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

/* How many rows there is room for at a time. */
size_t ft_cuda_blocks_few_rows(const ft_cuda_chip *chip, const ft_cuda_blocks *p)
{
    size_t rows = 0;
    while (rows < FEW_TOKENS &&
           fixed_bytes(p, rows + 1) + FEW_WARPS * stretch_bytes(rows + 1) <= chip->shared)
        rows++;
    return rows;
}

/* What neighbours hand over, where a block may end amid a panel. */
size_t ft_cuda_blocks_few_scratch(const ft_cuda_chip *chip)
{
    return (size_t) chip->multiprocessors * FEW_BESIDE * FEW_TOKENS * BLOCKS_PANEL * sizeof(float);
}

static bool can_hand_over(const ft_cuda_chip *chip, const ft_cuda_blocks *p)
{
    return p->counters != NULL && p->scratch_bytes >= ft_cuda_blocks_few_scratch(chip) &&
           chip->multiprocessors * FEW_BESIDE <= FT_CUDA_BLOCKS_NEIGHBOURS;
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

/* More rows than there is room for are several products. */
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
