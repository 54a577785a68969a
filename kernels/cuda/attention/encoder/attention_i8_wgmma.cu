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

enum { HEAD_DIM = 64, TRANSPOSED_BYTES = HEAD_DIM * TILE }; /* bytes of a transposed tile */

#ifdef FT_HAS_WGMMA

/* ---- MMAs ---------------------------------------------------------------------------------- */

/*
 * Descriptor of 64 rows of 64 bytes as ft_panel_offset() stores them, with the 64-byte swizzle. Add
 * 2 to advance k by 32.
 */
static __device__ __forceinline__ uint64_t panel_descriptor(const void *shared)
{
    uint64_t address = (uint64_t) __cvta_generic_to_shared(shared);
    return (address & 0x3ffff) >> 4 | (uint64_t) (512 >> 4) << 32 | (uint64_t) 2 << 62;
}

/* c = a . b^T for 32 k with a in registers; ft_wgmma_i8_register_a() accumulates. */
static __device__ __forceinline__ void wgmma_first(int32_t (&c)[32], const uint32_t (&a)[4],
                                                   uint64_t b)
{
    asm volatile("{\n\t.reg .pred add;\n\tsetp.ne.b32 add, 0, 0;\n\t"
                 "wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8 {" FT_REGS_0
                 "}, {%32, %33, %34, %35}, %36, add;\n\t}"
                 : FT_C32("=r", c)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

/* Makes this thread's writes to shared memory visible to wgmma after the next barrier. */
static __device__ __forceinline__ void fence_async_proxy()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* ---- Operands ------------------------------------------------------------------------------ */

/*
 * Returns the next stage, which was loaded while the current one was in use, and starts to refill
 * the previous one. One barrier serves both these copies and the writes of transpose_values().
 */
static __device__ __forceinline__ const uint8_t *next_stage_of(kv_loader *f)
{
    ft_cp_async_wait<stages<HEAD_DIM> - 3>();
    fence_async_proxy();
    __syncthreads();
    load_next<HEAD_DIM>(f);
    return advance_stage<HEAD_DIM>(f);
}

/* The warp's 16 queries, in the element order of the keys. */
static __device__ __forceinline__ void load_query_fragments(uint32_t q[2][4], const uint8_t *tile)
{
    int row = (int) threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        int piece = i / 4 * 2 + i % 4 / 2, row_offset = i % 2 * 8;
        q[i / 4][i % 4] =
            *(const uint32_t *) (tile + ft_panel_offset<HEAD_DIM, TILE>(row + row_offset, piece) +
                                 4 * t);
    }
}

/*
 * Transposes a tile of values. Row 16j + r is column 16j + 2r, or 2r - 15 instead of 2r for r from
 * 8 on. Keys are in the order of the quantized weights, so the sums have the layout of
 * accumulate_pv().
 */
static __device__ __forceinline__ void transpose_values(uint8_t *to, const uint8_t *tile)
{
    int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, j = (int) threadIdx.x / 32;
    int base_offset = ft_panel_offset<HEAD_DIM, HEAD_DIM>(16 * j + g, 0) + 4 * t;
#pragma unroll
    for (int chunk = 0; chunk < TILE / CHUNK; chunk++) {
        uint32_t pair[4];
        ft_ldmatrix_x4_trans(pair, tile + ft_panel_offset<HEAD_DIM, TILE>(CHUNK * chunk + lane, j));
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int odd = 0; odd < 2; odd++) /* chunk p differs from chunk 0 by some bits */
                *(uint32_t *) (to + (base_offset ^ 16 * (2 * chunk + half)) + 8 * HEAD_DIM * odd) =
                    __byte_perm(pair[2 * half], pair[2 * half + 1], odd ? 0x7531 : 0x6420);
    }
}

/* ---- The passes ---------------------------------------------------------------------------- */

static __device__ __forceinline__ void issue_qk(int32_t (&c)[32], const uint32_t (&q)[2][4],
                                                const uint8_t *tile)
{
    uint64_t keys = panel_descriptor(tile);
    wgmma_first(c, q[0], keys);
    ft_wgmma_i8_register_a<64>(c, q[1], keys + 2);
    ft_wgmma_commit();
}

/* Updates the maximum with the scores of a tile, of which `keys` exist. */
static __device__ __forceinline__ void update_tile_max(int32_t row_max[2], int32_t (&c)[32],
                                                       int keys)
{
    scores *chunk_scores = (scores *) c;
    ft_wgmma_fence_acc(c);
#pragma unroll
    for (int i = 0; i < TILE / CHUNK; i++) {
        if (keys < TILE)
            mask_tail(&chunk_scores[i], keys - CHUNK * i, INT32_MIN);
        update_max(row_max, &chunk_scores[i]);
    }
}

/* First pass. Returns the first stage of the second pass. */
static __device__ __forceinline__ const uint8_t *max_pass(kv_loader *f, const uint8_t *stage,
                                                          int length, int32_t row_max[2],
                                                          const uint32_t (&q)[2][4])
{
    for (int key = 0; key < length; key += 2 * TILE) {
#pragma unroll 1
        for (int half = 0; half < 2 && key + half * TILE < length; half++) {
            int32_t c[32];
            ft_wgmma_fence();
            issue_qk(c, q, stage + half * TILE * HEAD_DIM);
            ft_wgmma_wait<0>();
            update_tile_max(row_max, c, length - key - half * TILE);
        }
        stage = next_stage_of(f);
    }
    reduce_max(row_max);
    return stage;
}

static __device__ __forceinline__ void context_pass(kv_loader *f, const uint8_t *stage,
                                                    uint8_t *transposed, int length,
                                                    context_acc<HEAD_DIM> *to,
                                                    const int32_t row_max[2],
                                                    const uint32_t (&q)[2][4], float step)
{
    int32_t(&context)[32] = *(int32_t(*)[32]) to->context;
    const int32_t start[2] = { (int32_t) (MAX_BIAS - (uint32_t) row_max[0]),
                               (int32_t) (MAX_BIAS - (uint32_t) row_max[1]) };
    for (int key = 0; key < length; key += TILE) {
        uint64_t keys = panel_descriptor(stage);
        uint8_t *columns = transposed + key / TILE % 2 * TRANSPOSED_BYTES;
        int32_t c[32];
        uint32_t quantized[TILE / CHUNK][4];
#pragma unroll
        for (int i = 0; i < 32; i++)
            c[i] = start[i / 2 % 2];
        ft_wgmma_fence();
        ft_wgmma_i8_register_a<64>(c, q[0], keys);
        ft_wgmma_i8_register_a<64>(c, q[1], keys + 2);
        ft_wgmma_commit();
        transpose_values(columns, stage + TILE * HEAD_DIM);
        ft_wgmma_wait<1>(); /* the context MMA, whose operand is overwritten after the barrier */
        stage = next_stage_of(f);
        ft_wgmma_wait<0>();
        ft_wgmma_fence_acc(c);
#pragma unroll
        for (int i = 0; i < TILE / CHUNK; i++) {
            scores *chunk_scores = (scores *) c + i;
            if (length - key < TILE)
                mask_tail(chunk_scores, length - key - CHUNK * i, __float_as_int(-INFINITY));
            quantize_weights(quantized[i], chunk_scores, step);
            ft_mma_i8(to->total, quantized[i], 0x01010101, 0x01010101);
        }
        ft_wgmma_fence();
        ft_wgmma_i8_register_a<64>(context, quantized[0], panel_descriptor(columns));
        ft_wgmma_i8_register_a<64>(context, quantized[1], panel_descriptor(columns) + 2);
        ft_wgmma_commit();
    }
    ft_wgmma_wait<0>();
    ft_wgmma_fence_acc(context);
}

#endif

/* ---- The kernel ---------------------------------------------------------------------------- */

/* Grid: query tiles and heads. */
static __global__ void __launch_bounds__(THREADS, 4)
    attention_kernel(const __grid_constant__ ft_cuda_attention_args a, int unit, float step)
{
#ifdef FT_HAS_WGMMA
    extern __shared__ __align__(1024) uint8_t smem[];
    uint8_t *last = smem + (stages<HEAD_DIM> - 1) * stage_bytes<HEAD_DIM>,
            *transposed = last + stage_bytes<HEAD_DIM>;
    ft_attention_tile query_tile;
    kv_loader from;
    uint32_t q[2][4];
    int32_t row_max[2] = { INT32_MIN, INT32_MIN };
    ft_pdl_wait();
    if (!ft_attention_tile_of(&query_tile, a))
        return;
    prologue<HEAD_DIM>(&from, a, query_tile, smem, unit);
    ft_pdl_launch_dependents();
    ft_cp_async_wait<stages<HEAD_DIM> - 2>();
    fence_async_proxy();
    __syncthreads();
    load_query_fragments(q, last);
    const uint8_t *stage =
        max_pass(&from, advance_stage<HEAD_DIM>(&from), query_tile.length, row_max, q);
    context_acc<HEAD_DIM> to = {};
    context_pass(&from, stage, transposed, query_tile.length, &to, row_max, q, step);
    __syncthreads();
    int first = (int) threadIdx.x / 32 * 16;
    if (first < query_tile.queries)
        store<HEAD_DIM, 1>(a, query_tile, first, &to, smem);
#endif
}

int ft_cuda_attention_i8_wgmma(const ft_cuda_device_props *props, void *stream,
                               const ft_cuda_attention_args *a)
{
    const size_t bytes = stages<HEAD_DIM> * stage_bytes<HEAD_DIM> + 2 * TRANSPOSED_BYTES;
    int unit = ft_rows_alignment((size_t) a->head_size, a->q, a->k, a->v);
    cudaError_t status = cudaFuncSetAttribute(
        attention_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int) bytes);
    if (status != cudaSuccess)
        return (int) status;
    return ft_launch(attention_kernel, ft_attention_grid(a), dim3(THREADS), bytes, stream,
                     props->has_pdl, 1, *a, unit, ft_softmax_step(a->score_scale));
}
