/*
 * attention.cuh - shared by the attention kernels: the work of one CTA, and copies of head rows to
 * shared memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_ATTENTION_ATTENTION_CUH
#define FT_KERNELS_CUDA_ATTENTION_ATTENTION_CUH

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/ptx/cp_async.cuh"
#include "kernels/cuda/cuda.h"

#include <stdint.h>

/*
 * The kernels, by the dtype in their name. They support heads of up to 256 elements; those that
 * return cudaErrorNotSupported leave other heads and devices to the others.
 */
int ft_cuda_attention_i8(const ft_cuda_device_props *props, void *stream,
                         const ft_cuda_attention_args *a);
int ft_cuda_attention_i8_wgmma(const ft_cuda_device_props *props, void *stream,
                               const ft_cuda_attention_args *a);
int ft_cuda_attention_f16(const ft_cuda_device_props *props, void *stream,
                          const ft_cuda_attention_args *a);
int ft_cuda_attention_f32(const ft_cuda_device_props *props, void *stream,
                          const ft_cuda_attention_args *a);

enum { FT_ATTENTION_MAX_HEAD = FT_CUDA_MAX_HEAD_SIZE }; /* elements of a head */

/* The work of one CTA. */
typedef struct ft_attention_tile {
    size_t first;  /* row of the first key of the sequence */
    int length;    /* number of keys */
    int query;     /* first query, relative to `first` */
    int queries;   /* number of queries, at least 1 */
    size_t column; /* first column of the head */
} ft_attention_tile;

/*
 * The heads of one query tile are neighbours in the grid, because they read the same rows. A kernel
 * may process `queries` queries at once, a multiple of FT_CUDA_QUERY_TILE. It then skips the tiles
 * that lie inside such a group: the function returns false for them.
 */
__device__ __forceinline__ bool ft_attention_tile_of(ft_attention_tile *task,
                                                     const ft_cuda_attention_args &a,
                                                     int queries = FT_CUDA_QUERY_TILE)
{
    size_t index = blockIdx.y + (size_t) blockIdx.z * gridDim.y;
    if (index >= a.n_query_tiles)
        return false;
    ft_cuda_query_tile b = a.blocks[index];
    task->first = (size_t) b.first;
    task->length = b.length;
    task->query = b.query;
    task->queries = min(b.length - b.query, queries);
    task->column = (size_t) blockIdx.x * (size_t) a.head_size;
    return task->queries > 0 && b.query % queries == 0;
}

/* 2^x, with an error of at most two units in the last place; 0 for -inf. */
__device__ __forceinline__ float ft_exp2_approx(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

static inline dim3 ft_attention_grid(const ft_cuda_attention_args *a)
{
    const size_t max_height = 32768; /* the y dimension of a grid is at most 65535 */
    size_t height = a->n_query_tiles < max_height ? a->n_query_tiles : max_height;
    return dim3((unsigned) a->heads, (unsigned) height,
                (unsigned) ((a->n_query_tiles + height - 1) / height));
}

/* ---- Asynchronous copies to shared memory ---------------------------------------------------- */

/*
 * Copies `bytes` (16 or 8) bytes; both addresses are multiples of it. Writes zeros unless `wanted`.
 */
template <int bytes>
__device__ __forceinline__ void ft_copy_async(void *to, const void *from, bool wanted)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
    uint32_t address = (uint32_t) __cvta_generic_to_shared(to);
    if (bytes == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
                     "r"(wanted ? 16 : 0)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(address), "l"(from),
                     "r"(wanted ? 8 : 0)
                     : "memory");
#else
    if (bytes == 16)
        *(uint4 *) to = wanted ? *(const uint4 *) from : make_uint4(0, 0, 0, 0);
    else
        *(uint2 *) to = wanted ? *(const uint2 *) from : make_uint2(0, 0);
#endif
}

/* ---- Rows of a head ---------------------------------------------------------------------------
 */

/*
 * Rows are stored in shared memory as panels: the first 64 bytes of each row, then the next 64
 * bytes of each row. If width is an odd multiple of 32, the last panel is 32 bytes wide. Within a
 * panel the 16-byte chunks are swizzled by row. This avoids bank conflicts both for lanes 4g + t
 * that read 16 bytes at offset 16 t of row g, and for the eight rows that one ldmatrix reads at the
 * same offset.
 */
template <int width, int rows> __device__ __forceinline__ int ft_panel_offset(int row, int chunk)
{
    int panel = chunk / 4, within = chunk % 4;
    if (width % 64 != 0 && panel == width / 64)
        return panel * rows * 64 + row * 32 + (within ^ (row >> 2 & 1)) * 16;
    return panel * rows * 64 + row * 64 + (within ^ (row >> 1 & 3)) * 16;
}

/* Up to 16 bytes of a row at an arbitrary alignment. */
__device__ __forceinline__ uint4 ft_load_unaligned(const uint8_t *from, int count)
{
    uint32_t word[4] = {};
#pragma unroll
    for (int i = 0; i < 16; i++)
        if (i < count)
            word[i / 4] |= (uint32_t) from[i] << (i % 4 * 8);
    return make_uint4(word[0], word[1], word[2], word[3]);
}

/* One thread's part of a matrix with `count` rows of `bytes` bytes, `stride` bytes apart. */
typedef struct ft_thread_rows {
    const uint8_t *data; /* the thread's first chunk */
    int count;
    int bytes, unit; /* `unit` divides every address: 16, 8 or 1 */
    uint32_t stride;
} ft_thread_rows;

/*
 * Each thread copies 16-byte chunks of one column, some rows apart. If the rows are no multiple of
 * 16 bytes, or the thread count is no multiple of the chunks per row, `data` points to the first
 * row instead.
 */
template <int width, int threads>
__device__ __forceinline__ ft_thread_rows ft_thread_rows_of(const uint8_t *data, int count,
                                                            int bytes, uint32_t stride, int unit)
{
    constexpr int chunks = width / 16;
    int chunk = (int) threadIdx.x % chunks, first = (int) threadIdx.x / chunks;
    unit = threads % chunks == 0 ? unit : min(unit, 8);
    if (unit == 16)
        data += (size_t) first * stride + 16 * chunk;
    return ft_thread_rows{ data, count, bytes, unit, stride };
}

/* ft_copy_rows() for rows that are no multiple of 16 bytes or are unaligned. */
template <int width, int rows, int threads>
__device__ __noinline__ void ft_copy_unaligned_rows(uint8_t *to, ft_thread_rows from)
{
    constexpr int chunks = width / 16;
    for (int i = (int) threadIdx.x; i < rows * chunks; i += threads) {
        int row = i / chunks, chunk = i % chunks;
        int valid = row < from.count ? from.bytes - 16 * chunk : 0;
        uint8_t *dst = to + ft_panel_offset<width, rows>(row, chunk);
        const uint8_t *source = from.data + (size_t) row * from.stride + 16 * chunk;
        if (from.unit == 8) {
            ft_copy_async<8>(dst, source, valid > 0);
            ft_copy_async<8>(dst + 8, source + 8, valid > 8);
        } else
            *(uint4 *) dst = ft_load_unaligned(source, valid);
    }
}

/*
 * Starts the copy of rows into panels of `rows` rows of `width` bytes. Bytes outside the source
 * become zero.
 */
template <int width, int rows, int threads>
__device__ __forceinline__ void ft_copy_rows(uint8_t *to, const ft_thread_rows &from)
{
    constexpr int chunks = width / 16, step = threads / chunks;
    if (from.unit != 16) {
        ft_copy_unaligned_rows<width, rows, threads>(to, from);
        return;
    }
    int chunk = (int) threadIdx.x % chunks, first = (int) threadIdx.x / chunks;
    int rows_left = (16 * chunk < from.bytes ? from.count : 0) - first;
    const uint8_t *source = from.data;
    uint8_t *dst = to + ft_panel_offset<width, rows>(first, chunk);
    int panel_row_bytes = chunk / 4 < width / 64 ? 64 : 32;
#pragma unroll
    for (int row = 0; row < rows; row += step) {
        if (step % 8 != 0) /* otherwise these rows have the same swizzle */
            dst = to + ft_panel_offset<width, rows>(first + row, chunk) - row * panel_row_bytes;
        ft_copy_async<16>(dst + row * panel_row_bytes, source, row < rows_left);
        source += (size_t) step * from.stride;
        asm(""
            : "+l"(source)); /* otherwise the compiler recomputes each row's address with a
                                multiplication: 8 instructions */
    }
}

/* Alignment of the rows of an operand whose heads are `bytes` wide: 16, 8 or 1. */
static inline int ft_rows_alignment(size_t bytes, const void *q, const void *k, const void *v)
{
    size_t all = bytes | (size_t) q | (size_t) k | (size_t) v;
    return all % 16 == 0 ? 16 : all % 8 == 0 ? 8 : 1;
}

#endif
