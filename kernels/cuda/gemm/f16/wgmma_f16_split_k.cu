/*
 * wgmma_f16_split_k.cu - split-K with the tiles of wgmma_f16_large_m.cuh, for GEMMs whose tiles are
 * too few for the device.
 *
 * The thread blocks of a cluster share a tile: each accumulates a range of k and finishes some of
 * the columns, for which all send it their partial sums. It adds them in order of k, as
 * wgmma_f16_gemm.cu does with as many splits, so the bits are the same.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/f16/wgmma_f16_large_m.cuh"
#include "kernels/cuda/ptx/cluster.cuh"

enum { CONSUMERS = 2 * LARGE_M_WARPGROUP_THREADS };

/* A cooperative tile, of which each of SPLITS thread blocks finishes COLS / SPLITS columns. */
template <int COLS, int STAGES, int SPLITS>
struct split_k_tile : large_m_tile<1, COLS, STAGES, false> {
    static constexpr int splits = SPLITS, owned = COLS / SPLITS / 8; /* blocks of 8 columns */
    static constexpr bool spans_gemms = false;
    static constexpr int store_warps = 1; /* no TMA stores, but arrays are not empty */
};

template <class TILE> struct split_k_smem : large_m_smem<TILE> {
    alignas(16) float4 partial[TILE::splits][TILE::owned][CONSUMERS];
};

#ifdef FT_HAS_WGMMA

/* Give each thread block the partial sums of the columns that it finishes. */
template <class TILE>
__device__ __forceinline__ void send_partials(split_k_smem<TILE> &s, unsigned rank, unsigned thread,
                                              const float (&sums)[TILE::cols / 2])
{
#pragma unroll
    for (int to = 0; to < TILE::splits; to++)
#pragma unroll
        for (int i = 0; i < TILE::owned; i++) {
            const float *v = &sums[4 * (to * TILE::owned + i)];
            *ft_cluster_map_peer(&s.partial[rank][i][thread], (uint32_t) to) =
                make_float4(v[0], v[1], v[2], v[3]);
        }
}

template <class TILE>
__device__ __forceinline__ float4 reduce_partials(const split_k_smem<TILE> &s, unsigned thread,
                                                  int i)
{
    float4 sum = s.partial[0][i][thread];
#pragma unroll
    for (int split = 1; split < TILE::splits; split++) {
        float4 term = s.partial[split][i][thread];
        sum.x += term.x;
        sum.y += term.y;
        sum.z += term.z;
        sum.w += term.w;
    }
    return sum;
}

/* Finish the columns of this thread block: two neighbours of rows `row` and row + 8 at a time. */
template <class TILE, ft_activation activation, ft_dtype dtype>
__device__ __forceinline__ void finish(const split_k_smem<TILE> &s, const large_m_params &a,
                                       const large_m_coord &coord, int rank, unsigned thread)
{
    large_m_column column = large_m_column_of(a, coord.col);
    const float *bias = a.bias[column.gemm];
    int row = coord.row + (int) (thread / 32 * 16 + thread % 32 / 4);
    int first_col = column.col + 8 * rank * TILE::owned + (int) thread % 4 * 2;
    uint16_t *y = (uint16_t *) a.result[column.gemm];
#pragma unroll
    for (int i = 0; i < TILE::owned; i++) {
        int col = first_col + 8 * i;
        if (col >= a.n)
            break;
        float2 b = bias == NULL ? make_float2(-0.0f, -0.0f) : *(const float2 *) (bias + col);
        float4 sum = reduce_partials(s, thread, i);
        float v[4] = { sum.x + b.x, sum.y + b.y, sum.z + b.x, sum.w + b.y };
        ft_activate_vec_as<activation, 4>(v);
        size_t at = (size_t) row * (size_t) a.n + (size_t) col;
        if (row < a.m)
            *(uint32_t *) (y + at) = ft_pack_f16x2<dtype>(v[0], v[1]);
        if (row + 8 < a.m)
            *(uint32_t *) (y + at + 8 * (size_t) a.n) = ft_pack_f16x2<dtype>(v[2], v[3]);
    }
}

template <class TILE, ft_activation activation, ft_dtype dtype>
__device__ __forceinline__ void consume(split_k_smem<TILE> &s, const large_m_params &a,
                                        const large_m_work &work, int rank)
{
    unsigned thread = threadIdx.x - LARGE_M_WARPGROUP_THREADS;
    int own_row = (int) thread / LARGE_M_WARPGROUP_THREADS * 64;
    large_m_acc<TILE> sums;
    ft_pdl_wait(); /* earlier kernels may still read the previous contents of y */
    large_m_mainloop<TILE, dtype == FT_BF16>(s, 0, work.to - work.from, own_row, sums);
    send_partials(s, (unsigned) rank, thread, sums[0]);
    ft_cluster_sync(TILE::splits);
    finish<TILE, activation, dtype>(s, a, large_m_coord_of<TILE>(a, work.first), rank, thread);
}
#endif

/* grid = tiles x splits, in clusters of one tile; blockDim.x = LARGE_M_THREADS. */
template <class TILE, ft_activation activation, ft_dtype dtype>
static __global__ void __launch_bounds__(LARGE_M_THREADS, 1)
    split_k_kernel(const __grid_constant__ large_m_params a)
{
#ifdef FT_HAS_WGMMA
    extern __shared__ __align__(1024) char shared_memory[];
    auto &s = *(split_k_smem<TILE> *) shared_memory;
    int rank = (int) blockIdx.x % TILE::splits;
    large_m_work work = { (int) blockIdx.x / TILE::splits, a.tiles, a.k_tiles * rank / TILE::splits,
                          a.k_tiles * (rank + 1) / TILE::splits };
    if (threadIdx.x == 0)
        large_m_pipeline_init<TILE>(s, a);
    ft_cluster_sync(TILE::splits); /* peers send to thread blocks that have started */
    if (threadIdx.x < LARGE_M_WARPGROUP_THREADS) {
        if (threadIdx.x == 0 || threadIdx.x == 32)
            large_m_produce<TILE>(s, a, work, threadIdx.x == 32);
        __syncwarp();
        ft_cluster_sync(TILE::splits);
    } else {
        consume<TILE, activation, dtype>(s, a, work, rank);
    }
#endif
}

/* ---- Launch --------------------------------------------------------------------------------- */

template <class TILE, ft_activation activation, ft_dtype dtype>
static int launch_kernel(const ft_cuda_device_props *props, void *stream,
                         const ft_cuda_float_gemm_args *p, int count)
{
    static_assert(sizeof(split_k_smem<TILE>) <= 227 << 10, "the shared memory of a thread block");
    auto *kernel = split_k_kernel<TILE, activation, dtype>;
    large_m_params a;
    int status = large_m_params_init<TILE>(&a, p, count);
    if (status == 0)
        status = (int) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            (int) sizeof(split_k_smem<TILE>));
    if (status != 0)
        return status;
    return ft_launch(kernel, dim3((unsigned) (a.tiles * TILE::splits)), dim3(LARGE_M_THREADS),
                     sizeof(split_k_smem<TILE>), stream, props->has_pdl, TILE::splits, a);
}

template <class TILE>
static int launch(const ft_cuda_device_props *props, void *stream, const ft_cuda_float_gemm_args *p,
                  int count)
{
    bool gelu = p->activation == FT_ACT_GELU;
    if (p->x_dtype == FT_BF16)
        return gelu ? launch_kernel<TILE, FT_ACT_GELU, FT_BF16>(props, stream, p, count)
                    : launch_kernel<TILE, FT_ACT_NONE, FT_BF16>(props, stream, p, count);
    return gelu ? launch_kernel<TILE, FT_ACT_GELU, FT_F16>(props, stream, p, count)
                : launch_kernel<TILE, FT_ACT_NONE, FT_F16>(props, stream, p, count);
}

typedef struct tile_kernel {
    const char *name;
    size_t splits;
    int (*launch)(const ft_cuda_device_props *props, void *stream, const ft_cuda_float_gemm_args *p,
                  int count);
} tile_kernel;

static const tile_kernel tiles[FT_CUDA_F16_SPLIT_K_TILES] = {
    { "128x128/2", 2, launch<split_k_tile<128, 4, 2>> },
    { "128x128/4", 4, launch<split_k_tile<128, 4, 4>> },
};

const char *ft_cuda_f16_split_k_name(int tile)
{
    return tile >= 0 && tile < FT_CUDA_F16_SPLIT_K_TILES ? tiles[tile].name : "?";
}

int ft_cuda_f16_split_k_splits(int tile)
{
    return tile >= 0 && tile < FT_CUDA_F16_SPLIT_K_TILES ? (int) tiles[tile].splits : 0;
}

int ft_cuda_f16_split_k_launch_tile(int tile, const ft_cuda_device_props *props, void *stream,
                                    const ft_cuda_float_gemm_args *p, int count)
{
    if (tile < 0 || tile >= FT_CUDA_F16_SPLIT_K_TILES ||
        !ft_cuda_f16_large_m_supports(props, p, count) || !ft_cuda_f16_wgmma_same_shape(p, count) ||
        ft_ceil_div(p->k, (size_t) LARGE_M_TILE_K) < tiles[tile].splits)
        return (int) cudaErrorNotSupported;
    return tiles[tile].launch(props, stream, p, count);
}
