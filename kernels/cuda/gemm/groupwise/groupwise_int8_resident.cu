/*
 * groupwise_int8_resident.cu - INT8 GEMM with group-wise quantized weights for up to 16 tokens,
 * whose quantized activations stay resident in shared memory.
 *
 * In groupwise_int8_small_m.cu each stage has a record next to the weights, which leaves too few
 * weights in flight. Here records stay in shared memory across panels and pipelines contain weights
 * only. Most warps multiply, one k tile each per round. They store exact sums, which the reduction
 * warps accumulate group by group, four rows of a token per lane, while the next round is
 * multiplied. 12288 x 4096 with 8 bits and 16 tokens took 21.9 us on an H200 with records in the
 * pipelines, 17.2 this way.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/groupwise/groupwise_int8_small_m.cuh"

enum {
    ADDERS = 4, /* warps, each with TOKENS tokens */
    TOKENS = 4,
    THREADS = CODES_THREADS + 32 * ADDERS,
    FULL = 1, /* named barriers; + 1 for odd rounds */
    EMPTY = 3
};

/* GROUPS: groups per k tile, 1, 2 or 4 */
template <int BITS, int EIGHTS, int GROUPS> struct held_form : codes_few_form<BITS, EIGHTS> {
    using few = codes_few_form<BITS, EIGHTS>;
    static constexpr int groups = GROUPS, blocks = BITS / 4; /* blocks: 16-byte loads per 32
                                                              * columns */
    static constexpr int x_sum = few::x_scale + groups * few::tokens * 4;
    static constexpr int sum = few::sum_scale + BLOCKS_PANEL * 2;
};

/* Named barriers of all threads; arriving does not wait. */
__device__ __forceinline__ void meet(int barrier)
{
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"((int) THREADS) : "memory");
}

__device__ __forceinline__ void arrive(int barrier)
{
    asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"((int) THREADS) : "memory");
}

/* ---- Mainloop ------------------------------------------------------------------------------- */

/* A lane's part of a k tile, loaded from the pipeline. */
template <class FORM> struct held_run {
    uint4 code[CODES_STEPS * FORM::blocks];
    uint2 scale;    /* of the lane's four rows and group t of the k tile */
    uint32_t zeros; /* likewise */

    __device__ __forceinline__ held_run(codes_few_ring<FORM> &ring, const codes_few_shape &shape)
    {
        const char *stage = ring.wait();
        int g = ring.lane / 4, t = ring.lane % 4;
        zeros = FORM::bits == 4 ? 0x08080808 : 0x80808080;
#pragma unroll
        for (int i = 0; i < CODES_STEPS * FORM::blocks; i++)
            code[i] =
                *(const uint4 *) (stage + i * BLOCKS_BLOCK + blocks_wanted((unsigned) ring.lane));
        if (t < FORM::groups) {
            scale = *(const uint2 *) (stage + shape.scales_at + t * 64 + g * 8);
            if (shape.has_zeros)
                zeros = *(const uint32_t *) (stage + shape.zeros_at + t * BLOCKS_PANEL + 4 * g);
        }
        ring.release();
    }
};

/* Start a group: the accumulators are initialized with the zero-point correction. */
template <class FORM>
__device__ __forceinline__ void begin_group(codes_sums (&sum)[FORM::eights], const char *record,
                                            bool has_zeros, int group, uint32_t zeros, int lane)
{
    const char *x_sum = record + FORM::x_sum + group * FORM::tokens * 4;
    bool signs = FORM::bits == 8 && !has_zeros; /* no correction needed */
    if (has_zeros)
        zeros = __shfl_sync(~0u, zeros, (lane & ~3) + group);
#pragma unroll
    for (int i = 0; i < FORM::eights; i++) {
        int2 of_x = signs ? make_int2(0, 0) : *(const int2 *) (x_sum + (i * 8 + lane % 4 * 2) * 4);
#pragma unroll
        for (int j = 0; j < 8; j++)
            sum[i][j / 4][j % 4] = CODES_ROUNDER - codes_zero<FORM::bits>(zeros, j / 2) *
                                                       (j % 2 == 0 ? of_x.x : of_x.y);
    }
}

/* End of a group: store the sums as floats, and the scales of their rows. */
template <class FORM>
__device__ __forceinline__ void lay_down(char *to, const codes_sums (&sum)[FORM::eights],
                                         uint2 scale, int group, int lane)
{
    int g = lane / 4, t = lane % 4;
#pragma unroll
    for (int i = 0; i < FORM::eights; i++)
#pragma unroll
        for (int c = 0; c < 2; c++) {
            float value[4];
#pragma unroll
            for (int row = 0; row < 4; row++)
                value[row] =
                    __uint_as_float((uint32_t) sum[i][row / 2][row % 2 * 2 + c]) - 12582912.0f;
            *(float4 *) ((float *) to + (i * 8 + 2 * t + c) * CODES_SUMS_ROW + 4 * g) =
                make_float4(value[0], value[1], value[2], value[3]);
        }
    if (t == group)
        *(uint2 *) (to + FORM::sum_scale + g * 8) = scale;
}

template <class FORM>
__device__ __forceinline__ void multiply_run(char *to, codes_few_ring<FORM> &ring,
                                             const codes_few_shape &shape, const char *record)
{
    const held_run<FORM> run(ring, shape);
    codes_sums sum[FORM::eights];
#pragma unroll
    for (int step = 0; step < CODES_STEPS; step++) {
        uint32_t a[2][4], x[4];
        uint4 own[FORM::blocks];
        int group = step * FORM::groups / CODES_STEPS;
        if (step * FORM::groups % CODES_STEPS == 0)
            begin_group<FORM>(sum, record, shape.has_zeros, group, run.zeros, ring.lane);
#pragma unroll
        for (int i = 0; i < FORM::blocks; i++)
            own[i] = run.code[step * FORM::blocks + i];
        codes_spread<FORM::bits>(a, own);
        codes_load<FORM::eights>(x, record, 0, step, ring.lane);
#pragma unroll
        for (int i = 0; i < FORM::eights; i++)
#pragma unroll
            for (int j = 0; j < 2; j++)
                ft_mma_codes(sum[i][j], a[j], x[2 * i], x[2 * i + 1]);
        if ((step + 1) * FORM::groups % CODES_STEPS == 0)
            lay_down<FORM>(to + group * FORM::sum, sum, run.scale, group, ring.lane);
    }
}

/* The warp's k tiles of all panels of the thread block. */
template <class FORM>
__device__ __forceinline__ void multiply(codes_few_ring<FORM> &ring, const codes_few_shape &shape,
                                         char *sums, const char *x)
{
    int round = 0;
    for (int panel = (int) blockIdx.x * shape.panels; panel < ring.last; panel++)
        for (int begin = 0; begin < shape.x.runs; begin += CODES_WARPS, round++) {
            int run = begin + ring.warp, turn = round % 2;
            if (round >= 2)
                meet(EMPTY + turn);
            if (run < shape.x.runs)
                multiply_run<FORM>(sums + turn * shape.sums + ring.warp * FORM::groups * FORM::sum,
                                   ring, shape, x + run * shape.x.bytes);
            if (!ring.has_weights()) /* no more loads from here on */
                ft_let_successor_begin();
            arrive(FULL + turn);
        }
}

/* ---- Reduction ------------------------------------------------------------------------------ */

/* Four rows of a token, some groups from the k tile of `record`. */
template <class FORM>
__device__ __forceinline__ void add_groups(float (&total)[4], const char *sums, const char *record,
                                           int groups, int bytes, int token, int quad)
{
    const char *scales = sums + FORM::sum_scale + quad * 8;
    sums += token * CODES_SUMS_ROW * 4 + quad * 16;
    record += FORM::x_scale + token * 4;
#pragma unroll 8
    for (int i = 0; i < groups; i++) {
        float4 sum = *(const float4 *) (sums + i * FORM::sum);
        float of_x = *(const float *) (record + i / FORM::groups * bytes +
                                       i % FORM::groups * FORM::tokens * 4);
        float scale[4];
        blocks_scales(scale, scales + i * FORM::sum);
        total[0] = ft_blocks_add(total[0], sum.x, scale[0], of_x);
        total[1] = ft_blocks_add(total[1], sum.y, scale[1], of_x);
        total[2] = ft_blocks_add(total[2], sum.z, scale[2], of_x);
        total[3] = ft_blocks_add(total[3], sum.w, scale[3], of_x);
    }
}

template <class FORM>
__device__ __forceinline__ void add_up(const ft_cuda_blocks &p, const codes_few_shape &shape,
                                       const char *sums, const char *x)
{
    constexpr int most = CODES_WARPS * FORM::groups;
    int lane = (int) threadIdx.x % 32, quad = lane % 8, round = 0;
    int token = ((int) threadIdx.x / 32 - CODES_WARPS) * TOKENS + lane / 8;
    int panel = (int) blockIdx.x * shape.panels, last = panel + shape.panels;
    last = last < shape.all.panels ? last : shape.all.panels;
    int rounds = (last - panel) * ((shape.x.runs + CODES_WARPS - 1) / CODES_WARPS);
    for (; panel < last; panel++) {
        float total[4] = {};
        for (int begin = 0; begin < shape.x.runs; begin += CODES_WARPS, round++) {
            int turn = round % 2, groups = shape.groups - begin * FORM::groups;
            meet(FULL + turn);
            if (token < FORM::tokens)
                add_groups<FORM>(total, sums + turn * shape.sums, x + begin * shape.x.bytes,
                                 groups < most ? groups : most, shape.x.bytes, token, quad);
            if (round + 2 < rounds)
                arrive(EMPTY + turn);
        }
        int own = panel;
        const ft_cuda_blocks_part &part = p.part[blocks_part_of(shape.all, own)];
        if (token < (int) p.m)
            blocks_put<4>(p, part, (size_t) token, (size_t) own * BLOCKS_PANEL + quad * 4, total);
    }
}

/* grid = ceil(panels / panels per block) */
template <int bits, int EIGHTS, int GROUPS>
static __global__ void __launch_bounds__(THREADS, 1)
    codes_held_kernel(const __grid_constant__ ft_cuda_blocks p,
                      const __grid_constant__ codes_few_shape shape)
{
    using form = held_form<bits, EIGHTS, GROUPS>;
    extern __shared__ __align__(128) char shared[]; /* pipelines, sums of two rounds, records */
    char *sums = shared + shape.sums_at, *x = sums + 2 * shape.sums;
    if (threadIdx.x >= CODES_THREADS) {
        ft_wait_for_predecessor();
        add_up<form>(p, shape, sums, x);
        return;
    }
    codes_few_ring<form> ring(p, shape, shared, x);
    ring.open_weights();
    ft_wait_for_predecessor();
    ring.open_tokens();
    multiply<form>(ring, shape, sums, x);
}

/* ---- Host ----------------------------------------------------------------------------------- */

static size_t bytes_of(const codes_few_shape *s)
{
    return (size_t) s->sums_at + 2 * s->sums + (size_t) s->x.runs * s->x.bytes;
}

template <int bits, int EIGHTS, int GROUPS>
static codes_few_shape shape_of(const ft_cuda_chip *chip, const ft_cuda_blocks *p)
{
    using form = held_form<bits, EIGHTS, GROUPS>;
    codes_few_shape s = {};
    s.all = blocks_shape_of(p);
    s.x = codes_records_of(p, form::tokens, true);
    s.groups = ((int) p->k + p->group - 1) / p->group;
    s.panels = (s.all.panels + chip->multiprocessors - 1) / chip->multiprocessors;
    s.has_zeros = p->part[0].zero != NULL;
    s.scales_at = form::weights;
    s.zeros_at = s.scales_at + GROUPS * 64;
    s.stage = s.zeros_at + (s.has_zeros ? GROUPS * 32 : 0);
    s.sums = CODES_WARPS * GROUPS * form::sum;
    /* Outstanding prefetches delay the records. Only short pipelines benefit from a third stage. */
    for (s.slots = EIGHTS == 1 && s.panels > 1 ? 3 : 2;; s.slots--) {
        s.sums_at = s.slots * CODES_WARPS * s.stage;
        if (s.slots == 2 || bytes_of(&s) <= chip->shared)
            break;
    }
    return s;
}

template <int bits, int EIGHTS, int GROUPS>
static int launch(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p)
{
    codes_few_shape shape = shape_of<bits, EIGHTS, GROUPS>(chip, p);
    auto *kernel = codes_held_kernel<bits, EIGHTS, GROUPS>;
    unsigned blocks = ft_cover((size_t) shape.all.panels, (unsigned) shape.panels);
    int status = (int) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            (int) bytes_of(&shape));
    if (status == 0)
        status = codes_make_records<bits>(chip, stream, p, &shape.x);
    if (status == 0)
        status = ft_launch(kernel, dim3(blocks), THREADS, bytes_of(&shape), stream, chip->overlaps,
                           1, *p, shape);
    return status;
}

/* Whether it fits into shared memory. */
template <int bits, int GROUPS> static bool fits(const ft_cuda_chip *chip, const ft_cuda_blocks *p)
{
    codes_few_shape shape =
        p->m <= 8 ? shape_of<bits, 1, GROUPS>(chip, p) : shape_of<bits, 2, GROUPS>(chip, p);
    return bytes_of(&shape) <= chip->shared;
}

template <int bits> static bool fits_group(const ft_cuda_chip *chip, const ft_cuda_blocks *p)
{
    return p->group == 128  ? fits<bits, 1>(chip, p)
           : p->group == 64 ? fits<bits, 2>(chip, p)
                            : p->group == 32 && fits<bits, 4>(chip, p);
}

bool ft_cuda_blocks_codes_held_takes(const ft_cuda_chip *chip, const ft_cuda_blocks *p)
{
    return p->m <= 16 && p->scratch_bytes >= ft_cuda_blocks_codes_few_scratch(p->m, p->k) &&
           (p->bits == 4 ? fits_group<4>(chip, p) : fits_group<8>(chip, p));
}

template <int bits, int GROUPS>
static int launch_size(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p)
{
    return p->m <= 8 ? launch<bits, 1, GROUPS>(chip, stream, p)
                     : launch<bits, 2, GROUPS>(chip, stream, p);
}

template <int bits>
static int launch_group(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p)
{
    return p->group == 128  ? launch_size<bits, 1>(chip, stream, p)
           : p->group == 64 ? launch_size<bits, 2>(chip, stream, p)
                            : launch_size<bits, 4>(chip, stream, p);
}

int ft_cuda_blocks_codes_held(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p)
{
    return p->bits == 4 ? launch_group<4>(chip, stream, p) : launch_group<8>(chip, stream, p);
}
