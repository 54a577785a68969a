/*
 * wgmma_register_a.cu - the int8 product of sm_90a with weights straight from COL4_4R2_8C.
 *
 * That order feeds the register operand of wgmma: weights x tokens, so a product of few tokens
 * wastes nothing, and no second copy of the weights is needed.  A block has one warpgroup that
 * multiplies 128 weights by 16 or 64 tokens, and two warps that load; two blocks share a
 * multiprocessor, so that one finishes while the other multiplies.
 *
 * Of every 32 weights x 32 k (1,024 bytes) a lane reads two chunks of 16 bytes: with g = lane / 4
 * and t = lane % 4, chunks t and t + 4 of row R = g / 2 + 4 (g % 2) of 128 bytes.  They hold 4 k
 * each of weights 8T + p + 0, 2, 4, 6, T = R / 2, p = R % 2: words 0 and 1 are the lane's rows of
 * one product, words 2 and 3 those of another.  The odd and even neighbours are in lane ^ 8.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/int8/wgmma_float_out.cuh"

enum {
    WEIGHTS = 128, /* of a tile */
    STAGES = 4,
    THREADS = WGMMA_TEAM + 64, /* a warpgroup that multiplies, two warps that load */
};

template <int TOKENS> struct rs_shared {
    int8_t w[STAGES][WEIGHTS * WGMMA_STAGE], x[STAGES][TOKENS * WGMMA_STAGE];
    uint64_t full[STAGES], empty[STAGES];
};

#ifdef FT_HAS_WGMMA

/* ---- Loading and multiplying ---------------------------------------------------------------- */

template <int TOKENS>
__device__ __forceinline__ void load(rs_shared<TOKENS> &s, const wgmma_args &a,
                                     const wgmma_place &place, bool weights)
{
    if (!weights)
        ft_wait_for_predecessor();
    for (int i = 0; i < a.steps; i++) {
        int slot = i % STAGES;
        ft_barrier_wait(&s.empty[slot], i / STAGES + 1 & 1);
        ft_barrier_expect(&s.full[slot], (weights ? WEIGHTS : TOKENS) * WGMMA_STAGE);
        if (weights)
            ft_load_cube(s.w[slot], &a.w, &s.full[slot], 0, place.col / 4, i * 4);
        else
            ft_load_box(s.x[slot], &a.x, &s.full[slot], place.row, i * WGMMA_STAGE);
    }
    if (!weights)
        ft_let_successor_begin();
}

/* The lane's weights of a stage: [32 k][product]. */
typedef uint32_t rs_rows[WGMMA_STAGE / 32][2][4];

__device__ __forceinline__ void read_rows(rs_rows &rows, const int8_t *w)
{
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, r = g / 2 + g % 2 * 4;
    const uint4 *from = (const uint4 *) (w + (threadIdx.x / 32 * 8 + r) * 128);
#pragma unroll
    for (int k = 0; k < WGMMA_STAGE / 32; k++) {
        uint4 low = from[k * WEIGHTS * 2 + (t ^ r)], high = from[k * WEIGHTS * 2 + (t + 4 ^ r)];
        rows[k][0][0] = low.x, rows[k][0][1] = low.y, rows[k][0][2] = high.x;
        rows[k][0][3] = high.y, rows[k][1][0] = low.z, rows[k][1][1] = low.w;
        rows[k][1][2] = high.z, rows[k][1][3] = high.w;
    }
}

/* One stage.  Its rows may be overwritten when the stage after it has been multiplied. */
template <int TOKENS>
__device__ __forceinline__ void multiply(int32_t (&sums)[2][TOKENS / 2], rs_rows &rows,
                                         rs_shared<TOKENS> &s, int step)
{
    int slot = step % STAGES;
    ft_barrier_wait(&s.full[slot], step / STAGES & 1);
    read_rows(rows, s.w[slot]);
    uint64_t tokens = ft_wgmma_operand(s.x[slot]);
    ft_wgmma_begin();
#pragma unroll
    for (int k = 0; k < WGMMA_STAGE / 32; k++)
#pragma unroll
        for (int i = 0; i < 2; i++)
            ft_wgmma_rows<TOKENS>(sums[i], rows[k][i], tokens + 2 * k);
    ft_wgmma_commit();
    if (step > 0) {
        ft_wgmma_wait<1>();
        if (threadIdx.x % 32 == 0)
            ft_barrier_arrive(&s.empty[(step - 1) % STAGES]);
    }
}

/* ---- Finishing ------------------------------------------------------------------------------ */

/* Eight columns of a token: 0, 2, 4, 6 from one lane and 1, 3, 5, 7 from another. */
__device__ __forceinline__ void interleave(float (&to)[2][4], const float (&own)[4],
                                           const float (&other)[4], bool odd)
{
#pragma unroll
    for (int i = 0; i < 4; i++) {
        to[i / 2][2 * i % 4] = odd ? other[i] : own[i];
        to[i / 2][2 * i % 4 + 1] = odd ? own[i] : other[i];
    }
}

/* The lane's four channels, 2 apart. */
typedef struct rs_channels {
    float scale[4], bias[4];
} rs_channels;

__device__ __forceinline__ rs_channels channels_of(const wgmma_args &a, int col)
{
    rs_channels c;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        bool inside = col + 2 * i < a.n;
        c.scale[i] = wgmma_fetch_weight(a.w_scale + col + 2 * i, inside);
        c.bias[i] = wgmma_fetch_weight(a.bias + col + 2 * i, inside && a.bias != NULL);
    }
    return c;
}

/*
 * Of the tokens 8j + 2t and 8j + 2t + 1 the lane has 4 columns each; it keeps the first (or the
 * second, if its columns are the odd ones) and sends the other to lane ^ 8, for the 4 columns
 * there.
 */
template <int TOKENS, ft_epilogue EPILOGUE, typename Y>
__device__ __forceinline__ void finish(const wgmma_args &a, const wgmma_place &place,
                                       const int32_t (&sums)[2][TOKENS / 2], const rs_channels &c,
                                       int col, bool odd)
{
    int which = col < a.n ? wgmma_part_of(a, col) : 0, first = which == 0 ? 0 : a.part[which - 1];
    size_t width = (size_t) (a.part[which] - first);
    Y *y = (Y *) a.y[which] + (col - first);
    const Y *residual = a.residual == NULL ? NULL : (const Y *) a.residual + col;
#pragma unroll
    for (int j = 0; j < TOKENS / 8; j++) {
        float own[2][4], other[4], value[2][4];
#pragma unroll
        for (int token = 0; token < 2; token++) {
            float x_scale = a.x_scale;
            int of = place.row + 8 * j + threadIdx.x % 4 * 2 + token;
            if (EPILOGUE == FT_EPILOGUE_ROWS)
                x_scale = wgmma_fetch_scale(a.x_scales + of, of < a.m);
#pragma unroll
            for (int i = 0; i < 4; i++)
                own[token][i] = ft_finish<EPILOGUE>(sums[i / 2][4 * j + i % 2 * 2 + token],
                                                    x_scale * c.scale[i], c.bias[i], FT_ACT_NONE);
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            other[i] = __shfl_xor_sync(0xffffffff, odd ? own[0][i] : own[1][i], 8);
            own[0][i] = odd ? own[1][i] : own[0][i];
        }
        interleave(value, own[0], other, odd);
        int row = place.row + 8 * j + threadIdx.x % 4 * 2 + odd;
        if (row >= a.m || col >= a.n)
            continue;
        if (sizeof(Y) > 1 && residual != NULL) {
            const Y *terms = residual + (size_t) row * a.n;
            wgmma_add(value[0], terms);
            wgmma_add(value[1], terms + 4);
        }
        wgmma_store_eight(y + row * width, value, a.y_inverse[which]);
    }
}

template <int TOKENS, ft_epilogue EPILOGUE, typename Y>
__device__ __forceinline__ void work(rs_shared<TOKENS> &s, const wgmma_args &a,
                                     const wgmma_place &place)
{
    int32_t sums[2][TOKENS / 2] = {};
    rs_rows even, odd;
    int g = threadIdx.x % 32 / 4, r = g / 2 + g % 2 * 4;
    int col = place.col + threadIdx.x / 32 * 32 + r / 2 * 8;
    rs_channels channels = channels_of(a, col + r % 2);
    ft_wait_for_predecessor();
    for (int step = 0; step < a.steps; step += 2) {
        multiply(sums, even, s, step);
        if (step + 1 < a.steps)
            multiply(sums, odd, s, step + 1);
    }
    ft_wgmma_wait<0>();
    ft_wgmma_settle(sums[0]);
    ft_wgmma_settle(sums[1]);
    finish<TOKENS, EPILOGUE, Y>(a, place, sums, channels, col, r % 2);
}
#endif

/* grid = tiles; blockDim.x = THREADS. */
template <int TOKENS, ft_epilogue EPILOGUE, typename Y>
__global__ void __launch_bounds__(THREADS, 2) rs_kernel(const __grid_constant__ wgmma_args a)
{
#ifdef FT_HAS_WGMMA
    extern __shared__ __align__(1024) int8_t shared_memory[];
    auto &s = *(rs_shared<TOKENS> *) shared_memory;
    wgmma_place place = wgmma_place_of(a, blockIdx.x, TOKENS, WEIGHTS);
    if (threadIdx.x == 0) {
        ft_prefetch_map(&a.x);
        ft_prefetch_map(&a.w);
        for (int i = 0; i < STAGES; i++) {
            ft_barrier_init(&s.full[i], 2);
            ft_barrier_init(&s.empty[i], WGMMA_TEAM / 32);
        }
        ft_barriers_ready();
    }
    __syncthreads();
    if (threadIdx.x < WGMMA_TEAM)
        work<TOKENS, EPILOGUE, Y>(s, a, place);
    else if (threadIdx.x % 32 == 0)
        load(s, a, place, threadIdx.x == WGMMA_TEAM);
#endif
}

/* ---- Host ----------------------------------------------------------------------------------- */

template <int TOKENS, ft_epilogue EPILOGUE, typename Y>
static int launch(const ft_cuda_chip *chip, void *stream, const ft_cuda_product *p)
{
    auto *kernel = rs_kernel<TOKENS, EPILOGUE, Y>;
    size_t bytes = sizeof(rs_shared<TOKENS>), padded_n = (p->n + 7) / 8 * 8;
    wgmma_args a;
    int status = wgmma_args_init(&a, p, true, TOKENS, WEIGHTS);
    if (status == 0)
        status = ft_map_col4(&a.w, p->w, padded_n, p->k, WEIGHTS);
    if (status == 0)
        status = (int) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            (int) bytes);
    if (status != 0)
        return status;
    return ft_launch(kernel, dim3((unsigned) a.tiles), dim3(THREADS), bytes, stream, chip->overlaps,
                     1, a);
}

template <int TOKENS>
static int launch_any(const ft_cuda_chip *chip, void *stream, const ft_cuda_product *p)
{
    return wgmma_by_kind(p, [=](auto kind) {
        return launch<TOKENS, kind.epilogue, typename decltype(kind)::y>(chip, stream, p);
    });
}

static bool is_aligned(const void *pointer)
{
    return (uintptr_t) pointer % 16 == 0;
}

extern "C" bool ft_cuda_gemm_wgmma_rs_takes(const ft_cuda_chip *chip, const ft_cuda_product *p)
{
    bool fits = chip->has_wgmma && p->w != NULL && p->m > 0 && p->n > 0 && p->k > 0 &&
                p->k % 16 == 0 && p->m < 1u << 31 && p->n < 1u << 31 && is_aligned(p->x) &&
                is_aligned(p->w) && is_aligned(p->residual) &&
                (p->x_scales == NULL || p->y_dtype != FT_I8);
    if (!fits || !ft_cuda_product_adds_up(p))
        return false;
    for (int i = 0; i < p->parts; i++)
        fits = fits && is_aligned(p->y[i]) && p->width[i] % 8 == 0;
    if (p->y_dtype == FT_I8)
        return fits && p->residual == NULL &&
               (p->activation == FT_ACT_NONE || p->activation == FT_ACT_GELU_CODES);
    return fits && (p->y_dtype == FT_F16 || p->y_dtype == FT_F32) && p->activation == FT_ACT_NONE;
}

extern "C" int ft_cuda_gemm_wgmma_rs(const ft_cuda_chip *chip, void *stream,
                                     const ft_cuda_product *p)
{
    if (p->m <= 16)
        return launch_any<16>(chip, stream, p);
    return launch_any<64>(chip, stream, p);
}
