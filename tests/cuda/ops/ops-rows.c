/*
 * ops-rows.c - row operations of decoders: RMS norms and their sums, gates, int8 with dynamic row
 * scales, embeddings of tokens sampled on the device, gathered rows.
 *
 * The CPU computes each row alone.  So equal bits, both where a thread block cluster shares a row
 * and where each row has one thread block, prove that no row depends on the size of the batch.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#ifdef HAVE_CUDA

#include "tests/cuda/ops/ops.h"

#include "runtime/mem.h"
#include "runtime/tensor.h"
#include "tests/tap/tap.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const ft_dtype reals[] = { FT_F32, FT_F16, FT_BF16 };

/* The form of a result: none, floats, quantized with a static scale or with dynamic row scales. */
typedef enum form { NOTHING, FLOATS, STATIC, DYNAMIC } form;

typedef struct result {
    form form;
    ft_dtype dtype;
} result;

static const result quantized_of_all_dtypes[] = { { NOTHING, FT_F32 }, { STATIC, FT_I8 },
                                                  { STATIC, FT_F32 },  { DYNAMIC, FT_I8 },
                                                  { DYNAMIC, FT_F32 }, { DYNAMIC, FT_I8 } };

static matrix room_for(result r, size_t rows, size_t cols)
{
    return r.form == NOTHING   ? (matrix){ 0 }
           : r.form == DYNAMIC ? dynamic_result(rows, cols, r.dtype)
                               : result_of(rows, cols, r.dtype, r.form == STATIC ? 0.03f : 0.0f);
}

static size_t draw(size_t below)
{
    return rng_below(&numbers, (uint32_t) below);
}

/*
 * Normal floats; the second row is zero, and the third has numbers of all magnitudes, NaN and
 * infinity among them.
 */
static matrix special_rows(size_t rows, size_t cols, ft_dtype dtype)
{
    static const float special[] = { -0.0f,  1e-42f, -1e-30f, 0.5f,    79.9f,    -80.1f, 88.4f,
                                     -90.0f, 3e4f,   -6e4f,   1.5e-8f, INFINITY, NAN };
    float *x = host_memory(rows * cols * sizeof *x);
    rng_floats(&numbers, x, rows * cols, 2.0);
    if (rows > 1)
        memset(x + cols, 0, cols * sizeof *x);
    size_t count = FT_COUNT(special) - draw(3); /* with NaN, without, without infinity */
    for (size_t i = 0; rows > 2 && i < count && 3 * i < cols; i++)
        x[2 * cols + 3 * i] = special[i];
    return matrix_of(x, rows, cols, dtype, 0.0f);
}

/* ---- Norm --------------------------------------------------------------------------------- */

/* Less than a vector, vectors and a remainder, widths of models; around the register capacity. */
static const size_t norm_widths[] = { 1,    3,    8,    64,   70,   255,  256,  260,   704,
                                      2048, 2052, 4096, 4099, 5120, 8192, 8196, 10251, 16640 };

typedef struct norm_form {
    ft_norm_kind kind;
    ft_dtype x;
    int residual; /* 0: none; 1 to 3: float dtypes; 4: int8 */
    result second, out, quantized;
} norm_form;

static size_t norm_case(const norm_form *f, size_t rows, size_t cols)
{
    both b;
    begin_case();
    begin(&b, FT_OP_NORM, ft_cpu_norm, ft_cuda_norm);
    b.op.attr.norm = f->kind;
    b.op.attr.eps = 1e-5f;
    b.in[0] = special_rows(rows, cols, f->x);
    if (f->residual > 0)
        b.in[1] = f->residual == 4 ? random_matrix(rows, cols, FT_I8, 0.031f)
                                   : random_matrix(rows, cols, reals[f->residual - 1], 0.0f);
    b.second = room_for(f->second, rows, cols);
    b.out = room_for(f->out, rows, cols);
    b.quantized = room_for(f->quantized, rows, cols);
    add_weight(&b, 0, 1, cols, FT_F32);
    if (f->kind == FT_NORM_LAYER)
        add_weight(&b, 1, 1, cols, FT_F32);
    size_t wrong = run_both(&b);
    if (wrong > 0)
        diag("%s norm, %zu x %zu, %s, residual %d, sum %d %s, out %d %s, int8 %d %s: %zu elements "
             "are wrong",
             f->kind == FT_NORM_RMS ? "rms" : "layer", rows, cols, ft_dtype_name(f->x), f->residual,
             f->second.form, ft_dtype_name(f->second.dtype), f->out.form,
             ft_dtype_name(f->out.dtype), f->quantized.form, ft_dtype_name(f->quantized.dtype),
             wrong);
    return wrong;
}

/* Random results: floats, quantized values or both; sometimes also the sum. */
static norm_form draw_form(ft_dtype x, int residual)
{
    norm_form f = { .kind = draw(4) == 0 ? FT_NORM_LAYER : FT_NORM_RMS, .x = x };
    f.residual = residual;
    f.quantized = quantized_of_all_dtypes[draw(FT_COUNT(quantized_of_all_dtypes))];
    f.out =
        (result){ f.quantized.form == NOTHING || draw(2) == 0 ? FLOATS : NOTHING, reals[draw(3)] };
    f.second = (result){ residual > 0 && draw(3) > 0 ? FLOATS : NOTHING, reals[draw(3)] };
    return f;
}

static void test_norms(size_t step)
{
    for (size_t x = 0; x < FT_COUNT(reals); x++)
        for (int residual = 0; residual < 5; residual++) {
            size_t wrong = 0;
            for (size_t i = 0; i < FT_COUNT(norm_widths); i += step)
                for (int again = 0; again < 4; again++) {
                    norm_form f = draw_form(reals[x], residual);
                    wrong += norm_case(&f, 1 + draw(4), norm_widths[i]);
                }
            is_int((long long) wrong, 0,
                   "norm: %s plus %s has the CPU's bits in sums, float and quantized results",
                   ft_dtype_name(reals[x]),
                   residual == 0   ? "nothing"
                   : residual == 4 ? "int8"
                                   : ft_dtype_name(reals[residual - 1]));
        }
}

/* ---- Norms of heads ----------------------------------------------------------------------- */

static size_t head_norm_case(size_t rows, size_t heads, size_t size, ft_dtype in, ft_dtype out)
{
    both b;
    begin_case();
    begin(&b, FT_OP_HEAD_NORM, ft_cpu_head_norm, ft_cuda_head_norm);
    b.op.attr.heads = (int32_t) heads;
    b.op.attr.eps = 1e-6f;
    b.in[0] = special_rows(rows, heads * size, in);
    b.out = result_of(rows, heads * size, out, 0.0f);
    add_weight(&b, 0, 1, size, FT_F32);
    return run_both(&b);
}

static void test_head_norms(void)
{
    static const size_t sizes[] = { 1, 7, 24, 64, 80, 128, 256, 260, 264, 1030 };
    for (size_t in = 0; in < FT_COUNT(reals); in++) {
        size_t wrong = 0;
        for (size_t i = 0; i < FT_COUNT(sizes); i++)
            for (size_t out = 0; out < FT_COUNT(reals); out++)
                wrong +=
                    head_norm_case(1 + draw(300), 1 + draw(8), sizes[i], reals[in], reals[out]);
        is_int((long long) wrong, 0, "head_norm: heads of 1 to 1030 columns, of %s",
               ft_dtype_name(reals[in]));
    }
}

/* More rows than a device has multiprocessors, several times. */
static void test_many_norms(size_t step)
{
    static const size_t widths[] = { 64, 704, 2052, 4096, 5120, 8192, 10252 };
    static const norm_form decoder = {
        FT_NORM_RMS, FT_F32, 1, { FLOATS, FT_F32 }, { NOTHING, FT_F32 }, { DYNAMIC, FT_I8 }
    };
    size_t wrong = norm_case(&decoder, 700, 4096);
    for (size_t i = 0; i < FT_COUNT(widths); i += step)
        for (int again = 0; again < 3; again++) {
            norm_form f = draw_form(reals[draw(3)], (int) draw(5));
            wrong += norm_case(&f, 1 + draw(700), widths[i]);
        }
    is_int((long long) wrong, 0, "norm: up to 700 rows have the CPU's bits");
}

/* ---- Gate, quantize and dequantize ---------------------------------------------------------- */

/* Rows and columns: for a warp, a thread block, a cluster, and too wide for its registers. */
static const size_t shapes[][2] = { { 1, 1 },     { 3, 7 },      { 4, 70 },    { 5, 704 },
                                    { 1, 4096 },  { 300, 1030 }, { 3, 5120 },  { 1, 11008 },
                                    { 4, 14336 }, { 3, 11009 },  { 1, 70000 }, { 20, 8200 },
                                    { 70, 2048 }, { 150, 9000 }, { 0, 64 } };

static size_t gate_case(ft_dtype dtype, ft_activation activation, result r, size_t rows,
                        size_t cols)
{
    both b;
    begin_case();
    begin(&b, FT_OP_GATE, ft_cpu_gate, ft_cuda_gate);
    b.op.attr.activation = activation;
    b.in[0] = special_rows(rows, cols, dtype);
    b.in[1] = random_matrix(rows, cols, dtype, 0.0f);
    *(r.form == FLOATS ? &b.out : &b.quantized) = room_for(r, rows, cols);
    size_t wrong = run_both(&b);
    if (wrong > 0)
        diag("%s, %zu x %zu: %zu elements are wrong", ft_activation_name(activation), rows, cols,
             wrong);
    return wrong;
}

static const struct {
    form form;
    ft_dtype dtype; /* of quantized values */
    const char *name;
} gate_results[] = { { FLOATS, FT_F32, "floats" },
                     { STATIC, FT_I8, "int8" },
                     { STATIC, FT_F32, "fake-quantized values" },
                     { DYNAMIC, FT_I8, "int8 with row scales" },
                     { DYNAMIC, FT_F32, "fake-quantized values with row scales" } };

static void test_gate(size_t step)
{
    for (size_t x = 0; x < FT_COUNT(reals); x++)
        for (size_t r = 0; r < FT_COUNT(gate_results); r++) {
            size_t wrong = 0;
            result as = { gate_results[r].form,
                          gate_results[r].form == FLOATS ? reals[x] : gate_results[r].dtype };
            for (size_t i = 0; i < FT_COUNT(shapes); i += step)
                wrong += gate_case(reals[x], FT_ACT_SILU, as, shapes[i][0], shapes[i][1]);
            for (ft_activation a = FT_ACT_NONE; a <= FT_ACT_SILU; a++)
                wrong += gate_case(reals[x], a, as, 4, 2050);
            is_int((long long) wrong, 0, "gate: %s to %s has the CPU's bits",
                   ft_dtype_name(reals[x]), gate_results[r].name);
        }
}

static size_t quantize_case(ft_dtype x, ft_dtype quantized, size_t rows, size_t cols)
{
    both b;
    begin_case();
    begin(&b, FT_OP_QUANTIZE, ft_cpu_quantize, ft_cuda_quantize);
    b.in[0] = special_rows(rows, cols, x);
    b.quantized = dynamic_result(rows, cols, quantized);
    return run_both(&b);
}

static size_t dequantize_case(ft_dtype quantized, ft_dtype y, size_t rows, size_t cols)
{
    both b;
    begin_case();
    begin(&b, FT_OP_DEQUANTIZE, ft_cpu_dequantize, ft_cuda_dequantize);
    b.in[0] = random_dynamic(rows, cols, quantized);
    b.out = result_of(rows, cols, y, 0.0f);
    return run_both(&b);
}

static void test_quantize(size_t step)
{
    for (int held = 0; held < 2; held++)
        for (size_t x = 0; x < FT_COUNT(reals); x++) {
            ft_dtype quantized = held ? FT_F32 : FT_I8;
            size_t wrong = 0, back = 0;
            for (size_t i = 0; i < FT_COUNT(shapes); i += step) {
                wrong += quantize_case(reals[x], quantized, shapes[i][0], shapes[i][1]);
                back += dequantize_case(quantized, reals[x], shapes[i][0], shapes[i][1]);
            }
            is_int((long long) wrong, 0,
                   "quantize: %s to quantized values in %s with row scales has the CPU's bits",
                   ft_dtype_name(reals[x]), ft_dtype_name(quantized));
            is_int((long long) back, 0,
                   "dequantize: quantized values with row scales to %s has the CPU's bits",
                   ft_dtype_name(reals[x]));
        }
}

/* ---- Embed and gather ----------------------------------------------------------------------- */

/* Token ids, and negative ids that stand for the last token of a slot. */
static size_t embed_case(size_t rows, size_t cols, ft_dtype table, ft_dtype out)
{
    enum { VOCABULARY = 331, SLOTS = 9 };
    both b;
    begin_case();
    begin(&b, FT_OP_EMBED, ft_cpu_embed, ft_cuda_embed);
    b.op.attr.embed_scale = 1.0f;
    add_weight(&b, 0, VOCABULARY, cols, table);
    b.state[FT_STATE_LAST_TOKEN] = random_numbers(SLOTS, 1, 0, VOCABULARY);
    b.in[0] = draw(2) == 0 ? random_numbers(rows, 1, -SLOTS, SLOTS)
                           : random_numbers(rows, 1, -SLOTS, SLOTS + VOCABULARY);
    b.out = result_of(rows, cols, out, 0.0f);
    return run_both(&b);
}

/*
 * Scaled embeddings plus positions within their sequences.  Padding rows get the first position; on
 * the CPU each of them is a sequence of its own.
 */
static size_t place_case(size_t cols, ft_dtype table, ft_dtype out)
{
    enum { WORDS = 57, PLACES = 120, TEXTS = 3, ROWS = 41, ALL = ROWS + 2 };
    static const int32_t start[] = { 0, 30, 31, ROWS, ROWS + 1, ALL },
                         n_past[] = { 0, 110, 7, 0, 0 };
    int32_t seq_id[ALL], owned[ALL];
    both b;
    begin_case();
    begin(&b, FT_OP_EMBED, ft_cpu_embed, ft_cuda_embed);
    b.op.attr.embed_scale = 27.7128f;
    b.op.attr.position_offset = 2;
    for (int32_t row = 0; row < ALL; row++) {
        seq_id[row] = row < 30 ? 0 : row < 31 ? 1 : row < ROWS ? 2 : TEXTS + row - ROWS;
        owned[row] = row < ROWS ? seq_id[row] : -1;
    }
    b.batch = (ft_batch){ .start = start, .n_past = n_past, .seq_id = seq_id };
    b.device_batch.start = to_device(start, (TEXTS + 1) * sizeof *start);
    b.device_batch.n_past = to_device(n_past, TEXTS * sizeof *n_past);
    b.device_batch.seq_id = to_device(owned, sizeof owned);
    add_weight(&b, 0, WORDS, cols, table);
    add_weight(&b, 1, PLACES, cols, FT_F32);
    b.in[0] = random_numbers(ALL, 1, 0, WORDS);
    b.out = result_of(ALL, cols, out, 0.0f);
    return run_both(&b);
}

/* Gathers some rows of a batch, padded to `room` selected rows. */
static size_t select_case(size_t rows, size_t selected, size_t room, size_t cols, ft_dtype dtype)
{
    both b;
    begin_case();
    begin(&b, FT_OP_GATHER_ROWS, ft_cpu_gather_rows, ft_cuda_gather_rows);
    int32_t *select = host_memory(room * sizeof *select);
    memset(select, 0, room * sizeof *select);
    for (size_t i = 0; i < selected; i++)
        select[i] = (int32_t) draw(rows);
    b.batch.selected = room;
    b.batch.selected_rows = select;
    b.device_batch.selected = room;
    b.device_batch.selected_rows = to_device(select, room * sizeof *select);
    b.in[0] = random_matrix(rows, cols, dtype, 0.0f);
    b.out = result_of(room, cols, dtype, 0.0f);
    return run_both(&b);
}

static void test_lookups(void)
{
    static const size_t widths[] = { 1, 3, 6, 64, 70, 704, 4096, 5121 };
    for (size_t x = 0; x < FT_COUNT(reals); x++) {
        size_t embedded = 0, placed = 0, selected = 0;
        for (size_t i = 0; i < FT_COUNT(widths); i++) {
            size_t rows = 1 + draw(80), wanted = draw(rows + 1);
            embedded += embed_case(rows, widths[i], reals[x], reals[i % 3]);
            placed += place_case(widths[i], reals[x], reals[i % 3]);
            selected += select_case(rows, wanted, wanted + draw(9), widths[i], reals[x]);
        }
        is_int((long long) embedded, 0, "embed: %s by token ids and by slots has the CPU's bits",
               ft_dtype_name(reals[x]));
        is_int((long long) placed, 0, "embed: %s times a scale plus positions has the CPU's bits",
               ft_dtype_name(reals[x]));
        is_int((long long) selected, 0,
               "gather_rows: rows of %s have the CPU's bits, and padding gathers the first row",
               ft_dtype_name(reals[x]));
    }
}

/* ---- Dependent launches --------------------------------------------------------------------- */

/*
 * s = x + r and c = quantize(norm(s)); y = dequantize(c); d = quantize(gate(y, s));
 * r = dequantize(d): each reads what the previous one wrote, and writes what another has read.
 */
static void test_queue(size_t rows, size_t cols)
{
    enum { ROUNDS = 30, STEPS = 4 };
    both norm, back, gate, again, *const all[STEPS] = { &norm, &back, &gate, &again };
    size_t wrong = 0;
    begin_case();
    begin(&norm, FT_OP_NORM, ft_cpu_norm, ft_cuda_norm);
    begin(&back, FT_OP_DEQUANTIZE, ft_cpu_dequantize, ft_cuda_dequantize);
    begin(&gate, FT_OP_GATE, ft_cpu_gate, ft_cuda_gate);
    begin(&again, FT_OP_DEQUANTIZE, ft_cpu_dequantize, ft_cuda_dequantize);
    matrix x = random_matrix(rows, cols, FT_F32, 0.0f), r = random_matrix(rows, cols, FT_F16, 0.0f);
    matrix s = result_of(rows, cols, FT_F32, 0.0f), y = result_of(rows, cols, FT_F32, 0.0f);
    matrix c = dynamic_result(rows, cols, FT_I8), d = dynamic_result(rows, cols, FT_I8);
    norm.op.attr.norm = FT_NORM_RMS;
    norm.op.attr.eps = 1e-5f;
    norm.in[0] = x, norm.in[1] = r, norm.second = s, norm.quantized = c;
    add_weight(&norm, 0, 1, cols, FT_F32);
    back.in[0] = c, back.out = y;
    gate.op.attr.activation = FT_ACT_SILU;
    gate.in[0] = y, gate.in[1] = s, gate.quantized = d;
    again.in[0] = d, again.out = r;
    for (int i = 0; i < STEPS * ROUNDS; i++)
        wrong += run_device(all[i % STEPS]) != 0;
    for (int i = 0; i < STEPS * ROUNDS; i++)
        run_host(all[i % STEPS]);
    wrong += cudaDeviceSynchronize() != cudaSuccess;
    wrong += count_differences(&c) + count_differences(&d) + count_differences(&r) +
             count_differences(&s) + count_differences(&y);
    is_int((long long) wrong, 0, "%d dependent launches of %zu x %zu have the CPU's bits",
           STEPS * ROUNDS, rows, cols);
}

void test_rows(size_t step)
{
    keep_f16(true);
    test_norms(step);
    test_many_norms(step);
    test_head_norms();
    test_gate(step);
    test_quantize(step);
    test_lookups();
    test_queue(1, 11008);
    test_queue(9, 70);
    test_queue(400, 1024);
    keep_f16(false);
}

#else

typedef int ft_nothing_without_cuda;

#endif
