/*
 * conv_register_a.cu - the kernel of conv_register_a.cuh and its launch.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/conv/conv_register_a_mainloop.cuh"

/* grid = at most one CTA per multiprocessor; clusters of two for split-K tiles */
template <class FORM>
static __global__ void __launch_bounds__(FORM::threads, 1)
    held_kernel(const __grid_constant__ conv_product p)
{
#ifdef FT_HAS_WGMMA
    extern __shared__ __align__(1024) char shared[];
    const held_shared<FORM> s = { shared };
    if (threadIdx.x == CONV_WORKERS) {
        s.x().set_up();
        s.codes().set_up();
        if constexpr (FORM::halves)
            s.barriers()->set_up();
        ft_barriers_ready();
        ft_prefetch_map(&p.x);
        ft_prefetch_map(&p.w);
    }
    __syncthreads();
    const bool shares = FORM::halves && p.halves == 2;
    if (shares)
        ft_cluster_begin();
    if (threadIdx.x < CONV_WORKERS) {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        held_worker<FORM>(s, p).work();
    } else {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        int warp = ft_warp_of_block();
        if (warp == CONV_WORKERS / 32)
            held_load_windows<FORM>(s, p);
        else if (warp == CONV_WORKERS / 32 + 1)
            held_load_weights<FORM>(s, p);
        if (shares) {
            __syncwarp();
            ft_cluster_wait();
        }
    }
#endif
}

/* ---- Host ----------------------------------------------------------------------------------- */

static int map_results(conv_product *p)
{
    cuuint64_t pixel = 2 * (cuuint64_t) p->t.outputs, run = (cuuint64_t) p->run;
    cuuint64_t runs = (cuuint64_t) p->t.images * (cuuint64_t) p->t.positions / run;
    cuuint64_t size[3] = { pixel, run, runs }, apart[2] = { pixel, pixel * run };
    cuuint32_t box[3] = { 128, (cuuint32_t) p->tile_windows, 1 };
    return ft_map_bytes(&p->y, p->t.y, 3, size, apart, box);
}

template <class FORM> static int launch(const ft_cuda_chip *chip, void *stream, conv_product *p)
{
    auto *kernel = held_kernel<FORM>;
    int status = FORM::to == HELD_PIXELS || FORM::halves ? map_results(p) : 0;
    if (status == 0)
        status = (int) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            FORM::shared);
    if (status != 0)
        return status;
    int together = FORM::halves ? p->halves : 1, most = chip->multiprocessors / together;
    p->places = p->tiles < most ? p->tiles : most;
    return ft_launch(kernel, (unsigned) (together * p->places), FORM::threads, FORM::shared, stream,
                     chip->overlaps, (unsigned) together, *p);
}

/* Epilogues that stage 32 windows leave too few registers for the widest tile. */
template <int BITS, ft_dtype DTYPE, held_results TO>
static int launch_tile(const ft_cuda_chip *chip, void *stream, conv_product *p)
{
    if constexpr (TO == HELD_PIXELS) {
        if (p->tile_windows == 48)
            return launch<held_form<BITS, DTYPE, 48, TO>>(chip, stream, p);
        if (p->tile_windows == 128)
            return launch<held_form<BITS, DTYPE, 128, TO>>(chip, stream, p);
    }
    return p->tile_windows == 64 ? launch<held_form<BITS, DTYPE, 64, TO>>(chip, stream, p)
                                 : launch<held_form<BITS, DTYPE, 96, TO>>(chip, stream, p);
}

template <int BITS, ft_dtype DTYPE>
static int launch_results(const ft_cuda_chip *chip, void *stream, conv_product *p)
{
    return p->t.conv.out_order == FT_IMAGE_PLANES
               ? launch_tile<BITS, DTYPE, HELD_PLANES>(chip, stream, p)
           : p->halves == 2
               ? launch<held_form<BITS, DTYPE, CONV_SHARED_WINDOWS, HELD_HALVES>>(chip, stream, p)
           : p->halves == 1 ? launch<held_form<BITS, DTYPE, 128, HELD_HALVES>>(chip, stream, p)
           : p->activates || !p->eights ? launch_tile<BITS, DTYPE, HELD_ANY_PIXELS>(chip, stream, p)
                                        : launch_tile<BITS, DTYPE, HELD_PIXELS>(chip, stream, p);
}

int ft_cuda_conv_held(const ft_cuda_chip *chip, void *stream, conv_product *p)
{
    bool bf16 = p->t.x_dtype == FT_BF16;
    return p->t.w_dtype == FT_U4 ? bf16 ? launch_results<4, FT_BF16>(chip, stream, p)
                                        : launch_results<4, FT_F16>(chip, stream, p)
           : bf16 ? launch_results<8, FT_BF16>(chip, stream, p)
                                 : launch_results<8, FT_F16>(chip, stream, p);
}
