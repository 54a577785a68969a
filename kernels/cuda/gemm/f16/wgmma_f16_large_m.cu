/*
 * wgmma_f16_large_m.cu - kernels of wgmma_f16_large_m.cuh, their launch and tile selection.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/f16/wgmma_f16_large_m.cuh"
#include "kernels/cuda/gemm/f16/wgmma_f16_large_m_epilogue.cuh"

#ifdef FT_HAS_WGMMA

/*
 * Ping-pong order: a warpgroup waits on the pipeline only after the other has consumed its last
 * stage, otherwise it would mistake an older phase for its own.
 */
enum {
    ORDER_BARRIER = 1,     /* named barriers 1 and 2 */
    WARPGROUP_BARRIER = 3, /* 3 and 4 */
};

template <class TILE, ft_activation activation, ft_dtype dtype>
__device__ __forceinline__ void consume(large_m_smem<TILE> &s, const large_m_params &a,
                                        int warpgroup)
{
    constexpr int stride = TILE::is_pingpong ? 2 : 1;
    int own_row = TILE::is_pingpong ? 0 : warpgroup * TILE::m64_blocks * 64;
    ft_pdl_wait(); /* earlier kernels may still read the previous contents of y */
    for (int count = TILE::is_pingpong ? warpgroup : 0;; count += stride) {
        int tile = (int) (blockIdx.x + count * gridDim.x);
        if (tile >= a.tiles)
            break;
        large_m_coord coord = large_m_coord_of<TILE>(a, tile);
        large_m_bias<TILE> bias(a, coord);
        if (TILE::is_pingpong && count > 0)
            ft_named_barrier_sync(ORDER_BARRIER + warpgroup, 2 * LARGE_M_WARPGROUP_THREADS);
        large_m_acc<TILE> sums;
        large_m_mainloop<TILE, dtype == FT_BF16>(s, count * a.k_tiles, a.k_tiles, own_row, sums);
        if (TILE::is_pingpong && tile + (int) gridDim.x < a.tiles)
            ft_named_barrier_arrive(ORDER_BARRIER + (warpgroup ^ 1), 2 * LARGE_M_WARPGROUP_THREADS);
        bias.store_smem(s.bias[warpgroup]);
        ft_named_barrier_sync(WARPGROUP_BARRIER + warpgroup, LARGE_M_WARPGROUP_THREADS);
        large_m_epilogue<TILE, activation, dtype>(s, a, coord, own_row, s.bias[warpgroup], sums);
        ft_named_barrier_sync(WARPGROUP_BARRIER + warpgroup, LARGE_M_WARPGROUP_THREADS);
    }
    if (threadIdx.x % 32 == 0)
        ft_bulk_wait_read(); /* shared memory must outlive the stores */
}
#endif

/*
 * grid = at most one thread block per tile; blockDim.x = LARGE_M_THREADS; one block per SM.
 * Registers: 168 per thread at launch; the producer keeps 24, a consumer takes 240, up to 192 of
 * which are accumulators.
 */
template <class TILE, ft_activation activation, ft_dtype dtype>
static __global__ void __launch_bounds__(LARGE_M_THREADS, 1)
    large_m_kernel(const __grid_constant__ large_m_params a)
{
#ifdef FT_HAS_WGMMA
    extern __shared__ __align__(1024) char shared_memory[];
    auto &s = *(large_m_smem<TILE> *) shared_memory;
    int group = (int) threadIdx.x / LARGE_M_WARPGROUP_THREADS;
    if (threadIdx.x == 0)
        large_m_pipeline_init(s, a);
    __syncthreads();
    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x == 0 || threadIdx.x == 32)
            large_m_produce(s, a, { (int) blockIdx.x, (int) gridDim.x, 0, a.k_tiles },
                            threadIdx.x == 32);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        consume<TILE, activation, dtype>(s, a, group - 1);
    }
#endif
}

/* ---- Launch --------------------------------------------------------------------------------- */

typedef struct launch_request {
    const ft_cuda_device_props *props;
    void *stream;
    const ft_cuda_float_gemm_args *p;
    int count;
} launch_request;

template <class TILE, ft_activation activation, ft_dtype dtype>
static int launch_kernel(const launch_request *r)
{
    auto *kernel = large_m_kernel<TILE, activation, dtype>;
    large_m_params a;
    int status = large_m_params_init<TILE>(&a, r->p, r->count);
    if (status == 0)
        status = (int) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            (int) sizeof(large_m_smem<TILE>));
    if (status != 0)
        return status;
    unsigned blocks = (unsigned) (a.tiles < r->props->sm_count ? a.tiles : r->props->sm_count);
    return ft_launch(kernel, dim3(blocks), dim3(LARGE_M_THREADS), sizeof(large_m_smem<TILE>),
                     r->stream, r->props->has_pdl, 1, a);
}

template <class TILE> static int launch(const launch_request *r)
{
    bool gelu = r->p->activation == FT_ACT_GELU;
    if (r->p->x_dtype == FT_BF16)
        return gelu ? launch_kernel<TILE, FT_ACT_GELU, FT_BF16>(r)
                    : launch_kernel<TILE, FT_ACT_NONE, FT_BF16>(r);
    return gelu ? launch_kernel<TILE, FT_ACT_GELU, FT_F16>(r)
                : launch_kernel<TILE, FT_ACT_NONE, FT_F16>(r);
}

/* ---- Tiles ---------------------------------------------------------------------------------- */

typedef struct tile_kernel {
    const char *name;
    size_t rows, cols;
    int (*launch)(const launch_request *r);
} tile_kernel;

static const tile_kernel tiles[FT_CUDA_F16_LARGE_M_TILES] = {
    { "128x192 ping-pong", 128, 192, launch<large_m_tile<2, 192, 4, true>> },
    { "128x128 ping-pong", 128, 128, launch<large_m_tile<2, 128, 6, true>> },
    { "128x256", 128, 256, launch<large_m_tile<1, 256, 4, false>> },
    { "128x192", 128, 192, launch<large_m_tile<1, 192, 4, false>> },
    { "128x128", 128, 128, launch<large_m_tile<1, 128, 6, false>> },
};

const char *ft_cuda_f16_large_m_name(int tile)
{
    return tile >= 0 && tile < FT_CUDA_F16_LARGE_M_TILES ? tiles[tile].name : "?";
}

/* TMA stores 16-bit rows of y that start at multiples of 16 bytes. */
bool ft_cuda_f16_large_m_supports(const ft_cuda_device_props *props,
                                  const ft_cuda_float_gemm_args *p, int count)
{
    bool supported = count >= 1 && count <= FT_CUDA_MAX_FUSED && p->m > 0 && p->n > 0 &&
                     p->n % 8 == 0 && p->y_dtype == p->x_dtype &&
                     (p->activation == FT_ACT_NONE || p->activation == FT_ACT_GELU);
    for (int i = 0; i < count && supported; i++)
        supported = ft_cuda_f16_wgmma_supports(props, &p[i]) && ft_is_aligned(p[i].y, 16);
    return supported;
}

int ft_cuda_f16_large_m_launch_tile(int tile, const ft_cuda_device_props *props, void *stream,
                                    const ft_cuda_float_gemm_args *p, int count)
{
    launch_request r = { props, stream, p, count };
    if (tile < 0 || tile >= FT_CUDA_F16_LARGE_M_TILES ||
        !ft_cuda_f16_large_m_supports(props, p, count) || !ft_cuda_f16_wgmma_same_shape(p, count))
        return (int) cudaErrorNotSupported;
    return tiles[tile].launch(&r);
}
