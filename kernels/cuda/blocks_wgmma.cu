/*
 * blocks_wgmma.cu - products with weights in blocks for many rows on sm_90a, with the sums of
 * blocks.cuh: a warpgroup's instructions give the bits of a warp's.
 *
 * A block has eight panels of the weights, one for each warp of two warpgroups, and 16 or 64
 * tokens.  Weights go from shared memory to registers, become numbers there and are the left
 * operand; while one step of 32 columns is multiplied, the next one is unpacked.  Tokens are the
 * right operand, from shared memory.  Of a panel a lane has four neighbouring rows: two are of the
 * instruction's upper half, two of another instruction's.
 *
 * Stretches are shared out as in blocks_tiles.cu, where there are not enough tiles.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/blocks_tiles.cuh"
#include "kernels/cuda/wgmma_halves.cuh"

enum {
    PANELS = 8,
    THREADS = PANELS * 32,
    HALF_ROW = 128, /* bytes of a token in one of the two halves of a run */
    STAGES = 3
};

template <int bits, int TOKENS_> struct wgmma_form {
    static constexpr int tokens = TOKENS_;
    static constexpr int panel = BLOCKS_RUN * BLOCKS_PANEL * bits / 8;
    static constexpr int zeros_at = panel + 64, own = zeros_at + 32;
    static constexpr int half = tokens * HALF_ROW, panels_at = 2 * half;
    static constexpr int stage = (panels_at + PANELS * own + 1023) / 1024 * 1024;
    static constexpr int shared = STAGES * stage + THREADS * tokens * 4;
    static constexpr int beside_each_other = tokens == 16 ? 2 : 1;
};

#ifdef FT_HAS_WGMMA

/* ---- Copies --------------------------------------------------------------------------------- */

/* The warp's panel, of the run that begins with `column`. */
template <class FORM, int bits>
__device__ __forceinline__ void copy_weights(char *stage, const ft_cuda_blocks &p,
                                             const tiles_shape &shape, int column)
{
    int warp = (int) threadIdx.x / 32, lane = (int) threadIdx.x % 32;
    int panel = (int) blockIdx.y * PANELS + warp;
    bool inside = panel < shape.all.panels;
    panel = inside ? panel : shape.all.panels - 1;
    int which = blocks_part_of(shape.all, panel);
    const ft_cuda_blocks_part &part = p.part[which];
    const char *from = part.w + (size_t) panel * shape.all.panel_bytes + column * (4 * bits);
    char *to = stage + FORM::panels_at + warp * FORM::own;
#pragma unroll
    for (int i = 0; i < FORM::panel; i += BLOCKS_BLOCK)
        ft_copy_16(to + i + blocks_copied(lane), from + i + lane * 16, inside);
    bool scales = lane < 4;
    int place = lane % 4;
    size_t index = (size_t) blocks_group_of(shape.all, column) * shape.all.padded_rows[which] +
                   panel * BLOCKS_PANEL + (scales ? place * 8 : place * 16);
    const char *of =
        scales ? (const char *) (part.scale + index) : (const char *) part.zero + index;
    if (scales || (part.zero != NULL && lane < 6))
        ft_copy_16(to + (scales ? FORM::panel : FORM::zeros_at) + place * 16, of, inside);
}

template <class FORM>
__device__ __forceinline__ void copy_tokens(char *stage, const ft_cuda_blocks &p,
                                            const tiles_shape &shape, int column)
{
#pragma unroll
    for (int i = 0; i < FORM::tokens * 16; i += THREADS) {
        int chunk = (i + (int) threadIdx.x) % 16, token = (i + (int) threadIdx.x) / 16;
        size_t row = (size_t) blockIdx.x * FORM::tokens + token;
        ft_copy_16(stage + chunk / 8 * FORM::half + token * HALF_ROW + (chunk % 8 ^ token % 8) * 16,
                   shape.x + row * shape.x_row + (column + chunk * 8) * 2, row < p.m);
    }
}

/* ---- Products ------------------------------------------------------------------------------- */

/* c [64, N] = (add ? c : 0) + a . b^T of 16 columns, a in registers. */
template <int N, bool bf16>
__device__ __forceinline__ void multiply_16(float (&c)[N / 2], const uint32_t (&a)[4], uint64_t b,
                                            int add);

#define MULTIPLY(N, BF16, TYPE, NAMES, LIST, A, B, ADD)                                            \
    template <>                                                                                    \
    __device__ __forceinline__ void multiply_16<N, BF16>(float(&c)[N / 2], const uint32_t(&a)[4],  \
                                                         uint64_t b, int add)                      \
    {                                                                                              \
        asm volatile("{\n\t.reg .pred add;\n\tsetp.ne.b32 add, " ADD ", 0;\n\t"                    \
                     "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" NAMES    \
                     "}, {" A "}, " B ", add, 1, 1, 0;\n\t}"                                       \
                     : LIST("+f", c)                                                               \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));              \
    }
MULTIPLY(16, false, "f16", FT_NAMES_8, FT_C8_ALL, "%8, %9, %10, %11", "%12", "%13")
MULTIPLY(16, true, "bf16", FT_NAMES_8, FT_C8_ALL, "%8, %9, %10, %11", "%12", "%13")
MULTIPLY(64, false, "f16", FT_NAMES_0, FT_C32, "%32, %33, %34, %35", "%36", "%37")
MULTIPLY(64, true, "bf16", FT_NAMES_0, FT_C32, "%32, %33, %34, %35", "%36", "%37")
#undef MULTIPLY

/* 32 columns of the warp's panel. */
template <class FORM, int bits, blocks_kind kind>
__device__ __forceinline__ void unpack_step(uint32_t (&a)[2][2][4],
                                            const blocks_unpacker<bits, kind> &unpacker,
                                            const char *own, int step)
{
    constexpr int blocks = bits / 4;
    uint4 block[blocks];
    uint32_t w[4][4];
#pragma unroll
    for (int i = 0; i < blocks; i++)
        block[i] = *(const uint4 *) (own + (step * blocks + i) * BLOCKS_BLOCK +
                                     blocks_wanted(threadIdx.x % 32));
    unpacker.unpack(w, block);
#pragma unroll
    for (int i = 0; i < 8; i++) { /* of instruction i % 2 and half i / 2 % 2 of the step */
        int tile = i % 2, half = i / 2 % 2, from = i / 4;
        a[tile][half][from * 2] = w[2 * tile][2 * half + from];
        a[tile][half][from * 2 + 1] = w[2 * tile + 1][2 * half + from];
    }
}

/* stretch += the run of a stage. */
template <class FORM, int bits, blocks_kind kind>
__device__ __forceinline__ void multiply_run(float (&stretch)[2][FORM::tokens / 2],
                                             const char *stage, bool has_zeros)
{
    constexpr int N = FORM::tokens, steps = BLOCKS_RUN / BLOCKS_STEP;
    constexpr bool bf16 = kind == BLOCKS_BF16;
    int lane = (int) threadIdx.x % 32;
    const char *own = stage + FORM::panels_at + threadIdx.x / 32 * FORM::own;
    blocks_unpacker<bits, kind> unpacker;
    float run[2][N / 2], scale[4];
    uint32_t a[2][2][2][4];
    if (has_zeros)
        unpacker.set(*(const uint32_t *) (own + FORM::zeros_at + lane / 4 * 4));
    blocks_scales(scale, own + FORM::panel + lane / 4 * 8);
    unpack_step<FORM, bits, kind>(a[0], unpacker, own, 0);
#pragma unroll
    for (int step = 0; step < steps; step++) {
        ft_wgmma_begin();
#pragma unroll
        for (int half = 0; half < 2; half++) {
            uint64_t b = ft_wgmma_operand(stage + step / 2 * FORM::half) + step % 2 * 4 + half * 2;
#pragma unroll
            for (int tile = 0; tile < 2; tile++)
                multiply_16<N, bf16>(run[tile], a[step % 2][tile][half], b, step + half > 0);
        }
        ft_wgmma_commit();
        if (step + 1 == steps)
            break;
        ft_wgmma_wait<1>();
        unpack_step<FORM, bits, kind>(a[(step + 1) % 2], unpacker, own, step + 1);
    }
    ft_wgmma_wait<0>();
    ft_wgmma_settle(run[0]);
    ft_wgmma_settle(run[1]);
#pragma unroll
    for (int i = 0; i < N; i++) {
        int tile = i / (N / 2), at = i % (N / 2);
        stretch[tile][at] = fmaf(scale[tile * 2 + at % 4 / 2], run[tile][at], stretch[tile][at]);
    }
}

/* ---- Sums of stretches ---------------------------------------------------------------------- */

/* As in blocks_tiles.cu: totals are in shared memory, a thread's own each. */
template <class FORM>
__device__ __forceinline__ void add_stretch(float (&stretch)[2][FORM::tokens / 2], float4 *totals,
                                            bool first, bool last)
{
#pragma unroll
    for (int i = 0; i < FORM::tokens; i += 4) {
        float4 *own = &totals[i / 4 * THREADS + threadIdx.x];
        float *sum = &stretch[i / (FORM::tokens / 2)][i % (FORM::tokens / 2)];
        if (!first) {
            float4 before = *own;
            sum[0] = before.x + sum[0];
            sum[1] = before.y + sum[1];
            sum[2] = before.z + sum[2];
            sum[3] = before.w + sum[3];
        }
        if (!last) {
            *own = make_float4(sum[0], sum[1], sum[2], sum[3]);
            sum[0] = sum[1] = sum[2] = sum[3] = 0.0f;
        }
    }
}

template <class FORM>
__device__ __forceinline__ void put(const ft_cuda_blocks &p, const tiles_shape &shape,
                                    const float (&sums)[2][FORM::tokens / 2], int stretch)
{
    int warp = (int) threadIdx.x / 32, lane = (int) threadIdx.x % 32;
    int panel = (int) blockIdx.y * PANELS + warp, g = lane / 4, t = lane % 4;
    if (panel >= shape.all.panels)
        return;
#pragma unroll
    for (int i = 0; i < FORM::tokens / 4; i++) {
        int eight = i / 2, c = i % 2;
        size_t token = (size_t) blockIdx.x * FORM::tokens + 8 * eight + 2 * t + c;
        float value[4] = { sums[0][4 * eight + c], sums[0][4 * eight + c + 2],
                           sums[1][4 * eight + c], sums[1][4 * eight + c + 2] };
        if (token < p.m)
            tiles_put_four(p, shape, stretch, token, panel, 4 * g, value);
    }
}

#endif

/* grid = (tiles of tokens, tiles of panels, shares of the stretches) */
template <int bits, blocks_kind kind, int TOKENS>
static __global__ void __launch_bounds__(THREADS, (wgmma_form<bits, TOKENS>::beside_each_other))
    wgmma_kernel(const __grid_constant__ ft_cuda_blocks p,
                 const __grid_constant__ tiles_shape shape)
{
#ifdef FT_HAS_WGMMA
    using form = wgmma_form<bits, TOKENS>;
    extern __shared__ __align__(1024) char shared[];
    float4 *totals = (float4 *) (shared + STAGES * form::stage);
    int stretch = (int) blockIdx.z * shape.share, first = stretch;
    int column = stretch * BLOCKS_STRETCH, end = column + shape.share * BLOCKS_STRETCH;
    float sums[2][TOKENS / 2] = {};
    end = end < shape.all.k ? end : shape.all.k;
    for (int i = 0; i < STAGES - 1; i++) /* weights belong to no predecessor */
        if (column + i * BLOCKS_RUN < end)
            copy_weights<form, bits>(shared + i * form::stage, p, shape, column + i * BLOCKS_RUN);
    ft_wait_for_predecessor();
    for (int i = 0; i < STAGES - 1; i++) {
        if (column + i * BLOCKS_RUN < end)
            copy_tokens<form>(shared + i * form::stage, p, shape, column + i * BLOCKS_RUN);
        ft_copy_commit();
    }
    ft_let_successor_begin();
    int slot = 0, into = STAGES - 1;
    for (; column < end; column += BLOCKS_RUN) {
        int next = column + (STAGES - 1) * BLOCKS_RUN;
        ft_copy_wait<STAGES - 2>();
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads(); /* this stage has arrived, and the one before has been read by all */
        if (next < end) {
            copy_weights<form, bits>(shared + into * form::stage, p, shape, next);
            copy_tokens<form>(shared + into * form::stage, p, shape, next);
        }
        ft_copy_commit();
        multiply_run<form, bits, kind>(sums, shared + slot * form::stage, p.part[0].zero != NULL);
        slot = slot + 1 == STAGES ? 0 : slot + 1;
        into = into + 1 == STAGES ? 0 : into + 1;
        bool last = column + BLOCKS_RUN >= end;
        if (!last && (column + BLOCKS_RUN) % BLOCKS_STRETCH != 0)
            continue;
        if (shape.sums == NULL) {
            add_stretch<form>(sums, totals, stretch == first, last);
        } else {
            put<form>(p, shape, sums, stretch);
#pragma unroll
            for (int i = 0; i < TOKENS; i++)
                sums[i / (TOKENS / 2)][i % (TOKENS / 2)] = 0.0f;
        }
        stretch++;
    }
    if (shape.sums == NULL)
        put<form>(p, shape, sums, 0);
#endif
}

/* ---- Host ----------------------------------------------------------------------------------- */

template <int bits, blocks_kind kind, int TOKENS>
static int launch(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p)
{
    using form = wgmma_form<bits, TOKENS>;
    auto *kernel = wgmma_kernel<bits, kind, TOKENS>;
    tiles_shape shape = tiles_shape_of(p);
    dim3 grid(ft_cover(p->m, TOKENS), ft_cover((size_t) shape.all.panels, PANELS));
    tiles_share_out(&shape, p, (size_t) grid.x * grid.y,
                    (size_t) chip->multiprocessors * form::beside_each_other);
    grid.z = ft_cover((size_t) shape.all.stretches, (unsigned) shape.share);
    int status = (int) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            form::shared);
    if (status == 0)
        status =
            ft_launch(kernel, grid, THREADS, form::shared, stream, chip->overlaps, 1, *p, shape);
    return status != 0 || shape.sums == NULL ? status
                                             : ft_cuda_blocks_add_up(chip, stream, p, &shape);
}

template <int bits, blocks_kind kind>
static int launch_size(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p)
{
    return p->m <= 16 ? launch<bits, kind, 16>(chip, stream, p)
                      : launch<bits, kind, 64>(chip, stream, p);
}

/* Whole runs of groups of whole runs, and x as it is. */
bool ft_cuda_blocks_wgmma_takes(const ft_cuda_chip *chip, const ft_cuda_blocks *p)
{
    return chip->has_wgmma && p->k % BLOCKS_RUN == 0 && !blocks_are_fine(p) &&
           p->x_dtype != FT_F32 && (uintptr_t) p->x % 16 == 0 && p->k < 1u << 20 &&
           blocks_shape_of(p).panels <= 65535 * PANELS && p->m <= INT32_MAX &&
           chip->shared >= (size_t) wgmma_form<8, 64>::shared;
}

int ft_cuda_blocks_wgmma(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p)
{
    bool bf16 = p->x_dtype == FT_BF16;
    return p->bits == 4 ? bf16 ? launch_size<4, BLOCKS_BF16>(chip, stream, p)
                               : launch_size<4, BLOCKS_F16>(chip, stream, p)
           : bf16 ? launch_size<8, BLOCKS_BF16>(chip, stream, p)
                        : launch_size<8, BLOCKS_F16>(chip, stream, p);
}
