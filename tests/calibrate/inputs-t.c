/*
 * inputs-t.c - statistics of the inputs of linears: every kind of model, against direct sums.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/stats/activation_stats.h"
#include "calibrate/weights/prefix.h"
#include "runtime/mem.h"
#include "runtime/graph/plan.h"
#include "tests/lib/models/converted.h"
#include "tests/lib/golden.h"
#include "tests/lib/models/llama_file.h"
#include "tests/lib/models/translator_file.h"
#include "tests/lib/models/vit_file.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static ft_error err;

/* ---- Models and samples ------------------------------------------------------------------- */

/* A model in observe mode and its samples. */
typedef struct subject {
    tiny checkpoint;
    ft_model *model;
    ft_dataset data;
    bool *all; /* [nweight]: all weights are requested */
} subject;

/* Converts the checkpoint and opens it with the samples `named`. */
static void open_subject(subject *s, const ft_named_tensor *named, size_t count)
{
    char path[128], data[128];
    ft_artifact_close(converted(&s->checkpoint, &(ft_convert_options){ 0 }));
    snprintf(path, sizeof path, "%s/model.ft", s->checkpoint.folder);
    snprintf(data, sizeof data, "%s/data.safetensors", s->checkpoint.folder);
    if (ft_safetensors_write(data, named, count, true, &err) != FT_OK ||
        ft_model_open_with_config(&s->model, path, NULL,
                                  &(ft_quant_config){ .mode = FT_MODE_OBSERVE }, &err) != FT_OK ||
        ft_dataset_read(&s->data, data, s->model, &err) != FT_OK)
        bail_out("%s", err.text);
    s->all = ft_calloc((size_t) s->model->nweight, sizeof *s->all);
    for (int i = 0; i < s->model->nweight; i++)
        s->all[i] = true;
}

static void close_subject(subject *s)
{
    ft_dataset_fini(&s->data);
    ft_model_close(s->model);
    free(s->all);
    tiny_remove(&s->checkpoint);
}

enum { ROWS = 5, COLS = 8 };

/* Token ids below `words`, in rows of 8, 3, 1, 5 and 7 tokens. */
static ft_named_tensor texts(const char *ids_name, const char *mask_name, int words, int which)
{
    static const int lengths[ROWS] = { 8, 3, 1, 5, 7 };
    static int32_t ids[2][ROWS * COLS], mask[2][ROWS * COLS];
    bool is_mask = mask_name != NULL;
    for (int i = 0; i < ROWS * COLS; i++) {
        ids[which][i] = 3 + (i * 17 + which * 5 + i * i * 3) % (words - 3);
        mask[which][i] = i % COLS < lengths[(i / COLS + 2 * which) % ROWS];
    }
    ft_tensor tensor = { .dtype = FT_I32, .ndim = 2, .dim = { ROWS, COLS } };
    tensor.data = is_mask ? mask[which] : ids[which];
    return (ft_named_tensor){ is_mask ? mask_name : ids_name, tensor };
}

static void make_bert(subject *s)
{
    tiny_make_classifier(&s->checkpoint);
    ft_named_tensor named[] = { texts("input_ids", NULL, 20, 0),
                                texts(NULL, "attention_mask", 20, 0) };
    open_subject(s, named, FT_COUNT(named));
}

static void make_llama(subject *s, const char *name)
{
    json_t *variants = golden_json("llama-variants.json");
    llama_make(&s->checkpoint, llama_variant(variants, name));
    json_decref(variants);
    ft_named_tensor named[] = { texts("input_ids", NULL, 97, 0),
                                texts(NULL, "attention_mask", 97, 0) };
    open_subject(s, named, FT_COUNT(named));
}

static void make_translator(subject *s)
{
    json_t *variants = golden_json("translator-variants.json");
    translator_make(&s->checkpoint, llama_variant(variants, "m2m"));
    json_decref(variants);
    ft_named_tensor named[] = { texts("input_ids", NULL, 90, 0),
                                texts(NULL, "attention_mask", 90, 0),
                                texts("decoder_input_ids", NULL, 90, 1),
                                texts(NULL, "decoder_attention_mask", 90, 1) };
    open_subject(s, named, FT_COUNT(named));
}

static void make_vit(subject *s)
{
    json_t *variants = golden_json("vit-variants.json");
    const json_t *variant = llama_variant(variants, "classes");
    vit_make(&s->checkpoint, variant);
    ft_named_tensor named = { "pixel_values", vit_images(variant) };
    json_decref(variants);
    open_subject(s, &named, 1);
    free(named.tensor.data);
}

/* ---- The oracle --------------------------------------------------------------------------- */

typedef struct sums {
    uint64_t rows;
    double *magnitude, *square, *moments;
} sums;

static void add_row(sums *out, const float *x, size_t cols)
{
    for (size_t i = 0; i < cols; i++) {
        out->magnitude[i] += fabs((double) x[i]);
        out->square[i] += (double) x[i] * (double) x[i];
        for (size_t k = 0; k < cols; k++)
            out->moments[i * cols + k] += (double) x[i] * (double) x[k];
    }
    out->rows++;
}

/* The sums of one value over samples first .. last - 1 in a single forward pass. */
static sums oracle(const subject *s, const ft_input_stats *input, uint64_t first, uint64_t last)
{
    const char *keep[] = { input->name, NULL };
    size_t cols = input->cols;
    ft_session *session;
    ft_tensor x = { .data = NULL };
    sums out = { .magnitude = ft_calloc(cols, sizeof(double)),
                 .square = ft_calloc(cols, sizeof(double)),
                 .moments = ft_calloc(cols * cols, sizeof(double)) };
    if (ft_session_open(&session, s->model,
                        &(ft_session_options){ .threads = 1, .all_logits = true, .keep = keep },
                        &err) != FT_OK ||
        ft_dataset_set_inputs(&s->data, (size_t) first, (size_t) (last - first), session, &err) !=
            FT_OK ||
        ft_session_run(session, &err) != FT_OK ||
        ft_session_get(session, input->name, &x, &err) != FT_OK)
        bail_out("%s", err.text);
    float *data = ft_calloc(ft_tensor_numel(&x), sizeof *data);
    x.data = data;
    if (ft_session_get(session, input->name, &x, &err) != FT_OK)
        bail_out("%s", err.text);
    for (int64_t row = 0; row < x.dim[0]; row++)
        add_row(&out, data + (size_t) row * cols, cols);
    ft_session_close(session);
    free(data);
    return out;
}

static void free_sums(sums *s)
{
    free(s->magnitude);
    free(s->square);
    free(s->moments);
}

/* The largest difference relative to the root mean square of the expected values. */
static double distance(const double *a, const double *b, size_t n)
{
    double most = 0.0, square = 0.0;
    for (size_t i = 0; i < n; i++) {
        most = fmax(most, isnan(a[i]) ? (double) INFINITY : fabs(a[i] - b[i]));
        square += b[i] * b[i];
    }
    return most / sqrt(square / (double) n);
}

/* ---- Tests -------------------------------------------------------------------------------- */

static ft_activation_stats_options of(const subject *s)
{
    return (ft_activation_stats_options){
        .model = s->model, .data = &s->data, .last = s->data.rows, .threads = 1, .moments = true
    };
}

static ft_activation_stats begin(const ft_activation_stats_options *what, const bool *wanted)
{
    ft_activation_stats inputs;
    if (ft_activation_stats_init(&inputs, what, wanted, &err) != FT_OK)
        bail_out("%s", err.text);
    return inputs;
}

static void need(ft_activation_stats *inputs, size_t index)
{
    if (ft_activation_stats_collect(inputs, &inputs->input[index], &err) != FT_OK)
        bail_out("%s", err.text);
}

/*
 * All inputs of a model.  Forward passes over one sample and over all may differ in the last bits
 * of the values, by 1e-7; summing in double adds nothing to that.
 */
static void test_sums(const char *what, const subject *s, uint64_t first, uint64_t last,
                      size_t count)
{
    ft_activation_stats_options how = of(s);
    how.first = first;
    how.last = last;
    ft_activation_stats inputs = begin(&how, s->all);
    double most = 0.0;
    int rows = 0;
    for (size_t i = 0; i < inputs.count; i++) {
        ft_input_stats *input = &inputs.input[i];
        need(&inputs, i);
        sums expected = oracle(s, input, first, last);
        rows += input->rows != expected.rows;
        most = fmax(most, distance(input->magnitude, expected.magnitude, input->cols));
        most = fmax(most, distance(input->square, expected.square, input->cols));
        most = fmax(most, distance(input->moments, expected.moments, input->cols * input->cols));
        free_sums(&expected);
    }
    is_int((long long) inputs.count, (long long) count, "%s: the linears have %zu distinct inputs",
           what, count);
    is_int(rows, 0, "the statistics count one row for each token");
    near(most, 0.0, 1e-5, "the statistics equal sums that are computed directly");
    ft_activation_stats_fini(&inputs);
}

static int input_of(const ft_activation_stats *inputs, const char *weight)
{
    int index = ft_plan_find_weight(&inputs->options->model->plan, weight);
    return index < 0 ? -2 : inputs->input_of_weight[index];
}

static void test_sharing(const subject *s)
{
    ft_activation_stats_options how = of(s);
    bool *wanted = ft_calloc((size_t) s->model->nweight, sizeof *wanted);
    for (int i = 0; i < s->model->nweight; i++)
        wanted[i] = strstr(s->model->weight[i].name, "layer.1.") != NULL;
    ft_activation_stats inputs = begin(&how, wanted);
    is_int((long long) inputs.count, 4,
           "the linears of one encoder layer have four distinct inputs");
    int q = input_of(&inputs, "layer.1.attn.q.weight");
    ok(q >= 0 && q == input_of(&inputs, "layer.1.attn.k.weight") &&
           q == input_of(&inputs, "layer.1.attn.v.weight"),
       "the linears q, k and v share one input");
    ok(input_of(&inputs, "layer.1.ffn.down.weight") > input_of(&inputs, "layer.1.ffn.up.weight") &&
           input_of(&inputs, "layer.1.ffn.up.weight") > q,
       "inputs are in execution order");
    is_int(input_of(&inputs, "layer.0.attn.q.weight"), -1,
           "a weight that is not requested has no input");
    ft_activation_stats_fini(&inputs);
    free(wanted);
}

static bool is_same(const ft_input_stats *a, const ft_input_stats *b)
{
    return a->rows == b->rows && memcmp(a->square, b->square, a->cols * sizeof(double)) == 0 &&
           memcmp(a->magnitude, b->magnitude, a->cols * sizeof(double)) == 0 &&
           memcmp(a->moments, b->moments, a->cols * a->cols * sizeof(double)) == 0;
}

static int in_memory(const ft_activation_stats *inputs)
{
    int n = 0;
    for (size_t i = 0; i < inputs->count; i++)
        n += inputs->input[i].moments != NULL;
    return n;
}

/* With several threads, and with so little memory that each input needs its own pass. */
static void test_bits(const char *what, const subject *s)
{
    ft_activation_stats_options one = of(s), three = of(s), little = of(s);
    three.threads = 3;
    little.memory = 1;
    ft_activation_stats a = begin(&one, s->all), b = begin(&three, s->all),
                        c = begin(&little, s->all);
    int threads = 0, passes = 0, most = 0;
    for (size_t i = 0; i < a.count; i++) {
        need(&a, i);
        need(&b, i);
        need(&c, i);
        threads += !is_same(&a.input[i], &b.input[i]);
        passes += !is_same(&a.input[i], &c.input[i]);
        most = in_memory(&c) > most ? in_memory(&c) : most;
    }
    is_int(threads, 0, "%s: activation statistics with three threads equal those with one", what);
    is_int(passes, 0, "activation statistics from many passes equal those from one");
    ok(most == 1 && in_memory(&a) == (int) a.count,
       "activation statistics with a memory limit keep the moments of one input");
    ft_activation_stats_fini(&a);
    ft_activation_stats_fini(&b);
    ft_activation_stats_fini(&c);
}

/* Rescaled statistics stay rescaled when they are collected again. */
static void test_division(const subject *s)
{
    ft_activation_stats_options how = of(s);
    how.memory = 1;
    ft_activation_stats a = begin(&how, s->all), b = begin(&how, s->all);
    size_t cols = a.input[0].cols;
    float *factor = ft_calloc(cols, sizeof *factor);
    for (size_t i = 0; i < cols; i++)
        factor[i] = 0.25f + 0.3f * (float) i;
    need(&a, 0);
    need(&b, 0);
    ft_input_stats_rescale(&b.input[0], factor);
    double square = 0.0, moment = 0.0, magnitude = 0.0;
    for (size_t i = 0; i < cols; i++) {
        double f = (double) factor[i], g = (double) factor[i / 2];
        magnitude =
            fmax(magnitude, fabs(b.input[0].magnitude[i] * f / a.input[0].magnitude[i] - 1));
        square = fmax(square, fabs(b.input[0].square[i] * f * f / a.input[0].square[i] - 1));
        moment = fmax(moment, fabs(b.input[0].moments[i * cols + i / 2] * f * g /
                                       a.input[0].moments[i * cols + i / 2] -
                                   1));
    }
    ok(magnitude < 1e-14 && square < 1e-14 && moment < 1e-14,
       "ft_input_stats_rescale() divides the statistics by the factors");
    double *before = ft_calloc(cols * cols, sizeof *before);
    memcpy(before, b.input[0].moments, cols * cols * sizeof *before);
    need(&b, 1);
    ok(b.input[0].moments == NULL, "a memory limit evicts the moments of another input");
    need(&b, 0);
    ok(memcmp(before, b.input[0].moments, cols * cols * sizeof *before) == 0,
       "recomputed moments are rescaled again");
    free(before);
    ft_activation_stats_fini(&a);
    ft_activation_stats_fini(&b);
}

/* What was run already runs again when an earlier input is asked for. */
static void test_going_back(const subject *s)
{
    ft_activation_stats_options one = of(s);
    ft_activation_stats a = begin(&one, s->all), b = begin(&one, s->all);
    need(&a, a.count - 1);
    ok(a.checkpoint.op > 0, "a pass over the last input leaves a checkpoint");
    need(&a, 0);
    need(&b, 0);
    ok(is_same(&a.input[0], &b.input[0]) && a.checkpoint.op == b.checkpoint.op,
       "an earlier input is then collected from the start");
    ft_activation_stats_fini(&a);
    ft_activation_stats_fini(&b);
}

/* Behind a prefix in which nothing is quantized. */
static void test_float_prefix(const char *what, const subject *s)
{
    ft_activation_stats_options one = of(s), three = of(s);
    three.threads = 3;
    ft_folded_scales scaling;
    ft_prefix prefix;
    ft_model *twin;
    if (ft_folded_scales_init(&scaling, s->model, &err) != FT_OK ||
        ft_prefix_init(&prefix, s->model, &scaling, &err) != FT_OK ||
        ft_prefix_open(&twin, &prefix, NULL, &err) != FT_OK)
        bail_out("%s", err.text);
    ft_activation_stats plain = begin(&one, s->all), behind = begin(&three, s->all);
    int different = 0, not_zero = 0, most = 0, backwards = 0, op = 0;
    for (size_t i = 0; i < plain.count; i++) {
        ft_input_stats *input = &behind.input[i];
        need(&plain, i);
        if (ft_activation_stats_collect_behind(&behind, input, twin, &err) != FT_OK)
            bail_out("%s", err.text);
        different += !is_same(&plain.input[i], input);
        backwards += behind.checkpoint.op < op;
        op = behind.checkpoint.op;
        for (size_t k = 0; k < input->cols * input->cols; k++)
            not_zero += fabs(input->cross[k]) > 0.0;
        most = in_memory(&behind) > most ? in_memory(&behind) : most;
    }
    is_int(different, 0, "%s: a prefix without quantized matrices has the statistics of the model",
           what);
    is_int(not_zero, 0, "its inputs do not differ from those of the model");
    bool resumes = s->model->graph.encoder_ops == 0;
    ok(backwards == 0 && behind.prefix_checkpoint.op == op && (op > 0) == resumes,
       resumes ? "later passes resume at later operations"
               : "passes over an encoder-decoder never resume");
    is_int(most, 1, "statistics behind a prefix keep the moments of one input");
    ft_activation_stats_fini(&plain);
    ft_activation_stats_fini(&behind);
    ft_model_close(twin);
    ft_prefix_fini(&prefix);
    ft_folded_scales_fini(&scaling);
}

/* Without moments a single pass collects the statistics of all inputs. */
static void count_stages(void *user, const char *what, const char *unit)
{
    (void) what, (void) unit;
    ++*(int *) user;
}

static void test_squares(const subject *s)
{
    int stages = 0;
    ft_activation_stats_options how = of(s), whole = of(s);
    how.moments = false;
    how.stage = count_stages;
    how.user = &stages;
    ft_activation_stats squares = begin(&how, s->all), moments = begin(&whole, s->all);
    int wrong = 0;
    for (size_t i = 0; i < squares.count; i++) {
        need(&squares, i);
        need(&moments, i);
        wrong += memcmp(squares.input[i].square, moments.input[i].square,
                        squares.input[i].cols * sizeof(double)) != 0;
    }
    is_int(wrong, 0, "collecting squares without moments gives the same squares");
    ok(stages == 1 && in_memory(&squares) == 0,
       "collecting squares without moments takes one pass and allocates no moments");
    ft_activation_stats_fini(&squares);
    ft_activation_stats_fini(&moments);
}

/* A norm weight so large that the input of the first linears overflows float32. */
static void test_infinite(void)
{
    subject s = { .model = NULL };
    tiny_make_classifier(&s.checkpoint);
    ft_tensor *norm = tiny_find(&s.checkpoint, "bert.embeddings.LayerNorm.weight");
    ((float *) norm->data)[2] = 3.3e38f;
    ft_named_tensor named = texts("input_ids", NULL, 20, 0);
    open_subject(&s, &named, 1);
    ft_activation_stats_options how = of(&s);
    ft_activation_stats inputs = begin(&how, s.all);
    is_int(ft_activation_stats_collect(&inputs, &inputs.input[0], &err), FT_EFORMAT,
           "ft_activation_stats_collect() refuses infinite inputs");
    is_str(err.text, "embed.norm: column 2 is not finite on the sample data",
           "the error names the value and column that is not finite");
    ft_activation_stats_fini(&inputs);
    close_subject(&s);
}

int main(void)
{
    subject bert = { .model = NULL }, llama = bert, vit = bert, translator = bert;
    make_bert(&bert);
    test_sums("bert", &bert, 0, ROWS, 10);
    test_sums("bert, two samples", &bert, 1, 3, 10);
    test_sharing(&bert);
    test_bits("bert", &bert);
    test_float_prefix("bert", &bert);
    test_division(&bert);
    test_squares(&bert);
    make_llama(&llama, "grouped");
    test_sums("llama", &llama, 0, ROWS, 9);
    test_bits("llama", &llama);
    test_going_back(&llama);
    test_float_prefix("llama", &llama);
    make_vit(&vit);
    test_sums("vit", &vit, 0, vit.data.rows, 10);
    make_translator(&translator);
    test_sums("m2m", &translator, 0, ROWS, 22);
    test_bits("m2m", &translator);
    test_float_prefix("m2m", &translator);
    close_subject(&bert);
    close_subject(&llama);
    close_subject(&vit);
    close_subject(&translator);
    test_infinite();
    return done_testing();
}
