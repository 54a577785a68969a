/*
 * attention_i8_wgmma.cu - encoder attention on int8 values for heads of up to 64 elements, sm_90a.
 *
 * It has the two passes of attention_i8.cu with warpgroup MMAs, which run beside the arithmetic of
 * other warpgroups: an m16n8k32 of a warp takes five to six clocks in which little else is issued.
 * Short sequences need one pass. Producer warps load by TMA and transpose the values once for the
 * consumers that share them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/attention/encoder/attention_i8_producer.cuh"
#include "kernels/cuda/attention/encoder/attention_i8_passes.cuh"
#include "kernels/cuda/ptx/warp.cuh"

/*
 * Heads of a group of query tiles are neighbours in the list of work items. Teams take items
 * `gridDim.x * teams` apart; the last ones are on different CTAs.
 */
template <class SHAPE>
static __global__ void __launch_bounds__(SHAPE::threads, SHAPE::ctas)
    attention_kernel(const __grid_constant__ ft_cuda_attention_args a,
                     const __grid_constant__ attention_i8_maps maps, float step)
{
#ifdef FT_HAS_WGMMA
    extern __shared__ __align__(1024) uint8_t smem[];
    const unsigned items = (unsigned) ((a.n_query_tiles + SHAPE::warpgroups - 1) /
                                       SHAPE::warpgroups * (size_t) a.heads);
    const unsigned heads = (unsigned) a.heads;
    int warpgroup = ft_warp_id() / 4;
    if (threadIdx.x < SHAPE::teams)
        attention_shared<SHAPE>{ smem + threadIdx.x * SHAPE::team_bytes }.init();
    if (threadIdx.x == SHAPE::threads - 1) {
        ft_tma_prefetch_map(&maps.q);
        ft_tma_prefetch_map(&maps.k);
        ft_tma_prefetch_map(&maps.v);
    }
    __syncthreads();
    ft_pdl_wait();
    ft_pdl_launch_dependents();
    if (warpgroup == SHAPE::consumers) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(SHAPE::producer_registers));
        int team = ft_warp_id() % 4 / SHAPE::producer_warps,
            warp = ft_warp_id() % SHAPE::producer_warps;
        attention_shared<SHAPE> shared{ smem + team * SHAPE::team_bytes };
        attention_loader<SHAPE> loader{ shared, maps };
        attention_transposer<SHAPE> transposer{ shared, warp - 1 };
        for (unsigned item = blockIdx.x + (unsigned) team * gridDim.x; item < items;
             item += gridDim.x * SHAPE::teams) {
            unsigned tile = item / heads * SHAPE::warpgroups;
            int count = min(SHAPE::warpgroups, (int) (a.n_query_tiles - tile));
            if (warp > 0 && warp <= SHAPE::transposers)
                transposer.transpose_item(a.blocks + tile, count);
            else if (warp == 0 && threadIdx.x % 32 == 0)
                loader.load_item(a.blocks + tile, count, (int) (item % heads) * a.head_size);
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(SHAPE::consumer_registers));
        attention_consumer<SHAPE> consumer(
            smem, warpgroup, a.y_inv_scale > 0.0f ? SHAPE::width + 16 : 4 * SHAPE::width);
        for (unsigned item = blockIdx.x + (unsigned) (warpgroup / SHAPE::warpgroups) * gridDim.x;
             item < items; item += gridDim.x * SHAPE::teams)
            attend_item(consumer, a, (int) (item % heads), step);
    }
#endif
}

static int map_rows(CUtensorMap *map, const void *data, const ft_cuda_attention_args *a, int width,
                    int rows)
{
    cuuint64_t cols = (cuuint64_t) (a->heads * a->head_size);
    cuuint64_t size[2] = { cols, a->tokens }, strides[1] = { cols };
    cuuint32_t box[2] = { (cuuint32_t) width, (cuuint32_t) rows };
    return ft_tma_map_u8(map, data, 2, size, strides, box, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                         width == 32 ? CU_TENSOR_MAP_SWIZZLE_32B : CU_TENSOR_MAP_SWIZZLE_64B);
}

template <class SHAPE>
static int launch(const ft_cuda_device_props *props, void *stream, const ft_cuda_attention_args *a)
{
    attention_i8_maps maps;
    int row_bytes = a->y_inv_scale > 0.0f ? SHAPE::width + 16 : 4 * SHAPE::width;
    size_t bytes = (size_t) SHAPE::bytes(row_bytes);
    size_t items = ft_ceil_div(a->n_query_tiles, (size_t) SHAPE::warpgroups) * (size_t) a->heads;
    size_t ctas = ft_ceil_div(items, (size_t) SHAPE::teams);
    int status = map_rows(&maps.q, a->q, a, SHAPE::width, FT_CUDA_QUERY_TILE);
    if (status == 0)
        status = map_rows(&maps.k, a->k, a, SHAPE::width, SHAPE::keys);
    if (status == 0)
        status = map_rows(&maps.v, a->v, a, SHAPE::width, SHAPE::keys);
    if (status == 0)
        status = (int) cudaFuncSetAttribute(
            attention_kernel<SHAPE>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int) bytes);
    if (status != 0)
        return status;
    size_t most = (size_t) (SHAPE::ctas * props->sm_count);
    dim3 grid((unsigned) (ctas < most ? ctas : most));
    return ft_launch(attention_kernel<SHAPE>, grid, dim3(SHAPE::threads), bytes, stream,
                     props->has_pdl, 1, *a, maps, ft_softmax_step(a->score_scale));
}

/* Boxes of tensor maps start at multiples of 16 bytes. */
static bool is_supported(const ft_cuda_device_props *props, const ft_cuda_attention_args *a)
{
    return props->has_wgmma && a->tokens > 0 && a->head_size <= 64 && a->head_size % 16 == 0 &&
           ft_is_aligned(a->q, 16) && ft_is_aligned(a->k, 16) && ft_is_aligned(a->v, 16);
}

/*
 * The mean length of the sequences: the list of query tiles has room for tokens / 64 + sequences
 * (ft_cuda_max_query_tiles()). Where it is shorter, sequences are taken to be long.
 */
static size_t mean_length(const ft_cuda_attention_args *a)
{
    size_t full_tiles = a->tokens / FT_CUDA_QUERY_TILE;
    return a->n_query_tiles > full_tiles ? a->tokens / (a->n_query_tiles - full_tiles) : a->tokens;
}

/*
 * CTAs of one warpgroup, several per multiprocessor: for few queries, and for sequences whose
 * scores stay in registers. `items` are query tiles of one head.
 */
template <int width>
static int launch_single(const ft_cuda_device_props *props, void *stream,
                         const ft_cuda_attention_args *a, size_t length, size_t items)
{
    size_t sms = (size_t) props->sm_count;
    if (width == 64 && length > 256 && items <= sms)
        return launch<attention_i8_shape<64, 128, 1, 1, 1, 3>>(props, stream, a);
    if (items > 2 * sms && (length <= 128 || items <= 3 * sms))
        return launch<attention_i8_shape<width, 64, 1, 1, 3, 2>>(props, stream, a);
    return launch<attention_i8_shape<width, 128, 1, 1, 2, 2>>(props, stream, a);
}

/* CTAs of several warpgroups, which share keys and values. */
template <int width>
static int launch_shared(const ft_cuda_device_props *props, void *stream,
                         const ft_cuda_attention_args *a, size_t length)
{
    if (length <= 128)
        return launch<attention_i8_shape<width, 64, 2, 2, 1, 2>>(props, stream, a);
    if (width == 32 || length <= 256)
        return launch<attention_i8_shape<width, 64, 2, 2>>(props, stream, a);
    if (length <= 384 || length > 2048)
        return launch<attention_i8_shape<64, 128, 1, 3>>(props, stream, a);
    return launch<attention_i8_shape<64, 64, 1, 4>>(props, stream, a);
}

/*
 * Up to how many items single warpgroups win. From 240 keys on they fill two tiles of 128 keys,
 * which stay in registers; where the mean is lower, most sequences fill them badly.
 */
static size_t max_single_items(size_t length, size_t sm_count)
{
    if (length > 240 && length <= 256)
        return SIZE_MAX;
    return (length <= 128 ? 16 : length <= 1024 ? 8 : 0) * sm_count;
}

template <int width>
static int launch_width(const ft_cuda_device_props *props, void *stream,
                        const ft_cuda_attention_args *a)
{
    size_t length = mean_length(a),
           items = ft_ceil_div(a->tokens, (size_t) FT_CUDA_QUERY_TILE) * (size_t) a->heads;
    return items < max_single_items(length, (size_t) props->sm_count)
               ? launch_single<width>(props, stream, a, length, items)
               : launch_shared<width>(props, stream, a, length);
}

/* The thresholds were measured on an H200: docs/experiments. */
int ft_cuda_attention_i8_wgmma(const ft_cuda_device_props *props, void *stream,
                               const ft_cuda_attention_args *a)
{
    if (!is_supported(props, a))
        return (int) cudaErrorNotSupported;
    return a->head_size <= 32 ? launch_width<32>(props, stream, a)
                              : launch_width<64>(props, stream, a);
}
