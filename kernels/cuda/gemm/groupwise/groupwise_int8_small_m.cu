/*
 * groupwise_int8_small_m.cu - INT8 GEMM with group-wise quantized weights for few tokens, bound by
 * reading the weights.
 *
 * One kernel quantizes x. In the other a thread block has some panels and up to 32 tokens; each of
 * its warps processes every eighth k tile of 128 columns with its own pipeline, so that many copies
 * are in flight and warps synchronize only once per eight k tiles. Then their exact sums are
 * accumulated group by group, a row per lane.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/groupwise/groupwise_int8_small_m.cuh"

enum {
    RESERVED = 1024, /* bytes per thread block, by the system */
    MOST_SLOTS = 3,
    MOST_ROUNDS = 4,  /* iterations of all warps between reductions */
    MOST_TOKENS = 128 /* beyond, larger tiles are faster */
};

/* ---- One k tile ----------------------------------------------------------------------------- */

/*
 * Store the exact sums of a group, corrected for zero points, and its scales. `group` is the index
 * in the k tile.
 */
template <class FORM>
__device__ __forceinline__ void lay_down(char *to, codes_sums (&sum)[FORM::eights],
                                         const char *stage, const codes_few_shape &shape, int group,
                                         int lane)
{
    int g = lane / 4, t = lane % 4;
    const char *x_scale = stage + FORM::weights + FORM::x_scale + group * FORM::tokens * 4;
    const char *x_sum = x_scale + shape.x.of_run * FORM::tokens * 4;
    uint32_t zeros = FORM::bits == 4 ? 0x08080808 : 0x80808080;
    if (shape.has_zeros)
        zeros = *(const uint32_t *) (stage + shape.zeros_at + group * BLOCKS_PANEL + 4 * g);
#pragma unroll
    for (int i = 0; i < FORM::eights; i++) {
        int2 of_x = *(const int2 *) (x_sum + (i * 8 + 2 * t) * 4);
#pragma unroll
        for (int c = 0; c < 2; c++) {
            float value[4];
#pragma unroll
            for (int row = 0; row < 4; row++) {
                int32_t &exact = sum[i][row / 2][row % 2 * 2 + c];
                exact -= codes_zero<FORM::bits>(zeros, row) * (c == 0 ? of_x.x : of_x.y);
                value[row] = __uint_as_float((uint32_t) exact) - 12582912.0f;
                exact = CODES_ROUNDER;
            }
            *(float4 *) ((float *) to + (i * 8 + 2 * t + c) * CODES_SUMS_ROW + 4 * g) =
                make_float4(value[0], value[1], value[2], value[3]);
        }
    }
    if (t == 0)
        *(uint2 *) (to + FORM::sum_scale + g * 8) =
            *(const uint2 *) (stage + shape.scales_at + group * 64 + g * 8);
    if (lane < FORM::tokens)
        *(float *) (to + FORM::sum_x_scale + lane * 4) = *(const float *) (x_scale + lane * 4);
}

/* Sums of the warp's next k tile, which starts at `column`. */
template <class FORM>
__device__ __forceinline__ void multiply_run(char *to, codes_few_ring<FORM> &ring,
                                             const codes_few_shape &shape, int column)
{
    constexpr int blocks = FORM::bits / 4;
    const char *stage = ring.wait();
    int lane = ring.lane, group = 0;
    codes_sums sum[FORM::eights];
#pragma unroll
    for (int i = 0; i < FORM::eights * 8; i++)
        sum[i / 8][i / 4 % 2][i % 4] = CODES_ROUNDER;
#pragma unroll
    for (int step = 0; step < CODES_STEPS; step++) {
        uint32_t a[2][4], x[4];
        uint4 own[blocks];
        if (column >= shape.all.k)
            break;
        column += BLOCKS_STEP;
#pragma unroll
        for (int i = 0; i < blocks; i++)
            own[i] = *(const uint4 *) (stage + (step * blocks + i) * BLOCKS_BLOCK +
                                       blocks_wanted((unsigned) lane));
        codes_spread<FORM::bits>(a, own);
#pragma unroll
        for (int i = 0; i < FORM::eights; i++) {
            if (i % 2 == 0)
                codes_load<FORM::eights>(x, stage + FORM::weights, i, step, lane);
#pragma unroll
            for (int j = 0; j < 2; j++)
                ft_mma_codes(sum[i][j], a[j], x[i % 2 * 2], x[i % 2 * 2 + 1]);
        }
        if ((step + 1) * shape.x.of_run % CODES_STEPS == 0 || column >= shape.all.k) {
            lay_down<FORM>(to + group * FORM::sum, sum, stage, shape, group, lane);
            group++;
        }
    }
    ring.release();
}

/* ---- Reduction ------------------------------------------------------------------------------ */

/* A row per lane; a warp has every eighth token. */
template <class FORM>
__device__ __forceinline__ void add_up(float (&total)[FORM::eights], const char *sums, int groups,
                                       int tokens)
{
    int warp = (int) threadIdx.x / 32, lane = (int) threadIdx.x % 32;
    if (warp >= tokens)
        return;
#pragma unroll 8
    for (int i = 0; i < groups; i++, sums += FORM::sum) {
        float scale = __half2float(((const __half *) (sums + FORM::sum_scale))[lane]);
#pragma unroll
        for (int j = 0; j < FORM::eights; j++) {
            int token = warp + CODES_WARPS * j;
            float sum = ((const float *) sums)[token * CODES_SUMS_ROW + lane];
            float x_scale = ((const float *) (sums + FORM::sum_x_scale))[token];
            total[j] = ft_blocks_add(total[j], sum, scale, x_scale);
        }
    }
}

template <class FORM>
__device__ __forceinline__ void put(const ft_cuda_blocks &p, const blocks_shape &shape,
                                    float (&total)[FORM::eights], int panel, int first, int tokens)
{
    int warp = (int) threadIdx.x / 32, lane = (int) threadIdx.x % 32;
    const ft_cuda_blocks_part &part = p.part[blocks_part_of(shape, panel)];
#pragma unroll
    for (int i = 0; i < FORM::eights; i++)
        if (warp + CODES_WARPS * i < tokens)
            blocks_put<1>(p, part, (size_t) first + warp + CODES_WARPS * i,
                          (size_t) panel * BLOCKS_PANEL + lane, &total[i]);
}

/* grid = (ceil(panels / panels per block), tiles of tokens) */
template <int bits, int EIGHTS>
static __global__ void __launch_bounds__(CODES_THREADS, EIGHTS == 1 ? 2 : 1)
    codes_few_kernel(const __grid_constant__ ft_cuda_blocks p,
                     const __grid_constant__ codes_few_shape shape)
{
    using form = codes_few_form<bits, EIGHTS>;
    extern __shared__ __align__(128) char shared[];
    int first = (int) blockIdx.y * form::tokens, turn = 0;
    int tokens = (int) p.m - first < form::tokens ? (int) p.m - first : form::tokens;
    int panel = (int) blockIdx.x * shape.panels;
    codes_few_ring<form> ring(p, shape, shared, NULL);
    ring.open_weights();
    ft_wait_for_predecessor();
    ring.open_tokens();
    for (; panel < ring.last; panel++) {
        float total[EIGHTS] = {};
        for (int begin = 0; begin < shape.x.runs; begin += shape.phase, turn ^= 1) {
            char *sums = shared + shape.sums_at + turn * shape.sums;
            int end = begin + shape.phase < shape.x.runs ? begin + shape.phase : shape.x.runs;
            for (int run = begin + ring.warp; run < end; run += CODES_WARPS) {
                multiply_run<form>(sums + (run - begin) * shape.x.of_run * form::sum, ring, shape,
                                   run * BLOCKS_RUN);
                if (!ring.has_weights()) /* no more loads from here on */
                    ft_let_successor_begin();
            }
            __syncthreads();
            int groups = end * shape.x.of_run < shape.groups ? end * shape.x.of_run : shape.groups;
            add_up<form>(total, sums, groups - begin * shape.x.of_run, tokens);
        }
        put<form>(p, shape.all, total, panel, first, tokens);
    }
}

/* ---- Host ----------------------------------------------------------------------------------- */

static size_t runs_of(size_t k)
{
    return (k + BLOCKS_RUN - 1) / BLOCKS_RUN;
}

static int tokens_of(size_t m)
{
    return m <= 8 ? 8 : m <= 16 ? 16 : 32;
}

/* int8 values, and for each 32 of them a scale and a sum. */
size_t ft_cuda_blocks_codes_few_scratch(size_t m, size_t k)
{
    size_t tokens = (m + 31) / 32 * 32;
    return tokens * runs_of(k) * (BLOCKS_RUN + BLOCKS_RUN / BLOCKS_STEP * 8);
}

static int at_most(int n, int most)
{
    return n < most ? n : most;
}

/*
 * Half of an SM's shared memory if two stages and one iteration fit, else all of it; as many
 * iterations between reductions as fit, then stages.
 */
template <class FORM> static void lay_out(codes_few_shape *s, const ft_cuda_chip *chip)
{
    int half = (int) (chip->shared + RESERVED) / 2 - RESERVED;
    s->scales_at = FORM::weights + s->x.bytes;
    s->zeros_at = s->scales_at + s->x.of_run * 64;
    s->stage = s->zeros_at + (s->has_zeros ? s->x.of_run * 32 : 0);
    int slot = CODES_WARPS * s->stage, round = CODES_WARPS * s->x.of_run * FORM::sum;
    s->x.early = 2 * slot + 2 * round > half;
    int room = s->x.early ? (int) chip->shared : half;
    int rounds = at_most((room - 2 * slot) / (2 * round), MOST_ROUNDS);
    rounds = rounds < 1 ? 1 : rounds;
    s->phase = rounds * CODES_WARPS;
    s->sums = rounds * round;
    s->slots = at_most((room - 2 * s->sums) / slot, MOST_SLOTS);
    s->slots = s->slots < 2 ? 2 : s->slots;
    s->sums_at = slot * s->slots;
}

template <int bits, int EIGHTS>
static codes_few_shape shape_of(const ft_cuda_chip *chip, const ft_cuda_blocks *p)
{
    codes_few_shape s = {};
    s.all = blocks_shape_of(p);
    s.x = codes_records_of(p, 8 * EIGHTS, false);
    s.groups = ((int) p->k + p->group - 1) / p->group;
    s.has_zeros = p->part[0].zero != NULL;
    int tiles = ((int) p->m + s.x.tokens - 1) / s.x.tokens;
    s.panels = (s.all.panels * tiles + chip->multiprocessors - 1) / chip->multiprocessors;
    s.panels = at_most(s.panels, s.all.panels);
    lay_out<codes_few_form<bits, EIGHTS>>(&s, chip);
    return s;
}

template <int bits, int EIGHTS>
static int launch(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p)
{
    using form = codes_few_form<bits, EIGHTS>;
    codes_few_shape shape = shape_of<bits, EIGHTS>(chip, p);
    auto *kernel = codes_few_kernel<bits, EIGHTS>;
    size_t bytes = (size_t) shape.sums_at + 2 * shape.sums;
    dim3 grid(ft_cover((size_t) shape.all.panels, (unsigned) shape.panels),
              ft_cover(p->m, form::tokens));
    int status = (int) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            (int) bytes);
    if (status == 0)
        status = codes_make_records<bits>(chip, stream, p, &shape.x);
    if (status == 0)
        status =
            ft_launch(kernel, grid, CODES_THREADS, bytes, stream, chip->overlaps, 1, *p, shape);
    return status;
}

template <int bits> static bool fits(const ft_cuda_chip *chip, const ft_cuda_blocks *p)
{
    codes_few_shape shape = tokens_of(p->m) == 8    ? shape_of<bits, 1>(chip, p)
                            : tokens_of(p->m) == 16 ? shape_of<bits, 2>(chip, p)
                                                    : shape_of<bits, 4>(chip, p);
    return (size_t) shape.sums_at + 2 * shape.sums <= chip->shared;
}

bool ft_cuda_blocks_codes_few_takes(const ft_cuda_chip *chip, const ft_cuda_blocks *p)
{
    return p->m <= MOST_TOKENS && p->group != 0 && BLOCKS_RUN % p->group == 0 &&
           p->scratch_bytes >= ft_cuda_blocks_codes_few_scratch(p->m, p->k) &&
           (p->bits == 4 ? fits<4>(chip, p) : fits<8>(chip, p));
}

template <int bits>
static int launch_size(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p)
{
    int tokens = tokens_of(p->m);
    return tokens == 8    ? launch<bits, 1>(chip, stream, p)
           : tokens == 16 ? launch<bits, 2>(chip, stream, p)
                          : launch<bits, 4>(chip, stream, p);
}

int ft_cuda_blocks_codes_few(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p)
{
    return p->bits == 4 ? launch_size<4>(chip, stream, p) : launch_size<8>(chip, stream, p);
}
