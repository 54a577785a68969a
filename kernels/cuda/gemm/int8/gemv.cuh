/*
 * gemv.cuh - pipelines, main loop and epilogue of the INT8 GEMVs, gemv.cu and gemv_fused.cu.
 *
 * One persistent thread block per SM has eight warps with a bulk-copy pipeline each, 64 KB in
 * flight per SM. (With 96 KB a decode step of one Llama-2-7B sequence takes 1.2 % longer: the
 * small kernels between the GEMVs wait for loads behind those of the pipelines.)
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
 * Lane (g, t) = (lane / 4, lane % 4) reads 16-byte chunks t and t + 4 of rows g and g + 8, and of
 * token g: any order of k is valid as long as both operands agree. Rows are 128 bytes apart and
 * would cause bank conflicts, so odd ones are read in reverse order; rows of x are 64 bytes longer.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_GEMM_INT8_GEMV_CUH
#define FT_KERNELS_CUDA_GEMM_INT8_GEMV_CUH

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/gemm/int8/store_out.cuh"
#include "kernels/cuda/ptx/mma.cuh"
#include "kernels/cuda/ptx/pipeline.cuh"
#include "kernels/cuda/ptx/tma.cuh"

enum {
    GEMV_TILE_ROWS = 16, /* weight rows per row tile */
    GEMV_TILE_K = 128,   /* k per stage */
    GEMV_STAGE_BYTES = GEMV_TILE_ROWS * GEMV_TILE_K,
    GEMV_TOKENS = 8,
    GEMV_WARPS = 8, /* multiply; one more warp runs the epilogue */
    GEMV_THREADS = 32 * (GEMV_WARPS + 1),
    GEMV_MAX_STAGES = 8,    /* per warp */
    GEMV_TILES_IN_SMEM = 4, /* row tiles with accumulators in shared memory at a time */
    GEMV_ACC_PITCH = GEMV_TILE_ROWS + 4, /* padded to avoid bank conflicts */
};

/* Shared memory before the pipelines and x. */
struct gemv_smem {
    int32_t sums[GEMV_TILES_IN_SMEM][GEMV_TOKENS][GEMV_ACC_PITCH];
    uint64_t full[GEMV_WARPS][GEMV_MAX_STAGES];
    uint64_t full_acc[GEMV_TILES_IN_SMEM], empty[GEMV_TILES_IN_SMEM], x_full;
};

enum { GEMV_PIPELINE_OFFSET = (sizeof(gemv_smem) + 127) / 128 * 128 };

/* Launch parameters. */
typedef struct gemv_params {
    int row_tiles, k_tiles; /* k_tiles: of a row tile */
    uint32_t x_stride;      /* bytes per row of x in shared memory */
    ft_output_layout out;
} gemv_params;

#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900

/* ---- Multiplying ---------------------------------------------------------------------------- */

/*
 * True in one lane of a fully active warp, always the same one. Unlike with "lane 0", the compiler
 * emits no loop over lanes around the copy.
 */
__device__ __forceinline__ bool gemv_is_elected()
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

/*
 * The row tiles of a thread block. `paired`: one of the first half of the weights, then the same
 * one of the second half.
 */
template <bool paired> struct gemv_tiles {
    int index, count; /* the row tile, or the pair, and their number */
    bool second;

    __device__ __forceinline__ gemv_tiles(const gemv_params &shape)
        : index(blockIdx.x), count(paired ? shape.row_tiles / 2 : shape.row_tiles), second(false)
    {
    }
    __device__ __forceinline__ bool any() const
    {
        return index < count;
    }
    __device__ __forceinline__ int row_tile() const
    {
        return paired && second ? index + count : index;
    }
    __device__ __forceinline__ void next()
    {
        if (!paired || second)
            index += gridDim.x;
        second = paired && !second;
    }
};

/* A warp's pipeline: one lane is the producer, all lanes consume. */
template <int n_stages, bool paired> struct gemv_pipeline {
    char *stage;
    uint64_t *full;
    ft_pipeline_state state;
    /* next request: its k tile, its address, and its row tile */
    int k_tile, k_tiles;
    gemv_tiles<paired> tiles;
    const int8_t *next, *first;
    size_t group; /* bytes of 32 prepacked rows */
    uint64_t policy;

    __device__ __forceinline__ gemv_pipeline(gemv_smem &s, char *pipelines,
                                             const ft_cuda_gemm_args &p, const gemv_params &shape,
                                             int warp)
        : stage(pipelines + warp * n_stages * GEMV_STAGE_BYTES), full(s.full[warp]), state{ 0, 0 },
          k_tile(warp), k_tiles(shape.k_tiles), tiles(shape), first(p.prepacked),
          group((size_t) shape.k_tiles * (2 * GEMV_STAGE_BYTES)), policy(ft_l2_evict_first())
    {
        locate();
    }
    /* Move on to the row tile that the k tile belongs to. */
    __device__ __forceinline__ void locate()
    {
        while (k_tile >= k_tiles) {
            k_tile -= k_tiles;
            tiles.next();
        }
        int row_tile = tiles.row_tile();
        next = first + row_tile / 2 * group + k_tile * (2 * GEMV_STAGE_BYTES) +
               row_tile % 2 * GEMV_STAGE_BYTES;
    }
    /* Request the next stage. */
    __device__ __forceinline__ void request(int into)
    {
        if (!tiles.any())
            return;
        ft_mbarrier_arrive_expect_tx(&full[into], GEMV_STAGE_BYTES);
        ft_bulk_load(stage + into * GEMV_STAGE_BYTES, next, GEMV_STAGE_BYTES, &full[into], policy);
        k_tile += GEMV_WARPS;
        next += GEMV_WARPS * (2 * GEMV_STAGE_BYTES);
        if (k_tile >= k_tiles)
            locate();
    }
    /* Prologue. */
    __device__ __forceinline__ void start()
    {
        if (!gemv_is_elected())
            return;
#pragma unroll
        for (int i = 0; i < n_stages; i++)
            ft_mbarrier_init(&full[i], 1);
        ft_mbarrier_fence_init();
#pragma unroll
        for (int i = 0; i < n_stages; i++)
            request(i);
    }
    __device__ __forceinline__ const char *wait()
    {
        ft_mbarrier_wait(&full[state.stage_index], state.phase);
        return stage + state.stage_index * GEMV_STAGE_BYTES;
    }
    /* All lanes have read the stage: refill it. */
    __device__ __forceinline__ void release()
    {
        if (gemv_is_elected())
            request(state.stage_index);
        state.advance(n_stages);
    }
};

/* The low and high half of a lane's 64 bytes of a row, in k order. */
__device__ __forceinline__ void gemv_load_row(uint4 &low, uint4 &high, const char *row, bool odd)
{
    uint4 first = *(const uint4 *) (row + (odd ? 64 : 0));
    uint4 second = *(const uint4 *) (row + (odd ? 0 : 64));
    low = odd ? second : first;
    high = odd ? first : second;
}

__device__ __forceinline__ void gemv_mma_k64(int32_t sum[4], const uint4 &upper, const uint4 &lower,
                                             const uint4 &x)
{
    const uint32_t a[2][4] = { { upper.x, lower.x, upper.y, lower.y },
                               { upper.z, lower.z, upper.w, lower.w } };
    ft_mma_i8(sum, a[0], x.x, x.y);
    ft_mma_i8(sum, a[1], x.z, x.w);
}

/* This warp's stages of all row tiles. */
template <int n_stages, bool paired>
__device__ __forceinline__ void
gemv_mainloop(gemv_smem &s, const char *x, gemv_pipeline<n_stages, paired> &pipeline,
              const ft_cuda_gemm_args &p, const gemv_params &shape, unsigned warp, unsigned lane)
{
    unsigned g = lane / 4, t = lane % 4;
    bool odd = g % 2 == 1, token = g < p.m;
    int k_tile = (int) warp, tile_count = 0;
    x += g * shape.x_stride + t * 16;
    for (gemv_tiles<paired> tiles(shape); tiles.any(); tiles.next(), tile_count++) {
        int32_t sum[2][4] = {};
        for (; k_tile < shape.k_tiles; k_tile += GEMV_WARPS) {
            const char *row = pipeline.wait() + g * GEMV_TILE_K + t * 16;
            uint4 low[2], high[2], x_low = {}, x_high = {};
            gemv_load_row(low[0], high[0], row, odd);
            gemv_load_row(low[1], high[1], row + 8 * GEMV_TILE_K, odd);
            if (token) {
                x_low = *(const uint4 *) (x + k_tile * GEMV_TILE_K);
                x_high = *(const uint4 *) (x + k_tile * GEMV_TILE_K + 64);
            }
            __syncwarp();
            pipeline.release();
            gemv_mma_k64(sum[0], low[0], low[1], x_low);
            gemv_mma_k64(sum[1], high[0], high[1], x_high);
        }
        k_tile -= shape.k_tiles;
        int stage_index = tile_count % GEMV_TILES_IN_SMEM;
        if (tile_count >= GEMV_TILES_IN_SMEM)
            ft_mbarrier_wait(&s.empty[stage_index], tile_count / GEMV_TILES_IN_SMEM + 1 & 1);
#pragma unroll
        for (unsigned i = 0; i < 4; i++)
            if (2 * t + i % 2 < p.m)
                atomicAdd(&s.sums[stage_index][2 * t + i % 2][g + i / 2 * 8],
                          sum[0][i] + sum[1][i]);
        __syncwarp();
        if (lane == 0)
            ft_mbarrier_arrive(&s.full_acc[stage_index]);
    }
}

/* ---- Finishing ------------------------------------------------------------------------------ */

/* The column of row `place` of a row tile (ft_cuda_prepacked_offset). */
__device__ __forceinline__ uint32_t gemv_column_of_row(int row_tile, unsigned lane_row)
{
    unsigned v = row_tile % 2 * GEMV_TILE_ROWS + lane_row, i = v / 8, g = v % 8;
    return (uint32_t) (row_tile / 2) * 32 + g / 2 * 8 + g % 2 + 2 * i;
}

/* Epilogue parameters of a lane's column of a row tile, for tokens first, + 2, + 4, + 6. */
struct gemv_column {
    uint32_t col;
    bool inside;
    float scale, bias, residual[GEMV_TOKENS / 2];

    /* Loads that do not depend on the predecessor. */
    __device__ __forceinline__ void start(const ft_cuda_gemm_args &p, int row_tile, int row_tiles,
                                          unsigned lane)
    {
        col = gemv_column_of_row(row_tile, lane % GEMV_TILE_ROWS);
        inside = row_tile < row_tiles && col < p.n;
        scale = inside ? ft_column_scale(p, col) : 0.0f;
        bias = inside ? ft_column_bias(p, col) : 0.0f;
    }
    __device__ __forceinline__ void fetch(const ft_cuda_gemm_args &p, unsigned first)
    {
#pragma unroll
        for (unsigned i = 0; i < GEMV_TOKENS / 2; i++)
            residual[i] = inside && p.residual != nullptr && first + 2 * i < p.m
                              ? ft_load_residual(p, first + 2 * i, col)
                              : 0.0f;
    }
};

/* The scales of a lane's tokens. */
struct gemv_row_scales {
    float of[GEMV_TOKENS / 2];

    __device__ __forceinline__ void load(const ft_cuda_gemm_args &p, unsigned lane)
    {
        unsigned first = lane / GEMV_TILE_ROWS;
#pragma unroll
        for (unsigned i = 0; i < GEMV_TOKENS / 2; i++)
            of[i] = first + 2 * i < p.m ? ft_row_scale(p, first + 2 * i) : 1.0f;
    }
};

/* The epilogue warp. */
__device__ __forceinline__ void gemv_epilogue(gemv_smem &s, gemv_column &column,
                                              const gemv_row_scales &row_scale,
                                              const ft_cuda_gemm_args &p, const gemv_params &shape,
                                              unsigned lane)
{
    unsigned first = lane / GEMV_TILE_ROWS, lane_row = lane % GEMV_TILE_ROWS;
    column.fetch(p, first);
    int tile_count = 0;
    for (int row_tile = blockIdx.x; row_tile < shape.row_tiles;
         row_tile += gridDim.x, tile_count++) {
        int stage_index = tile_count % GEMV_TILES_IN_SMEM;
        int32_t sum[GEMV_TOKENS / 2];
        gemv_column next;
        next.start(p, row_tile + (int) gridDim.x, shape.row_tiles, lane);
        next.fetch(p, first);
        ft_mbarrier_wait(&s.full_acc[stage_index], tile_count / GEMV_TILES_IN_SMEM & 1);
#pragma unroll
        for (unsigned i = 0; i < GEMV_TOKENS / 2; i++) {
            sum[i] = s.sums[stage_index][first + 2 * i][lane_row];
            s.sums[stage_index][first + 2 * i][lane_row] = 0;
        }
        __syncwarp();
        if (lane == 0)
            ft_mbarrier_arrive(&s.empty[stage_index]);
#pragma unroll
        for (unsigned i = 0; i < GEMV_TOKENS / 2; i++) {
            uint32_t row = first + 2 * i;
            if (!column.inside || row >= p.m)
                continue;
            float value = ft_output_value<FT_EPILOGUE_ANY>(
                p, sum[i], column.scale * row_scale.of[i], column.bias);
            if (p.residual != nullptr)
                value = value + column.residual[i];
            ft_store_output(p, shape.out, row, column.col, value);
        }
        column = next;
    }
}

/* The epilogue warp, before the predecessor ends. */
__device__ __forceinline__ void gemv_init_epilogue(gemv_smem &s, unsigned lane)
{
    for (unsigned i = lane; i < GEMV_TILES_IN_SMEM * GEMV_TOKENS * GEMV_ACC_PITCH; i += 32)
        (&s.sums[0][0][0])[i] = 0;
    if (lane == 0) {
        for (int i = 0; i < GEMV_TILES_IN_SMEM; i++) {
            ft_mbarrier_init(&s.full_acc[i], GEMV_WARPS);
            ft_mbarrier_init(&s.empty[i], 1);
        }
        ft_mbarrier_init(&s.x_full, 1);
        ft_mbarrier_fence_init();
    }
    __syncwarp();
}

#endif

/* ---- Host ----------------------------------------------------------------------------------- */

/*
 * Rows of x are 64 bytes off a multiple of 128 and padded to whole stages, so that reading past k
 * is harmless: it meets zeros of the prepacked weights.
 */
static inline uint32_t gemv_x_stride_of(const ft_cuda_gemm_args *p)
{
    return (uint32_t) ((p->k + GEMV_TILE_K - 1) / GEMV_TILE_K * GEMV_TILE_K + 64);
}

static inline size_t gemv_smem_bytes_of(const ft_cuda_gemm_args *p, int n_stages)
{
    return GEMV_PIPELINE_OFFSET + (size_t) n_stages * GEMV_WARPS * GEMV_STAGE_BYTES +
           p->m * gemv_x_stride_of(p);
}

static inline int gemv_stages_of(const ft_cuda_gemm_args *p, const ft_cuda_device_props *props)
{
    int n_stages = 4;
    while (n_stages > 1 && gemv_smem_bytes_of(p, n_stages) > props->smem_bytes)
        n_stages /= 2;
    return n_stages;
}

static inline gemv_params gemv_params_of(const ft_cuda_gemm_args *p)
{
    gemv_params shape = {};
    shape.row_tiles = (int) ((p->n + 31) / 32 * 2);
    shape.k_tiles = (int) ((p->k + GEMV_TILE_K - 1) / GEMV_TILE_K);
    shape.x_stride = gemv_x_stride_of(p);
    shape.out = ft_output_layout_of(p);
    return shape;
}

#endif
