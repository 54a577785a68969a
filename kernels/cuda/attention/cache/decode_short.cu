/*
 * decode_short.cu - decode attention for many short sequences, such as beams: one warp per
 * sequence.
 *
 * In decode.cu a split consists of four key tiles, one for each warp of a CTA. For a short sequence
 * most of these warps are idle, and the CTA spends its time on looking up keys, waiting for them
 * and waiting for its other warps. Here one warp processes all four tiles and combines their sums
 * as the CTA would, with the same bits. The number of rows may therefore select the kernel. No warp
 * waits for another, so many more sequences are in flight.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/attention/cache/decode_dispatch.cuh"
#include "kernels/cuda/attention/cache/decode_split_k.cuh"
#include "kernels/cuda/attention/cache/decode_iterate.cuh"

/*
 * Thresholds measured on an H200: 8 heads of 64 over 33 tokens of f16 take 8 us instead of 14 at
 * 128 rows, and 24 instead of 49 at 512. At 32 rows (256 warps) both kernels take 4.
 */
enum {
    SHORT = 256, /* maximum tokens of a sequence */
    MANY = 3     /* minimum warps per multiprocessor (exclusive) */
};

/* Other architectures need more registers for the same code, or have less shared memory. */
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ != 900
enum { FEWER = 1 };
#else
enum { FEWER = 0 };
#endif

/* CTAs per multiprocessor, limited by registers and shared memory. */
template <ft_dtype stored, int width>
static constexpr int blocks_of = (form<stored, width>::row > 128  ? 3
                                  : form<stored, width>::row > 64 ? 4
                                                                  : 5) -
                                 FEWER;

template <ft_dtype stored, int width> using alone = room<1, stored, width>;

/* Writes the result of a row that has a single split. */
template <ft_dtype stored, int width>
static __device__ __forceinline__ void finish_only(const alone<stored, width> &r,
                                                   const ft_attend_job &a, const columns &of,
                                                   int begin, int end)
{
    int pieces = a.head_size / 4;
    for (int i = crew<1>::index(); i < of.count * pieces; i += crew<1>::threads) {
        int head = i / pieces, at = i % pieces * 4;
        part_sums all = add_quarters<width>(r, of.count, head, at, begin, end);
        write(a, of, head, at, all.y, all.sum);
    }
}

/*
 * Processes the splits of a row one after the other: warp tiles from the first visible key to the
 * last.
 */
template <bool lanes, bool bf16, ft_dtype stored, int width>
static __device__ __forceinline__ void
add_parts(alone<stored, width> *r, walk *w, const ft_attend_job &a, const ft_attend_task &task,
          const share &s, const columns &of, const uint32_t q[width / 16][2])
{
    typedef form<stored, width> f;
#pragma unroll 1
    for (int index = 0; index < s.count; index++) {
#pragma unroll 1
        while (w->base < min(part_begin(s, index + 1), w->end)) {
            partial_sums<width> sums = { { -INFINITY, -INFINITY } };
            int quarter = w->base % f::part / f::keys;
            add_steps<1, lanes, bf16>(&sums, w, r->warp, a, task, s, of.kv_head, q,
                                      w->base + f::keys);
            gather(r, quarter, sums, of.count);
        }
        __syncwarp();
        int begin = index == 0 ? s.first % f::part / f::keys : 0;
        int end = (w->base - 1) % f::part / f::keys + 1;
        if (s.count == 1)
            return finish_only<stored, width>(*r, a, of, begin, end);
        finish_part(*r, a, slots_inside(r, a, of.count), of.count, index, begin, end);
        __syncwarp(); /* all lanes have read what the next split overwrites */
    }
    verdict *v = (verdict *) r->warp; /* keys and values have been read */
    finish<true, 1>(v, (float *) (v + 1), a, slots_inside(r, a, of.count), of, s.count);
}

/* Number of cache rows that a warp looks up in advance, rounded up to complete tiles. */
static __host__ __device__ __forceinline__ size_t rows_kept(const ft_attend_job &a)
{
    return a.origin != NULL ? (a.context + 31) / 32 * 32 : 0;
}

/*
 * Looks up the cache rows of a beam's keys. This takes two dependent reads per key, which happen
 * once here instead of once per tile. A lane reads only entries that it has written.
 */
static __device__ __forceinline__ const uint32_t *look_up(uint32_t *rows, const ft_attend_job &a,
                                                          const ft_attend_task &task,
                                                          const share &s, int kv_head)
{
    int lane = (int) threadIdx.x % 32;
#pragma unroll 4
    for (int base = 0; base <= s.last; base += 32)
        rows[base + lane] = (uint32_t) ft_attend_find(a, task, min(base + lane, s.last), kv_head);
    return rows;
}

/* One warp per item: a group of heads of one row, or of several rows that read the same keys. */
template <bool lanes, ft_dtype stored, int width, bool bf16>
static __global__ void __launch_bounds__(THREADS, (blocks_of<stored, width>) )
    short_kernel(const __grid_constant__ ft_attend_job a, unsigned groups, unsigned items,
                 unsigned bytes)
{
    extern __shared__ uint4 shared[];
    static_assert(sizeof(verdict) + THREADS * sizeof(float4) <= sizeof(reading<stored, width>),
                  "the reduction reuses the storage of keys");
    unsigned item = blockIdx.x * WARPS + threadIdx.x / 32;
    alone<stored, width> *r = (alone<stored, width> *) ((char *) shared + threadIdx.x / 32 * bytes);
    columns of = columns_of(a, item % groups, item / groups);
    ft_attend_task task = {};
    if (item < items)
        task = ft_attend_take(a, of.rows * (unsigned) a.together);
    if (task.rows == 0) {
        ft_wait_for_predecessor(); /* otherwise the dependent kernel could begin before the
                                      predecessor has ended */
        return;
    }
    share s = share_of(a, task.position, form<stored, width>::part, 0);
    uint32_t q[width / 16][2];
    walk w = {};
    if (lanes)
        w.rows = look_up((uint32_t *) ((char *) r + bytes) - rows_kept(a), a, task, s, of.kv_head);
    begin_walk<1, lanes>(&w, r->warp, a, task, s, of.kv_head);
    load_queries<stored, width>(q, a, of);
    add_parts<lanes, bf16>(r, &w, a, task, s, of, q);
}

/* ---- Launch --------------------------------------------------------------------------------- */

template <bool lanes, ft_dtype stored, int width, bool bf16> struct short_launcher {
    static int launch(const ft_cuda_chip *chip, void *stream, const ft_attend_job *job)
    {
        ft_attend_job a = *job;
        extent e = extent_of(job, form<stored, width>::part);
        size_t items = e.groups * e.rows;
        if (items <= MANY * (size_t) chip->multiprocessors || items > INT32_MAX)
            return (int) cudaErrorNotSupported;
        a.parts_of_block = (int) e.parts;
        size_t bytes =
            room_bytes<1, stored, width>(e.heads, a.head_size, e.parts > 1 ? (int) e.parts : 0) +
            rows_kept(a) * sizeof(uint32_t);
        int status = allow_shared(chip, short_kernel<lanes, stored, width, bf16>, WARPS * bytes);
        if (status != (int) cudaSuccess)
            return status;
        return ft_launch(short_kernel<lanes, stored, width, bf16>, dim3(ft_cover(items, WARPS)),
                         dim3(THREADS), WARPS * bytes, stream, chip->overlaps, 1, a,
                         (unsigned) e.groups, (unsigned) items, (unsigned) bytes);
    }
};

/* Not supported: registers would allow few warps. */
template <bool lanes, ft_dtype stored, bool bf16> struct short_launcher<lanes, stored, 256, bf16> {
    static int launch(const ft_cuda_chip *, void *, const ft_attend_job *)
    {
        return (int) cudaErrorNotSupported;
    }
};

int ft_cuda_attend_short(const ft_cuda_chip *chip, void *stream, const ft_attend_job *a)
{
    if (a->context > SHORT)
        return (int) cudaErrorNotSupported;
    return forms<short_launcher>::launch(chip, stream, a);
}
