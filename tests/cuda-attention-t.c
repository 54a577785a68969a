/*
 * cuda-attention-t.c - attention on the GPU: codes against the CPU's bytes, floats against doubles.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/tap/tap.h"

#ifdef HAVE_CUDA

#include "kernels/cpu/attention_i8.h"
#include "kernels/cuda/cuda.h"
#include "kernels/half.h"
#include "kernels/quant.h"
#include "runtime/mem.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { POISON = 0x5a, GUARD = 256, MOST_LENGTHS = 8 };

static ft_cuda_chip chip;
static ft_isa cpu;

/* ---- Memory, numbers --------------------------------------------------------------------------
 */

static void must(cudaError_t status, const char *what)
{
    if (status != cudaSuccess)
        bail_out("%s: %s", what, cudaGetErrorString(status));
}

static void *must_have(size_t bytes)
{
    void *memory = malloc(bytes > 0 ? bytes : 1);
    if (memory == NULL)
        bail_out("no memory for %zu bytes", bytes);
    return memory;
}

static void *upload(const void *data, size_t bytes)
{
    void *memory;
    must(cudaMalloc(&memory, bytes + GUARD), "cudaMalloc");
    must(cudaMemset(memory, POISON, bytes + GUARD), "cudaMemset");
    if (data != NULL)
        must(cudaMemcpy(memory, data, bytes, cudaMemcpyHostToDevice), "upload");
    return memory;
}

static void *download(const void *memory, size_t bytes)
{
    void *data = must_have(bytes);
    must(cudaMemcpy(data, memory, bytes, cudaMemcpyDeviceToHost), "download");
    return data;
}

static uint64_t state = 0x9e3779b97f4a7c15u;

static uint32_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t) (state >> 32);
}

static int8_t draw_code(void)
{
    return (int8_t) ((int) (draw() % 255) - 127);
}

/* Between -1 and 1. */
static float draw_float(void)
{
    return (float) (int32_t) draw() * 0x1p-31f;
}

/* ---- Sequences --------------------------------------------------------------------------------
 */

typedef struct shape {
    int heads, head_size;
    int length[MOST_LENGTHS]; /* until a negative one, or the end */
    int times;                /* all of it; 0: once */
    int hint;                 /* for `longest`; 0: the truth; negative: not known */
} shape;

#define LENGTHS(...)                                                                               \
    {                                                                                              \
        __VA_ARGS__, -1                                                                            \
    }
#define SHAPE(H, D, ...)                                                                           \
    {                                                                                              \
        .heads = H, .head_size = D, .length = LENGTHS(__VA_ARGS__)                                 \
    }

typedef struct batch {
    int heads, head_size;
    size_t sequences, tokens, longest, hint, cols, nblocks;
    int32_t *start;
    ft_cuda_queries *block;
    void *device_blocks, *device_start;
} batch;

/* Blocks of length 0 lie between the others: a run's bucket has some at its end. */
static void add_sequence(batch *b, int length)
{
    for (int query = 0; query < length; query += FT_CUDA_QUERIES)
        b->block[b->nblocks++] = (ft_cuda_queries){ (int32_t) b->tokens, length, query, -1 };
    b->block[b->nblocks++] = (ft_cuda_queries){ 0, 0, 0, 0 };
    b->tokens += (size_t) length;
    b->longest = (size_t) length > b->longest ? (size_t) length : b->longest;
    b->start[++b->sequences] = (int32_t) b->tokens;
}

static void batch_init(batch *b, const shape *s)
{
    size_t times = s->times > 0 ? (size_t) s->times : 1, sequences = 0, blocks = 0;
    for (; sequences < MOST_LENGTHS && s->length[sequences] >= 0; sequences++)
        blocks += (size_t) s->length[sequences] / FT_CUDA_QUERIES + 2;
    *b = (batch){ .heads = s->heads, .head_size = s->head_size };
    b->cols = (size_t) s->heads * (size_t) s->head_size;
    b->start = must_have((times * sequences + 1) * sizeof *b->start);
    b->block = must_have(times * blocks * sizeof *b->block);
    b->start[0] = 0;
    for (size_t i = 0; i < times * sequences; i++)
        add_sequence(b, s->length[i % sequences]);
    b->hint = s->hint == 0 ? b->longest : s->hint < 0 ? 0 : (size_t) s->hint;
    b->device_blocks = upload(b->block, b->nblocks * sizeof *b->block);
    b->device_start = upload(b->start, (b->sequences + 1) * sizeof *b->start);
}

static void batch_fini(batch *b)
{
    free(b->start);
    free(b->block);
    cudaFree(b->device_blocks);
    cudaFree(b->device_start);
}

static const char *name_of(const shape *s)
{
    static char text[128];
    int used = snprintf(text, sizeof text, "%d heads of %d, lengths", s->heads, s->head_size);
    for (int i = 0; i < MOST_LENGTHS && s->length[i] >= 0; i++)
        used += snprintf(text + used, sizeof text - (size_t) used, " %d", s->length[i]);
    return text;
}

/* ---- Codes ------------------------------------------------------------------------------------
 */

/* Scales of a layer; `spread` is the deviation of the exponents. */
typedef struct scales {
    float q, k, v, softmax, probs, y;
} scales;

static scales scales_of(const batch *b, float spread)
{
    float deviation = 73.3f * 73.3f * sqrtf((float) b->head_size);
    float largest = fminf(0.9f, 16.0f / (float) b->longest);
    scales s = { .q = 0.021f, .k = 0.017f, .v = 0.03f, .probs = largest / 127.0f };
    s.softmax = spread / (deviation * s.q * s.k);
    s.y = s.v * 0.7f;
    return s;
}

static int8_t *make_codes(size_t n)
{
    int8_t *codes = must_have(n);
    for (size_t i = 0; i < n; i++)
        codes[i] = draw_code();
    return codes;
}

/* What the CPU makes of it: codes, or floats. */
static void *expected_of(const batch *b, int8_t *const code[3], const scales *s, bool to_codes)
{
    int threads = 4;
    size_t bytes = b->tokens * b->cols * (to_codes ? 1 : sizeof(float));
    ft_attention_i8 a = { .isa = cpu,
                          .threads = threads,
                          .sequences = b->sequences,
                          .heads = (size_t) b->heads,
                          .head_size = (size_t) b->head_size,
                          .starts = b->start,
                          .q = code[0],
                          .k = code[1],
                          .v = code[2],
                          .q_stride = b->cols,
                          .k_stride = b->cols,
                          .v_stride = b->cols,
                          .score_scale = s->q * s->k * s->softmax,
                          .p_inverse = ft_inverse_scale(s->probs),
                          .context_scale = s->probs * s->v,
                          .out_inverse = to_codes ? ft_inverse_scale(s->y) : 0.0f,
                          .y_stride = b->cols };
    a.y = must_have(bytes);
    a.scratch_bytes = ft_attention_i8_scratch(b->longest, (size_t) b->head_size, threads);
    a.scratch = ft_alloc(a.scratch_bytes);
    if (a.scratch == NULL)
        bail_out("no memory for the CPU's scratch");
    ft_attention_i8_run(&a);
    free(a.scratch);
    return a.y;
}

/* Through the operation, as a plan runs it: int8, or codes in float. */
static int run_codes(const batch *b, void *const x[3], void *y, const scales *s, ft_dtype dtype,
                     bool to_codes)
{
    ft_op op = { .kind = FT_OP_ATTENTION,
                 .attr = { .heads = b->heads, .softmax_scale = s->softmax } };
    const ft_cuda_batch on_device = { .tokens = b->tokens,
                                      .sequences = b->sequences,
                                      .start = b->device_start,
                                      .longest = b->hint,
                                      .blocks = b->device_blocks,
                                      .nblocks = b->nblocks };
    const float scale[3] = { s->q, s->k, s->v };
    ft_cuda_args args = { .chip = &chip, .op = &op, .batch = &on_device };
    for (int i = 0; i < 3; i++)
        args.in[i] = (ft_cuda_view){ x[i], b->tokens, b->cols, dtype, scale[i] };
    args.inner.scale = s->probs;
    if (to_codes)
        args.codes = (ft_cuda_view){ y, b->tokens, b->cols, dtype, s->y };
    else
        args.out = (ft_cuda_view){ y, b->tokens, b->cols, FT_F32, 0.0f };
    ft_value values[2] = { { .dtype = dtype, .cols = (int32_t) b->cols },
                                 { .scale = s->probs } };
    ft_plan plan = { .value = values, .nvalue = 2 };
    op.inner = 1;
    args.scratch_bytes = ft_cuda_attention_scratch(&plan, &op, b->tokens);
    args.scratch = upload(NULL, args.scratch_bytes);
    int status = ft_cuda_attention(&args);
    must(cudaDeviceSynchronize(), "attention");
    cudaFree(args.scratch);
    return status;
}

/* Bytes that differ from the expected ones, or from the poison behind them. */
static size_t wrong_bytes(const void *device, const void *expected, size_t bytes)
{
    size_t wrong = 0;
    uint8_t *found = download(device, bytes + GUARD);
    for (size_t i = 0; i < bytes; i++)
        wrong += found[i] != ((const uint8_t *) expected)[i];
    for (size_t i = 0; i < GUARD; i++)
        wrong += found[bytes + i] != POISON;
    free(found);
    return wrong;
}

static void one_way(const batch *b, int8_t *const code[3], const scales *s, bool to_codes,
                    const char *what)
{
    size_t n = b->tokens * b->cols, bytes = n * (to_codes ? 1 : sizeof(float));
    void *expected = expected_of(b, code, s, to_codes), *x[3], *y = upload(NULL, bytes);
    for (int i = 0; i < 3; i++)
        x[i] = upload(code[i], n);
    int status = run_codes(b, x, y, s, FT_I8, to_codes);
    size_t wrong = wrong_bytes(y, expected, bytes), zeros = 0;
    for (size_t i = 0; i < bytes; i++)
        zeros += ((const uint8_t *) expected)[i] == 0;
    ok(status == 0 && wrong == 0 && zeros < bytes, "int8 to %s, %s: the CPU's bytes",
       to_codes ? "codes" : "floats", what);
    if (status != 0 || wrong > 0)
        diag("status %d; %zu of %zu bytes differ", status, wrong, bytes);
    free(expected);
    cudaFree(y);
    for (int i = 0; i < 3; i++)
        cudaFree(x[i]);
}

static void test_codes(const shape *s, float spread, const char *note)
{
    batch b;
    int8_t *code[3];
    char what[192];
    batch_init(&b, s);
    scales scale = scales_of(&b, spread);
    snprintf(what, sizeof what, "%s%s", name_of(s), note);
    for (int i = 0; i < 3; i++)
        code[i] = make_codes(b.tokens * b.cols);
    one_way(&b, code, &scale, true, what);
    one_way(&b, code, &scale, false, what);
    for (int i = 0; i < 3; i++)
        free(code[i]);
    batch_fini(&b);
}

/* Codes in float, to codes in float or to floats: what the CPU's int8 gives. */
static void test_faked(const shape *s, bool to_codes)
{
    batch b;
    int8_t *code[3];
    void *x[3];
    batch_init(&b, s);
    size_t n = b.tokens * b.cols;
    scales scale = scales_of(&b, 2.0f);
    float *wide = must_have(n * sizeof *wide);
    for (int i = 0; i < 3; i++) {
        code[i] = make_codes(n);
        for (size_t j = 0; j < n; j++)
            wide[j] = code[i][j];
        x[i] = upload(wide, n * sizeof *wide);
    }
    void *expected = expected_of(&b, code, &scale, to_codes);
    for (size_t j = 0; to_codes && j < n; j++)
        wide[j] = ((int8_t *) expected)[j];
    void *y = upload(NULL, n * sizeof *wide);
    int status = run_codes(&b, x, y, &scale, FT_F32, to_codes);
    size_t wrong = wrong_bytes(y, to_codes ? wide : expected, n * sizeof *wide);
    ok(status == 0 && wrong == 0, "faked to %s, %s: what int8 gives", to_codes ? "codes" : "floats",
       name_of(s));
    free(expected);
    free(wide);
    cudaFree(y);
    for (int i = 0; i < 3; i++) {
        cudaFree(x[i]);
        free(code[i]);
    }
    batch_fini(&b);
}

/* ---- Floats -----------------------------------------------------------------------------------
 */

static float half_to_float(uint16_t bits, ft_dtype dtype)
{
    return dtype == FT_F16 ? ft_float_from_f16(bits) : ft_float_from_bf16(bits);
}

/* Random values, rounded as they are stored; the stored form goes to *device. */
static double *make_floats(size_t n, ft_dtype dtype, float size, void **device)
{
    double *exact = must_have(n * sizeof *exact);
    float *values = must_have(n * sizeof *values);
    uint16_t *halves = must_have(n * sizeof *halves);
    for (size_t i = 0; i < n; i++) {
        values[i] = draw_float() * size;
        halves[i] = dtype == FT_F16 ? ft_f16_from_float(values[i]) : ft_bf16_from_float(values[i]);
        exact[i] = dtype == FT_F32 ? (double) values[i] : (double) half_to_float(halves[i], dtype);
    }
    *device =
        dtype == FT_F32 ? upload(values, n * sizeof *values) : upload(halves, n * sizeof *halves);
    free(values);
    free(halves);
    return exact;
}

typedef struct row {
    size_t first, length, query, column; /* `query` and `first` count rows of the batch */
} row;

/*
 * The context of one query in `y`, its probabilities in `p`.  Returns the largest sum of p |v|: a
 * context of one column may itself be next to nothing.
 */
static double exact_row(double *y, double *p, const batch *b, const row *r, double *const x[3],
                        double scale)
{
    size_t dim = (size_t) b->head_size;
    const double *q = x[0] + r->query * b->cols + r->column;
    double most = -(double) INFINITY, sum = 0.0;
    for (size_t key = 0; key < r->length; key++) {
        const double *k = x[1] + (r->first + key) * b->cols + r->column;
        p[key] = 0.0;
        for (size_t i = 0; i < dim; i++)
            p[key] += q[i] * k[i];
        p[key] *= scale;
        most = fmax(most, p[key]);
    }
    for (size_t key = 0; key < r->length; key++)
        sum += p[key] = exp(p[key] - most);
    double largest = 0.0;
    for (size_t key = 0; key < r->length; key++)
        p[key] /= sum;
    for (size_t i = 0; i < dim; i++) {
        double size = 0.0;
        y[i] = 0.0;
        for (size_t key = 0; key < r->length; key++) {
            double part = p[key] * x[2][(r->first + key) * b->cols + r->column + i];
            y[i] += part;
            size += fabs(part);
        }
        largest = fmax(largest, size);
    }
    return largest;
}

static double found_at(const void *y, ft_dtype dtype, size_t i)
{
    return dtype == FT_F32 ? (double) ((const float *) y)[i]
                           : (double) half_to_float(((const uint16_t *) y)[i], dtype);
}

/* The worst error of a context, as a part of its row's largest sum of sizes. */
static double worst_error(const batch *b, double *const x[3], double scale, const void *found,
                          ft_dtype dtype)
{
    double *y = must_have((size_t) b->head_size * sizeof *y), worst = 0.0;
    double *p = must_have(b->longest * sizeof *p);
    for (size_t sequence = 0; sequence < b->sequences; sequence++)
        for (int32_t query = b->start[sequence]; query < b->start[sequence + 1]; query++)
            for (size_t column = 0; column < b->cols; column += (size_t) b->head_size) {
                row r = { (size_t) b->start[sequence],
                          (size_t) (b->start[sequence + 1] - b->start[sequence]), (size_t) query,
                          column };
                double error = 0.0, largest = exact_row(y, p, b, &r, x, scale);
                for (size_t i = 0; i < (size_t) b->head_size; i++) {
                    double z = found_at(found, dtype, (size_t) query * b->cols + column + i);
                    error = z == z ? fmax(error, fabs(z - y[i])) : (double) INFINITY;
                }
                worst = fmax(worst, error / largest);
            }
    free(y);
    free(p);
    return worst;
}

static ft_cuda_heads described(const batch *b, ft_dtype dtype, void *const x[3], void *y,
                               float scale)
{
    return (ft_cuda_heads){ .blocks = b->device_blocks,
                            .nblocks = b->nblocks,
                            .longest = b->hint,
                            .heads = b->heads,
                            .head_size = b->head_size,
                            .dtype = dtype,
                            .q = x[0],
                            .k = x[1],
                            .v = x[2],
                            .y = y,
                            .score_scale = scale };
}

/*
 * In f16 and bf16, probabilities and contexts are rounded to 11 and 8 bits, which makes at most
 * 2 * 2^-11 and 2 * 2^-8 of the sizes that are added; twice that leaves room for the exponentials.
 */
static void test_floats(const shape *s, ft_dtype dtype)
{
    static const double tolerance[] = { [FT_F32] = 1e-5, [FT_F16] = 2e-3, [FT_BF16] = 2e-2 };
    batch b;
    double *x[3];
    void *device[3];
    batch_init(&b, s);
    size_t n = b.tokens * b.cols, bytes = n * (dtype == FT_F32 ? 4 : 2);
    float scale = 6.0f / sqrtf((float) b.head_size);
    for (int i = 0; i < 3; i++)
        x[i] = make_floats(n, dtype, 1.0f, &device[i]);
    void *y = upload(NULL, bytes);
    ft_cuda_heads a = described(&b, dtype, device, y, scale);
    int status = ft_cuda_attend(&chip, NULL, &a);
    must(cudaDeviceSynchronize(), "attention");
    uint8_t *found = download(y, bytes + GUARD);
    bool kept = true;
    for (size_t i = 0; i < GUARD; i++)
        kept &= found[bytes + i] == POISON;
    double worst = worst_error(&b, x, scale, found, dtype);
    const char *name = dtype == FT_F32 ? "f32" : dtype == FT_F16 ? "f16" : "bf16";
    ok(status == 0 && kept && worst <= tolerance[dtype], "%s, %s: error %.1e of a row's largest",
       name, name_of(s), worst);
    free(found);
    cudaFree(y);
    for (int i = 0; i < 3; i++) {
        free(x[i]);
        cudaFree(device[i]);
    }
    batch_fini(&b);
}

/* ---- Counters ---------------------------------------------------------------------------------
 */

static uint64_t total_of(const uint64_t *keys)
{
    uint64_t total = 0;
    for (size_t i = 0; i < FT_COUNT_KEYS; i++)
        total += keys[i];
    return total;
}

/* Values per binade, of which the sums of keys and of exact probabilities may differ a little. */
static void exact_binades(double binade[FT_COUNT_BINADES], double *largest, const batch *b,
                          double *const x[3], double scale)
{
    double *y = must_have((size_t) b->head_size * sizeof *y);
    double *p = must_have(b->longest * sizeof *p);
    memset(binade, 0, FT_COUNT_BINADES * sizeof *binade);
    *largest = 0.0;
    for (size_t sequence = 0; sequence < b->sequences; sequence++)
        for (int32_t query = b->start[sequence]; query < b->start[sequence + 1]; query++)
            for (size_t column = 0; column < b->cols; column += (size_t) b->head_size) {
                row r = { (size_t) b->start[sequence],
                          (size_t) (b->start[sequence + 1] - b->start[sequence]), (size_t) query,
                          column };
                exact_row(y, p, b, &r, x, scale);
                for (size_t key = 0; key < r.length; key++) {
                    uint32_t bits = ft_bits_from_float((float) p[key]);
                    uint32_t at = ft_count_key(bits);
                    binade[at == 0 ? 0 : (at - 1) >> FT_COUNT_MANTISSA] += 1.0;
                    *largest = fmax(*largest, p[key]);
                }
            }
    free(y);
    free(p);
}

static void test_counts(const shape *s)
{
    batch b;
    double *x[3], binade[FT_COUNT_BINADES], largest;
    void *device[3];
    batch_init(&b, s);
    size_t n = b.tokens * b.cols, key_bytes = FT_COUNT_KEYS * sizeof(uint64_t);
    float scale = 12.0f / sqrtf((float) b.head_size), seen_largest;
    uint64_t probabilities = 0;
    for (size_t i = 0; i < b.sequences; i++)
        probabilities += (uint64_t) (b.start[i + 1] - b.start[i]) *
                         (uint64_t) (b.start[i + 1] - b.start[i]) * (uint64_t) b.heads;
    for (int i = 0; i < 3; i++)
        x[i] = make_floats(n, FT_F32, 1.0f, &device[i]);
    void *y = upload(NULL, n * sizeof(float));
    ft_cuda_counts counts = { upload(NULL, key_bytes), upload(NULL, 3 * sizeof(uint64_t)),
                              upload(NULL, sizeof(uint32_t)) };
    ft_cuda_heads a = described(&b, FT_F32, device, y, scale);
    a.counts = &counts;
    uint64_t *once = NULL, *again = NULL;
    for (int run = 0; run < 2; run++) {
        must(cudaMemset(counts.key, 0, key_bytes), "cudaMemset");
        must(cudaMemset(counts.special, 0, 3 * sizeof(uint64_t)), "cudaMemset");
        must(cudaMemset(counts.largest, 0, sizeof(uint32_t)), "cudaMemset");
        is_int(ft_cuda_attend(&chip, NULL, &a), 0, "counting launches");
        must(cudaDeviceSynchronize(), "attention");
        *(run == 0 ? &once : &again) = download(counts.key, key_bytes);
    }
    is_int((long long) total_of(once), (long long) probabilities,
           "%s: every probability is counted once", name_of(s));
    ok(memcmp(once, again, key_bytes) == 0, "and a second run counts the same");
    exact_binades(binade, &largest, &b, x, scale);
    double moved = 0.0;
    for (size_t i = 0; i < FT_COUNT_BINADES; i++) {
        double here = i == 0 ? (double) once[0] : 0.0;
        for (size_t j = 0; j < 1u << FT_COUNT_MANTISSA; j++)
            here += (double) once[1 + (i << FT_COUNT_MANTISSA) + j];
        moved += fabs(here - binade[i]);
    }
    /* A relative error of 1e-6 takes a value over the edge of its binade once in 700,000. */
    ok(moved <= 4.0 + (double) probabilities * 1e-5, "they lie in the binades of the exact ones");
    uint32_t *bits = download(counts.largest, sizeof *bits);
    memcpy(&seen_largest, bits, sizeof seen_largest);
    near((double) seen_largest / largest, 1.0, 1e-5, "and the largest is the exact one");
    free(bits);
    free(once);
    free(again);
    cudaFree(counts.key);
    cudaFree(counts.special);
    cudaFree(counts.largest);
    cudaFree(y);
    for (int i = 0; i < 3; i++) {
        free(x[i]);
        cudaFree(device[i]);
    }
    batch_fini(&b);
}

/* ---- All of it --------------------------------------------------------------------------------
 */

static const shape widths[] = {
    SHAPE(12, 64, 128, 67, 1, 64, 65),
    SHAPE(3, 64, 5, 31, 32, 33, 0, 96, 97),
    SHAPE(2, 64, 129, 255, 256, 17),
    SHAPE(2, 64, 257, 300, 383, 384, 40),
    SHAPE(2, 64, 385, 3, 640, 447),
    SHAPE(2, 32, 128, 77),
    SHAPE(3, 32, 200, 129),
    SHAPE(2, 32, 384, 350, 2),
    SHAPE(2, 32, 513, 70),
    SHAPE(2, 128, 128, 77),
    SHAPE(1, 128, 200, 256),
    SHAPE(2, 128, 384, 290, 16),
    SHAPE(1, 128, 600, 70),
    SHAPE(3, 16, 100, 400),
    SHAPE(3, 24, 100, 270),
    SHAPE(12, 26, 7, 1, 40, 130),
    SHAPE(2, 33, 64, 129),
    SHAPE(3, 1, 64, 65, 3),
    SHAPE(2, 40, 90, 300),
    SHAPE(2, 80, 90, 410),
    SHAPE(2, 96, 90, 300),
    SHAPE(2, 104, 120, 500),
    SHAPE(1, 160, 90, 300),
    SHAPE(1, 200, 90, 300),
    SHAPE(2, 256, 90, 300),
    SHAPE(1, 255, 33, 70),
};

int main(void)
{
    int count, value;
    ft_error error;
    cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess || count == 0)
        skip_all("no CUDA device: %s", cudaGetErrorString(status));
    must(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 0), "attribute");
    chip.capability = value * 10;
    must(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMinor, 0), "attribute");
    chip.capability += value;
    must(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0), "attribute");
    chip.shared = (size_t) value;
    chip.overlaps = chip.capability >= 90;
    if (ft_cpu_isa(&cpu, &error) != FT_OK)
        bail_out("%s", error.text);

    for (size_t i = 0; i < FT_COUNT(widths); i++)
        test_codes(&widths[i], 2.0f, "");
    test_codes(&(shape) SHAPE(2, 64, 100, 350), 60.0f, ", exponents below exp's range");
    test_codes(&(shape) SHAPE(2, 64, 100, 350, 700), 0.01f, ", equal probabilities");
    test_codes(&(shape) SHAPE(1, 64, 2048, 1000), 2.0f, "");
    test_codes(
        &(shape){ .heads = 2, .head_size = 64, .length = LENGTHS(100, 300, 129), .hint = 128 },
        2.0f, ", 128 expected");
    test_codes(
        &(shape){ .heads = 2, .head_size = 64, .length = LENGTHS(100, 300, 500), .hint = -1 }, 2.0f,
        ", none expected");
    test_codes(&(shape){ .heads = 1, .head_size = 16, .length = LENGTHS(2, 1), .times = 20000 },
               2.0f, ", 20000 times");
    test_codes(&(shape) SHAPE(1, 64, 8192), 4.0f, "");
    for (size_t i = 0; i < FT_COUNT(widths); i += 4) {
        test_faked(&widths[i], true);
        test_faked(&widths[i], false);
    }
    for (size_t i = 0; i < FT_COUNT(widths); i++) {
        test_floats(&widths[i], FT_F32);
        test_floats(&widths[i], FT_F16);
        if (chip.capability >= 80)
            test_floats(&widths[i], FT_BF16);
    }
    test_floats(&(shape) SHAPE(1, 64, 1500), FT_F32);
    test_floats(&(shape) SHAPE(1, 64, 1500), FT_F16);
    test_counts(&(shape) SHAPE(3, 16, 1, 66, 100));
    test_counts(&(shape) SHAPE(2, 40, 300, 17));
    is_int(ft_cuda_attend(&chip, NULL,
                          &(ft_cuda_heads){ .heads = 1, .head_size = 264, .dtype = FT_I8 }),
           cudaErrorNotSupported, "a head of 264 is refused");
    return done_testing();
}

#else

int main(void)
{
    skip_all("this build has no CUDA backend");
}

#endif
