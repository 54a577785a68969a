/*
 * groupwise_int8.cu - GEMM of group-wise quantized weights and dynamically quantized int8
 * activations (W4A8, W8A8): exact int32 sums per group, float accumulation across groups
 * (ft_blocks_add(), kernels/groupwise.h).
 *
 * One kernel quantizes x with a scale per token and group, in the column order of the packed
 * weights, so that both are loaded into mma fragments without shuffles. The other computes some
 * panels of weights by up to 128 tokens per thread block, with the loop structure of
 * groupwise_mma.cu. Zero points are corrected with the sums of the activations; 8-bit weights are
 * offset by 128 to be signed. Few tokens are handled by groupwise_int8_small_m.cu and
 * groupwise_int8_resident.cu.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/groupwise/groupwise_int8.cuh"

enum {
    X_ROW = BLOCKS_RUN, /* bytes per token in a stage */
    STEPS = BLOCKS_RUN / BLOCKS_STEP
};

/* Launch parameters: int8 x [m, k padded], scales and sums of x [groups, m padded]. */
typedef struct codes_shape {
    blocks_shape all;
    int8_t *codes;
    float *scale;
    int32_t *sum;
    int padded_k, padded_m, groups;
} codes_shape;

/* ---- Quantization of x ---------------------------------------------------------------------- */

__device__ __forceinline__ float value_at(const ft_cuda_blocks &p, size_t at)
{
    float value;
    ft_load<1>(&value, p.x, p.x_dtype, at);
    return value;
}

/* A warp quantizes one group of a token. grid = (groups, m) */
template <int bits>
static __global__ void quantize_kernel(const __grid_constant__ ft_cuda_blocks p,
                                       const __grid_constant__ codes_shape shape)
{
    int group = (int) blockIdx.x, lane = (int) threadIdx.x, k = shape.all.k;
    int from = group == 0 ? 0 : group * shape.all.group;
    int to = k - from > shape.all.group ? from + shape.all.group : k;
    size_t row = blockIdx.y;
    float amax = 0.0f;
    int32_t sum = 0;
    ft_wait_for_predecessor();
    ft_let_successor_begin();
    for (int i = from + lane; i < to; i += 32)
        amax = fmaxf(amax, fabsf(value_at(p, row * p.k + i)));
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2)
        amax = fmaxf(amax, __shfl_xor_sync(~0u, amax, apart));
    float scale = ft_scale_from_amax(amax), inverse = ft_inverse_scale(scale);
    for (int i = from; i < to; i += 32) {
        int8_t code = i + lane < to ? ft_quantize(value_at(p, row * p.k + i + lane), inverse) : 0;
        shape.codes[row * shape.padded_k + i + codes_place<bits>(lane)] = code;
        sum += code;
    }
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2)
        sum += __shfl_xor_sync(~0u, sum, apart);
    if (lane == 0) {
        shape.scale[(size_t) group * shape.padded_m + row] = scale;
        shape.sum[(size_t) group * shape.padded_m + row] = sum;
    }
}

/* ---- Loads ---------------------------------------------------------------------------------- */

/* A thread block has PANELS panels, two warps each, and 16 * EIGHTS tokens. */
template <int bits, int PANELS, int EIGHTS> struct codes_form {
    static constexpr int threads = PANELS * 64, tokens = 16 * EIGHTS;
    static constexpr int panel = BLOCKS_RUN * BLOCKS_PANEL * bits / 8;
    static constexpr int zeros_at = panel + STEPS * 64, own = zeros_at + STEPS * 32;
    static constexpr int x_at = PANELS * own, scales_at = x_at + tokens * X_ROW;
    static constexpr int sums_at = scales_at + STEPS * tokens * 4;
    static constexpr int stage = sums_at + STEPS * tokens * 4;
    static constexpr int stages = PANELS == 1 ? 5 : 3, shared = stages * stage;
    static constexpr int beside_each_other = EIGHTS == 8 ? 1 : PANELS == 1 ? 5 : 2;
};

template <class FORM, int bits>
__device__ __forceinline__ void copy_weights(char *stage, const ft_cuda_blocks &p,
                                             const codes_shape &shape, int first_panel, int column)
{
    int warp = (int) threadIdx.x / 32, lane = (int) threadIdx.x % 32;
    int panel = first_panel + warp / 2;
    bool inside = panel < shape.all.panels;
    panel = inside ? panel : shape.all.panels - 1;
    int which = blocks_part_of(shape.all, panel);
    const ft_cuda_blocks_part &part = p.part[which];
    int at = column * (4 * bits) + warp % 2 * (FORM::panel / 2);
    const char *codes = part.w + (size_t) panel * shape.all.panel_bytes + lane * 16 + at;
    char *own = stage + warp / 2 * FORM::own, *to = own + warp % 2 * (FORM::panel / 2);
#pragma unroll
    for (int i = 0; i < FORM::panel / 2; i += BLOCKS_BLOCK)
        ft_copy_16(to + i + blocks_copied(lane), codes + i,
                   inside && at + i < shape.all.panel_bytes);
    /* the first warp of a panel loads scales, the second zero points, for each step */
    bool scales = warp % 2 == 0;
    int step = scales ? lane / 4 : lane / 2, place = scales ? lane % 4 : lane % 2;
    int of = column + step * BLOCKS_STEP;
    if (step >= STEPS || of >= shape.all.k || !inside)
        return;
    size_t index = (size_t) blocks_group_of(shape.all, of) * shape.all.padded_rows[which] +
                   panel * BLOCKS_PANEL + place * 8;
    if (scales)
        ft_copy_16(own + FORM::panel + step * 64 + place * 16, part.scale + index, true);
    else if (part.zero != NULL)
        ft_copy_16(own + FORM::zeros_at + step * 32 + place * 16, part.zero + index + place * 8,
                   true);
}

template <class FORM>
__device__ __forceinline__ void copy_tokens(char *stage, const ft_cuda_blocks &p,
                                            const codes_shape &shape, int first_token, int column)
{
    for (int i = (int) threadIdx.x; i < FORM::tokens * 8; i += FORM::threads) {
        int token = i / 8, chunk = i % 8;
        size_t row = (size_t) (first_token + token);
        ft_copy_16(stage + FORM::x_at + token * X_ROW + (chunk ^ token % 8) * 16,
                   shape.codes + row * shape.padded_k + column + chunk * 16,
                   row < p.m && column + chunk * 16 < shape.padded_k);
    }
    for (int i = (int) threadIdx.x; i < FORM::tokens * 2 * STEPS / 4; i += FORM::threads) {
        int token = i * 4 % FORM::tokens, step = i * 4 / FORM::tokens % STEPS;
        bool scales = i * 4 < FORM::tokens * STEPS;
        int of = column + step * BLOCKS_STEP;
        size_t index =
            (size_t) blocks_group_of(shape.all, of) * shape.padded_m + first_token + token;
        if (of < shape.all.k)
            ft_copy_16(stage + (scales ? FORM::scales_at : FORM::sums_at) +
                           (step * FORM::tokens + token) * 4,
                       scales ? (const void *) (shape.scale + index) : shape.sum + index, true);
    }
}

/* ---- Mainloop ------------------------------------------------------------------------------- */

/* End of a group: scale its sums into the float accumulators and reset them. */
template <class FORM, int bits>
__device__ __forceinline__ void end_group(blocks_sums (&total)[FORM::tokens / 16],
                                          codes_sums (&sum)[FORM::tokens / 16], const char *stage,
                                          int step, bool has_zeros, bool small)
{
    int warp = (int) threadIdx.x / 32, lane = (int) threadIdx.x % 32, t = lane % 4;
    const char *own = stage + warp / 2 * FORM::own;
    float scale[4];
    int32_t zero[4];
    uint32_t zeros = bits == 4 ? 0x08080808 : 0x80808080;
    blocks_scales(scale, own + FORM::panel + step * 64 + lane / 4 * 8);
    if (has_zeros)
        zeros = *(const uint32_t *) (own + FORM::zeros_at + step * 32 + lane / 4 * 4);
#pragma unroll
    for (int i = 0; i < 4; i++)
        zero[i] = codes_zero<bits>(zeros, i);
#pragma unroll
    for (int i = 0; i < FORM::tokens / 16; i++) {
        int token = step * FORM::tokens + warp % 2 * (FORM::tokens / 2) + i * 8 + 2 * t;
        float2 x_scale = *(const float2 *) (stage + FORM::scales_at + token * 4);
        int2 x_sum = *(const int2 *) (stage + FORM::sums_at + token * 4);
#pragma unroll
        for (int j = 0; j < 8; j++) {
            int32_t exact = sum[i][j / 4][j % 4] - zero[j / 2] * (j % 2 == 0 ? x_sum.x : x_sum.y);
            float value = small ? __uint_as_float((uint32_t) exact) - 12582912.0f : (float) exact;
            float factor = scale[j / 2] * (j % 2 == 0 ? x_scale.x : x_scale.y);
            total[i][j / 4][j % 4] = fmaf(value, factor, total[i][j / 4][j % 4]);
            sum[i][j / 4][j % 4] = small ? CODES_ROUNDER : 0;
        }
    }
}

/* x of 8-token tile `i` of the warp, 32 columns: x[0] and x[1]; of the next tile: x[2], x[3]. */
template <class FORM>
__device__ __forceinline__ void load_codes(uint32_t (&x)[4], const char *stage, int i, int step)
{
    int warp = (int) threadIdx.x / 32, lane = (int) threadIdx.x % 32;
    int eight = FORM::tokens > 16 ? i + lane / 16 : i;
    int token = warp % 2 * (FORM::tokens / 2) + eight * 8 + lane % 8;
    int chunk = (step * 2 + lane / 8 % 2) ^ lane % 8;
    ft_load_tiles(x, stage + FORM::x_at + token * X_ROW + chunk * 16);
}

/* grid = (tiles of tokens, tiles of panels) */
template <int bits, int PANELS, int EIGHTS>
static __global__ void __launch_bounds__(64 * PANELS,
                                         (codes_form<bits, PANELS, EIGHTS>::beside_each_other))
    codes_kernel(const __grid_constant__ ft_cuda_blocks p,
                 const __grid_constant__ codes_shape shape)
{
    using form = codes_form<bits, PANELS, EIGHTS>;
    constexpr int blocks = bits / 4, pair = EIGHTS > 1 ? 2 : 1;
    extern __shared__ __align__(128) char shared[];
    int first_token = (int) blockIdx.x * form::tokens, first_panel = (int) blockIdx.y * PANELS;
    int warp = (int) threadIdx.x / 32, lane = (int) threadIdx.x % 32;
    bool has_zeros = p.part[0].zero != NULL, small = shape.all.group <= CODES_SMALL;
    blocks_sums total[EIGHTS];
    codes_sums sum[EIGHTS];
#pragma unroll
    for (int i = 0; i < EIGHTS * 8; i++) {
        total[i / 8][i / 4 % 2][i % 4] = 0.0f;
        sum[i / 8][i / 4 % 2][i % 4] = small ? CODES_ROUNDER : 0;
    }
    for (int i = 0; i < form::stages - 1; i++) /* weights do not depend on the predecessor */
        if (i * BLOCKS_RUN < shape.all.k)
            copy_weights<form, bits>(shared + i * form::stage, p, shape, first_panel,
                                     i * BLOCKS_RUN);
    ft_wait_for_predecessor();
    for (int i = 0; i < form::stages - 1; i++) {
        if (i * BLOCKS_RUN < shape.all.k)
            copy_tokens<form>(shared + i * form::stage, p, shape, first_token, i * BLOCKS_RUN);
        ft_copy_commit();
    }
    ft_let_successor_begin();
    int slot = 0, into = form::stages - 1;
    for (int column = 0; column < shape.all.k; column += BLOCKS_RUN) {
        ft_copy_wait<form::stages - 2>();
        __syncthreads(); /* this stage has arrived, and all warps have read the previous one */
        int next = column + (form::stages - 1) * BLOCKS_RUN;
        if (next < shape.all.k) {
            copy_weights<form, bits>(shared + into * form::stage, p, shape, first_panel, next);
            copy_tokens<form>(shared + into * form::stage, p, shape, first_token, next);
        }
        ft_copy_commit();
        const char *stage = shared + slot * form::stage, *own = stage + warp / 2 * form::own;
#pragma unroll(EIGHTS == 1 ? STEPS : 1)
        for (int step = 0; step < STEPS && column + step * BLOCKS_STEP < shape.all.k; step++) {
            uint32_t a[2][4], x[4];
            uint4 block[blocks];
            int end = column + (step + 1) * BLOCKS_STEP;
#pragma unroll
            for (int i = 0; i < blocks; i++)
                block[i] = *(const uint4 *) (own + (step * blocks + i) * BLOCKS_BLOCK +
                                             blocks_wanted(lane));
            codes_spread<bits>(a, block);
#pragma unroll
            for (int i = 0; i < EIGHTS; i++) {
                if (i % pair == 0)
                    load_codes<form>(x, stage, i, step);
#pragma unroll
                for (int j = 0; j < 2; j++)
                    ft_mma_codes(sum[i][j], a[j], x[i % pair * 2], x[i % pair * 2 + 1]);
            }
            if (end % shape.all.group == 0 || end >= shape.all.k)
                end_group<form, bits>(total, sum, stage, step, has_zeros, small);
        }
        slot = slot + 1 == form::stages ? 0 : slot + 1;
        into = into + 1 == form::stages ? 0 : into + 1;
    }
    int panel = first_panel + warp / 2, g = lane / 4, t = lane % 4;
    if (panel >= shape.all.panels)
        return;
    const ft_cuda_blocks_part &part = p.part[blocks_part_of(shape.all, panel)];
    size_t first = (size_t) first_token + warp % 2 * (form::tokens / 2) + 2 * t;
#pragma unroll
    for (int i = 0; i < 2 * EIGHTS; i++) {
        int c = i % 2;
        size_t token = first + i / 2 * 8 + c;
        float value[4] = { total[i / 2][0][c], total[i / 2][0][c + 2], total[i / 2][1][c],
                           total[i / 2][1][c + 2] };
        if (token < p.m)
            blocks_put<4>(p, part, token, (size_t) panel * BLOCKS_PANEL + 4 * g, value);
    }
}

/* ---- Host ----------------------------------------------------------------------------------- */

static size_t groups_of(size_t k, int32_t group)
{
    return group == 0 ? 1 : (k + (size_t) group - 1) / (size_t) group;
}

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

/* Groups have at least 32 columns. */
size_t ft_cuda_blocks_codes_scratch(size_t m, size_t k)
{
    size_t few = ft_cuda_blocks_codes_few_scratch(m, k);
    size_t many = round_up(m * round_up(k, BLOCKS_STEP), 256) +
                  8 * groups_of(k, BLOCKS_STEP) * round_up(m, 128);
    return few > many ? few : many;
}

static codes_shape shape_of(const ft_cuda_blocks *p)
{
    codes_shape s = {};
    s.all = blocks_shape_of(p);
    s.padded_k = (int) round_up(p->k, BLOCKS_STEP);
    s.padded_m = (int) round_up(p->m, 128);
    s.groups = (int) groups_of(p->k, p->group);
    s.codes = (int8_t *) p->scratch;
    s.scale = (float *) ((char *) p->scratch + round_up(p->m * (size_t) s.padded_k, 256));
    s.sum = (int32_t *) (s.scale + (size_t) s.groups * s.padded_m);
    return s;
}

template <int bits, int PANELS, int EIGHTS>
static int launch(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p)
{
    using form = codes_form<bits, PANELS, EIGHTS>;
    auto *kernel = codes_kernel<bits, PANELS, EIGHTS>;
    codes_shape shape = shape_of(p);
    dim3 grid(ft_cover(p->m, form::tokens), ft_cover((size_t) shape.all.panels, PANELS));
    int status = (int) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            form::shared);
    if (status == 0)
        status = ft_launch(quantize_kernel<bits>, dim3((unsigned) shape.groups, (unsigned) p->m),
                           32, 0, stream, chip->overlaps, 1, *p, shape);
    if (status == 0)
        status = ft_launch(kernel, grid, form::threads, form::shared, stream, chip->overlaps, 1, *p,
                           shape);
    return status;
}

/* Single panels for few tokens: more thread blocks with less to read each. */
template <int bits>
static int launch_size(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p)
{
    size_t tiles = (p->m + 127) / 128 * (((size_t) blocks_shape_of(p).panels + 3) / 4);
    bool wide = tiles >= (size_t) chip->multiprocessors &&
                chip->shared >= (size_t) codes_form<bits, 4, 8>::shared;
    bool roomy = chip->shared >= (size_t) codes_form<bits, 4, 2>::shared;
    return p->m <= 16 || !roomy ? launch<bits, 1, 1>(chip, stream, p)
           : wide               ? launch<bits, 4, 8>(chip, stream, p)
                                : launch<bits, 4, 2>(chip, stream, p);
}

/* Grids have up to 65535 rows of x, and as many tiles of panels. */
bool ft_cuda_blocks_codes_takes(const ft_cuda_chip *chip, const ft_cuda_blocks *p)
{
    (void) chip;
    return p->m <= 65535 && p->k <= 65536 && blocks_shape_of(p).panels <= 65535 &&
           p->scratch_bytes >= ft_cuda_blocks_codes_scratch(p->m, p->k);
}

int ft_cuda_blocks_codes(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p)
{
    if (ft_cuda_blocks_codes_held_takes(chip, p))
        return ft_cuda_blocks_codes_held(chip, stream, p);
    if (ft_cuda_blocks_codes_few_takes(chip, p))
        return ft_cuda_blocks_codes_few(chip, stream, p);
    return p->bits == 4 ? launch_size<4>(chip, stream, p) : launch_size<8>(chip, stream, p);
}
