/*
 * decode.cu - decode attention: one query per sequence over its cached keys; limited by memory
 * bandwidth.
 *
 * The keys of a sequence are divided among CTAs (split-K), and those of a CTA among its warps, at
 * positions that depend on the query's position alone. Up to eight query heads that share one KV
 * head are columns of one MMA, so that the keys are read once: a . b^T with keys as rows of a and
 * heads as columns, then the transposed values with the elements of a head as rows. Only softmax
 * weights cross lanes. A lane copies 16 bytes of a row at once and has its own operands, because
 * the assignment of elements to MMA indices is free. The values of two keys are paired by byte
 * permutations.
 *
 * int8 values convert exactly to f16 by two instructions for two values. The scales of keys
 * multiply the scores. The scales of values multiply the softmax weights before these are rounded
 * to f16, divided by a power of two near the largest of them; so small scales do not produce f16
 * subnormals.
 *
 * Partial sums are always weighted and added in the same way and order, so the result does not
 * depend on how many splits a CTA computes. With many sequences a CTA computes all splits of a head
 * and the result. With few sequences it computes one split, and the last CTA of a sequence and head
 * to finish combines all of them. decode_short.cu handles many short sequences with one warp each.
 *
 * A CTA loads its first keys before its predecessor has ended. Only the newest key may still be
 * pending then: earlier keys and the batch metadata were written before the predecessor began
 * (common.cuh: a kernel launches its dependents after its own wait).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/attention/cache/decode_dispatch.cuh"
#include "kernels/cuda/attention/cache/decode_split_k.cuh"
#include "kernels/cuda/attention/cache/decode_iterate.cuh"

/* ---- The kernel ----------------------------------------------------------------------------- */

/* From sm_100 on the same code needs a few more registers: one CTA per SM less. */
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 1000
enum { FEWER = 1 };
#else
enum { FEWER = 0 };
#endif

/*
 * One less with beam search, where lanes look up their keys and the registers also hold int8 values
 * and as many sums.
 */
template <bool lanes, ft_dtype stored, int width>
static constexpr int blocks_of = form<stored, width>::blocks - FEWER -
                                 (lanes && form<stored, width>::row == 128 ? 1 : 0);

/*
 * Grid: CTAs over the splits, KV heads times groups of HEADS query heads, sequences (or groups of
 * sequences that read the same keys). Each sequence has one row, with the same index.
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
        ft_wait_for_predecessor(); /* otherwise the dependent kernel could begin before the
                                      predecessor has ended */
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
        __syncthreads(); /* all warps have read what the next split overwrites */
    }
    verdict *v = (verdict *) r->warp; /* keys and values have been read */
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

/* Splits per CTA: as many as still leave enough CTAs to fill all multiprocessors several times. */
static int parts_of_block(const ft_cuda_chip *chip, size_t ctas)
{
    int parts = PARTS_OF_BLOCK;
    while (parts > 1 && ctas / (size_t) parts < BLOCKS_WANTED * (size_t) chip->multiprocessors)
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
