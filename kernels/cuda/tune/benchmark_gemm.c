/*
 * benchmark_gemm.c - timings of all kernels for one INT8 GEMM, interleaved.
 *
 * Every candidate is a CUDA graph of GEMMs that rotate over copies of the operands, so that
 * operands come from DRAM and not from L2. The graphs run round-robin with pauses, because a GPU at
 * its power limit throttles whatever runs last. The result is the median over all rounds, divided
 * by the number of GEMMs of a graph.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/cuda/tune/benchmark_gemm.h"
#include "kernels/layout.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ALIGN = 256, ROTATED = 160 << 20, PATTERN = 8 << 20, PAUSE_NS = 500000 };

/* ---- Operands ---------------------------------------------------------------------------- */

static uint64_t mixed(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Random int8 from -127 to 127, or f16 of magnitude 0.5 to 1 and either sign: fills `pattern`. */
static void draw(uint8_t *pattern, bool halves)
{
    for (size_t i = 0; i < PATTERN; i += 2) {
        uint64_t z = mixed((i + 2) * 0x9e3779b97f4a7c15u);
        uint16_t half = (uint16_t) ((z & 0x83ff) | 0x3800);
        pattern[i] = (uint8_t) (halves ? half : (z & 0xffffffff) % 255 - 127);
        pattern[i + 1] = (uint8_t) (halves ? half >> 8 : (z >> 32) % 255 - 127);
    }
}

static int fill(void *to, const uint8_t *pattern, size_t bytes)
{
    int code = 0;
    for (size_t at = 0; at < bytes && code == 0; at += PATTERN)
        code = (int) cudaMemcpy((char *) to + at, pattern, ft_min_size(PATTERN, bytes - at),
                                cudaMemcpyHostToDevice);
    return code;
}

/* Bytes of one operand set; with `memory`, also its pointers. */
static size_t place(const ft_cuda_contest *c, char *memory, ft_cuda_operands *out)
{
    size_t m = c->match->m, n = c->match->n, k = c->match->k;
    size_t bytes[] = { m * k,
                       ft_layout_bytes(FT_COL4_4R2_8C, n, k),
                       c->chip->has_wgmma ? ft_cuda_tiles_bytes(n, k) : 0,
                       2 * m * k,
                       2 * n * k,
                       4 * m * n };
    char *part[FT_COUNT(bytes)];
    size_t at = 0;
    for (size_t i = 0; i < FT_COUNT(bytes); i++) {
        part[i] = memory == NULL ? NULL : memory + at;
        at += ft_round_up(bytes[i], ALIGN);
    }
    if (out != NULL)
        *out = (ft_cuda_operands){ .x = (int8_t *) part[0],
                                   .w = (int8_t *) part[1],
                                   .tiles = bytes[2] > 0 ? (int8_t *) part[2] : NULL,
                                   .x_half = part[3],
                                   .w_half = part[4],
                                   .y = part[5] };
    return at;
}

static int fill_sets(ft_cuda_contest *c, uint8_t *pattern)
{
    size_t m = c->match->m, n = c->match->n, k = c->match->k;
    int code = 0;
    draw(pattern, false);
    for (int i = 0; i < c->sets && code == 0; i++) {
        code = fill(c->set[i].x, pattern, m * k);
        if (code == 0)
            code = fill(c->set[i].w, pattern, ft_layout_bytes(FT_COL4_4R2_8C, n, k));
        if (code == 0 && c->set[i].tiles != NULL)
            code = ft_cuda_tile(c->stream, c->set[i].tiles, c->set[i].w, n, k);
    }
    draw(pattern, true);
    for (int i = 0; i < c->sets && code == 0; i++) {
        code = fill(c->set[i].x_half, pattern, 2 * m * k);
        if (code == 0)
            code = fill(c->set[i].w_half, pattern, 2 * n * k);
    }
    return code;
}

/* Weight scales and bias, such that outputs have a realistic magnitude. */
static int fill_vectors(ft_cuda_contest *c)
{
    size_t n = c->match->n;
    float *values = ft_array(2 * n, sizeof *values);
    if (values == NULL)
        return (int) cudaErrorMemoryAllocation;
    for (size_t i = 0; i < 2 * n; i++)
        values[i] = (float) (mixed(i + 1) % 1000 + 1) / (i < n ? 2e6f : 1e3f);
    int code = (int) cudaMemcpy(c->scale, values, 2 * n * sizeof *values, cudaMemcpyHostToDevice);
    free(values);
    return code;
}

int ft_cuda_contest_init(ft_cuda_contest *c, const ft_cuda_chip *chip, const ft_match *match)
{
    *c = (ft_cuda_contest){ .chip = chip, .match = match };
    size_t read = match->m * match->k + match->n * match->k + match->m * match->n;
    size_t set = place(c, NULL, NULL), vectors = ft_round_up(8 * match->n, ALIGN);
    c->sets = (int) ft_min_size(FT_CUDA_SETS, ROTATED / read + 2);
    int code = (int) cudaSetDevice(chip->index);
    if (code == 0)
        code = (int) cudaMalloc((void **) &c->memory,
                                (size_t) c->sets * set + vectors + FT_CUDA_WORKSPACE);
    if (code == 0)
        code = (int) cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking);
    if (code == 0)
        code = (int) cudaEventCreate(&c->begin);
    if (code == 0)
        code = (int) cudaEventCreate(&c->end);
    if (code == 0 && cublasLtCreate(&c->lt) != CUBLAS_STATUS_SUCCESS)
        code = (int) cudaErrorInitializationError;
    uint8_t *pattern = malloc(PATTERN);
    if (code == 0 && pattern == NULL)
        code = (int) cudaErrorMemoryAllocation;
    if (code == 0) {
        for (int i = 0; i < c->sets; i++)
            place(c, c->memory + (size_t) i * set, &c->set[i]);
        c->scale = (float *) (void *) (c->memory + (size_t) c->sets * set);
        c->bias = c->scale + match->n;
        c->workspace = c->memory + (size_t) c->sets * set + vectors;
        code = fill_vectors(c);
    }
    if (code == 0)
        code = fill_sets(c, pattern);
    free(pattern);
    return code != 0 ? code : (int) cudaStreamSynchronize(c->stream);
}

void ft_cuda_contest_fini(ft_cuda_contest *c)
{
    if (c->lt != NULL)
        (void) cublasLtDestroy(c->lt);
    if (c->begin != NULL)
        (void) cudaEventDestroy(c->begin);
    if (c->end != NULL)
        (void) cudaEventDestroy(c->end);
    if (c->stream != NULL)
        (void) cudaStreamDestroy(c->stream);
    (void) cudaFree(c->memory);
}

/* ---- Candidates -------------------------------------------------------------------------- */

static ft_cuda_product product_of(const ft_cuda_contest *c, const ft_cuda_operands *set)
{
    const ft_match *match = c->match;
    return (ft_cuda_product){
        .m = match->m,
        .n = match->n,
        .k = match->k,
        .x = set->x,
        .w = set->w,
        .tiles = set->tiles,
        .x_scale = 1.0f / 32.0f,
        .w_scale = c->scale,
        .bias = c->bias,
        .activation = match->activation,
        .y_dtype = match->y,
        .parts = 1,
        .width = { match->n },
        .y = { set->y },
        .y_inverse = { match->y == FT_I8 ? 32.0f : 0.0f },
    };
}

static int launch(const ft_cuda_contest *c, const ft_cuda_player *p, const ft_cuda_operands *set)
{
    if (p->rival != NULL)
        return ft_cuda_rival_launch(c, p, set);
    ft_cuda_product product = product_of(c, set);
    return ft_cuda_gemm_run(p->how, c->chip, c->stream, &product);
}

bool ft_cuda_player_record(ft_cuda_contest *c, ft_cuda_player *p)
{
    cudaGraph_t graph = NULL;
    if (launch(c, p, &c->set[0]) != 0 || cudaStreamSynchronize(c->stream) != cudaSuccess ||
        cudaStreamBeginCapture(c->stream, cudaStreamCaptureModeThreadLocal) != cudaSuccess) {
        (void) cudaGetLastError();
        return false;
    }
    int code = 0;
    for (int i = 0; i < FT_CUDA_NODES && code == 0; i++)
        code = launch(c, p, &c->set[i % c->sets]);
    int ended = (int) cudaStreamEndCapture(c->stream, &graph);
    if (code == 0 && ended == 0)
        code = (int) cudaGraphInstantiate(&p->graph, graph, 0);
    if (graph != NULL)
        (void) cudaGraphDestroy(graph);
    if (code == 0 && ended == 0)
        return true;
    (void) cudaGetLastError();
    p->graph = NULL;
    return false;
}

/* One round: an untimed graph first, to warm up caches and clocks. */
static int play_once(const ft_cuda_contest *c, const ft_cuda_player *p, float *ms)
{
    nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
    int code = (int) cudaGraphLaunch(p->graph, c->stream);
    if (code == 0)
        code = (int) cudaEventRecord(c->begin, c->stream);
    if (code == 0)
        code = (int) cudaGraphLaunch(p->graph, c->stream);
    if (code == 0)
        code = (int) cudaEventRecord(c->end, c->stream);
    if (code == 0)
        code = (int) cudaStreamSynchronize(c->stream);
    return code != 0 ? code : (int) cudaEventElapsedTime(ms, c->begin, c->end);
}

static int ascending(const void *a, const void *b)
{
    float x = *(const float *) a, y = *(const float *) b;
    return (x > y) - (x < y);
}

int ft_cuda_contest_play(ft_cuda_contest *c, ft_cuda_player *player, int count, int rounds)
{
    int code = 0;
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < count && code == 0; i++)
            code = play_once(c, &player[i], &player[i].ms[round]);
    for (int i = 0; i < count && code == 0; i++) {
        qsort(player[i].ms, (size_t) rounds, sizeof player[i].ms[0], ascending);
        player[i].median = player[i].ms[rounds / 2] / FT_CUDA_NODES;
    }
    return code;
}

/* ---- Benchmark --------------------------------------------------------------------------- */

static int gather(ft_cuda_contest *c, ft_cuda_player *player)
{
    int count = 0;
    for (int how = 0; how < FT_CUDA_GEMMS; how++) {
        player[count] = (ft_cuda_player){ .how = (ft_cuda_gemm) how,
                                          .name = ft_cuda_gemm_name((ft_cuda_gemm) how) };
        count += ft_cuda_player_record(c, &player[count]);
    }
    for (int i = 0; i < ft_cuda_rivals(); i++)
        count += ft_cuda_rival_init(c, &player[count], i);
    return count;
}

ft_status ft_cuda_compare(ft_device *device, const ft_match *match, ft_contender out[FT_CONTENDERS],
                          int *count, ft_error *err)
{
    static const char what[] = "comparing GEMM kernels";
    ft_cuda_player player[FT_CONTENDERS] = { 0 };
    ft_cuda_contest c;
    int players = 0, code = ft_cuda_contest_init(&c, &device->chip, match);
    if (code == 0) {
        players = gather(&c, player);
        code = ft_cuda_contest_play(&c, player, players, FT_CUDA_ROUNDS);
        ft_cuda_product product = product_of(&c, &c.set[0]);
        ft_cuda_gemm chosen = ft_cuda_gemm_choose(&device->chip, &product);
        for (int i = 0; i < players; i++) {
            out[i] = (ft_contender){ .seconds = 1e-3 * (double) player[i].median,
                                     .chosen = player[i].rival == NULL && player[i].how == chosen };
            snprintf(out[i].name, sizeof out[i].name, "%s", player[i].name);
        }
    }
    *count = code == 0 ? players : 0;
    for (int i = 0; i < players; i++)
        ft_cuda_player_fini(&player[i]);
    ft_cuda_contest_fini(&c);
    return code == 0 ? FT_OK : ft_cuda_fail(err, &device->chip, code, what);
}
