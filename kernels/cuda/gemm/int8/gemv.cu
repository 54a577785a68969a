/*
 * gemv.cu - INT8 GEMV on sm_90 for up to 8 rows: streams the weights once.
 *
 * With so few rows the time is that of reading the weights, so DRAM must never idle: neither
 * between iterations of a thread block, nor between thread blocks, nor between launches. One
 * persistent thread block per SM has eight warps with a bulk-copy pipeline each, 64 KB in flight
 * per SM. (With 96 KB a decode step of one Llama-2-7B sequence takes 1.2 % longer: loads of the
 * small kernels between the GEMVs queue up behind the pipelines.) A thread block starts where one
 * of the previous launch has ended and fills its pipelines while others still run and x is being
 * computed: weights depend on no predecessor. (Where two blocks fit on an SM, the blocks of a
 * launch are paired on one half of the device and those of the next launch on the other.)
 *
 * A thread block processes row tiles: 16 weight rows, half of each 4 KiB block of the prepacked
 * weights, by all k, in stages of 128. Stages go to the warps round-robin, across row tiles, so
 * that no warp waits for another: a warp adds its accumulators of a row tile to those in shared
 * memory, and one more warp runs the epilogue when all have. It has prefetched scales and
 * residuals. Sums are integers, so the order of additions does not change the bits.
 *
 * The latency before the first copy also leaves DRAM idle, about 0.7 us. Hence the number of stages
 * is a compile-time constant, and the producer lane is chosen with elect.sync.
 *
 * L2 prefetches of the weights of later GEMVs did not help (docs/experiments).
 *
 * Lane (g, t) = (lane / 4, lane % 4) reads 16-byte chunks t and t + 4 of rows g and g + 8, and of
 * token g: any order of k is valid as long as both operands agree. Rows are 128 bytes apart and
 * would cause bank conflicts, so odd ones are read in reverse order; rows of x are 64 bytes longer.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/gemm/int8/store_out.cuh"
#include "kernels/cuda/ptx/mma.cuh"
#include "kernels/cuda/ptx/tma.cuh"

enum {
    ROWS = 16,   /* weight rows per row tile */
    DEPTH = 128, /* k per stage */
    STAGE = ROWS * DEPTH,
    TOKENS = 8,
    WARPS = 8, /* multiply; one more warp runs the epilogue */
    THREADS = 32 * (WARPS + 1),
    MOST_SLOTS = 4,      /* per warp */
    UNITS = 4,           /* row tiles with accumulators in shared memory at a time */
    SUMS_ROW = ROWS + 4, /* padded to avoid bank conflicts */
};

/* Shared memory before the pipelines and x. */
struct stream_shared {
    int32_t sums[UNITS][TOKENS][SUMS_ROW];
    uint64_t full[WARPS][MOST_SLOTS];
    uint64_t summed[UNITS], freed[UNITS], x_arrived;
};

enum { RING_AT = (sizeof(stream_shared) + 127) / 128 * 128 };

/* Launch parameters. */
typedef struct stream_shape {
    int units, steps;  /* k_tiles: of a row tile */
    uint32_t x_stride; /* bytes per row of x in shared memory */
    ft_out_shape out;
} stream_shape;

#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900

/* ---- Multiplying ---------------------------------------------------------------------------- */

/*
 * True in one lane of a fully active warp, always the same one. Unlike with "lane 0", the compiler
 * emits no loop over lanes around the copy.
 */
__device__ __forceinline__ bool is_elected()
{
    uint32_t elected;
    asm volatile("{\n\t"
                 ".reg .pred p;\n\t"
                 "elect.sync _|p, 0xffffffff;\n\t"
                 "selp.u32 %0, 1, 0, p;\n\t"
                 "}"
                 : "=r"(elected));
    return elected != 0;
}

/* A warp's pipeline: one lane is the producer, all lanes consume. */
template <int slots> struct stream_ring {
    char *stage;
    uint64_t *full;
    int slot;
    unsigned parity;
    /* next request: its k tile, its address, and its row tile */
    int step, steps, unit, units;
    const int8_t *next, *first;
    size_t group; /* bytes of 32 prepacked rows */
    uint64_t policy;

    __device__ __forceinline__ stream_ring(stream_shared &s, char *rings, const ft_cuda_product &p,
                                           const stream_shape &shape, int warp)
        : stage(rings + warp * slots * STAGE), full(s.full[warp]), slot(0), parity(0), step(warp),
          steps(shape.steps), unit(blockIdx.x), units(shape.units), first(p.tiles),
          group((size_t) shape.steps * (2 * STAGE)), policy(ft_policy_passing())
    {
        settle();
    }
    /* Move on to the row tile that the k tile belongs to. */
    __device__ __forceinline__ void settle()
    {
        while (step >= steps) {
            step -= steps;
            unit += gridDim.x;
        }
        next = first + unit / 2 * group + step * (2 * STAGE) + unit % 2 * STAGE;
    }
    /* Request the next stage. */
    __device__ __forceinline__ void ask(int into)
    {
        if (unit >= units)
            return;
        ft_barrier_expect(&full[into], STAGE);
        ft_load_bulk(stage + into * STAGE, next, STAGE, &full[into], policy);
        step += WARPS;
        next += WARPS * (2 * STAGE);
        if (step >= steps)
            settle();
    }
    /* Prologue. */
    __device__ __forceinline__ void open()
    {
        if (!is_elected())
            return;
#pragma unroll
        for (int i = 0; i < slots; i++)
            ft_barrier_init(&full[i], 1);
        ft_barriers_ready();
#pragma unroll
        for (int i = 0; i < slots; i++)
            ask(i);
    }
    __device__ __forceinline__ const char *wait()
    {
        ft_barrier_wait(&full[slot], parity);
        return stage + slot * STAGE;
    }
    /* All lanes have read the stage: refill it. */
    __device__ __forceinline__ void release()
    {
        if (is_elected())
            ask(slot);
        if (++slot == slots) {
            slot = 0;
            parity ^= 1;
        }
    }
};

/* The low and high half of a lane's 64 bytes of a row, in k order. */
__device__ __forceinline__ void read_halves(uint4 &low, uint4 &high, const char *row, bool odd)
{
    uint4 first = *(const uint4 *) (row + (odd ? 64 : 0));
    uint4 second = *(const uint4 *) (row + (odd ? 0 : 64));
    low = odd ? second : first;
    high = odd ? first : second;
}

__device__ __forceinline__ void multiply_half(int32_t sum[4], const uint4 &upper,
                                              const uint4 &lower, const uint4 &x)
{
    const uint32_t a[2][4] = { { upper.x, lower.x, upper.y, lower.y },
                               { upper.z, lower.z, upper.w, lower.w } };
    ft_mma_codes(sum, a[0], x.x, x.y);
    ft_mma_codes(sum, a[1], x.z, x.w);
}

/* This warp's stages of all row tiles. */
template <int slots>
__device__ __forceinline__ void multiply(stream_shared &s, const char *x, stream_ring<slots> &ring,
                                         const ft_cuda_product &p, const stream_shape &shape,
                                         unsigned warp, unsigned lane)
{
    unsigned g = lane / 4, t = lane % 4;
    bool odd = g % 2 == 1, token = g < p.m;
    int step = (int) warp, count = 0;
    x += g * shape.x_stride + t * 16;
    for (int unit = blockIdx.x; unit < shape.units; unit += gridDim.x, count++) {
        int32_t sum[2][4] = {};
        for (; step < shape.steps; step += WARPS) {
            const char *row = ring.wait() + g * DEPTH + t * 16;
            uint4 low[2], high[2], x_low = {}, x_high = {};
            read_halves(low[0], high[0], row, odd);
            read_halves(low[1], high[1], row + 8 * DEPTH, odd);
            if (token) {
                x_low = *(const uint4 *) (x + step * DEPTH);
                x_high = *(const uint4 *) (x + step * DEPTH + 64);
            }
            __syncwarp();
            ring.release();
            multiply_half(sum[0], low[0], low[1], x_low);
            multiply_half(sum[1], high[0], high[1], x_high);
        }
        step -= shape.steps;
        int slot = count % UNITS;
        if (count >= UNITS)
            ft_barrier_wait(&s.freed[slot], count / UNITS + 1 & 1);
#pragma unroll
        for (unsigned i = 0; i < 4; i++)
            if (2 * t + i % 2 < p.m)
                atomicAdd(&s.sums[slot][2 * t + i % 2][g + i / 2 * 8], sum[0][i] + sum[1][i]);
        __syncwarp();
        if (lane == 0)
            ft_barrier_arrive(&s.summed[slot]);
    }
}

/* ---- Finishing ------------------------------------------------------------------------------ */

/* The column of row `place` of a row tile (ft_cuda_tiles_offset). */
__device__ __forceinline__ uint32_t column_of(int unit, unsigned place)
{
    unsigned v = unit % 2 * ROWS + place, i = v / 8, g = v % 8;
    return (uint32_t) (unit / 2) * 32 + g / 2 * 8 + g % 2 + 2 * i;
}

/* Epilogue parameters of a lane's column of a row tile, for tokens first, + 2, + 4, + 6. */
struct stream_column {
    uint32_t col;
    bool inside;
    float scale, bias, residual[TOKENS / 2];

    /* Loads that do not depend on the predecessor. */
    __device__ __forceinline__ void open(const ft_cuda_product &p, int unit, int units,
                                         unsigned lane)
    {
        col = column_of(unit, lane % ROWS);
        inside = unit < units && col < p.n;
        scale = inside ? ft_column_scale(p, col) : 0.0f;
        bias = inside ? ft_column_bias(p, col) : 0.0f;
    }
    __device__ __forceinline__ void fetch(const ft_cuda_product &p, unsigned first)
    {
#pragma unroll
        for (unsigned i = 0; i < TOKENS / 2; i++)
            residual[i] = inside && p.residual != nullptr && first + 2 * i < p.m
                              ? ft_out_residual(p, first + 2 * i, col)
                              : 0.0f;
    }
};

/* The epilogue warp. */
__device__ __forceinline__ void finish(stream_shared &s, stream_column &column,
                                       const ft_cuda_product &p, const stream_shape &shape,
                                       unsigned lane)
{
    unsigned first = lane / ROWS, place = lane % ROWS;
    float row_scale[TOKENS / 2];
#pragma unroll
    for (unsigned i = 0; i < TOKENS / 2; i++)
        row_scale[i] = first + 2 * i < p.m ? ft_row_scale(p, first + 2 * i) : 1.0f;
    column.fetch(p, first);
    int count = 0;
    for (int unit = blockIdx.x; unit < shape.units; unit += gridDim.x, count++) {
        int slot = count % UNITS;
        int32_t sum[TOKENS / 2];
        stream_column next;
        next.open(p, unit + (int) gridDim.x, shape.units, lane);
        next.fetch(p, first);
        ft_barrier_wait(&s.summed[slot], count / UNITS & 1);
#pragma unroll
        for (unsigned i = 0; i < TOKENS / 2; i++) {
            sum[i] = s.sums[slot][first + 2 * i][place];
            s.sums[slot][first + 2 * i][place] = 0;
        }
        __syncwarp();
        if (lane == 0)
            ft_barrier_arrive(&s.freed[slot]);
#pragma unroll
        for (unsigned i = 0; i < TOKENS / 2; i++) {
            uint32_t row = first + 2 * i;
            if (!column.inside || row >= p.m)
                continue;
            float value =
                ft_out_value<FT_EPILOGUE_ANY>(p, sum[i], column.scale * row_scale[i], column.bias);
            if (p.residual != nullptr)
                value = value + column.residual[i];
            ft_out_put(p, shape.out, row, column.col, value);
        }
        column = next;
    }
}

/* The epilogue warp, before the predecessor ends. */
__device__ __forceinline__ void set_up(stream_shared &s, unsigned lane)
{
    for (unsigned i = lane; i < UNITS * TOKENS * SUMS_ROW; i += 32)
        (&s.sums[0][0][0])[i] = 0;
    if (lane == 0) {
        for (int i = 0; i < UNITS; i++) {
            ft_barrier_init(&s.summed[i], WARPS);
            ft_barrier_init(&s.freed[i], 1);
        }
        ft_barrier_init(&s.x_arrived, 1);
        ft_barriers_ready();
    }
    __syncwarp();
}

__device__ __forceinline__ void ask_for_x(stream_shared &s, char *x, const ft_cuda_product &p,
                                          const stream_shape &shape, unsigned lane)
{
    if (lane == 0)
        ft_barrier_expect(&s.x_arrived, (unsigned) (p.m * p.k));
    __syncwarp();
    if (lane < p.m)
        ft_load_bulk(x + lane * shape.x_stride, p.x + lane * p.k, (unsigned) p.k, &s.x_arrived);
}
#endif

/* grid = at most one thread block per row tile; blockDim.x = THREADS. */
template <int slots>
static __global__ void __launch_bounds__(THREADS, 1)
    stream_kernel(const __grid_constant__ ft_cuda_product p,
                  const __grid_constant__ stream_shape shape)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900
    extern __shared__ __align__(128) char shared[];
    stream_shared &s = *(stream_shared *) shared;
    char *rings = shared + RING_AT, *x = rings + WARPS * slots * STAGE;
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (warp == WARPS) {
        stream_column column;
        set_up(s, lane);
        column.open(p, blockIdx.x, shape.units, lane);
        ft_wait_for_predecessor();
        ask_for_x(s, x, p, shape, lane);
        __syncthreads();
        ft_let_successor_begin();
        finish(s, column, p, shape, lane);
    } else {
        stream_ring<slots> ring(s, rings, p, shape, (int) warp);
        __syncwarp();
        ring.open();
        ft_wait_for_predecessor();
        __syncthreads();
        ft_let_successor_begin();
        ft_barrier_wait(&s.x_arrived, 0);
        multiply(s, x, ring, p, shape, warp, lane);
    }
#endif
}

/* ---- Host ----------------------------------------------------------------------------------- */

/*
 * Rows of x are 64 bytes off a multiple of 128 and padded to whole stages, so that reading past k
 * is harmless: it meets zeros of the prepacked weights.
 */
static uint32_t x_stride_of(const ft_cuda_product *p)
{
    return (uint32_t) ((p->k + DEPTH - 1) / DEPTH * DEPTH + 64);
}

static size_t shared_of(const ft_cuda_product *p, int slots)
{
    return RING_AT + (size_t) slots * WARPS * STAGE + p->m * x_stride_of(p);
}

static int slots_of(const ft_cuda_product *p, const ft_cuda_chip *chip)
{
    int slots = MOST_SLOTS;
    while (slots > 1 && shared_of(p, slots) > chip->shared)
        slots /= 2;
    return slots;
}

static bool is_aligned(const void *pointer, size_t bytes)
{
    return (uintptr_t) pointer % bytes == 0;
}

extern "C" bool ft_cuda_gemm_stream_takes(const ft_cuda_chip *chip, const ft_cuda_product *p)
{
    return chip->overlaps && p->tiles != NULL && p->m > 0 && p->m <= TOKENS && p->n > 0 &&
           p->k > 0 && p->k % 16 == 0 && p->n < 1u << 31 && p->k < 1u << 20 &&
           is_aligned(p->x, 16) && is_aligned(p->tiles, 16) && ft_cuda_product_adds_up(p) &&
           shared_of(p, slots_of(p, chip)) <= chip->shared;
}

template <int slots>
static int launch(const ft_cuda_chip *chip, void *stream, const ft_cuda_product *p,
                  const stream_shape &shape)
{
    unsigned most = (unsigned) chip->multiprocessors, units = (unsigned) shape.units;
    size_t bytes = shared_of(p, slots);
    cudaError_t status = cudaFuncSetAttribute(
        stream_kernel<slots>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int) bytes);
    if (status != cudaSuccess)
        return (int) status;
    return ft_launch(stream_kernel<slots>, dim3(units < most ? units : most), THREADS, bytes,
                     stream, chip->overlaps, 1, *p, shape);
}

extern "C" int ft_cuda_gemm_stream(const ft_cuda_chip *chip, void *stream, const ft_cuda_product *p)
{
    stream_shape shape = {};
    shape.units = (int) ((p->n + 31) / 32 * 2);
    shape.steps = (int) ((p->k + DEPTH - 1) / DEPTH);
    shape.x_stride = x_stride_of(p);
    shape.out = ft_out_shape_of(p);
    switch (slots_of(p, chip)) {
    case 4:
        return launch<4>(chip, stream, p, shape);
    case 2:
        return launch<2>(chip, stream, p, shape);
    default:
        return launch<1>(chip, stream, p, shape);
    }
}
