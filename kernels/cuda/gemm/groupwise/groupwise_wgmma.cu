/*
 * groupwise_wgmma.cu - wgmma GEMM with group-wise quantized weights on sm_90a, in the accumulation
 * order of groupwise.cuh: wgmma returns the bits of mma.sync.
 *
 * Weights are the A operand: they go from the TMA pipeline to registers and are dequantized there.
 * Tokens are the B operand in shared memory, from a pipeline too. Each consumer warpgroup has 64
 * weight rows, and all share the tokens.
 *
 * While a k tile is multiplied, weights of the next one are dequantized and a finished split is
 * added to the totals; only scaling the accumulators happens between two wgmma. With many tokens
 * the accumulators leave registers for one k tile of weights: these are then dequantized between
 * wgmma, and the remaining registers hold totals, which are otherwise in shared memory. Meanwhile
 * the tensor cores work for the other warpgroups.
 *
 * The kernel is bound by the latency of a warp's instruction sequence, with two or three warps per
 * scheduler. Therefore barriers are tested long before their result is needed. (Slower:
 * dequantizing between the instructions of a wgmma, halving k tiles or tokens, and strict ping-pong
 * between warpgroups. One warpgroup alone does not saturate the tensor cores, and each instruction
 * takes time to issue.)
 *
 * Many tokens are compute-bound, with accumulators in most registers of two consumer warpgroups.
 * Few tokens are memory-bound, which three warpgroups handle faster.
 *
 * Where there are fewer tiles than SMs, the thread blocks of a cluster split k.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/groupwise/groupwise_wgmma_epilogue.cuh"
#include "kernels/cuda/gemm/groupwise/groupwise_wgmma_split_k.cuh"

enum { STEPS = BLOCKS_RUN / BLOCKS_STEP };

#ifdef FT_HAS_WGMMA

/* ---- Weights -------------------------------------------------------------------------------- */

/* The first of a lane's two rows: rows g and g + 8 of its warp's 16 are adjacent weight rows. */
__device__ __forceinline__ int own_row()
{
    return (int) threadIdx.x / 32 * 16 + (int) threadIdx.x % 32 / 4 * 2;
}

/*
 * A lane's dequantized weights of a k tile: the A operand of each instruction, 16 columns, and the
 * scales.
 */
template <class FORM> struct wgmma_weights {
    uint32_t w[STEPS][2][4];
    float scale[2];

    /*
     * Compiler fence after the wgmma has completed: until then it reads these registers behind the
     * compiler's back.
     */
    __device__ __forceinline__ void settle()
    {
#pragma unroll
        for (int i = 0; i < STEPS * 8; i++)
            asm volatile("" : "+r"(w[i / 8][i / 4 % 2][i % 4]));
    }
};

/* Quantized weights of a k tile, loaded from shared memory. */
template <class FORM> struct wgmma_codes {
    static constexpr int blocks = FORM::bits / 4; /* loads per step */
    ft_bits<2> word[STEPS * blocks];
    uint32_t scales, zeros;

    __device__ __forceinline__ void load(const char *codes, const char *scale, const char *zero)
    {
        int t = (int) threadIdx.x % 4, row = own_row(), chunk = row % BLOCKS_PANEL / 4;
        const char *panel = codes + row / BLOCKS_PANEL * FORM::panel + t * WGMMA_LINE + row % 4 * 4;
        scales = *(const uint32_t *) (scale + 2 * row);
        zeros = zero != NULL ? *(const uint16_t *) (zero + row) : 0;
#pragma unroll
        for (int block = 0; block < STEPS * blocks; block++)
            word[block] = *(const ft_bits<2> *) (panel + block * BLOCKS_BLOCK +
                                                 (chunk ^ (t + block % 2 * 4)) * 16);
    }
    __device__ __forceinline__ void unpack(wgmma_weights<FORM> &to, bool has_zeros) const
    {
        blocks_unpacker<FORM::bits, FORM::kind> unpacker;
        __half2 both = *(const __half2 *) &scales;
        to.scale[0] = __low2float(both);
        to.scale[1] = __high2float(both);
        if (has_zeros)
            unpacker.set(zeros);
#pragma unroll
        for (int step = 0; step < STEPS; step++) {
            uint32_t pair[2][4];
#pragma unroll
            for (int i = 0; i < blocks; i++)
#pragma unroll
                for (int j = 0; j < 2; j++)
                    if constexpr (FORM::bits == 4)
                        unpacker.nibbles(pair[j], word[step].word[j], j);
                    else
                        unpacker.bytes(pair[j] + 2 * i, word[step * blocks + i].word[j], j);
#pragma unroll
            for (int i = 0; i < 8; i++)
                to.w[step][i / 4][i % 4] = pair[i % 2][i / 2];
        }
    }
};

/* ---- Consumer ------------------------------------------------------------------------------- */

template <class FORM> struct wgmma_worker {
    const ft_cuda_blocks &p;
    const wgmma_args &a;
    wgmma_shared<FORM> s;
    wgmma_ring<FORM> codes, x;            /* next k tile to dequantize, and to multiply */
    wgmma_way<FORM> way;                  /* at the k tile that is finished next */
    int left;                             /* k tiles left, including the one being multiplied */
    float run[FORM::tokens / 2];          /* a lane's accumulators of its rows and tokens */
    float stretch[FORM::tokens / 2] = {}; /* 8j + 2t, 8j + 2t + 1 (wgmma.cuh) */
    float kept[FORM::kept * 4 + 1];       /* totals of the first 8-token tiles */

    __device__ __forceinline__ wgmma_worker(const wgmma_shared<FORM> &s, const ft_cuda_blocks &p,
                                            const wgmma_args &a)
        : p(p), a(a), s(s), codes(s.codes()), x(s.x()), way(a), left(way.all_runs())
    {
    }

    /* ---- Totals: the first 8-token tiles in registers, the others in shared memory ---- */

    /* A split is complete; `first`: the first one of the tile. */
    __device__ __forceinline__ void add_up(bool first)
    {
#pragma unroll
        for (int i = 0; i < FORM::eights; i++) {
            float *sum = &stretch[4 * i];
            if (i < FORM::kept) {
#pragma unroll
                for (int j = 0; j < 4; j++)
                    kept[4 * i + j] = first ? sum[j] : kept[4 * i + j] + sum[j];
            } else {
                float4 *total = &s.totals()[i * FORM::workers];
                if (!first) {
                    float4 before = *total;
                    sum[0] = before.x + sum[0];
                    sum[1] = before.y + sum[1];
                    sum[2] = before.z + sum[2];
                    sum[3] = before.w + sum[3];
                }
                *total = make_float4(sum[0], sum[1], sum[2], sum[3]);
            }
            sum[0] = sum[1] = sum[2] = sum[3] = 0.0f;
        }
    }
    /* The tile is complete. */
    __device__ __forceinline__ void put_all()
    {
#pragma unroll
        for (int i = 0; i < FORM::kept; i++)
            s.totals()[i * FORM::workers] =
                make_float4(kept[4 * i], kept[4 * i + 1], kept[4 * i + 2], kept[4 * i + 3]);
        put(0, FORM::eights);
    }
    /* The part of the tile that this block finishes: `m8_tiles` 8-token tiles. */
    __device__ __forceinline__ void put(int first_eight, int eights)
    {
        size_t first = (size_t) way.tile.token + 8 * first_eight, end = first + 8 * eights;
        wgmma_put<FORM>(p, way.tile, first, end < p.m ? end : p.m, own_row(), s.totals());
    }

    /* ---- K tiles ---- */

    __device__ __forceinline__ bool has_zeros() const
    {
        return p.part[0].zero != NULL;
    }
    __device__ __forceinline__ void load_next(wgmma_codes<FORM> &next, bool are_there)
    {
        if (!are_there)
            codes.wait();
        next.load(s.codes_of(codes), s.scales_of(codes), has_zeros() ? s.zeros_of(codes) : NULL);
    }
    __device__ __forceinline__ void unpack_next(wgmma_weights<FORM> &weights,
                                                const wgmma_codes<FORM> &next)
    {
        next.unpack(weights, has_zeros());
        __syncwarp();
        codes.release();
        codes.advance();
    }
    /* Issues the wgmma without waiting for it. */
    __device__ __forceinline__ void multiply(const wgmma_weights<FORM> &weights, bool is_there)
    {
        uint64_t tokens = ft_wgmma_operand(s.x_of(x));
        if (!is_there)
            x.wait();
        ft_wgmma_begin();
#pragma unroll
        for (int step = 0; step < STEPS; step++)
#pragma unroll
            for (int i = 0; i < 2; i++)
                ft_wgmma_halves_held<FORM::tokens, FORM::kind == BLOCKS_BF16>(
                    run, weights.w[step][i],
                    tokens + step / 2 * (FORM::x_box / 16) + step % 2 * 4 + i * 2, step + i > 0);
        ft_wgmma_commit();
    }
    __device__ __forceinline__ void wait(wgmma_weights<FORM> &weights)
    {
        ft_wgmma_wait<0>();
        ft_wgmma_settle(run);
        weights.settle();
        x.release();
        x.advance();
    }
    __device__ __forceinline__ void scale(const wgmma_weights<FORM> &weights)
    {
#pragma unroll
        for (int i = 0; i < FORM::tokens / 2; i++)
            stretch[i] = fmaf(weights.scale[i % 4 / 2], run[i], stretch[i]);
    }
    /* After a k tile: advance, and handle the end of a split or tile. */
    __device__ __forceinline__ void finish_run()
    {
        int number = way.column / BLOCKS_STRETCH;
        way.advance();
        bool ends = way.ends();
        if (!ends && way.column % BLOCKS_STRETCH != 0)
            return;
        if (FORM::shares && a.ranks > 1) {
            wgmma_sharer<FORM> sharer(s, way, p.m);
            sharer.add(number, ends, stretch);
            if (ends)
                put(sharer.first, sharer.count);
            return;
        }
        add_up(number == 0);
        if (ends) {
            put_all();
            way.next_tile();
        }
    }
    /* Mainloop with one k tile of weights in registers: the next one is loaded during the wgmma. */
    __device__ __forceinline__ void work_in_place()
    {
        wgmma_weights<FORM> weights;
        wgmma_codes<FORM> next;
        load_next(next, false);
        unpack_next(weights, next);
        multiply(weights, false);
        for (bool begun = false;; begun = true) {
            bool follows = left > 1, codes_are_there = follows && codes.is_there();
            if (begun)
                finish_run(); /* the previous one */
            if (follows)
                load_next(next, codes_are_there);
            wait(weights);
            bool x_is_there = x.is_there();
            scale(weights);
            if (!follows)
                break;
            unpack_next(weights, next);
            multiply(weights, x_is_there);
            left--;
        }
        finish_run();
    }
    /*
     * Finish a k tile while the next one, whose weights are ready, is multiplied; then dequantize
     * the one after it into the registers of the first.
     */
    __device__ __forceinline__ void advance(wgmma_weights<FORM> &weights,
                                            const wgmma_weights<FORM> &next)
    {
        wait(weights);
        bool follows = left > 2, x_is_there = x.is_there();
        bool codes_are_there = follows && codes.is_there();
        scale(weights);
        multiply(next, x_is_there);
        finish_run();
        if (follows)
            unpack(weights, codes_are_there);
        left--;
    }
    __device__ __forceinline__ void end(wgmma_weights<FORM> &weights)
    {
        wait(weights);
        scale(weights);
        finish_run();
    }
    __device__ __forceinline__ void unpack(wgmma_weights<FORM> &weights, bool are_there)
    {
        wgmma_codes<FORM> next;
        load_next(next, are_there);
        unpack_next(weights, next);
    }
    /* Mainloop with double-buffered weights. */
    __device__ __forceinline__ void work_ahead()
    {
        wgmma_weights<FORM> even, odd;
        unpack(even, false);
        multiply(even, false);
        if (left > 1)
            unpack(odd, false);
        for (;;) {
            if (left == 1)
                return end(even);
            advance(even, odd);
            if (left == 1)
                return end(odd);
            advance(odd, even);
        }
    }
    __device__ __forceinline__ void work()
    {
        ft_wait_for_predecessor(); /* earlier kernels may still read the previous contents of y */
        if constexpr (FORM::ahead)
            work_ahead();
        else
            work_in_place();
    }
};

#endif

/* grid: clusters of a.cluster_size thread blocks per tile, or as many blocks as there are SMs */
template <class FORM>
static __global__ void __launch_bounds__(FORM::threads, 1)
    wgmma_kernel(const __grid_constant__ ft_cuda_blocks p, const __grid_constant__ wgmma_args a)
{
#ifdef FT_HAS_WGMMA
    extern __shared__ __align__(1024) char shared[];
    const wgmma_shared<FORM> s = { shared, a };
    const bool shares = FORM::shares && a.ranks > 1;
    if (threadIdx.x == FORM::workers) {
        s.x().set_up();
        s.codes().set_up();
        ft_barrier_init(&s.arrivals()[0], 1);
        ft_barrier_init(&s.arrivals()[1], 1);
        ft_barriers_ready();
    }
    __syncthreads();
    if (shares)
        ft_cluster_begin();
    if (threadIdx.x < FORM::workers) {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(FORM::registers));
        wgmma_worker<FORM>(s, p, a).work();
    } else {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(FORM::others));
        if (threadIdx.x == FORM::workers)
            wgmma_load_weights<FORM>(s, p, a);
        else if (threadIdx.x == FORM::workers + 32)
            wgmma_load_tokens<FORM>(s, a);
        __syncwarp();
        if (shares)
            ft_cluster_wait();
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
            wgmma_kernel<FORM>, cudaFuncAttributeMaxDynamicSharedMemorySize, WGMMA_ROOM);
    unsigned most = (unsigned) chip->multiprocessors, tiles = (unsigned) a.tiles;
    unsigned blocks = a.ranks > 1 ? tiles * (unsigned) a.ranks : tiles < most ? tiles : most;
    return status != 0
               ? status
               : ft_launch(wgmma_kernel<FORM>, blocks, FORM::threads, wgmma_shared_bytes<FORM>(&a),
                           stream, chip->overlaps, (unsigned) a.ranks, *p, a);
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
    double of_narrow = wgmma_plan_of<narrow>(chip, p).time;
    double of_wide = wgmma_plan_of<wide>(chip, p).time;
    if constexpr (bits == 4) { /* 8-bit weights would not leave enough registers */
        using three = wgmma_form<bits, kind, 3, 64>;
        double of_three = wgmma_plan_of<three>(chip, p).time;
        if (of_three < of_narrow && of_three < of_wide)
            return launch<three>(chip, stream, p);
    }
    return of_narrow < of_wide ? launch<narrow>(chip, stream, p) : launch<wide>(chip, stream, p);
}

/* Whole k tiles, group sizes that are multiples of a k tile, and x without conversion. */
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
