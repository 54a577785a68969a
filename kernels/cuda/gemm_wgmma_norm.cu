/*
 * gemm_wgmma_norm.cu - the int8 product of sm_90a with the layer norm of its rows.
 *
 * The teams of a cluster of blocks hold the columns of the same 64 rows, 192 or 128 each, and keep
 * them in registers until they are normalized: nothing real-valued goes through memory.  Twice they
 * tell each other what they have summed up for each row, first the values, then the squares of
 * their distances from the mean.  Sums are added as in kernels/cpu/rows_impl.h: trees of 64
 * columns, then one after the other; so the bits are those of the CPU.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernels/cuda/gemm_wgmma.cuh"

enum { MAX_BLOCKS = 4, MAX_TEAMS = 2 * MAX_BLOCKS, ROWS = 64 }; /* of a cluster; of a tile */

typedef struct norm_args {
    wgmma_args product;
    const float *weight, *bias;
    float eps, residual_scale, inverse;
    const void *residual;
    float *y;
    int8_t *codes;
    int blocks; /* of a cluster */
} norm_args;

template <class SHAPE> struct norm_shared {
    wgmma_shared<SHAPE, false, float> product;
    wgmma_columns<SHAPE::cols> columns[2][2]; /* weight and bias of the norm, as product.columns */
    float4 runs[2][MAX_TEAMS][ROWS]; /* [values, squares], from each team: sums of 64 columns */
    uint64_t ready[2];               /* all teams have sent theirs */
};

#ifdef FT_HAS_WGMMA

/* ---- Sums of rows --------------------------------------------------------------------------- */

/*
 * The sum of 64 columns of a row, of which the lane has 8t .. 8t + 7 of each half.  u: the halves
 * added.  As a tree: columns i and i + 32 (done), i and i + 16 (lane t ^ 2), i + 8 (t ^ 1), i + 4
 * (the same lane), i + 2 (t ^ 2), i + 1 (t ^ 1).  The first two steps leave each lane with half of
 * what it had: a lane adds what it keeps and sends the rest.  All four lanes get the result.
 */
__device__ __forceinline__ float run_sum(const float (&u)[8])
{
    bool high = threadIdx.x & 2, odd = threadIdx.x & 1;
    float four[4], two[2];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int e = i / 2 * 4 + i % 2; /* 0, 1, 4, 5; high lanes keep 2, 3, 6, 7 */
        float keep = high ? u[e + 2] : u[e], give = high ? u[e] : u[e + 2];
        four[i] = keep + __shfl_xor_sync(0xffffffff, give, 2);
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
        float keep = odd ? four[2 * i + 1] : four[2 * i],
              give = odd ? four[2 * i] : four[2 * i + 1];
        two[i] = keep + __shfl_xor_sync(0xffffffff, give, 1);
    }
    float sum = two[0] + two[1];
    sum += __shfl_xor_sync(0xffffffff, sum, 2);
    return sum + __shfl_xor_sync(0xffffffff, sum, 1);
}

/* To the same place of another block; its barrier there counts the bytes. */
__device__ __forceinline__ void send(float4 *place, uint64_t *barrier, int block, const float *runs,
                                     int count)
{
    uint32_t to, at;
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(to)
        : "r"(ft_shared_address(place)), "r"(block));
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(at)
        : "r"(ft_shared_address(barrier)), "r"(block));
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], "
                 "{%1, %2, %3, %4}, [%5];" ::"r"(to),
                 "f"(runs[0]), "f"(runs[1]), "f"(count > 2 ? runs[2] : 0.0f), "f"(0.0f), "r"(at)
                 : "memory");
}

/*
 * runs[h]: this team's sums of the lane's rows g and g + 8; sum[h]: those of the whole rows.  The
 * four lanes of a row share the blocks to send to.
 */
template <class SHAPE>
__device__ __forceinline__ void row_sums(float (&sum)[2], norm_shared<SHAPE> &s, const norm_args &a,
                                         int team, int phase, unsigned parity,
                                         const float (&runs)[2][SHAPE::cols / 64])
{
    constexpr int count = SHAPE::cols / 64;
    int own = blockIdx.x % a.blocks * 2 + team, to = threadIdx.x % 4;
#pragma unroll
    for (int h = 0; h < 2; h++)
        if (to < a.blocks)
            send(&s.runs[phase][own][wgmma_lane_row() + 8 * h], &s.ready[phase], to, runs[h],
                 count);
    ft_barrier_wait(&s.ready[phase], parity);
    sum[0] = sum[1] = 0.0f;
#pragma unroll 1
    for (int from = 0; from < 2 * a.blocks; from++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float4 v = s.runs[phase][from][wgmma_lane_row() + 8 * h];
            sum[h] += v.x;
            sum[h] += v.y;
            if (count > 2)
                sum[h] += v.z;
        }
    }
}

/* ---- Residual ------------------------------------------------------------------------------- */

/* Of the lane's elements: floats or codes, fetched while the tile is multiplied. */
template <int COLS, bool CODES> struct norm_residual {
    static constexpr int words = CODES ? 2 : 8;
    uint32_t v[COLS / 32][2][words];

    __device__ __forceinline__ norm_residual(const norm_args &a, const wgmma_place &place)
    {
        int row = place.row + wgmma_lane_row(), col = place.col + wgmma_lane_col();
        const char *from = (const char *) a.residual +
                           ((size_t) row * a.product.n + col) * (CODES ? 1 : sizeof(float));
        size_t down = (size_t) 8 * a.product.n * (CODES ? 1 : sizeof(float));
#pragma unroll
        for (int block = 0; block < COLS / 32; block++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const char *at = from + h * down + block * 32 * (CODES ? 1 : sizeof(float));
                bool inside = row + 8 * h < a.product.m && a.residual != NULL;
                fetch(v[block][h], at, inside);
            }
    }
    __device__ __forceinline__ static void fetch(uint32_t (&to)[words], const char *from,
                                                 bool inside)
    {
        if constexpr (CODES) {
            asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %3, 0;\n\t"
                         "mov.b32 %0, 0;\n\tmov.b32 %1, 0;\n\t"
                         "@p ld.global.v2.b32 {%0, %1}, [%2];\n\t}"
                         : "=&r"(to[0]), "=&r"(to[1])
                         : "l"(from), "r"((int) inside));
        } else {
            uint4 low = wgmma_fetch(from, inside), high = wgmma_fetch(from + 16, inside);
            to[0] = low.x, to[1] = low.y, to[2] = low.z, to[3] = low.w;
            to[4] = high.x, to[5] = high.y, to[6] = high.z, to[7] = high.w;
        }
    }
    /* Element i of the 8. */
    __device__ __forceinline__ float at(int block, int h, int i, float scale) const
    {
        if (CODES)
            return (float) (int8_t) (v[block][h][i / 4] >> i % 4 * 8) * scale;
        return __uint_as_float(v[block][h][i]);
    }
};

/* ---- A tile --------------------------------------------------------------------------------- */

/* value: sums to what is to be normalized. */
template <int COLS, bool CODES>
__device__ __forceinline__ void
add_up(float (&value)[COLS / 32][2][8], const norm_args &a, const int32_t (&sums)[COLS / 2],
       const wgmma_columns<COLS> &columns, const norm_residual<COLS, CODES> &residual)
{
    wgmma_columns_reader<COLS> ahead(columns);
#pragma unroll
    for (int block = 0; block < COLS / 32; block++) {
        ahead.fetch(block + 1);
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int i = 0; i < 8; i++) {
                value[block][h][i] =
                    ft_dequantize(wgmma_sum(sums, block, h, i), ahead.scale[block % 2][i],
                                  ahead.bias[block % 2][i]);
                if (a.residual != NULL)
                    value[block][h][i] += residual.at(block, h, i, a.residual_scale);
            }
    }
}

/*
 * value becomes its distance from the row's mean; factor: one over the standard deviation.  The two
 * passes share their code, which would otherwise not fit the instruction cache.
 */
template <class SHAPE>
__device__ __forceinline__ void center(float (&value)[SHAPE::cols / 32][2][8], float (&factor)[2],
                                       norm_shared<SHAPE> &s, const norm_args &a, int team,
                                       unsigned parity)
{
    constexpr int count = SHAPE::cols / 64;
    float mean[2] = { 0.0f, 0.0f }, n = (float) a.product.n;
#pragma unroll 1
    for (int phase = 0; phase < 2; phase++) {
        float runs[2][count], sum[2];
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int run = 0; run < count; run++) {
                float u[8];
#pragma unroll
                for (int i = 0; i < 8; i++) {
                    float low = value[2 * run][h][i] - mean[h];
                    float high = value[2 * run + 1][h][i] - mean[h];
                    value[2 * run][h][i] = low;
                    value[2 * run + 1][h][i] = high;
                    u[i] = phase == 0 ? low + high : low * low + high * high;
                }
                runs[h][run] = run_sum(u);
            }
        row_sums(sum, s, a, team, phase, parity, runs);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            mean[h] = sum[h] / n;
            factor[h] = 1.0f / sqrtf(mean[h] + a.eps); /* of the second pass: squares */
        }
    }
}

/* One block of 32 columns as lines of floats. */
__device__ __forceinline__ void store_floats(float *y, const float (&value)[2][8], size_t stride,
                                             int down, wgmma_lines &lines)
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        int r = threadIdx.x % 32 / 4 + 8 * h, c = threadIdx.x % 4 * 2;
        const float *v = value[h];
        lines[r][wgmma_float_chunk(r, c)] = wgmma_words(v[0], v[1], v[2], v[3]);
        lines[r][wgmma_float_chunk(r, c + 1)] = wgmma_words(v[4], v[5], v[6], v[7]);
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int r = wgmma_line_row() + 4 * i;
        wgmma_store(y + 4 * i * stride, lines[r][wgmma_float_chunk(r, threadIdx.x % 8)],
                    4 * i < down);
    }
    __syncwarp();
}

template <int COLS>
__device__ __forceinline__ void finish(float (&value)[COLS / 32][2][8], const float (&factor)[2],
                                       const norm_args &a, const wgmma_place &place,
                                       const wgmma_columns<COLS> &columns, wgmma_lines &lines)
{
    wgmma_columns_reader<COLS> ahead(columns);
    size_t stride = (size_t) a.product.n;
    int down = a.product.m - place.row;
    float *y = a.y + (place.row + wgmma_line_team_row()) * stride + place.col + threadIdx.x % 8 * 4;
    int8_t *codes =
        a.codes + (place.row + wgmma_lane_row()) * stride + place.col + wgmma_lane_col();
#pragma unroll
    for (int block = 0; block < COLS / 32; block++) {
        ahead.fetch(block + 1);
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int i = 0; i < 8; i++)
                value[block][h][i] = value[block][h][i] * factor[h] * ahead.scale[block % 2][i] +
                                     ahead.bias[block % 2][i];
        if (a.y != NULL)
            store_floats(y + block * 32, value[block], stride, down - wgmma_line_team_row(), lines);
        if (a.codes != NULL) {
#pragma unroll
            for (int h = 0; h < 2; h++) {
                wgmma_round<8, true>(value[block][h], a.inverse);
                wgmma_store(codes + 8 * h * stride + block * 32,
                            uint2{ wgmma_pack(value[block][h]), wgmma_pack(value[block][h] + 4) },
                            wgmma_lane_row() + 8 * h < down);
            }
        }
    }
}

template <class SHAPE, bool CODES>
__device__ __forceinline__ void work(norm_shared<SHAPE> &s, const norm_args &a, int team)
{
    constexpr int cols = SHAPE::cols;
    const wgmma_args &p = a.product;
    wgmma_args norm_columns_of = p; /* the norm's columns are fetched as the product's are */
    norm_columns_of.w_scale = a.weight;
    norm_columns_of.bias = a.bias;
    norm_columns_of.x_scale = 1.0f;
    wgmma_lines &lines = s.product.lines[threadIdx.x / 32 - 4];
    int first = 0;
    unsigned parity = 0;
    for (int tile = blockIdx.x; tile < p.tiles; tile += gridDim.x, parity ^= 1, first += p.steps) {
        wgmma_place place = wgmma_place_of(p, tile, ROWS, SHAPE::tile_cols);
        place.col += team * cols;
        wgmma_columns_ahead<cols> columns, norm_columns;
        columns.fetch(p, place);
        norm_columns.fetch(norm_columns_of, place);
        if (first == 0)
            ft_wait_for_predecessor();
        norm_residual<cols, CODES> residual(a, place);
        if (threadIdx.x == WGMMA_TEAM) {
            ft_barrier_expect(&s.ready[0], 2 * a.blocks * ROWS * sizeof(float4));
            ft_barrier_expect(&s.ready[1], 2 * a.blocks * ROWS * sizeof(float4));
        }
        int32_t sums[1][cols / 2];
        float value[cols / 32][2][8], factor[2];
        int last = wgmma_product<SHAPE>(s.product, first, p.steps, 0, team * cols, sums);
        columns.keep(s.product.columns[team][parity], p);
        norm_columns.keep(s.columns[team][parity], norm_columns_of);
        ft_wgmma_wait<0>();
        wgmma_release(&s.product.empty[last]);
        ft_wgmma_settle(sums[0]);
        wgmma_sync_team(team);
        add_up<cols, CODES>(value, a, sums[0], s.product.columns[team][parity], residual);
        center<SHAPE>(value, factor, s, a, team, parity);
        finish<cols>(value, factor, a, place, s.columns[team][parity], lines);
    }
}
#endif

/* grid = clusters x blocks of a cluster; blockDim.x = WGMMA_THREADS. */
template <class SHAPE, bool CODES>
__global__ void __launch_bounds__(WGMMA_THREADS, 1) norm_kernel(const __grid_constant__ norm_args a)
{
#ifdef FT_HAS_WGMMA
    extern __shared__ __align__(1024) int8_t shared_memory[];
    auto &s = *(norm_shared<SHAPE> *) shared_memory;
    int group = threadIdx.x / WGMMA_TEAM;
    if (threadIdx.x == 0) {
        ft_barrier_init(&s.ready[0], 1);
        ft_barrier_init(&s.ready[1], 1);
        wgmma_set_up(s.product, a.product);
    }
    __syncwarp();
    ft_cluster_begin();
    ft_cluster_wait(); /* all blocks have set up their barriers */
    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x == 0 || threadIdx.x == 32)
            wgmma_load(s.product, a.product, threadIdx.x == 32);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        work<SHAPE, CODES>(s, a, group - 1);
    }
#endif
}

/* ---- Host ----------------------------------------------------------------------------------- */

/* Columns of a team: 192, or else 128, in a cluster of 2 to 4 blocks; 0: n does not fit. */
static size_t columns_of(size_t n)
{
    if (n % 384 == 0 && n > 384 && n <= MAX_TEAMS * 192)
        return 192;
    return n % 256 == 0 && n > 256 && n <= MAX_TEAMS * 128 ? 128 : 0;
}

template <int COLS, bool CODES>
static int launch(const ft_cuda_chip *chip, void *stream, const ft_cuda_product *p,
                  const ft_cuda_product_norm *norm)
{
    typedef wgmma_shape<ROWS, COLS, COLS == 192 ? 3 : 4, WGMMA_BESIDE> shape;
    auto *kernel = norm_kernel<shape, CODES>;
    size_t bytes = sizeof(norm_shared<shape>);
    norm_args a;
    memset(&a, 0, sizeof a);
    int status = wgmma_args_init(&a.product, p, false, ROWS, 2 * COLS);
    if (status == 0)
        status = wgmma_args_map_tiles(&a.product, p, 2 * COLS);
    if (status == 0)
        status = (int) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            (int) bytes);
    if (status != 0)
        return status;
    a.product.band = 1; /* a cluster's blocks follow each other in a row of tiles */
    a.weight = norm->weight;
    a.bias = norm->bias;
    a.eps = norm->eps;
    a.residual = norm->residual;
    a.residual_scale = norm->residual_scale;
    a.y = norm->y;
    a.codes = norm->codes;
    a.inverse = norm->inverse;
    a.blocks = (int) p->n / (2 * COLS);
    /* Pairs always fit; a larger cluster stays within a group of 16 or 18 multiprocessors. */
    int clusters = a.blocks <= 2 ? chip->multiprocessors / a.blocks
                                 : chip->multiprocessors / 18 * (16 / a.blocks);
    clusters = a.product.row_tiles < clusters ? a.product.row_tiles : clusters;
    return ft_launch(kernel, dim3((unsigned) (clusters * a.blocks)), dim3(WGMMA_THREADS), bytes,
                     stream, chip->overlaps, (unsigned) a.blocks, a);
}

static bool is_aligned(const void *pointer)
{
    return (uintptr_t) pointer % 16 == 0;
}

extern "C" bool ft_cuda_gemm_wgmma_norm_takes(const ft_cuda_chip *chip, const ft_cuda_product *p,
                                              const ft_cuda_product_norm *norm)
{
    return ft_cuda_gemm_wgmma_takes(chip, p) && columns_of(p->n) != 0 && p->parts == 1 &&
           p->x_scales == NULL && p->residual == NULL && p->activation == FT_ACT_NONE &&
           is_aligned(norm->residual) && is_aligned(norm->y) && is_aligned(norm->codes);
}

extern "C" int ft_cuda_gemm_wgmma_norm(const ft_cuda_chip *chip, void *stream,
                                       const ft_cuda_product *p, const ft_cuda_product_norm *norm)
{
    bool codes = norm->residual_scale > 0.0f;
    if (columns_of(p->n) == 192)
        return codes ? launch<192, true>(chip, stream, p, norm)
                     : launch<192, false>(chip, stream, p, norm);
    return codes ? launch<128, true>(chip, stream, p, norm)
                 : launch<128, false>(chip, stream, p, norm);
}
