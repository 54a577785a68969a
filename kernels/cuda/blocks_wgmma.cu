/*
 * blocks_wgmma.cu - products with weights in blocks for more rows on sm_90a, with the sums of
 * blocks.cuh: a warpgroup's instructions give the bits of a warp's.
 *
 * Weights are the left operand: codes go from a ring, which the copies of the tensor memory
 * accelerator fill, to registers and become numbers there; while one step of 32 columns is
 * multiplied, the next one is unpacked.  Tokens are the right operand, from the ring.  The two
 * warpgroups of a block wait for no more than the ring, so one scales its sums or stores results
 * while the other one multiplies.
 *
 * Few tokens: reading weights is much of the time, so a block has 256 weights, of which each
 * warpgroup has its own.  Many: multiplying is all of it, so both warpgroups have the same 128, two
 * rows each of every chunk of four, and as many tokens as there are registers for sums.
 *
 * Where there are fewer tiles than blocks, stretches are shared out too, as in blocks_tiles.cu.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/blocks_wgmma.cuh"

/* A whole warpgroup beside the workers: it gives up its registers to them. */
enum { THREADS = WGMMA_WORKERS + WGMMA_TEAM };

#ifdef FT_HAS_WGMMA

/* A lane's sums: of its rows, two for each tile, and tokens 8j + 2t, 8j + 2t + 1 (wgmma.cuh). */
template <class FORM> using wgmma_sums = float[FORM::tiles][FORM::tokens / 2];

/* ---- Who has what --------------------------------------------------------------------------- */

/*
 * The chunk of a line, and so the four rows of a panel, that lanes 4g .. 4g + 3 have.  In this
 * order the lanes of a load of 8 bytes meet in no more banks than they must, and those of a load of
 * 16 in none.
 */
template <class FORM> __device__ __forceinline__ int chunk_of(int lane)
{
    int g = lane / 4;
    return FORM::tiles == 1 ? (g & 1) | (g & 2) << 1 | (g & 4) >> 1 : (g & 1) << 2 | g >> 1;
}

/* The warp's panel of the tile, and the first of the lane's rows in it. */
template <class FORM> __device__ __forceinline__ int panel_of()
{
    int warp = (int) threadIdx.x / 32;
    return FORM::tiles == 1 ? warp % 4 : warp;
}

template <class FORM> __device__ __forceinline__ int row_of()
{
    int first = FORM::tiles == 1 ? (int) threadIdx.x / WGMMA_TEAM * 2 : 0;
    return chunk_of<FORM>((int) threadIdx.x % 32) * 4 + first;
}

/* ---- Multiplying ---------------------------------------------------------------------------- */

template <class FORM> using wgmma_unpacker = blocks_unpacker<FORM::bits, FORM::kind>;

/* 32 columns of the lane's rows: of instruction `tile` and half of the step. */
template <class FORM>
__device__ __forceinline__ void unpack_step(uint32_t (&a)[FORM::tiles][2][4],
                                            const wgmma_unpacker<FORM> &unpacker, const char *stage,
                                            int step)
{
    constexpr int rows = 2 * FORM::tiles, blocks = FORM::bits / 4;
    int lane = (int) threadIdx.x % 32, t = lane % 4;
    const char *panel = stage + panel_of<FORM>() * FORM::panel + t * WGMMA_LINE;
    uint32_t pair[rows][4];
#pragma unroll
    for (int i = 0; i < blocks; i++) {
        int block = step * blocks + i, chunk = chunk_of<FORM>(lane) ^ (t + block % 2 * 4);
        const char *at = panel + block * BLOCKS_BLOCK + chunk * 16 + row_of<FORM>() % 4 * 4;
        ft_bits<rows> word = *(const ft_bits<rows> *) at;
#pragma unroll
        for (int row = 0; row < rows; row++)
            if constexpr (FORM::bits == 4)
                unpacker.nibbles(pair[row], word.word[row], row);
            else
                unpacker.bytes(pair[row] + 2 * i, word.word[row], row);
    }
#pragma unroll
    for (int i = 0; i < 8 * FORM::tiles; i++)
        a[i / 8][i / 4 % 2][i % 4] = pair[i / 8 * 2 + i % 2][i % 8 / 2];
}

/* Scales and zeros of the lane's rows. */
template <class FORM>
__device__ __forceinline__ void read_scales(float (&scale)[2 * FORM::tiles],
                                            wgmma_unpacker<FORM> &unpacker, const char *stage,
                                            bool has_zeros)
{
    int row = panel_of<FORM>() * BLOCKS_PANEL + row_of<FORM>();
    const char *zeros = stage + FORM::zeros_at + row;
#pragma unroll
    for (int i = 0; i < 2 * FORM::tiles; i++)
        scale[i] = __half2float(((const __half *) (stage + FORM::scales_at))[row + i]);
    if (has_zeros)
        unpacker.set(FORM::tiles == 1 ? *(const uint16_t *) zeros : *(const uint32_t *) zeros);
}

/*
 * sums += the run that begins in the position's stage, which moves on.  While one step is with the
 * tensor cores, the next one is unpacked.
 */
template <class FORM>
__device__ __forceinline__ void multiply_run(const wgmma_ring<FORM> &ring, wgmma_position<FORM> &at,
                                             wgmma_sums<FORM> &sums, bool has_zeros)
{
    constexpr bool bf16 = FORM::kind == BLOCKS_BF16;
    constexpr int steps = BLOCKS_RUN / BLOCKS_STEP, each = WGMMA_COLUMNS / BLOCKS_STEP;
    bool first_lane = threadIdx.x % 32 == 0;
    wgmma_unpacker<FORM> unpacker;
    uint32_t a[2][FORM::tiles][2][4];
    wgmma_sums<FORM> run;
    float scale[2 * FORM::tiles];
    int before = at.slot;
#pragma unroll
    for (int step = 0; step < steps; step++) {
        const char *stage = ring.stages + at.slot * FORM::stage;
        uint64_t x = ft_wgmma_operand(stage + FORM::panels * FORM::panel) + step % each * 4;
        if (step % each == 0)
            ft_barrier_wait(&ring.full[at.slot], at.parity);
        if (step == 0)
            read_scales<FORM>(scale, unpacker, stage, has_zeros);
        unpack_step<FORM>(a[step % 2], unpacker, stage, step % each);
        ft_wgmma_begin();
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int tile = 0; tile < FORM::tiles; tile++)
                wgmma_multiply<FORM::tokens, bf16>(run[tile], a[step % 2][tile][half], x + half * 2,
                                                   step + half > 0);
        ft_wgmma_commit();
        if (step + 1 < steps)
            ft_wgmma_wait<1>();
        else
            ft_wgmma_wait<0>();
        if (step % each == 0 && step > 0 && first_lane)
            ft_barrier_arrive(&ring.empty[before]);
        if (step % each == each - 1) {
            before = at.slot;
            at.advance();
        }
    }
    if (first_lane)
        ft_barrier_arrive(&ring.empty[before]);
#pragma unroll
    for (int tile = 0; tile < FORM::tiles; tile++) {
        ft_wgmma_settle(run[tile]);
#pragma unroll
        for (int i = 0; i < FORM::tokens / 2; i++)
            sums[tile][i] = fmaf(scale[tile * 2 + i % 4 / 2], run[tile][i], sums[tile][i]);
    }
}

/* ---- Sums of stretches ---------------------------------------------------------------------- */

/* Four of the lane's sums. */
template <class FORM> __device__ __forceinline__ float *four_of(wgmma_sums<FORM> &sums, int four)
{
    return &sums[four / (FORM::tokens / 8)][four % (FORM::tokens / 8) * 4];
}

/* Totals are in shared memory, a thread's own each: sums = what was added up before + sums. */
template <class FORM>
__device__ __forceinline__ void add_totals(wgmma_sums<FORM> &sums, const float4 *totals)
{
#pragma unroll
    for (int i = 0; i < FORM::sums / 4; i++) {
        float4 before = totals[i * WGMMA_WORKERS + threadIdx.x];
        float *sum = four_of<FORM>(sums, i);
        sum[0] = before.x + sum[0];
        sum[1] = before.y + sum[1];
        sum[2] = before.z + sum[2];
        sum[3] = before.w + sum[3];
    }
}

template <class FORM>
__device__ __forceinline__ void keep_totals(float4 *totals, wgmma_sums<FORM> &sums)
{
#pragma unroll
    for (int i = 0; i < FORM::sums / 4; i++) {
        const float *sum = four_of<FORM>(sums, i);
        totals[i * WGMMA_WORKERS + threadIdx.x] = make_float4(sum[0], sum[1], sum[2], sum[3]);
    }
}

/* ---- Results -------------------------------------------------------------------------------- */

/* N columns: results, or sums of a stretch. */
template <int N>
__device__ __forceinline__ void put_some(const ft_cuda_blocks &p, const wgmma_args &a,
                                         const ft_cuda_blocks_part &part, int stretch, size_t token,
                                         size_t before, size_t row, float *value)
{
    size_t columns = (size_t) a.all.panels * BLOCKS_PANEL;
    if (a.sums == NULL) {
        blocks_put<N>(p, part, token, row, value);
    } else if (row < part.rows) {
        float *to = a.sums + ((size_t) stretch * p.m + token) * columns + before + row;
        ft_store_as<FT_F32, N>(to, 0, value);
    }
}

/*
 * A lane's neighbouring columns of each of its tokens, from where it has its totals: out of
 * registers this cannot be a loop, and written out it is long and takes as long to be fetched.
 */
template <class FORM>
__device__ __forceinline__ void put(const ft_cuda_blocks &p, const wgmma_args &a,
                                    const wgmma_item &item, int stretch, const float4 *totals)
{
    const ft_cuda_blocks_part &part = p.part[item.part];
    size_t row = (size_t) (item.panel + panel_of<FORM>()) * BLOCKS_PANEL + row_of<FORM>();
    size_t first = (size_t) item.token + threadIdx.x % 4 * 2;
    size_t before = (size_t) a.all.first[item.part] * BLOCKS_PANEL;
#pragma unroll 1
    for (int i = 0; i < FORM::tokens / 8; i++) {
        float value[2][2 * FORM::tiles];
#pragma unroll
        for (int tile = 0; tile < FORM::tiles; tile++) {
            float4 four = totals[(tile * (FORM::tokens / 8) + i) * WGMMA_WORKERS + threadIdx.x];
            value[0][2 * tile] = four.x;
            value[1][2 * tile] = four.y;
            value[0][2 * tile + 1] = four.z;
            value[1][2 * tile + 1] = four.w;
        }
#pragma unroll 1
        for (int c = 0; c < 2; c++) {
            float own[2 * FORM::tiles];
#pragma unroll
            for (int j = 0; j < 2 * FORM::tiles; j++)
                own[j] = c == 0 ? value[0][j] : value[1][j];
            if (first + 8 * i + c < p.m)
                put_some<2 * FORM::tiles>(p, a, part, stretch, first + 8 * i + c, before, row, own);
        }
    }
}

template <class FORM>
__device__ __forceinline__ void work(const wgmma_ring<FORM> &ring, float4 *totals,
                                     const ft_cuda_blocks &p, const wgmma_args &a)
{
    wgmma_position<FORM> at;
    wgmma_sums<FORM> sums = {};
    bool has_zeros = p.part[0].zero != NULL;
    ft_wait_for_predecessor(); /* who may read what y was */
    for (int number = (int) blockIdx.x; number < a.items; number += (int) gridDim.x) {
        wgmma_item item = wgmma_item_of<FORM>(a, number);
        for (int column = item.column; column < item.end;) {
            int stretch = column / BLOCKS_STRETCH;
            multiply_run<FORM>(ring, at, sums, has_zeros);
            column += BLOCKS_RUN;
            if (column < item.end && column % BLOCKS_STRETCH != 0)
                continue;
            if (a.sums == NULL && stretch > 0)
                add_totals<FORM>(sums, totals);
            keep_totals<FORM>(totals, sums);
            if (a.sums != NULL || column == item.end)
                put<FORM>(p, a, item, stretch, totals);
#pragma unroll
            for (int i = 0; i < FORM::sums; i++)
                four_of<FORM>(sums, i / 4)[i % 4] = 0.0f;
        }
    }
}

#endif

/* grid = items, or as many blocks as there are multiprocessors. */
template <class FORM>
static __global__ void __launch_bounds__(THREADS, 1)
    wgmma_kernel(const __grid_constant__ ft_cuda_blocks p, const __grid_constant__ wgmma_args a)
{
#ifdef FT_HAS_WGMMA
    extern __shared__ __align__(1024) char shared[];
    const wgmma_ring<FORM> ring(shared);
    if (threadIdx.x == WGMMA_WORKERS)
        ring.set_up();
    __syncthreads();
    if (threadIdx.x < WGMMA_WORKERS) {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        work<FORM>(ring, (float4 *) (shared + FORM::totals_at), p, a);
    } else {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == WGMMA_WORKERS)
            wgmma_load_codes<FORM>(ring, a);
        else if (threadIdx.x == WGMMA_WORKERS + 32)
            wgmma_load_tokens<FORM>(ring, p, a);
    }
#endif
}

/* ---- Host ----------------------------------------------------------------------------------- */

/* Bytes of the sums of all stretches. */
static size_t sums_bytes(size_t m, size_t panels, size_t stretches)
{
    return m * panels * BLOCKS_PANEL * stretches * sizeof(float);
}

/*
 * Stretches of an item, such that all are soonest done.  In microseconds, as seen on an H200: a
 * block's time for a stretch, and that of the sums, written and read, and of the kernel that adds
 * them up.
 */
template <class FORM>
static int share_of(const ft_cuda_chip *chip, const ft_cuda_blocks *p, int tiles, int stretches)
{
    size_t bytes = sums_bytes(p->m, (size_t) blocks_shape_of(p).panels, (size_t) stretches);
    double stretch = 1.9 + 0.085 * FORM::tokens, adding = 3.0 + (double) bytes / 5e6, best = 0.0;
    int share = 0;
    for (int i = stretches; i > 0; i--) {
        int items = tiles * ((stretches + i - 1) / i);
        int rounds = (items + chip->multiprocessors - 1) / chip->multiprocessors;
        double time = rounds * i * stretch + (i < stretches ? adding : 0.0);
        if (i < stretches && (p->m > TILES_SPLIT_ROWS || p->scratch_bytes < bytes))
            break;
        if (share == 0 || time < best) {
            share = i;
            best = time;
        }
    }
    return share;
}

template <class FORM>
static int args_init(wgmma_args *a, const ft_cuda_chip *chip, const ft_cuda_blocks *p)
{
    *a = (wgmma_args){};
    a->all = blocks_shape_of(p);
    a->token_tiles = (int) ft_cover(p->m, FORM::tokens);
    int columns = 0, status = ft_map_codes(&a->x, p->x, p->m, 2 * p->k, FORM::tokens);
    for (int i = 0; i < FT_CUDA_PARTS; i++) {
        a->first[i] = columns;
        if (i >= p->parts || status != 0)
            continue;
        size_t panels = (size_t) a->all.padded_rows[i] / BLOCKS_PANEL;
        size_t bytes = (size_t) a->all.panel_bytes;
        cuuint64_t size[3] = { WGMMA_LINE, bytes / WGMMA_LINE, panels };
        cuuint64_t strides[2] = { WGMMA_LINE, bytes };
        cuuint32_t box[3] = { WGMMA_LINE, FORM::lines, FORM::panels };
        status = ft_map_bytes(&a->w[i], p->part[i].w, 3, size, strides, box);
        columns += (int) ft_cover(panels, FORM::panels);
    }
    a->share = share_of<FORM>(chip, p, a->token_tiles * columns, a->all.stretches);
    a->shares = (a->all.stretches + a->share - 1) / a->share;
    a->items = a->token_tiles * columns * a->shares;
    a->sums = a->shares > 1 ? (float *) p->scratch : NULL;
    return status;
}

template <class FORM>
static int launch(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p)
{
    wgmma_args a;
    int status = args_init<FORM>(&a, chip, p);
    if (status == 0)
        status = (int) cudaFuncSetAttribute(
            wgmma_kernel<FORM>, cudaFuncAttributeMaxDynamicSharedMemorySize, FORM::shared);
    unsigned items = (unsigned) a.items, most = (unsigned) chip->multiprocessors;
    if (status == 0)
        status = ft_launch(wgmma_kernel<FORM>, dim3(items < most ? items : most), THREADS,
                           FORM::shared, stream, chip->overlaps, 1, *p, a);
    if (status != 0 || a.sums == NULL)
        return status;
    tiles_shape shape = tiles_shape_of(p);
    shape.sums = a.sums;
    return ft_cuda_blocks_add_up(chip, stream, p, &shape);
}

template <int bits, blocks_kind kind>
static int launch_size(const ft_cuda_chip *chip, void *stream, const ft_cuda_blocks *p)
{
    return p->m <= 16   ? launch<wgmma_form<bits, kind, 2, 16>>(chip, stream, p)
           : p->m <= 32 ? launch<wgmma_form<bits, kind, 2, 32>>(chip, stream, p)
           : p->m <= 64 ? launch<wgmma_form<bits, kind, 2, 64>>(chip, stream, p)
                        : launch<wgmma_form<bits, kind, 1, 128>>(chip, stream, p);
}

/* Sums of stretches, while tokens are few. */
size_t ft_cuda_blocks_wgmma_scratch(const ft_cuda_chip *chip, size_t m, size_t n, size_t k)
{
    size_t panels = n / BLOCKS_PANEL + FT_CUDA_PARTS;
    m = m < TILES_SPLIT_ROWS ? m : TILES_SPLIT_ROWS;
    return chip->has_wgmma ? sums_bytes(m, panels, (k + BLOCKS_STRETCH - 1) / BLOCKS_STRETCH) : 0;
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
