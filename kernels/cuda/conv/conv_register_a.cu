/*
 * conv_register_a.cu - the kernel of conv_register_a.cuh and its launch.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/conv/conv_register_a_mainloop.cuh"

/* grid = at most one CTA per multiprocessor; clusters of two for split-K tiles */
template <class FORM>
static __global__ void __launch_bounds__(FORM::threads, 1)
    conv_register_a_kernel(const __grid_constant__ conv_gemm_params p)
{
#ifdef FT_HAS_WGMMA
    extern __shared__ __align__(1024) char shared[];
    const register_a_smem<FORM> s = { shared };
    if (threadIdx.x == CONV_CONSUMERS) {
        s.x().init(CONV_CONSUMERS / 32);
        s.packed().init(CONV_CONSUMERS / 32);
        if constexpr (FORM::split_k)
            s.barriers()->init();
        ft_mbarrier_fence_init();
        ft_tma_prefetch_map(&p.x);
        ft_tma_prefetch_map(&p.w);
    }
    __syncthreads();
    const bool uses_cluster = FORM::split_k && p.split_k_ctas == 2;
    if (uses_cluster)
        ft_cluster_arrive_relaxed();
    if (threadIdx.x < CONV_CONSUMERS) {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        register_a_consumer<FORM>(s, p).consume();
    } else {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        int warp = ft_warp_id();
        if (warp == CONV_CONSUMERS / 32)
            register_a_produce_windows<FORM>(s, p);
        else if (warp == CONV_CONSUMERS / 32 + 1)
            register_a_produce_weights<FORM>(s, p);
        if (uses_cluster) {
            __syncwarp();
            ft_cluster_wait();
        }
    }
#endif
}

/* ---- Host ----------------------------------------------------------------------------------- */

static int map_output(conv_gemm_params *p)
{
    cuuint64_t pixel = 2 * (cuuint64_t) p->t.out_channels, segment = (cuuint64_t) p->segment;
    cuuint64_t segments = (cuuint64_t) p->t.images * (cuuint64_t) p->t.out_pixels / segment;
    cuuint64_t size[3] = { pixel, segment, segments }, strides[2] = { pixel, pixel * segment };
    cuuint32_t box[3] = { 128, (cuuint32_t) p->tile_windows, 1 };
    return ft_tma_map_u8(&p->y, p->t.y, 3, size, strides, box);
}

template <class FORM>
static int launch(const ft_cuda_device_props *props, void *stream, conv_gemm_params *p)
{
    auto *kernel = conv_register_a_kernel<FORM>;
    int status = FORM::to == REGISTER_A_NHWC || FORM::split_k ? map_output(p) : 0;
    if (status == 0)
        status = (int) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            FORM::shared);
    if (status != 0)
        return status;
    int cluster_size = FORM::split_k ? p->split_k_ctas : 1,
        max_clusters = props->sm_count / cluster_size;
    p->concurrent_tiles = p->tiles < max_clusters ? p->tiles : max_clusters;
    return ft_launch(kernel, (unsigned) (cluster_size * p->concurrent_tiles), FORM::threads,
                     FORM::shared, stream, props->has_pdl, (unsigned) cluster_size, *p);
}

/* Epilogues that stage 32 windows leave too few registers for the widest tile. */
template <int BITS, ft_dtype DTYPE, register_a_epilogue TO>
static int launch_tile(const ft_cuda_device_props *props, void *stream, conv_gemm_params *p)
{
    if constexpr (TO == REGISTER_A_NHWC) {
        if (p->tile_windows == 48)
            return launch<register_a_traits<BITS, DTYPE, 48, TO>>(props, stream, p);
        if (p->tile_windows == 128)
            return launch<register_a_traits<BITS, DTYPE, 128, TO>>(props, stream, p);
    }
    return p->tile_windows == 64 ? launch<register_a_traits<BITS, DTYPE, 64, TO>>(props, stream, p)
                                 : launch<register_a_traits<BITS, DTYPE, 96, TO>>(props, stream, p);
}

template <int BITS, ft_dtype DTYPE>
static int launch_results(const ft_cuda_device_props *props, void *stream, conv_gemm_params *p)
{
    return p->t.conv.out_layout == FT_IMAGE_NCHW
               ? launch_tile<BITS, DTYPE, REGISTER_A_NCHW>(props, stream, p)
           : p->split_k_ctas == 2
               ? launch<register_a_traits<BITS, DTYPE, CONV_SPLIT_K_WINDOWS, REGISTER_A_SPLIT_K>>(
                     props, stream, p)
           : p->split_k_ctas == 1
               ? launch<register_a_traits<BITS, DTYPE, 128, REGISTER_A_SPLIT_K>>(props, stream, p)
           : p->has_activation || !p->stores_x8
               ? launch_tile<BITS, DTYPE, REGISTER_A_NHWC_GENERAL>(props, stream, p)
               : launch_tile<BITS, DTYPE, REGISTER_A_NHWC>(props, stream, p);
}

int ft_cuda_conv_register_a(const ft_cuda_device_props *props, void *stream, conv_gemm_params *p)
{
    bool bf16 = p->t.x_dtype == FT_BF16;
    return p->t.w_dtype == FT_U4 ? bf16 ? launch_results<4, FT_BF16>(props, stream, p)
                                        : launch_results<4, FT_F16>(props, stream, p)
           : bf16 ? launch_results<8, FT_BF16>(props, stream, p)
                                 : launch_results<8, FT_F16>(props, stream, p);
}
