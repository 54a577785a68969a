/*
 * attention_i8_wgmma.cu - encoder attention on int8 values for heads of 33 to 64 elements, sm_90a.
 *
 * It has the two passes of attention_i8.cu with warpgroup MMAs: wgmma reads keys directly from
 * shared memory and runs asynchronously beside the arithmetic. mma.sync hardly overlaps: on an H200
 * an m16n8k32 takes five to six clocks in which little else is issued.
 *
 * A CTA is one warpgroup and 64 queries. The second GEMM needs the values transposed; the warps
 * transpose each tile once, together.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/attention/encoder/attention_i8_pipeline.cuh"
#include "kernels/cuda/ptx/wgmma.cuh"

enum { WIDTH = 64, TURNED = WIDTH * TILE }; /* bytes of a transposed tile */

#ifdef FT_HAS_WGMMA

/* ---- MMAs ---------------------------------------------------------------------------------- */

/*
 * Descriptor of 64 rows of 64 bytes as ft_panel_offset() stores them, with the 64-byte swizzle. Add
 * 2 to advance k by 32.
 */
static __device__ __forceinline__ uint64_t panel(const void *shared)
{
    uint64_t address = (uint64_t) __cvta_generic_to_shared(shared);
    return (address & 0x3ffff) >> 4 | (uint64_t) (512 >> 4) << 32 | (uint64_t) 2 << 62;
}

/* c = a . b^T for 32 k with a in registers; ft_wgmma_rows() accumulates. */
static __device__ __forceinline__ void rows_first(int32_t (&c)[32], const uint32_t (&a)[4],
                                                  uint64_t b)
{
    asm volatile("{\n\t.reg .pred add;\n\tsetp.ne.b32 add, 0, 0;\n\t"
                 "wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8 {" FT_NAMES_0
                 "}, {%32, %33, %34, %35}, %36, add;\n\t}"
                 : FT_C32("=r", c)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

/* Makes this thread's writes to shared memory visible to wgmma after the next barrier. */
static __device__ __forceinline__ void publish()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* ---- Operands ------------------------------------------------------------------------------ */

/*
 * Returns the next stage, which was loaded while the current one was in use, and starts to refill
 * the previous one. One barrier serves both these copies and the writes of transpose_values().
 */
static __device__ __forceinline__ const uint8_t *next_slot(feed *f)
{
    ft_copy_wait<slots<WIDTH> - 3>();
    publish();
    __syncthreads();
    fetch<WIDTH>(f);
    return advance<WIDTH>(f);
}

/* The warp's 16 queries, in the element order of the keys. */
static __device__ __forceinline__ void load_rows(uint32_t q[2][4], const uint8_t *tile)
{
    int row = (int) threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        int piece = i / 4 * 2 + i % 4 / 2, below = i % 2 * 8;
        q[i / 4][i % 4] =
            *(const uint32_t *) (tile + ft_panel_offset<WIDTH, TILE>(row + below, piece) + 4 * t);
    }
}

/*
 * Transposes a tile of values. Row 16j + r is column 16j + 2r, or 2r - 15 instead of 2r for r from
 * 8 on. Keys are in the order of the quantized weights, so the sums have the layout of
 * accumulate_pv().
 */
static __device__ __forceinline__ void turn(uint8_t *to, const uint8_t *tile)
{
    int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, j = (int) threadIdx.x / 32;
    int place = ft_panel_offset<WIDTH, WIDTH>(16 * j + g, 0) + 4 * t;
#pragma unroll
    for (int chunk = 0; chunk < TILE / CHUNK; chunk++) {
        uint32_t pair[4];
        ft_load_transposed(pair, tile + ft_panel_offset<WIDTH, TILE>(CHUNK * chunk + lane, j));
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int odd = 0; odd < 2; odd++) /* chunk p differs from chunk 0 by some bits */
                *(uint32_t *) (to + (place ^ 16 * (2 * chunk + half)) + 8 * WIDTH * odd) =
                    __byte_perm(pair[2 * half], pair[2 * half + 1], odd ? 0x7531 : 0x6420);
    }
}

/* ---- The passes ---------------------------------------------------------------------------- */

static __device__ __forceinline__ void first_product(int32_t (&c)[32], const uint32_t (&q)[2][4],
                                                     const uint8_t *tile)
{
    uint64_t keys = panel(tile);
    rows_first(c, q[0], keys);
    ft_wgmma_rows<64>(c, q[1], keys + 2);
    ft_wgmma_commit();
}

/* Updates the maximum with the scores of a tile, of which `keys` exist. */
static __device__ __forceinline__ void raise(int32_t most[2], int32_t (&c)[32], int keys)
{
    scores *part = (scores *) c;
    ft_wgmma_settle(c);
#pragma unroll
    for (int i = 0; i < TILE / CHUNK; i++) {
        if (keys < TILE)
            forget(&part[i], keys - CHUNK * i, INT32_MIN);
        raise_most(most, &part[i]);
    }
}

/* First pass. Returns the first stage of the second pass. */
static __device__ __forceinline__ const uint8_t *
first_sweep(feed *f, const uint8_t *slot, int length, int32_t most[2], const uint32_t (&q)[2][4])
{
    for (int key = 0; key < length; key += 2 * TILE) {
#pragma unroll 1
        for (int half = 0; half < 2 && key + half * TILE < length; half++) {
            int32_t c[32];
            ft_wgmma_begin();
            first_product(c, q, slot + half * TILE * WIDTH);
            ft_wgmma_wait<0>();
            raise(most, c, length - key - half * TILE);
        }
        slot = next_slot(f);
    }
    settle_most(most);
    return slot;
}

static __device__ __forceinline__ void second_sweep(feed *f, const uint8_t *slot, uint8_t *turned,
                                                    int length, sums<WIDTH> *to,
                                                    const int32_t most[2],
                                                    const uint32_t (&q)[2][4], float step)
{
    int32_t(&context)[32] = *(int32_t(*)[32]) to->context;
    const int32_t start[2] = { (int32_t) (FROM_LARGEST - (uint32_t) most[0]),
                               (int32_t) (FROM_LARGEST - (uint32_t) most[1]) };
    for (int key = 0; key < length; key += TILE) {
        uint64_t keys = panel(slot);
        uint8_t *columns = turned + key / TILE % 2 * TURNED;
        int32_t c[32];
        uint32_t codes[TILE / CHUNK][4];
#pragma unroll
        for (int i = 0; i < 32; i++)
            c[i] = start[i / 2 % 2];
        ft_wgmma_begin();
        ft_wgmma_rows<64>(c, q[0], keys);
        ft_wgmma_rows<64>(c, q[1], keys + 2);
        ft_wgmma_commit();
        turn(columns, slot + TILE * WIDTH);
        ft_wgmma_wait<1>(); /* the context MMA, whose operand is overwritten after the barrier */
        slot = next_slot(f);
        ft_wgmma_wait<0>();
        ft_wgmma_settle(c);
#pragma unroll
        for (int i = 0; i < TILE / CHUNK; i++) {
            scores *part = (scores *) c + i;
            if (length - key < TILE)
                forget(part, length - key - CHUNK * i, __float_as_int(-INFINITY));
            encode(codes[i], part, step);
            ft_mma_codes(to->total, codes[i], 0x01010101, 0x01010101);
        }
        ft_wgmma_begin();
        ft_wgmma_rows<64>(context, codes[0], panel(columns));
        ft_wgmma_rows<64>(context, codes[1], panel(columns) + 2);
        ft_wgmma_commit();
    }
    ft_wgmma_wait<0>();
    ft_wgmma_settle(context);
}

#endif

/* ---- The kernel ---------------------------------------------------------------------------- */

/* Grid: query tiles and heads. */
static __global__ void __launch_bounds__(THREADS, 4)
    attend_kernel(const __grid_constant__ ft_cuda_heads a, int unit, float step)
{
#ifdef FT_HAS_WGMMA
    extern __shared__ __align__(1024) uint8_t room[];
    uint8_t *last = room + (slots<WIDTH> - 1) * slot_bytes<WIDTH>,
            *turned = last + slot_bytes<WIDTH>;
    ft_attention_task task;
    feed from;
    uint32_t q[2][4];
    int32_t most[2] = { INT32_MIN, INT32_MIN };
    ft_wait_for_predecessor();
    if (!ft_take_task(&task, a))
        return;
    begin<WIDTH>(&from, a, task, room, unit);
    ft_let_successor_begin();
    ft_copy_wait<slots<WIDTH> - 2>();
    publish();
    __syncthreads();
    load_rows(q, last);
    const uint8_t *slot = first_sweep(&from, advance<WIDTH>(&from), task.length, most, q);
    sums<WIDTH> to = {};
    second_sweep(&from, slot, turned, task.length, &to, most, q, step);
    __syncthreads();
    int first = (int) threadIdx.x / 32 * 16;
    if (first < task.queries)
        store<WIDTH, 1>(a, task, first, &to, room);
#endif
}

int ft_cuda_attend_i8_wgmma(const ft_cuda_chip *chip, void *stream, const ft_cuda_heads *a)
{
    const size_t bytes = slots<WIDTH> * slot_bytes<WIDTH> + 2 * TURNED;
    int unit = ft_stage_unit((size_t) a->head_size, a->q, a->k, a->v);
    cudaError_t status = cudaFuncSetAttribute(
        attend_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int) bytes);
    if (status != cudaSuccess)
        return (int) status;
    return ft_launch(attend_kernel, ft_attention_grid(a), dim3(THREADS), bytes, stream,
                     chip->overlaps, 1, *a, unit, ft_softmax_step(a->score_scale));
}
