/*
 * attend_step.cu - one query a sequence against all that the cache holds of it: what a decoder does
 * for each token, and what it waits for is memory.
 *
 * The keys of a sequence are divided among blocks of threads, and those of a block among its warps,
 * at places that depend on the query's position alone.  Up to eight heads that read one head of the
 * cache are columns of one product, so that its keys are read once: a . b^T with keys as rows of a
 * and heads as columns, then values turned, with elements of the head as rows.  Nothing goes from
 * lane to lane but weights: a lane copies 16 bytes of a row at once and has its operands by
 * choosing which elements the products call first, second, ...; values of two keys are paired by
 * byte permutations.
 *
 * Codes become halves exactly, by two instructions for two; scales of keys multiply scores.  Those
 * of values multiply weights before these are rounded to halves, divided by a power of two near the
 * largest of them: so small scales leave no halves that are too small to be exact.
 *
 * The sums of parts are always weighed and added in the same way and order, so it does not matter
 * how many of them a block computes: with many sequences all of a head's, and the result, with few
 * one, and the last block of a sequence and head to finish adds up what all have written.
 *
 * A block asks for its first keys before its predecessor has ended.  Only the newest key is still
 * under way then: earlier ones, and the numbers of the run, were there before the predecessor began
 * (common.cuh: a kernel lets its successor begin after it has waited itself).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/attend_step_parts.cuh"

/* ---- A warp's steps -------------------------------------------------------------------------- */

/*
 * Keys of the next step are asked for as soon as those of this one have been multiplied, values
 * likewise; the page of the step after that is looked up before.
 */
typedef struct walk {
    int base;      /* of this step */
    uint32_t next; /* row of the next one */
    int end;       /* no step begins here or later */
} walk;

/* Of lanes, every lane of the warp looks a key up; those that are not there stand for the last. */
template <bool lanes>
static __device__ __forceinline__ place find(const ft_attend_job &a, const ft_attend_task &task,
                                             int kv_head, int base, int end)
{
    place at = { base, 0 };
    if (base < end && lanes)
        at.row = (uint32_t) ft_attend_find(a, task, min(base + (int) threadIdx.x % 32, end - 1),
                                           kv_head);
    else if (base < end)
        at.row = (uint32_t) ft_cache_find(task.pages, (size_t) base, (size_t) kv_head,
                                          (size_t) a.kv_heads);
    return at;
}

/* The first step: what is read before the predecessor has ended must not be its work. */
template <bool lanes, ft_dtype stored, int width>
static __device__ __forceinline__ void
begin_walk(walk *w, reading<stored, width> *room, const ft_attend_job &a,
           const ft_attend_task &task, const share &s, int kv_head)
{
    typedef form<stored, width> f;
    int begin = max(part_begin(s, s.begin), s.first / f::part * f::part);
    int base = begin + (int) threadIdx.x / 32 * f::keys;
    if (base + f::keys <= s.first)
        base += f::part;
    w->base = base;
    w->end = min(part_begin(s, s.end), s.last + 1);
    place now = find<lanes>(a, task, kv_head, base, w->end);
    w->next = find<lanes>(a, task, kv_head, base + f::part, w->end).row;
    bool newest = base + f::keys > s.last;
    if (newest)
        ft_wait_for_predecessor();
    if (base < w->end)
        read_keys<lanes>(room, a, s, now);
    ft_copy_commit();
    if (base < w->end)
        read_values<lanes>(room, a, s, now);
    ft_copy_commit();
    if (!newest)
        ft_wait_for_predecessor();
    ft_let_successor_begin();
}

/* The steps before `end`, the first key of the next part. */
template <bool lanes, ft_dtype stored, int width, bool bf16>
static __device__ __forceinline__ void
add_steps(partial_sums<width> *sums, walk *w, reading<stored, width> *room, const ft_attend_job &a,
          const ft_attend_task &task, const share &of, int kv_head, const uint32_t q[width / 16][2],
          int end)
{
    typedef form<stored, width> f;
#pragma unroll 1
    while (w->base < min(end, w->end)) {
        float s[f::keys / 16][4];
        scales<f::keys> scale;
        const place next = { w->base + f::part, w->next };
        bool more = next.base < w->end;
        w->next = find<lanes>(a, task, kv_head, next.base + f::part, w->end).row;
        ft_copy_wait<1>();
        __syncwarp(); /* scales are others' copies */
        score<stored, width, bf16>(s, *room, q);
        if (stored == FT_I8)
            load_scales<stored, width>(&scale, *room);
        __syncwarp();
        if (more)
            read_keys<lanes>(room, a, of, next);
        ft_copy_commit();
        weigh<stored, width>(s, sums, scale, a, of, w->base);
        ft_copy_wait<1>();
        mix<stored, width, bf16>(sums, s, *room);
        if (more)
            read_values<lanes>(room, a, of, next);
        ft_copy_commit();
        w->base = next.base;
    }
}

/* ---- The kernel ----------------------------------------------------------------------------- */

/* Blocks less that registers allow: from sm_100 on the same code takes a few more of them. */
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 1000
enum { FEWER = 1 };
#else
enum { FEWER = 0 };
#endif

/* One less where lanes look up their keys beside codes and as many sums. */
template <bool lanes, ft_dtype stored, int width>
static constexpr int blocks_of = form<stored, width>::blocks - FEWER -
                                 (lanes && form<stored, width>::row == 128 ? 1 : 0);

/*
 * Grid: shares of the parts, heads of the cache times groups of HEADS of queries, sequences or as
 * many of them as read the same keys; each has one row, its own number.
 */
template <bool lanes, ft_dtype stored, int width, bool bf16>
static __global__ void __launch_bounds__(THREADS, blocks_of<lanes, stored, width>)
    step_kernel(const __grid_constant__ ft_attend_job a)
{
    extern __shared__ uint4 shared[];
    room<stored, width> *r = (room<stored, width> *) shared;
    columns of = columns_of(a);
    int warp = (int) threadIdx.x / 32, heads = of.count;
    ft_attend_task task = ft_attend_take(a, blockIdx.z * (unsigned) a.together);
    share s = share_of(a, task.position, form<stored, width>::part);
    if (task.rows == 0 || s.begin >= s.end) {
        ft_wait_for_predecessor(); /* or the successor could begin before it has ended */
        return;
    }
    uint32_t q[width / 16][2];
    walk w;
    begin_walk<lanes>(&w, &r->warp[warp], a, task, s, of.kv_head);
    load_queries<stored, width>(q, a, of);

    bool whole = s.end - s.begin == s.count;
    int end = part_begin(s, s.begin);
    for (int index = s.begin; index < s.end; index++) {
        partial_sums<width> sums = { { -INFINITY, -INFINITY } };
        end += s.size;
        add_steps<lanes, stored, width, bf16>(&sums, &w, &r->warp[warp], a, task, s, of.kv_head, q,
                                              end);
        gather(r, sums, heads);
        __syncthreads();
        finish_part(*r, a, whole ? slots_inside(r, a, heads) : slots_outside(a, of), heads, index);
        __syncthreads(); /* everybody has left what the next part overwrites */
    }
    verdict *v = (verdict *) r->warp; /* whose keys and values have been read */
    float *sums_of_shares = (float *) (v + 1);
    if (whole)
        finish<true>(v, sums_of_shares, a, slots_inside(r, a, heads), of, s.count);
    else if (is_last(&r->last, a, s))
        finish<false>(v, sums_of_shares, a, slots_outside(a, of), of, s.count);
}

/* ---- Launch --------------------------------------------------------------------------------- */

static size_t parts_within(size_t context, size_t smallest)
{
    size_t parts = (context + smallest - 1) / smallest;
    return parts < MOST_PARTS ? parts : MOST_PARTS;
}

static size_t groups_of(int kv_heads, int columns)
{
    return (size_t) kv_heads * (size_t) ((columns + HEADS - 1) / HEADS);
}

size_t ft_cuda_attend_step_scratch(size_t sequences, size_t context, int heads, int head_size)
{
    size_t parts = parts_within(context, SMALLEST_PART) + PARTS_OF_BLOCK - 1;
    return sequences * parts * (size_t) heads * (size_t) (head_size + TAIL) * sizeof(float);
}

size_t ft_cuda_attend_step_counters(size_t sequences, int heads, int kv_heads)
{
    return sequences * groups_of(kv_heads, heads / kv_heads);
}

/* As many parts for a block as leave blocks enough for all multiprocessors, several times over. */
static int parts_of_block(const ft_cuda_chip *chip, size_t blocks)
{
    int parts = PARTS_OF_BLOCK;
    while (parts > 1 && blocks / (size_t) parts < BLOCKS_WANTED * (size_t) chip->multiprocessors)
        parts /= 2;
    return parts;
}

template <bool lanes, ft_dtype stored, int width, bool bf16>
static int launch(const ft_cuda_chip *chip, void *stream, const ft_attend_job *job)
{
    const size_t smallest = form<stored, width>::part;
    ft_attend_job a = *job;
    int columns = a.group * a.together;
    size_t parts = parts_within(a.context, smallest), groups = groups_of(a.kv_heads, columns);
    size_t rows = (a.sequences + (size_t) a.together - 1) / (size_t) a.together;
    if (a.window > 0) { /* which may begin and end within a part */
        size_t touched = ((size_t) a.window + smallest - 2) / smallest + 1;
        parts = touched < parts ? touched : parts;
    }
    a.parts_of_block = parts_of_block(chip, parts * groups * rows);
    size_t bytes =
        room_bytes<stored, width>(columns < HEADS ? columns : HEADS, a.head_size, a.parts_of_block);
    dim3 grid(ft_blocks(parts, (unsigned) a.parts_of_block), (unsigned) groups, (unsigned) rows);
    cudaError_t status =
        cudaFuncSetAttribute(step_kernel<lanes, stored, width, bf16>,
                             cudaFuncAttributeMaxDynamicSharedMemorySize, (int) chip->shared);
    if (status != cudaSuccess)
        return (int) status;
    if (bytes > chip->shared)
        return (int) cudaErrorNotSupported;
    return ft_launch(step_kernel<lanes, stored, width, bf16>, grid, dim3(THREADS), bytes, stream,
                     chip->overlaps, 1, a);
}

template <bool lanes, ft_dtype stored, bool bf16>
static int launch_width(const ft_cuda_chip *chip, void *stream, const ft_attend_job *a)
{
    return a->head_size <= 64    ? launch<lanes, stored, 64, bf16>(chip, stream, a)
           : a->head_size <= 128 ? launch<lanes, stored, 128, bf16>(chip, stream, a)
                                 : launch<lanes, stored, 256, bf16>(chip, stream, a);
}

template <ft_dtype stored, bool bf16>
static int launch_lanes(const ft_cuda_chip *chip, void *stream, const ft_attend_job *a)
{
    return a->origin != NULL ? launch_width<true, stored, bf16>(chip, stream, a)
                             : launch_width<false, stored, bf16>(chip, stream, a);
}

int ft_cuda_attend_step(const ft_cuda_chip *chip, void *stream, const ft_attend_job *a)
{
    bool bf16 = a->q_dtype == FT_BF16;
    size_t bytes = (size_t) a->head_size * (a->cache_dtype == FT_I8 ? 1 : 2);
    if ((a->q_dtype != FT_F16 && !bf16) || bytes % 16 != 0 || (bf16 && chip->capability < 80) ||
        (a->cache_dtype != FT_I8 && a->cache_dtype != a->q_dtype) || a->cached_rows > UINT32_MAX)
        return (int) cudaErrorNotSupported;
    if (a->cache_dtype == FT_I8)
        return bf16 ? launch_lanes<FT_I8, true>(chip, stream, a)
                    : launch_lanes<FT_I8, false>(chip, stream, a);
    return bf16 ? launch_lanes<FT_BF16, true>(chip, stream, a)
                : launch_lanes<FT_F16, false>(chip, stream, a);
}
