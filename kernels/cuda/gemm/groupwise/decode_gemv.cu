/*
 * decode_gemv.cu - 4-bit group-wise GEMV for one or two rows (decode step).
 *
 * A decode step is a chain of dependent GEMVs. Pipelines are filled while a kernel waits for its
 * predecessor, so its time is that of its instructions as much as that of DRAM: on an H200 eight
 * warps per SM, two per scheduler, take longer to dequantize 12288 x 4096 than DRAM to deliver it.
 * Hence there are sixteen warps with half the registers. They take k tiles of 128 columns
 * round-robin and store unscaled sums in shared memory; everything that is not needed for each k
 * tile is done after that, a row per lane. Pipelines are short, because prefetches beyond them
 * delay the loads of the kernels that compute x.
 *
 * With one row, dependents launch after each warp's first k tile (695 tokens/s of Llama 2 7B). In a
 * benchmark of back-to-back GEMVs, whose prefetches take bandwidth from this kernel, they launch
 * with the last copies (12288 x 4096: 7.8 us instead of 8.7).
 *
 * Instruction cache misses matter: 16 to 27 KB of code instead of 11 to 18 gave 649 tokens/s
 * instead of 677. So there are template instances with and without norm and gate, loops are
 * unrolled only where needed, and features that decoders do not use, such as activations, are left
 * to groupwise_gemv.cu.
 *
 * A thread block computes the norm of its row itself, and the gate of two linears of which it has
 * the same panels, which saves a kernel each.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/groupwise/decode_gemv_ends.cuh"
#include "kernels/cuda/ptx/warp.cuh"

/* ---- The kernel ----------------------------------------------------------------------------- */

/* Quantized weights of a k tile, in registers. */
typedef uint4 step_codes[BLOCKS_RUN / BLOCKS_STEP];

__device__ __forceinline__ void pick_up(step_codes &codes, const char *from)
{
#pragma unroll
    for (int step = 0; step < BLOCKS_RUN / BLOCKS_STEP; step++)
        codes[step] = *(const uint4 *) (from + step * BLOCKS_BLOCK);
}

/* Sums of a k tile. */
template <blocks_kind kind>
__device__ __forceinline__ void multiply(blocks_sums &sum, const step_codes &codes, const char *x)
{
    blocks_unpacker<4, kind> unpacker;
    blocks_clear(sum);
#pragma unroll
    for (int step = 0; step < BLOCKS_RUN / BLOCKS_STEP; step++) {
        uint32_t w[4][4], tokens[1][4];
        uint4 block[1] = { codes[step] };
        ft_load_tiles(tokens[0], x + step * BLOCKS_STEP * 2);
        unpacker.unpack(w, block);
        blocks_multiply<kind>(sum, w, tokens);
    }
}

/* Store a lane's sums; every fourth lane has rows of the two tokens. */
__device__ __forceinline__ void lay_down(char *sums, const blocks_sums &sum, int tokens)
{
    if (threadIdx.x % 4 != 0)
        return;
    float4 *own = (float4 *) (sums + threadIdx.x % 32 / 4 * sizeof(float4));
    own[0] = make_float4(sum[0][0], sum[0][2], sum[1][0], sum[1][2]);
    if (tokens > 1)
        own[STEP_SUMS / sizeof(float4)] = make_float4(sum[0][1], sum[0][3], sum[1][1], sum[1][3]);
}

/* A warp's iteration over its k tiles: columns of x and address of sums. */
struct step_walk {
    int left;
    const char *x, *end; /* the lane's row: at this k tile, and its end */
    int row;             /* bytes */
    char *sums;

    __device__ __forceinline__ step_walk(char *shared, const step_shape &s, const step_range &range,
                                         int tokens, int warp)
    {
        int lane = (int) threadIdx.x % 32;
        int token = lane % 8 < tokens ? lane % 8 : 0;
        left = step_range::share(range.runs, warp);
        row = s.k * 2;
        x = shared + s.x_at + token * s.x_stride + lane / 8 * 16;
        end = x + row;
        x += warp * BLOCKS_RUN * 2;
        sums = shared + s.sums_at + warp * tokens * (int) STEP_SUMS;
    }
    __device__ __forceinline__ void go_on(int tokens)
    {
        left--;
        sums += STEP_WARPS * tokens * (int) STEP_SUMS;
        x += STEP_WARPS * BLOCKS_RUN * 2;
        if (x >= end)
            x -= row;
    }
};

/* grid = shape.blocks. */
template <blocks_kind kind, bool norms, step_end end>
static __global__ void __launch_bounds__(STEP_THREADS, 2)
    step_kernel(const __grid_constant__ ft_cuda_blocks p, const __grid_constant__ step_shape s,
                const __grid_constant__ ft_cuda_blocks_norm norm,
                const __grid_constant__ ft_cuda_blocks_gate gate)
{
#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 800 /* not Turing: ft_cuda_blocks_step_takes() */
    constexpr ft_dtype dtype = kind == BLOCKS_F16 ? FT_F16 : FT_BF16;
    extern __shared__ __align__(128) char shared[];
    int warp = ft_warp_of_block();
    char *slots = shared + warp * (STEP_SLOTS * STEP_RUN);
    const char *codes = slots + blocks_wanted(threadIdx.x % 32);
    const step_range range(s);
    int tokens = (int) p.m;
    step_ring ring(p, s, range, slots, warp);
    step_walk walk(shared, s, range, tokens, warp);
    step_weights weights;
    if (norms)
        weights.load(norm, s.k);
    step_ask_for_scales(shared + s.scales_at, p, s, range);
#pragma unroll
    for (int slot = 0; slot < STEP_SLOTS; slot++)
        ring.ask(slot, walk.left > slot);
    ft_wait_for_predecessor();
    if constexpr (norms)
        step_make_norm<dtype>(shared + s.x_at, norm, weights, s.k);
    else
        step_fetch_tokens(shared + s.x_at, p, s);
    __syncthreads();
    int told = s.soon ? walk.left : min(walk.left, STEP_SLOTS + 1); /* with the last copies */
#pragma unroll 1
    for (int slot = 0; walk.left > 0; slot = STEP_SLOTS - 1 - slot) {
        blocks_sums sum;
        step_codes run;
        blocks_wait_slots(STEP_SLOTS);
        __syncwarp();
        pick_up(run, codes + slot * STEP_RUN);
        __syncwarp();
        ring.ask(slot, walk.left > STEP_SLOTS);
        multiply<kind>(sum, run, walk.x);
        if (walk.left == told)
            ft_let_successor_begin();
        lay_down(walk.sums, sum, tokens);
        walk.go_on(tokens);
    }
    ft_copy_wait<0>(); /* scales, for warps without a k tile */
    __syncthreads();
    step_add_runs(shared, s, range, tokens, warp);
    __syncthreads();
    step_write<dtype, end>(shared, p, s, range, gate, warp);
#endif
}

/* ---- Host ----------------------------------------------------------------------------------- */

static uint32_t aligned(size_t bytes)
{
    return (uint32_t) ((bytes + 127) / 128 * 128);
}

static void lay_out(step_shape *s, size_t tokens)
{
    size_t panels = (size_t) s->panels * (s->gates ? 2 : 1), runs = panels * (size_t) s->runs;
    s->x_stride = (uint32_t) s->k * 2 + 16; /* padded to avoid bank conflicts */
    s->scales_at = STEP_WARPS * STEP_SLOTS * STEP_RUN;
    s->x_at = aligned(s->scales_at + runs * STEP_SCALES);
    s->sums_at = aligned(s->x_at + tokens * s->x_stride);
    s->totals_at = (uint32_t) (s->sums_at + runs * tokens * STEP_SUMS);
    s->bytes = (uint32_t) (s->totals_at + panels * (size_t) s->stretches * tokens * STEP_SUMS);
}

/* Thread blocks with so many panels of each linear. */
static int blocks_of(const step_shape *s, int panels)
{
    int blocks = 0;
    for (int i = 0; i < (s->gates ? 1 : FT_CUDA_PARTS); i++)
        blocks += (s->of_part[i] + panels - 1) / panels;
    return blocks;
}

/* The fewest panels per thread block that give at most `most` blocks. */
static int panels_for(const step_shape *s, int most)
{
    int panels = 1;
    while (blocks_of(s, panels) > most)
        panels++;
    return panels;
}

static void cut(step_shape *s, int panels)
{
    s->panels = panels;
    for (int i = 0, blocks = 0; i < FT_CUDA_PARTS; i++) {
        s->first[i] = blocks;
        blocks += (s->of_part[i] + panels - 1) / panels;
    }
    s->blocks = blocks_of(s, panels);
}

/* Two thread blocks per SM, if they take no longer than one and fit. */
static step_shape shape_of(const ft_cuda_chip *chip, const ft_cuda_blocks *p, bool gates)
{
    step_shape s = {};
    s.k = (int) p->k;
    s.runs = s.k / BLOCKS_RUN;
    s.stretches = (s.runs + STEP_RUNS - 1) / STEP_RUNS;
    s.per_group = p->group == 0 ? 0 : blocks_inverse((uint32_t) (p->group / BLOCKS_RUN));
    s.per_run = blocks_inverse((uint32_t) s.runs);
    s.per_stretch = blocks_inverse((uint32_t) s.stretches);
    s.gates = gates;
    s.soon = p->m == 1 && !p->in_a_row;
    for (int i = 0; i < p->parts; i++)
        s.of_part[i] = (int) (ft_layout_rows(FT_PANEL32, p->part[i].rows) / BLOCKS_PANEL);
    size_t tokens = p->m < STEP_TOKENS ? p->m : STEP_TOKENS;
    int alone = panels_for(&s, chip->multiprocessors);
    int panels_two_blocks = panels_for(&s, 2 * chip->multiprocessors);
    cut(&s, panels_two_blocks);
    lay_out(&s, tokens);
    s.beside = 2 * panels_two_blocks <= alone && s.bytes <= blocks_half_of(chip);
    if (!s.beside) {
        cut(&s, alone);
        lay_out(&s, tokens);
    }
    return s;
}

extern "C" size_t ft_cuda_blocks_step_rows(void)
{
    return STEP_TOKENS;
}

static bool takes_norm(const ft_cuda_blocks *p, const ft_cuda_blocks_norm *norm)
{
    return p->m == 1 && p->k <= STEP_WIDEST && p->k % FT_NORM_PARTS == 0 &&
           (norm->residual == NULL) == (norm->sum == NULL);
}

static bool takes_gate(const ft_cuda_blocks *p)
{
    return p->parts == 2 && p->part[0].rows == p->part[1].rows && p->m <= STEP_TOKENS &&
           p->y_dtype == p->x_dtype;
}

/*
 * The quantized weights of a linear are contiguous whole k tiles, and each k tile of a row has one
 * scale.
 */
static bool takes_weights(const ft_cuda_blocks *p)
{
    return p->bits == 4 && !p->by_codes && p->part[0].zero == NULL && !blocks_are_fine(p) &&
           p->k % BLOCKS_RUN == 0 && p->k >= STEP_WARPS * BLOCKS_RUN && p->k <= 1 << 16;
}

extern "C" bool ft_cuda_blocks_step_takes(const ft_cuda_chip *chip, const ft_cuda_blocks *p,
                                          const ft_cuda_blocks_norm *norm,
                                          const ft_cuda_blocks_gate *gate)
{
    ft_cuda_blocks most = *p;
    most.m = norm != NULL || p->m == 1 ? 1 : STEP_TOKENS;
    size_t rows = 0;
    for (int i = 0; i < p->parts; i++)
        rows += p->part[i].rows;
    return chip->capability >= 80 && p->x_dtype != FT_F32 && (uintptr_t) p->x % 16 == 0 &&
           p->activation == FT_ACT_NONE && takes_weights(p) && rows < 1 << 20 &&
           (norm == NULL || takes_norm(p, norm)) && (gate == NULL || takes_gate(p)) &&
           shape_of(chip, &most, gate != NULL).bytes <= chip->shared;
}

template <blocks_kind kind, bool norms, step_end end>
static int launch(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p,
                  const ft_cuda_blocks_norm *norm, const ft_cuda_blocks_gate *gate)
{
    const ft_cuda_blocks_gate none = {};
    const ft_cuda_blocks_norm no_norm = {};
    step_shape s = shape_of(chip, p, end != STEP_PARTS);
    size_t bytes = s.beside || p->in_a_row ? s.bytes : blocks_apart(chip, s.bytes);
    cudaError_t status = cudaFuncSetAttribute(
        step_kernel<kind, norms, end>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int) bytes);
    return status != cudaSuccess
               ? (int) status
               : ft_launch(step_kernel<kind, norms, end>, dim3((unsigned) s.blocks), STEP_THREADS,
                           bytes, stream, chip->overlaps, 1, *p, s, norm != NULL ? *norm : no_norm,
                           gate != NULL ? *gate : none);
}

template <blocks_kind kind, bool norms>
static int launch_end(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p,
                      const ft_cuda_blocks_norm *norm, const ft_cuda_blocks_gate *gate)
{
    if (gate == NULL)
        return launch<kind, norms, STEP_PARTS>(chip, stream, p, norm, gate);
    return gate->activation == FT_ACT_SILU
               ? launch<kind, norms, STEP_SILU>(chip, stream, p, norm, gate)
               : launch<kind, norms, STEP_GATE>(chip, stream, p, norm, gate);
}

template <blocks_kind kind>
static int launch_kind(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p,
                       const ft_cuda_blocks_norm *norm, const ft_cuda_blocks_gate *gate)
{
    return norm != NULL ? launch_end<kind, true>(chip, stream, p, norm, gate)
                        : launch_end<kind, false>(chip, stream, p, norm, gate);
}

/* Larger m takes several launches. */
extern "C" int ft_cuda_blocks_step(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p,
                                   const ft_cuda_blocks_norm *norm, const ft_cuda_blocks_gate *gate)
{
    int status = 0;
    for (size_t row = 0; row < p->m && status == 0; row += STEP_TOKENS) {
        ft_cuda_blocks some = blocks_some_rows(p, row, STEP_TOKENS);
        status = p->x_dtype == FT_F16 ? launch_kind<BLOCKS_F16>(chip, stream, &some, norm, gate)
                                      : launch_kind<BLOCKS_BF16>(chip, stream, &some, norm, gate);
    }
    return status;
}
