/*
 * synthetic-t.c - models with random weights, and models built from weights in memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/half.h"
#include "kernels/layout.h"
#include "runtime/mem.h"
#include "runtime/model/session.h"
#include "runtime/tools/synthetic/synthetic.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 2, COLS = 40, HIDDEN = 48, LAYERS = 3 };

static const ft_config small = {
    .layers = LAYERS,
    .hidden = HIDDEN,
    .heads = 4,
    .ffn = 100,
    .vocabulary = 70,
    .positions = 40,
    .types = 2,
    .padding_id = -1,
    .eps = 1e-12f,
    .activation = FT_ACT_GELU,
    .pooler = true,
};

static const ft_config translator = {
    .kind = FT_KIND_ENCODER_DECODER,
    .layers = LAYERS,
    .encoder_layers = 2,
    .hidden = HIDDEN,
    .heads = 4,
    .kv_heads = 4,
    .head_size = HIDDEN / 4,
    .encoder_heads = 3,
    .ffn = 100,
    .encoder_ffn = 60,
    .vocabulary = 70,
    .positions = COLS + 2,
    .position_offset = 2,
    .padding_id = 1,
    .pad_id = 1,
    .decoder_start_id = 2,
    .forced_bos_id = -1,
    .forced_eos_id = -1,
    .eps = 1e-5f,
    .activation = FT_ACT_RELU,
    .sinusoids = FT_SINUSOIDS_M2M100,
    .scale_embeddings = true,
    .tied = true,
};

static void must(ft_status status, const ft_error *err)
{
    if (status != FT_OK)
        bail_out("%s", err->text);
}

/* ---- Names -------------------------------------------------------------------------------- */

static void test_names(void)
{
    ft_synthetic_scheme scheme;
    ft_config config;
    bool fine = true;
    for (int i = 0; i < FT_NUM_SYNTHETIC_SCHEMES; i++)
        fine =
            fine &&
            ft_synthetic_scheme_parse(ft_synthetic_scheme_name((ft_synthetic_scheme) i), &scheme) &&
            (int) scheme == i;
    ok(fine, "the name of every synthetic scheme is parsed");
    ok(!ft_synthetic_scheme_parse("int4", &scheme), "an unknown scheme name is rejected");
    ok(ft_shape_parse("bert-large", &config) && config.layers == 24 && config.hidden == 1024 &&
           config.heads == 16 && config.ffn == 4096,
       "the shape bert-large has the dimensions of BERT large");
    ok(ft_shape_parse("nllb-600m", &config) && config.layers == 12 && config.encoder_layers == 12 &&
           config.hidden == 1024 && config.heads == 16 && config.encoder_heads == 16 &&
           config.ffn == 4096 && config.encoder_ffn == 4096 && config.vocabulary == 256206,
       "the shape nllb-600m has the dimensions of NLLB 600M");
    ok(!ft_shape_parse("bert", &config), "an unknown shape name is rejected");
    int shapes = 0;
    for (fine = true; ft_shape_name((size_t) shapes) != NULL; shapes++) {
        ft_error err;
        fine = fine && ft_shape_parse(ft_shape_name((size_t) shapes), &config) &&
               ft_config_check(&config, "shape", &err) == FT_OK;
    }
    ok(fine && shapes > 0, "all %d shapes are valid configurations", shapes);
}

/* ---- One weight --------------------------------------------------------------------------- */

static ft_weight fill(size_t rows, size_t cols, ft_dtype dtype, uint64_t key, int threads)
{
    ft_weight weight = { .name = "w", .rows = rows, .cols = cols, .dtype = dtype };
    ft_error err;
    weight.layout = dtype == FT_I8 ? FT_COL4_4R2_8C : FT_ROW;
    must(ft_synthetic_weight_fill(&weight,
                                  &(ft_distribution){ .key = key, .mean = 1.0f, .deviation = 0.5f },
                                  threads, &err),
         &err);
    return weight;
}

static void test_floats(void)
{
    enum { N = 200 };
    ft_weight a = fill(N, N, FT_F32, 7, 1), b = fill(N, N, FT_F32, 7, 3),
              other = fill(N, N, FT_F32, 8, 1), half = fill(N, N, FT_F16, 7, 2);
    const float *x = a.data, *y = other.data;
    double sum = 0.0, squares = 0.0, product = 0.0;
    bool rounded = true;
    for (size_t i = 0; i < (size_t) N * N; i++) {
        double z = (double) x[i] - 1.0;
        sum += z;
        squares += z * z;
        product += z * ((double) y[i] - 1.0);
        rounded = rounded && ((const uint16_t *) half.data)[i] == ft_f16_from_float(x[i]);
    }
    /* 5 times the standard errors of these means of N * N values, 0.0025, 0.0014 and 0.00125. */
    near(sum / (N * N), 0.0, 0.0125, "random weights have the requested mean");
    near(sqrt(squares / (N * N)), 0.5, 0.007,
         "random weights have the requested standard deviation");
    near(product / (N * N), 0.0, 0.00625, "weights of different keys are uncorrelated");
    ok(memcmp(a.data, b.data, N * N * sizeof(float)) == 0,
       "random weights do not depend on the number of threads");
    ok(rounded, "F16 weights are the rounded float weights");
    ft_synthetic_weight_free(&a);
    ft_synthetic_weight_free(&b);
    ft_synthetic_weight_free(&other);
    ft_synthetic_weight_free(&half);
    ok(a.data == NULL && half.scale == NULL, "ft_synthetic_weight_free() clears the pointers");
}

static void test_quantized(void)
{
    enum { R = 13, C = 45 };
    ft_weight quantized = fill(R, C, FT_I8, 9, 2), real = fill(R, C, FT_F32, 9, 1);
    const int8_t *code = quantized.data;
    const float *value = real.data;
    size_t padded = ft_layout_bytes(FT_COL4_4R2_8C, R, C), nonzero = 0, inside = 0;
    bool near_real = true, full = true;
    for (size_t row = 0; row < R; row++) {
        int most = 0;
        for (size_t col = 0; col < C; col++) {
            int c = code[ft_offset(FT_COL4_4R2_8C, row, col, R, C)];
            float error = fabsf((float) c * quantized.scale[row] - value[row * C + col]);
            near_real = near_real && error <= 0.501f * quantized.scale[row];
            most = abs(c) > most ? abs(c) : most;
            inside += c != 0;
        }
        full = full && most == 127;
    }
    for (size_t i = 0; i < padded; i++)
        nonzero += code[i] != 0;
    ok(near_real, "int8 weights approximate the float weights of the same key");
    ok(full, "the largest magnitude of each int8 row is 127");
    is_int((long long) nonzero, (long long) inside, "the padding of the int8 layout is 0");
    ft_synthetic_weight_free(&quantized);
    ft_synthetic_weight_free(&real);
}

static void test_blocks(ft_dtype dtype, int32_t group)
{
    enum { R = 37, C = 77 };
    ft_weight real = fill(R, C, FT_F32, 9, 1);
    ft_weight coded = { .name = "w", .rows = R, .cols = C, .dtype = dtype, .layout = FT_PANEL32 };
    ft_error err;
    coded.groupwise.group = group;
    must(ft_synthetic_weight_fill(
             &coded, &(ft_distribution){ .key = 9, .mean = 1.0f, .deviation = 0.5f }, 2, &err),
         &err);
    int bits = ft_groupwise_bits(dtype), middle = 1 << (bits - 1);
    const uint32_t *panels = coded.data;
    uint32_t outside = 0;
    bool near_real = true;
    for (size_t row = 0; row < 64; row++)
        for (size_t col = 0; col < 96; col++) {
            uint32_t code = ft_panel_value(panels, row, col, C, bits);
            if (row >= R || col >= C) {
                outside |= code;
                continue;
            }
            float scale = ft_float_from_f16(
                coded.groupwise.scale[ft_groupwise_scale_index(&coded.groupwise, row, col, R)]);
            float value = scale * (float) ((int) code - middle);
            /* Half a quantization step, and the error of the largest value from an F16 scale. */
            near_real = near_real && fabsf(value - ((const float *) real.data)[row * C + col]) <=
                                         (0.501f + (float) middle * 0x1p-11f) * scale;
        }
    ok(near_real,
       "%s in groups of %d: quantized weights approximate the float weights of the same key",
       ft_dtype_name(dtype), group);
    is_int(outside, 0, "%s in groups of %d: the padding is 0", ft_dtype_name(dtype), group);
    ft_synthetic_weight_free(&coded);
    ft_synthetic_weight_free(&real);
    ok(coded.data == NULL && coded.groupwise.scale == NULL,
       "%s in groups of %d: ft_synthetic_weight_free() clears the pointers", ft_dtype_name(dtype),
       group);
}

/* ---- Models ------------------------------------------------------------------------------- */

static void run(ft_session *session)
{
    int32_t ids[ROWS * COLS];
    ft_tensor input = { .dtype = FT_I32, .ndim = 2, .dim = { ROWS, COLS }, .data = ids };
    ft_error err;
    for (size_t i = 0; i < FT_COUNT(ids); i++)
        ids[i] = (int32_t) (2 + i * 31 % 68);
    must(ft_session_set(session, "input_ids", &input, &err), &err);
    if (ft_config_is_encoder_decoder(&session->model->config))
        must(ft_session_set(session, "decoder_input_ids", &input, &err), &err);
    must(ft_session_run(session, &err), &err);
}

/* Runs the model and reads its output, or another value [ROWS * COLS, HIDDEN] of the plan. */
static void run_and_read(const ft_model *model, const char *name, float *out)
{
    const char *keep[] = { strcmp(name, "last_hidden_state") == 0 ? NULL : name, NULL };
    ft_session *session;
    ft_tensor result = { .data = out };
    ft_error err;
    must(
        ft_session_open(&session, model, &(ft_session_options){ .threads = 2, .keep = keep }, &err),
        &err);
    run(session);
    must(ft_session_get(session, name, &result, &err), &err);
    ft_session_close(session);
}

static double deviation(const float *x, size_t n)
{
    double squares = 0.0;
    for (size_t i = 0; i < n; i++)
        squares += (double) x[i] * (double) x[i];
    return sqrt(squares / (double) n);
}

static ft_model *open_as(ft_synthetic *made, const ft_config *config, ft_synthetic_scheme scheme,
                         int threads)
{
    ft_model *model;
    ft_error err;
    const ft_synthetic_options how = { scheme, .group = 32, .threads = threads };
    must(ft_synthetic_make(made, config, &how, &err), &err);
    must(ft_synthetic_open(&model, made, "small", &(ft_model_options){ 0 }, &err), &err);
    return model;
}

static ft_model *open_model(ft_synthetic *made, ft_synthetic_scheme scheme, int threads)
{
    return open_as(made, &small, scheme, threads);
}

static void test_scheme(ft_synthetic_scheme scheme, const char *precision)
{
    float out[ROWS * COLS * HIDDEN];
    ft_synthetic made;
    ft_model *model = open_model(&made, scheme, 2);
    const char *name = ft_synthetic_scheme_name(scheme);
    run_and_read(model, "last_hidden_state", out);
    /* The output of a norm whose gains are close to 1. */
    near(deviation(out, FT_COUNT(out)), 1.0, 0.1,
         "%s: the hidden states have a root mean square near 1", name);
    is_str(ft_model_get_info(model).precision, precision, "%s: the precision of the model is %s",
           name, precision);
    ft_model_close(model);
    ft_synthetic_fini(&made);
}

static void test_info(void)
{
    ft_synthetic made;
    ft_model *model = open_model(&made, FT_SYNTHETIC_FLOAT, 1);
    size_t values = 0;
    for (size_t i = 0; i < made.nweight; i++)
        values += made.weight[i].rows * made.weight[i].cols;
    is_int((long long) ft_model_get_info(model).weight_bytes, (long long) (4 * values),
           "weight_bytes counts the weights of a model in memory");
    ok(ft_model_label(model, 0) == NULL, "a model without an artifact has no labels");
    ft_tokenizer *tokenizer;
    ft_error err;
    is_int(ft_tokenizer_open_model(&tokenizer, model, &err), FT_EUNSUPPORTED,
           "a model without an artifact has no tokenizer");
    has(err.text, "small: has no tokenizer.json", "the error says that tokenizer.json is missing");
    ft_model_close(model);
    ft_synthetic_fini(&made);
}

/* Quantized values must use their range: other ranges would change what a benchmark measures. */
static void test_ranges(void)
{
    static const char *const points[] = { "embed.norm", "attn.q", "attn.v", "attn.context",
                                          "attn.norm" };
    ft_synthetic made, again;
    ft_model *model = open_model(&made, FT_SYNTHETIC_INT8, 1),
             *same = open_model(&again, FT_SYNTHETIC_INT8, 3);
    float a[ROWS * COLS * HIDDEN], b[ROWS * COLS * HIDDEN];
    char name[FT_NAME];
    for (size_t i = 0; i < FT_COUNT(points); i++) {
        const char *scope = i > 0 ? "layer.1." : "";
        snprintf(name, sizeof name, "%s%s", scope, points[i]);
        run_and_read(model, name, a);
        run_and_read(same, name, b);
        double quantized =
            127.0 * deviation(a, FT_COUNT(a)) / (double) ft_amax_table_find(made.amax, name)->amax;
        ok(quantized > 15.0 && quantized < 70.0,
           "%s: the quantized values have the standard deviation %.1f", name, quantized);
        ok(memcmp(a, b, sizeof a) == 0, "%s: the values do not depend on the number of threads",
           name);
    }
    is_int((long long) made.amax->count, (long long) again.amax->count,
           "the number of ranges does not depend on the number of threads");
    ft_model_close(model);
    ft_model_close(same);
    ft_synthetic_fini(&made);
    ft_synthetic_fini(&again);
}

/* With synthetic weights the int8 kernels give the results of fake quantization. */
static void test_fake_quantized(void)
{
    float a[ROWS * COLS * HIDDEN], b[ROWS * COLS * HIDDEN];
    for (int residual = 0; residual < 2; residual++) {
        ft_synthetic made;
        ft_model *model =
            open_model(&made, residual ? FT_SYNTHETIC_INT8_RESIDUAL : FT_SYNTHETIC_INT8, 2);
        run_and_read(model, "last_hidden_state", a);
        ft_model_close(model);
        ft_error err;
        made.quant.mode = FT_MODE_FAKE_QUANTIZE;
        must(ft_synthetic_open(&model, &made, "small", &(ft_model_options){ 0 }, &err), &err);
        run_and_read(model, "last_hidden_state", b);
        ok(memcmp(a, b, sizeof a) == 0, "%s: fake quantization gives the same bits",
           residual ? "int8-residual" : "int8");
        ft_model_close(model);
        ft_synthetic_fini(&made);
    }
}

/* ---- Encoder-decoders --------------------------------------------------------------------- */

static void test_translator(ft_synthetic_scheme scheme, const char *precision)
{
    float source[ROWS * COLS * HIDDEN], target[ROWS * COLS * HIDDEN];
    ft_synthetic made;
    ft_model *model = open_as(&made, &translator, scheme, 2);
    const char *name = ft_synthetic_scheme_name(scheme);
    run_and_read(model, "encoder.norm", source);
    run_and_read(model, "last_hidden_state", target);
    near(deviation(source, FT_COUNT(source)), 1.0, 0.1,
         "%s: the encoder output has a root mean square near 1", name);
    near(deviation(target, FT_COUNT(target)), 1.0, 0.1,
         "%s: the decoder output has a root mean square near 1", name);
    is_str(ft_model_get_info(model).precision, precision,
           "%s: the precision of an encoder-decoder is %s", name, precision);
    ft_model_close(model);
    ft_synthetic_fini(&made);
}

static const ft_weight *weight_named(const ft_synthetic *made, const char *name)
{
    for (size_t i = 0; i < made->nweight; i++)
        if (strcmp(made->weight[i].name, name) == 0)
            return &made->weight[i];
    bail_out("there is no weight %s", name);
}

static const void *data_of(const ft_synthetic *made, const char *name)
{
    return weight_named(made, name)->data;
}

static void test_alike(void)
{
    ft_synthetic made;
    ft_error err;
    must(ft_synthetic_make(&made, &translator,
                           &(ft_synthetic_options){ .scheme = FT_SYNTHETIC_W8A8_DYNAMIC,
                                                    .group = 32,
                                                    .share_layers = true,
                                                    .threads = 2 },
                           &err),
         &err);
    ok(data_of(&made, "decoder.layer.2.cross.k.weight") ==
               data_of(&made, "decoder.layer.0.cross.k.weight") &&
           data_of(&made, "encoder.layer.1.ffn.up.weight") ==
               data_of(&made, "encoder.layer.0.ffn.up.weight"),
       "equal layers share their weights if this is requested");
    ok(data_of(&made, "encoder.layer.0.attn.q.weight") !=
           data_of(&made, "decoder.layer.0.attn.q.weight"),
       "encoder layers and decoder layers do not share weights");
    ft_synthetic_fini(&made); /* frees shared weights only once */
    must(ft_synthetic_make(&made, &translator,
                           &(ft_synthetic_options){
                               .scheme = FT_SYNTHETIC_W8A8_DYNAMIC, .group = 32, .threads = 2 },
                           &err),
         &err);
    const ft_weight *first = weight_named(&made, "decoder.layer.0.ffn.up.weight"),
                    *last = weight_named(&made, "decoder.layer.2.ffn.up.weight");
    ok(memcmp(first->data, last->data, first->cols) != 0,
       "layers have different weights if sharing is not requested");
    ft_synthetic_fini(&made);
}

/* Every layer of the encoder and of the decoder has ranges. */
static void test_translator_ranges(void)
{
    static const char *const names[] = { "encoder.layer.1.attn.norm", "decoder.layer.2.attn.norm",
                                         "decoder.layer.2.cross.norm", "encoder.norm" };
    ft_synthetic made;
    ft_model *model = open_as(&made, &translator, FT_SYNTHETIC_INT8, 2);
    float values[ROWS * COLS * HIDDEN];
    for (size_t i = 0; i < FT_COUNT(names); i++) {
        const ft_amax_entry *range = ft_amax_table_find(made.amax, names[i]);
        run_and_read(model, names[i], values);
        double quantized = range == NULL
                               ? 0.0
                               : 127.0 * deviation(values, FT_COUNT(values)) / (double) range->amax;
        ok(quantized > 15.0 && quantized < 70.0,
           "%s: the quantized values have the standard deviation %.1f", names[i], quantized);
    }
    ok(ft_amax_table_find(made.amax, "encoder.layer.2.attn.norm") == NULL,
       "the encoder has ranges for its own layers only");
    run_and_read(model, "last_hidden_state", values);
    ft_model_close(model);
    ft_error err;
    float faked[ROWS * COLS * HIDDEN];
    made.quant.mode = FT_MODE_FAKE_QUANTIZE;
    must(ft_synthetic_open(&model, &made, "small", &(ft_model_options){ 0 }, &err), &err);
    run_and_read(model, "last_hidden_state", faked);
    ok(memcmp(values, faked, sizeof values) == 0,
       "fake quantization gives the same bits in an encoder-decoder");
    ft_model_close(model);
    ft_synthetic_fini(&made);
}

/* ---- Refusals ----------------------------------------------------------------------------- */

static void refused(ft_synthetic *made, ft_status status, const char *part)
{
    ft_model *model = NULL;
    ft_error err = { 0 };
    is_int(ft_synthetic_open(&model, made, "small", &(ft_model_options){ 0 }, &err), status,
           "an invalid model is refused: %s", part);
    has(err.text, part, "the error says: %s", part);
    ok(model == NULL, "no model is returned with the error: %s", part);
}

static void test_schemes(void)
{
    ft_synthetic made;
    ft_error err = { 0 };
    ft_model *model;
    must(ft_synthetic_make(&made, &small,
                           &(ft_synthetic_options){
                               .scheme = FT_SYNTHETIC_W8A8_DYNAMIC, .group = 32, .threads = 1 },
                           &err),
         &err);
    must(ft_synthetic_open(&model, &made, "small", &(ft_model_options){ 0 }, &err), &err);
    ok(model->quant.dynamic, "an encoder can have the scheme w8a8-dynamic");
    ft_model_close(model);
    ft_synthetic_fini(&made);
    is_int(ft_synthetic_make(&made, &translator,
                             &(ft_synthetic_options){
                                 .scheme = FT_SYNTHETIC_INT8_RESIDUAL, .group = 32, .threads = 1 },
                             &err),
           FT_EUNSUPPORTED, "the scheme int8-residual is refused for an encoder-decoder");
    has(err.text, "scheme int8-residual is for encoders",
        "the error says that int8-residual is for encoders");
}

static void test_refusals(void)
{
    ft_synthetic made;
    ft_error err;
    must(ft_synthetic_make(
             &made, &small,
             &(ft_synthetic_options){ .scheme = FT_SYNTHETIC_FLOAT, .group = 32, .threads = 1 },
             &err),
         &err);
    made.nweight--;
    refused(&made, FT_EARG, "small: 54 weights, expected 55");
    made.nweight++;
    made.weight[1].rows++;
    refused(&made, FT_ESHAPE, "small: embed.position: shape [41, 48], expected [40, 48]");
    made.weight[1].rows--;
    made.weight[2].name[0] = 'x';
    refused(&made, FT_EARG, "small: weight 2 is xmbed.type, expected embed.type");
    made.weight[2].name[0] = 'e';
    made.config.heads = 5;
    refused(&made, FT_EFORMAT, "small: config: 5 heads do not divide 48 columns");
    made.config.heads = 4;
    made.weight[6].dtype = FT_F16; /* a vector; kernels expect F32 */
    refused(&made, FT_ESHAPE, "small: linear layer.0.attn.q: the bias");
    made.weight[6].dtype = FT_F32;
    ft_synthetic_fini(&made);
    ok(made.weight == NULL && made.nweight == 0, "ft_synthetic_fini() clears the list of weights");
}

int main(void)
{
    test_names();
    test_floats();
    test_quantized();
    test_blocks(FT_U4, 32);
    test_blocks(FT_U8, 0);
    test_scheme(FT_SYNTHETIC_FLOAT, "float");
    test_scheme(FT_SYNTHETIC_F16, "float");
    test_scheme(FT_SYNTHETIC_BF16, "float");
    test_scheme(FT_SYNTHETIC_W4A16, "groupwise");
    test_scheme(FT_SYNTHETIC_W8A16, "groupwise");
    test_scheme(FT_SYNTHETIC_W8A8_BLOCK, "groupwise");
    test_scheme(FT_SYNTHETIC_INT8, "int8");
    test_scheme(FT_SYNTHETIC_INT8_RESIDUAL, "int8");
    test_info();
    test_ranges();
    test_fake_quantized();
    test_translator(FT_SYNTHETIC_FLOAT, "float");
    test_translator(FT_SYNTHETIC_F16, "float");
    test_translator(FT_SYNTHETIC_INT8, "int8");
    test_translator(FT_SYNTHETIC_W8A8_DYNAMIC, "int8");
    test_alike();
    test_translator_ranges();
    test_schemes();
    test_refusals();
    return done_testing();
}
