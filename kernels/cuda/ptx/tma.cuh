/*
 * tma.cuh - TMA copies and the mbarriers that count them. sm_90 and later; not called on older
 * architectures.
 *
 * A pipeline has two mbarriers per stage: `full` counts the bytes that arrive, `empty` the warps
 * that have read them. A wait names a phase by its parity, so a thread must never be two phases
 * ahead of a barrier.
 * Source: PTX ISA, "mbarrier" and "cp.async.bulk.tensor".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_PTX_TMA_CUH
#define FT_KERNELS_CUDA_PTX_TMA_CUH

#include <cudaTypedefs.h>
#include <cuda_runtime.h>
#include <stdint.h>

/* ---- Host: tensor maps ---------------------------------------------------------------------- */

/* Looked up at run time, so that the program starts without a driver. */
static inline PFN_cuTensorMapEncodeTiled_v12000 ft_find_tensor_map_encoder(void)
{
    void *function = NULL;
    cudaDriverEntryPointQueryResult found;
    cudaError_t status = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function,
                                                          12000, cudaEnableDefault, &found);
    if (status != cudaSuccess || found != cudaDriverEntryPointSuccess)
        return NULL;
    return (PFN_cuTensorMapEncodeTiled_v12000) function;
}

/*
 * Tensor map of bytes for boxes with rows of 128 bytes, or as many as `swizzle` names; size and box
 * from the innermost dimension. `promotion` is the granularity of L2 fetches.
 */
static inline int
ft_tma_map_u8(CUtensorMap *map, const void *data, cuuint32_t dimensions, const cuuint64_t *size,
              const cuuint64_t *strides, const cuuint32_t *box,
              CUtensorMapL2promotion promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
              CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B)
{
    static const PFN_cuTensorMapEncodeTiled_v12000 encode = ft_find_tensor_map_encoder();
    const cuuint32_t element_strides[5] = { 1, 1, 1, 1, 1 };
    if (encode == NULL)
        return (int) cudaErrorNotSupported;
    CUresult status =
        encode(map, CU_TENSOR_MAP_DATA_TYPE_UINT8, dimensions, (void *) (uintptr_t) data, size,
               strides, box, element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, promotion,
               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return status == CUDA_SUCCESS ? 0 : (int) cudaErrorInvalidValue;
}

/*
 * Boxes of 128 columns and `box_rows` rows of a row-major int8 matrix (rows are cols bytes apart, a
 * multiple of 16, as is the address). In shared memory a row has 128 bytes, and 16-byte chunk c of
 * row r is stored at c ^ (r % 8). Out-of-bounds elements read as zero.
 */
static inline int
ft_tma_map_2d(CUtensorMap *map, const void *data, size_t rows, size_t cols, unsigned box_rows,
              CUtensorMapL2promotion promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B)
{
    cuuint64_t size[2] = { cols, rows }, strides[1] = { cols };
    cuuint32_t box[2] = { 128, box_rows };
    return ft_tma_map_u8(map, data, 2, size, strides, box, promotion);
}

/*
 * Boxes of 128 k and `box_rows` rows (a multiple of 32) of prepacked weights: `groups` of 32 rows,
 * each `blocks` blocks of 32 rows x 128 k.
 */
static inline int ft_tma_map_prepacked(CUtensorMap *map, const void *data, size_t groups,
                                       size_t blocks, unsigned box_rows)
{
    cuuint64_t size[3] = { 128, blocks * 32, groups }, strides[2] = { 128, blocks * 4096 };
    cuuint32_t box[3] = { 128, 32, box_rows / 32 };
    return ft_tma_map_u8(map, data, 3, size, strides, box);
}

/*
 * Boxes of 128 bytes and `box_rows` rows (a multiple of 32) of a matrix (rows, a multiple of 32,
 * `bytes` apart) with interleaved rows: of each 32 rows, row 8a + 2i + b moves to row 8i + 2a + b,
 * so that the columns of a lane are adjacent after the GEMM, as in ft_cuda_prepacked_offset().
 */
static inline int ft_tma_map_interleaved(CUtensorMap *map, const void *data, size_t rows,
                                         size_t bytes, unsigned box_rows)
{
    cuuint64_t size[5] = { bytes, 2, 4, 4, rows / 32 };
    cuuint64_t strides[4] = { bytes, 8 * bytes, 2 * bytes, 32 * bytes };
    cuuint32_t box[5] = { 128, 2, 4, 4, box_rows / 32 };
    return ft_tma_map_u8(map, data, 5, size, strides, box);
}

/*
 * im2col tensor map over images [count, height, width] of `pixel` bytes per pixel. A box holds
 * `line` bytes (32, 64 or 128, which selects the swizzle) of `windows` consecutive windows. Pairs
 * are (rows, columns); windows start `padding` before an image, and out-of-bounds pixels read as
 * zero.
 */
typedef struct ft_im2col_desc {
    const void *data;
    size_t count, height, width, pixel;
    int padding[2], reach[2]; /* reach: dilated kernel size - 1 */
    int stride[2];
    unsigned line, windows;
} ft_im2col_desc;

static inline int ft_tma_map_im2col(CUtensorMap *map, const ft_im2col_desc *t)
{
    void *function = NULL;
    cudaDriverEntryPointQueryResult found;
    cudaError_t status = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeIm2col", &function,
                                                          12000, cudaEnableDefault, &found);
    if (status != cudaSuccess || found != cudaDriverEntryPointSuccess)
        return (int) cudaErrorNotSupported;
    const cuuint64_t size[4] = { t->pixel, t->width, t->height, t->count };
    const cuuint64_t strides[3] = { t->pixel, t->pixel * t->width,
                                    t->pixel * t->width * t->height };
    const int lower[2] = { -t->padding[1], -t->padding[0] };
    const int upper[2] = { t->padding[1] - t->reach[1], t->padding[0] - t->reach[0] };
    const cuuint32_t element_strides[4] = { 1, (cuuint32_t) t->stride[1], (cuuint32_t) t->stride[0],
                                            1 };
    CUtensorMapSwizzle swizzle = t->line == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                                 : t->line == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                                 : CU_TENSOR_MAP_SWIZZLE_32B;
    CUresult result = ((PFN_cuTensorMapEncodeIm2col_v12000) function)(
        map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 4, (void *) (uintptr_t) t->data, size, strides, lower,
        upper, t->line, t->windows, element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
        CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return result == CUDA_SUCCESS ? 0 : (int) cudaErrorInvalidValue;
}

/* ---- Device -------------------------------------------------------------------------------- */

#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900

__device__ __forceinline__ uint32_t ft_smem_address(const void *shared)
{
    return (uint32_t) __cvta_generic_to_shared(shared);
}

__device__ __forceinline__ void ft_mbarrier_init(uint64_t *barrier, unsigned arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(ft_smem_address(barrier)),
                 "r"(arrivals)
                 : "memory");
}

/* After the last ft_mbarrier_init(), before other threads and TMA copies use the barriers. */
__device__ __forceinline__ void ft_mbarrier_fence_init()
{
    asm volatile("fence.mbarrier_init.release.cluster;\n\tfence.proxy.async.shared::cta;" ::
                     : "memory");
}

__device__ __forceinline__ void ft_mbarrier_arrive(uint64_t *barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(ft_smem_address(barrier))
                 : "memory");
}

/* Arrive once, and add `bytes` to the transaction count of the phase. */
__device__ __forceinline__ void ft_mbarrier_arrive_expect_tx(uint64_t *barrier, unsigned bytes)
{
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(ft_smem_address(barrier)),
        "r"(bytes)
        : "memory");
}

/* Wait until the phase with this parity completes. */
__device__ __forceinline__ void ft_mbarrier_wait(uint64_t *barrier, unsigned parity)
{
    uint32_t done;
    do {
        asm volatile("{\n\t"
                     ".reg .pred p;\n\t"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
                     "selp.u32 %0, 1, 0, p;\n\t"
                     "}"
                     : "=r"(done)
                     : "r"(ft_smem_address(barrier)), "r"(parity)
                     : "memory");
    } while (!done);
}

/* Whether the phase is complete; may return false shortly after completion. */
__device__ __forceinline__ bool ft_mbarrier_test_wait(uint64_t *barrier, unsigned parity)
{
    uint32_t done;
    asm volatile("{\n\t"
                 ".reg .pred p;\n\t"
                 "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
                 "selp.u32 %0, 1, 0, p;\n\t"
                 "}"
                 : "=r"(done)
                 : "r"(ft_smem_address(barrier)), "r"(parity)
                 : "memory");
    return done;
}

/*
 * Cluster-wide barrier, whole warps at a time: each thread arrives and waits. The relaxed arrival
 * publishes only barriers (ft_mbarrier_fence_init), the release arrival publishes all earlier
 * writes.
 */
__device__ __forceinline__ void ft_cluster_arrive_relaxed()
{
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}

__device__ __forceinline__ void ft_cluster_arrive()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

__device__ __forceinline__ void ft_cluster_wait()
{
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

__device__ __forceinline__ void ft_tma_prefetch_map(const CUtensorMap *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

/* Copy the box at (row, col) to shared memory; its bytes count on `barrier`. */
__device__ __forceinline__ void ft_tma_load_2d(void *shared, const CUtensorMap *map,
                                               uint64_t *barrier, int row, int col)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"(ft_smem_address(shared)),
                 "l"(map), "r"(col), "r"(row), "r"(ft_smem_address(barrier))
                 : "memory");
}

/* L2 policy for data that is read once: evict first. */
__device__ __forceinline__ uint64_t ft_l2_evict_first()
{
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

__device__ __forceinline__ void ft_tma_load_2d(void *shared, const CUtensorMap *map,
                                               uint64_t *barrier, int row, int col, uint64_t policy)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(ft_smem_address(shared)),
                 "l"(map), "r"(col), "r"(row), "r"(ft_smem_address(barrier)), "l"(policy)
                 : "memory");
}

/* Copy `bytes` contiguous bytes; both addresses and the size are multiples of 16. */
__device__ __forceinline__ void ft_bulk_load(void *shared, const void *data, unsigned bytes,
                                             uint64_t *barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(ft_smem_address(shared)),
                 "l"(data), "r"(bytes), "r"(ft_smem_address(barrier))
                 : "memory");
}

__device__ __forceinline__ void ft_bulk_load(void *shared, const void *data, unsigned bytes,
                                             uint64_t *barrier, uint64_t policy)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(ft_smem_address(shared)),
                 "l"(data), "r"(bytes), "r"(ft_smem_address(barrier)), "l"(policy)
                 : "memory");
}

/* Three-dimensional box; coordinates from the innermost dimension. */
__device__ __forceinline__ void ft_tma_load_3d(void *shared, const CUtensorMap *map,
                                               uint64_t *barrier, int x, int y, int z)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(ft_smem_address(shared)),
                 "l"(map), "r"(x), "r"(y), "r"(z), "r"(ft_smem_address(barrier))
                 : "memory");
}

/*
 * im2col load: one kernel position (right, down) of consecutive windows, the first of which starts
 * at pixel (row, col) of image `image`; from byte `byte` of the pixels.
 */
__device__ __forceinline__ void ft_tma_load_im2col(void *shared, const CUtensorMap *map,
                                                   uint64_t *barrier, int byte, int col, int row,
                                                   int image, int right, int down)
{
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%2, %3, %4, %5}], [%6], {%7, %8};" ::"r"(ft_smem_address(shared)),
        "l"(map), "r"(byte), "r"(col), "r"(row), "r"(image), "r"(ft_smem_address(barrier)),
        "h"((short) right), "h"((short) down)
        : "memory");
}

/*
 * Store the box at (row, col) from shared memory; out-of-bounds elements are not written. The
 * threads that wrote it must have called ft_fence_proxy_async(); ft_bulk_commit() follows.
 */
__device__ __forceinline__ void ft_tma_store_2d(const void *shared, const CUtensorMap *map, int row,
                                                int col)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map),
        "r"(col), "r"(row), "r"(ft_smem_address(shared))
        : "memory");
}

/* Close a group, perhaps empty, of the thread's stores since the last commit. */
__device__ __forceinline__ void ft_bulk_commit()
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/*
 * Store the box at (x, y, z) from shared memory; out-of-bounds elements are not written. The
 * threads that wrote it must have called ft_fence_proxy_async().
 */
__device__ __forceinline__ void ft_tma_store_3d(const void *shared, const CUtensorMap *map, int x,
                                                int y, int z)
{
    asm volatile(
        "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];\n\t"
        "cp.async.bulk.commit_group;" ::"l"(map),
        "r"(x), "r"(y), "r"(z), "r"(ft_smem_address(shared))
        : "memory");
}

__device__ __forceinline__ void ft_fence_proxy_async()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* Wait until the thread's stores have read their source. */
__device__ __forceinline__ void ft_bulk_wait_read()
{
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

/* Wait until all but the last `left` groups of the thread's stores have read their source. */
template <int left> __device__ __forceinline__ void ft_bulk_wait_read_all_but()
{
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(left) : "memory");
}

/* Wait until they are complete. */
__device__ __forceinline__ void ft_bulk_wait()
{
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

/* Box of ft_tma_map_interleaved() starting at row `row`, a multiple of 32, and byte `byte`. */
__device__ __forceinline__ void ft_tma_load_interleaved(void *shared, const CUtensorMap *map,
                                                        uint64_t *barrier, int row, int byte)
{
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %3, %3, %4}], [%5];" ::"r"(ft_smem_address(shared)),
                 "l"(map), "r"(byte), "r"(0), "r"(row / 32), "r"(ft_smem_address(barrier))
                 : "memory");
}

/* Box of ft_tma_map_prepacked() starting at row `row`, a multiple of 32, and k block `block`. */
__device__ __forceinline__ void ft_tma_load_prepacked(void *shared, const CUtensorMap *map,
                                                      uint64_t *barrier, int row, int block)
{
    ft_tma_load_3d(shared, map, barrier, 0, block * 32, row / 32);
}

#endif
#endif
