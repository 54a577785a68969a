/*
 * blocks_wgmma.cu - products with weights in blocks for more rows on sm_90a, with the sums of
 * blocks.cuh: a warpgroup's instructions give the bits of a warp's.
 *
 * Weights are the left operand: codes go from a ring, which the copies of the tensor memory
 * accelerator fill, to registers and become numbers there.  Tokens are the right operand, from a
 * ring too.  Each warpgroup of a block has 64 weights, and all have the same tokens.
 *
 * A run's product takes a warpgroup about as long as what it does beside: to unpack the weights of
 * the run after the next one, to add stretches up.  So two runs' weights are in registers, and only
 * the scaling of a run's sums is between its product and the next one; meanwhile the tensor cores
 * have the products of the other warpgroups.  No warpgroup waits for another but through the rings.
 * (Of 90 instructions that unpack a run none is worth much by itself, and a run that is multiplied
 * in two halves, or in turns with another warpgroup, takes as long.  What a tile's stores cost is:
 * they are not to look up for each token what is the same for all.)
 *
 * Many tokens: multiplying is most of the time, and sums take most registers of two warpgroups.
 * Few: reading weights is, which three do faster.
 *
 * Where there are fewer tiles than blocks, stretches are shared out too, as in blocks_tiles.cu.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/blocks_wgmma_finish.cuh"

enum { STEPS = BLOCKS_RUN / BLOCKS_STEP };

#ifdef FT_HAS_WGMMA

/* ---- Weights -------------------------------------------------------------------------------- */

/* The first of a lane's two rows: rows g and g + 8 of its warp's 16 are neighbours. */
__device__ __forceinline__ int own_row()
{
    return (int) threadIdx.x / 32 * 16 + (int) threadIdx.x % 32 / 4 * 2;
}

/* A lane's part of a run: the left operand of each instruction, of 16 columns, and the scales. */
template <class FORM> struct wgmma_weights {
    uint32_t w[STEPS][2][4];
    float scale[2];

    __device__ __forceinline__ void unpack(const char *codes, const char *scales, const char *zeros)
    {
        constexpr int blocks = FORM::bits / 4; /* of a step */
        int t = (int) threadIdx.x % 4, row = own_row(), chunk = row % BLOCKS_PANEL / 4;
        const char *panel = codes + row / BLOCKS_PANEL * FORM::panel + t * WGMMA_LINE + row % 4 * 4;
        blocks_unpacker<FORM::bits, FORM::kind> unpacker;
        __half2 both = *(const __half2 *) (scales + 2 * row);
        scale[0] = __low2float(both);
        scale[1] = __high2float(both);
        if (zeros != NULL)
            unpacker.set(*(const uint16_t *) (zeros + row));
#pragma unroll
        for (int step = 0; step < STEPS; step++) {
            uint32_t pair[2][4];
#pragma unroll
            for (int i = 0; i < blocks; i++) {
                int block = step * blocks + i, place = chunk ^ (t + block % 2 * 4);
                ft_bits<2> word = *(const ft_bits<2> *) (panel + block * BLOCKS_BLOCK + place * 16);
#pragma unroll
                for (int j = 0; j < 2; j++)
                    if constexpr (FORM::bits == 4)
                        unpacker.nibbles(pair[j], word.word[j], j);
                    else
                        unpacker.bytes(pair[j] + 2 * i, word.word[j], j);
            }
#pragma unroll
            for (int i = 0; i < 8; i++)
                w[step][i / 4][i % 4] = pair[i % 2][i / 2];
        }
    }
    /* Once the product has been waited for: until then it reads these registers, which the compiler
     * does not know. */
    __device__ __forceinline__ void settle()
    {
#pragma unroll
        for (int i = 0; i < STEPS * 8; i++)
            asm volatile("" : "+r"(w[i / 8][i / 4 % 2][i % 4]));
    }
};

/* ---- Working -------------------------------------------------------------------------------- */

/* Runs of all items of a block. */
template <class FORM> __device__ __forceinline__ int runs_of(const wgmma_args &a)
{
    int runs = 0;
    for (int number = (int) blockIdx.x; number < a.items; number += (int) gridDim.x) {
        wgmma_item item = wgmma_item_of<FORM>(a, number);
        runs += (item.end - item.column) / BLOCKS_RUN;
    }
    return runs;
}

template <class FORM> struct wgmma_worker {
    const ft_cuda_blocks &p;
    const wgmma_args &a;
    wgmma_shared<FORM> s;
    wgmma_ring<FORM> codes, x; /* of the next run to unpack, and to multiply */
    int number = (int) blockIdx.x, left;
    wgmma_item item;                      /* from the run on that is multiplied */
    float run[FORM::tokens / 2];          /* a lane's sums: of its rows and tokens */
    float stretch[FORM::tokens / 2] = {}; /* 8j + 2t, 8j + 2t + 1 (wgmma.cuh) */

    __device__ __forceinline__ wgmma_worker(const wgmma_shared<FORM> &s, const ft_cuda_blocks &p,
                                            const wgmma_args &a)
        : p(p), a(a), s(s), codes(s.codes()), x(s.x()), left(runs_of<FORM>(a)),
          item(wgmma_item_of<FORM>(a, number))
    {
    }
    __device__ __forceinline__ void unpack_next(wgmma_weights<FORM> &weights)
    {
        codes.wait();
        weights.unpack(s.codes_of(codes), s.scales_of(codes),
                       p.part[0].zero != NULL ? s.zeros_of(codes) : NULL);
        __syncwarp();
        codes.release();
        codes.advance();
    }
    /* To be waited for. */
    __device__ __forceinline__ void multiply(const wgmma_weights<FORM> &weights)
    {
        uint64_t tokens = ft_wgmma_operand(s.x_of(x));
        x.wait();
        ft_wgmma_begin();
#pragma unroll
        for (int step = 0; step < STEPS; step++)
#pragma unroll
            for (int i = 0; i < 2; i++)
                wgmma_multiply<FORM::tokens, FORM::kind == BLOCKS_BF16>(
                    run, weights.w[step][i],
                    tokens + step / 2 * (FORM::x_box / 16) + step % 2 * 4 + i * 2, step + i > 0);
        ft_wgmma_commit();
    }
    /* A stretch is there: it is added to what the thread has in shared memory. */
    __device__ __forceinline__ void add_up(bool first)
    {
        float4 *totals = s.totals();
#pragma unroll
        for (int i = 0; i < FORM::tokens / 8; i++) {
            float *sum = &stretch[4 * i];
            if (!first) {
                float4 before = totals[i * FORM::workers];
                sum[0] = before.x + sum[0];
                sum[1] = before.y + sum[1];
                sum[2] = before.z + sum[2];
                sum[3] = before.w + sum[3];
            }
            totals[i * FORM::workers] = make_float4(sum[0], sum[1], sum[2], sum[3]);
            sum[0] = sum[1] = sum[2] = sum[3] = 0.0f;
        }
    }
    /* After a run: the item's next one, or what follows. */
    __device__ __forceinline__ void finish_run()
    {
        int number_of_stretch = item.column / BLOCKS_STRETCH;
        item.column += BLOCKS_RUN;
        bool ends = item.column == item.end;
        if (!ends && item.column % BLOCKS_STRETCH != 0)
            return;
        add_up(a.sums != NULL || number_of_stretch == 0);
        if (ends || a.sums != NULL)
            wgmma_put<FORM>(p, a, item, number_of_stretch, own_row(), s.totals());
        if (ends && left > 1)
            item = wgmma_item_of<FORM>(a, number += (int) gridDim.x);
    }
    /* The run that was multiplied is there. */
    __device__ __forceinline__ void add(wgmma_weights<FORM> &weights)
    {
        ft_wgmma_wait<0>();
        ft_wgmma_settle(run);
        weights.settle();
        x.release();
        x.advance();
#pragma unroll
        for (int i = 0; i < FORM::tokens / 2; i++)
            stretch[i] = fmaf(weights.scale[i % 4 / 2], run[i], stretch[i]);
    }
    /*
     * Finish a run while the next one is multiplied, whose weights are there; then unpack the one
     * after it to where those of the first one were.
     */
    __device__ __forceinline__ void advance(wgmma_weights<FORM> &weights,
                                            const wgmma_weights<FORM> &next)
    {
        add(weights);
        multiply(next);
        finish_run();
        if (left > 2)
            unpack_next(weights);
        left--;
    }
    __device__ __forceinline__ void end(wgmma_weights<FORM> &weights)
    {
        add(weights);
        finish_run();
    }
    __device__ __forceinline__ void work()
    {
        wgmma_weights<FORM> even, odd;
        ft_wait_for_predecessor(); /* who may read what y was */
        unpack_next(even);
        multiply(even);
        if (left > 1)
            unpack_next(odd);
        for (;;) {
            if (left == 1)
                return end(even);
            advance(even, odd);
            if (left == 1)
                return end(odd);
            advance(odd, even);
        }
    }
};

#endif

/* grid = items, or as many blocks as there are multiprocessors. */
template <class FORM>
static __global__ void __launch_bounds__(FORM::threads, 1)
    wgmma_kernel(const __grid_constant__ ft_cuda_blocks p, const __grid_constant__ wgmma_args a)
{
#ifdef FT_HAS_WGMMA
    extern __shared__ __align__(1024) char shared[];
    const wgmma_shared<FORM> s = { shared };
    if (threadIdx.x == FORM::workers) {
        s.x().set_up();
        s.codes().set_up();
        ft_barriers_ready();
    }
    __syncthreads();
    if (threadIdx.x < FORM::workers) {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(FORM::registers));
        wgmma_worker<FORM>(s, p, a).work();
    } else {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(FORM::others));
        if (threadIdx.x == FORM::workers)
            wgmma_load_weights<FORM>(s, p, a);
        else if (threadIdx.x == FORM::workers + 32)
            wgmma_load_tokens<FORM>(s, a);
    }
#endif
}

/* ---- Host ----------------------------------------------------------------------------------- */

template <class FORM>
static int launch(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p)
{
    wgmma_args a;
    int status = wgmma_args_init<FORM>(&a, chip, p);
    if (status == 0)
        status = (int) cudaFuncSetAttribute(
            wgmma_kernel<FORM>, cudaFuncAttributeMaxDynamicSharedMemorySize, FORM::shared);
    unsigned items = (unsigned) a.items, most = (unsigned) chip->multiprocessors;
    if (status == 0)
        status = ft_launch(wgmma_kernel<FORM>, dim3(items < most ? items : most), FORM::threads,
                           FORM::shared, stream, chip->overlaps, 1, *p, a);
    return status != 0 ? status : wgmma_add_up(chip, stream, p, &a);
}

template <int bits, blocks_kind kind>
static int launch_size(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p)
{
    using narrow = wgmma_form<bits, kind, 2, 64>;
    using wide = wgmma_form<bits, kind, 2, 128>;
    if (p->m <= 16)
        return launch<wgmma_form<bits, kind, 3, 16>>(chip, stream, p);
    if (p->m <= 32)
        return launch<wgmma_form<bits, kind, 3, 32>>(chip, stream, p);
    return wgmma_plan_of<narrow>(chip, p).time < wgmma_plan_of<wide>(chip, p).time
               ? launch<narrow>(chip, stream, p)
               : launch<wide>(chip, stream, p);
}

/* Sums of stretches, where tokens are few, and tiles too: else it is soonest done without. */
size_t ft_cuda_blocks_wgmma_scratch(const ft_cuda_chip *chip, size_t m, size_t n, size_t k)
{
    size_t panels = n / BLOCKS_PANEL + FT_CUDA_PARTS;
    size_t stretches = (k + BLOCKS_STRETCH - 1) / BLOCKS_STRETCH;
    m = m < WGMMA_SPLIT_ROWS ? m : WGMMA_SPLIT_ROWS;
    return chip->has_wgmma && panels <= 2 * (size_t) chip->multiprocessors
               ? wgmma_sums_bytes(m, panels, stretches)
               : 0;
}

/* Whole runs of groups of whole runs, and x as it is. */
bool ft_cuda_blocks_wgmma_takes(const ft_cuda_chip *chip, const ft_cuda_blocks *p)
{
    blocks_shape shape = blocks_shape_of(p);
    uint64_t tiles = ((uint64_t) shape.panels / 4 + FT_CUDA_PARTS) * (p->m / 16 + 1);
    return chip->has_wgmma && p->k % BLOCKS_RUN == 0 && !blocks_are_fine(p) &&
           p->x_dtype != FT_F32 && (uintptr_t) p->x % 16 == 0 && p->k < 1u << 20 &&
           tiles * (uint64_t) shape.stretches < 1u << 31 && chip->shared >= WGMMA_ROOM;
}

int ft_cuda_blocks_wgmma(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p)
{
    bool bf16 = p->x_dtype == FT_BF16;
    return p->bits == 4 ? bf16 ? launch_size<4, BLOCKS_BF16>(chip, stream, p)
                               : launch_size<4, BLOCKS_F16>(chip, stream, p)
           : bf16 ? launch_size<8, BLOCKS_BF16>(chip, stream, p)
                        : launch_size<8, BLOCKS_F16>(chip, stream, p);
}
