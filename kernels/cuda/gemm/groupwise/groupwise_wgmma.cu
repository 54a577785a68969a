/*
 * groupwise_wgmma.cu - products with weights in blocks for more rows on sm_90a, with the sums of
 * groupwise.cuh: a warpgroup's instructions give the bits of a warp's.
 *
 * Weights are the left operand: codes go from a ring, which the copies of the tensor memory
 * accelerator fill, to registers and become numbers there.  Tokens are the right operand, from a
 * ring too.  Each warpgroup of a block has 64 weights, and all have the same tokens.
 *
 * While a run's product is under way, weights of the next one are unpacked, and a stretch that is
 * there is added up; only the scaling of sums is between a product and the next one.  Of many
 * tokens sums take so many registers that weights have room for one run: they are unpacked between
 * products, too, and what that leaves of registers is totals, which else are read and written in
 * shared memory.  Meanwhile the tensor cores have the products of the other warpgroups.
 *
 * They wait for the warps, of which a scheduler has two or three: what counts is how long a warp's
 * way through all this is.  So whether a copy has come is asked long before it must be known.
 * (Unpacking between the instructions of a product, halves of a run or of the tokens, and
 * warpgroups in strict turns all took longer: one warpgroup alone does not fill the tensor cores,
 * and each instruction takes a while to be issued.)
 *
 * Many tokens: multiplying is most of the time, and sums take most registers of two warpgroups.
 * Few: reading weights is, which three do faster.
 *
 * Where there are fewer tiles than multiprocessors, the blocks of a cluster share one out.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm/groupwise/groupwise_wgmma_epilogue.cuh"
#include "kernels/cuda/gemm/groupwise/groupwise_wgmma_split_k.cuh"

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

    /* Once the product has been waited for: until then it reads these registers, which the compiler
     * does not know. */
    __device__ __forceinline__ void settle()
    {
#pragma unroll
        for (int i = 0; i < STEPS * 8; i++)
            asm volatile("" : "+r"(w[i / 8][i / 4 % 2][i % 4]));
    }
};

/* What these are made of, as it lies in shared memory. */
template <class FORM> struct wgmma_codes {
    static constexpr int blocks = FORM::bits / 4; /* of a step */
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

/* ---- Working -------------------------------------------------------------------------------- */

template <class FORM> struct wgmma_worker {
    const ft_cuda_blocks &p;
    const wgmma_args &a;
    wgmma_shared<FORM> s;
    wgmma_ring<FORM> codes, x;            /* of the next run to unpack, and to multiply */
    wgmma_way<FORM> way;                  /* from the run on that is to be finished */
    int left;                             /* runs from the one on that is multiplied */
    float run[FORM::tokens / 2];          /* a lane's sums: of its rows and tokens */
    float stretch[FORM::tokens / 2] = {}; /* 8j + 2t, 8j + 2t + 1 (wgmma.cuh) */
    float kept[FORM::kept * 4 + 1];       /* totals of the first eights */

    __device__ __forceinline__ wgmma_worker(const wgmma_shared<FORM> &s, const ft_cuda_blocks &p,
                                            const wgmma_args &a)
        : p(p), a(a), s(s), codes(s.codes()), x(s.x()), way(a), left(way.all_runs())
    {
    }

    /* ---- Totals: the first eights in registers, the others in shared memory ---- */

    /* A stretch is there, the tile's first one perhaps. */
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
    /* The tile is there. */
    __device__ __forceinline__ void put_all()
    {
#pragma unroll
        for (int i = 0; i < FORM::kept; i++)
            s.totals()[i * FORM::workers] =
                make_float4(kept[4 * i], kept[4 * i + 1], kept[4 * i + 2], kept[4 * i + 3]);
        put(0, FORM::eights);
    }
    /* As far as this block finishes it: `eights` of its tokens. */
    __device__ __forceinline__ void put(int first_eight, int eights)
    {
        size_t first = (size_t) way.tile.token + 8 * first_eight, end = first + 8 * eights;
        wgmma_put<FORM>(p, way.tile, first, end < p.m ? end : p.m, own_row(), s.totals());
    }

    /* ---- Runs ---- */

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
    /* To be waited for. */
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
    /* After a run: the tile's next one, or what follows. */
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
    /* Weights of one run: those of the next one are unpacked when it is multiplied. */
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
                finish_run(); /* the one before */
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
     * Finish a run while the next one is multiplied, whose weights are there; then unpack the one
     * after it to where those of the first one were.
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
    /* Weights of two runs. */
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
        ft_wait_for_predecessor(); /* who may read what y was */
        if constexpr (FORM::ahead)
            work_ahead();
        else
            work_in_place();
    }
};

#endif

/* grid: clusters of a.ranks blocks for each tile, or as many blocks as there are multiprocessors */
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
    if constexpr (bits == 4) { /* of eight they would not find enough registers */
        using three = wgmma_form<bits, kind, 3, 64>;
        double of_three = wgmma_plan_of<three>(chip, p).time;
        if (of_three < of_narrow && of_three < of_wide)
            return launch<three>(chip, stream, p);
    }
    return of_narrow < of_wide ? launch<narrow>(chip, stream, p) : launch<wide>(chip, stream, p);
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
