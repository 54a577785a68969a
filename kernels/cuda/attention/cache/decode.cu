/*
 * decode.cu - one query a sequence against all that the cache holds of it: what a decoder does
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
 * one, and the last block of a sequence and head to finish adds up what all have written.  Many
 * short texts have a warp each: decode_short.cu.
 *
 * A block asks for its first keys before its predecessor has ended.  Only the newest key is still
 * under way then: earlier ones, and the numbers of the run, were there before the predecessor began
 * (common.cuh: a kernel lets its successor begin after it has waited itself).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/attention/cache/decode_dispatch.cuh"
#include "kernels/cuda/attention/cache/decode_split_k.cuh"
#include "kernels/cuda/attention/cache/decode_iterate.cuh"

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
    typedef room<WARPS, stored, width> room;
    room *r = (room *) shared;
    columns of = columns_of(a, blockIdx.y, blockIdx.z);
    int warp = (int) threadIdx.x / 32, heads = of.count;
    ft_attend_task task = ft_attend_take(a, blockIdx.z * (unsigned) a.together);
    share s = share_of(a, task.position, form<stored, width>::part, (int) blockIdx.x);
    if (task.rows == 0 || s.begin >= s.end) {
        ft_wait_for_predecessor(); /* or the successor could begin before it has ended */
        return;
    }
    uint32_t q[width / 16][2];
    walk w;
    begin_walk<WARPS, lanes>(&w, &r->warp[warp], a, task, s, of.kv_head);
    load_queries<stored, width>(q, a, of);

    bool whole = s.end - s.begin == s.count;
    int end = part_begin(s, s.begin);
    for (int index = s.begin; index < s.end; index++) {
        partial_sums<width> sums = { { -INFINITY, -INFINITY } };
        end += s.size;
        add_steps<WARPS, lanes, bf16>(&sums, &w, &r->warp[warp], a, task, s, of.kv_head, q, end);
        gather(r, warp, sums, heads);
        __syncthreads();
        finish_part(*r, a, whole ? slots_inside(r, a, heads) : slots_outside(a, of), heads, index);
        __syncthreads(); /* everybody has left what the next part overwrites */
    }
    verdict *v = (verdict *) r->warp; /* whose keys and values have been read */
    float *sums_of_shares = (float *) (v + 1);
    if (whole)
        finish<true, WARPS>(v, sums_of_shares, a, slots_inside(r, a, heads), of, s.count);
    else if (is_last(&r->last, a, s))
        finish<false, WARPS>(v, sums_of_shares, a, slots_outside(a, of), of, s.count);
}

/* ---- Launch --------------------------------------------------------------------------------- */

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

template <bool lanes, ft_dtype stored, int width, bool bf16> struct step_launcher {
    static int launch(const ft_cuda_chip *chip, void *stream, const ft_attend_job *job)
    {
        ft_attend_job a = *job;
        extent e = extent_of(job, form<stored, width>::part);
        a.parts_of_block = parts_of_block(chip, e.parts * e.groups * e.rows);
        size_t bytes = room_bytes<WARPS, stored, width>(e.heads, a.head_size, a.parts_of_block);
        dim3 grid(ft_cover(e.parts, (unsigned) a.parts_of_block), (unsigned) e.groups,
                  (unsigned) e.rows);
        int status = allow_shared(chip, step_kernel<lanes, stored, width, bf16>, bytes);
        if (status != (int) cudaSuccess)
            return status;
        return ft_launch(step_kernel<lanes, stored, width, bf16>, grid, dim3(THREADS), bytes,
                         stream, chip->overlaps, 1, a);
    }
};

int ft_cuda_attend_step(const ft_cuda_chip *chip, void *stream, const ft_attend_job *a)
{
    return forms<step_launcher>::launch(chip, stream, a);
}
