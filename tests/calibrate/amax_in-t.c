/*
 * amax_in-t.c - ranges from a file: amax.tsv, quantizers of a checkpoint, and what is refused.
 *
 * FasterTransformer's amaxList needs a model whose feed-forward size is four times its hidden size;
 * tests/tools/calibrate/amax_in.sh has one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/amax_in/amax_in.h"

#include "kernels/quant.h"
#include "runtime/mem.h"
#include "tests/lib/models/calibrated.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HIDDEN = 8, FFN = 12, LAYERS = 2, MAX_TENSORS = 64, NAME = 128, PATH = 128 };

static calibrated made;
static ft_model *model;
static ft_messages notes;
static char file[PATH];

/* ---- Calls --------------------------------------------------------------------------------- */

/* Queries, keys, values and the values that linears read are quantized; others are not. */
static bool is_quantized(const void *user, const char *point)
{
    (void) user;
    return strstr(point, "probs") == NULL && strcmp(point, "layer.1.ffn.norm") != 0;
}

/* The ranges of a file, or of bytes if there are any; scales are of the matrix `weight`. */
static ft_amax_table *read_ranges(const char *bytes, size_t size, const char *weight, float *scales,
                                  ft_error *err)
{
    static const ft_recipe all_w8a8;
    ft_quantized_weight *quantized;
    ft_amax_table *table = NULL;
    size_t count;
    memset(&notes, 0, sizeof notes);
    *err = (ft_error){ .code = FT_OK };
    if (ft_quantized_weights_new(&quantized, &count, model, &all_w8a8, err) != FT_OK)
        bail_out("%s", err->text);
    const ft_amax_input input = { model, quantized, count, is_quantized, NULL, &notes };
    ft_status status = bytes != NULL
                           ? ft_amax_input_parse(&table, "ranges", bytes, size, &input, err)
                           : ft_amax_input_read(&table, file, &input, err);
    const ft_quantized_weight *q =
        weight != NULL ? ft_quantized_weights_find(quantized, count, weight) : NULL;
    if (status == FT_OK && q != NULL && q->scale != NULL && scales != NULL)
        memcpy(scales, q->scale, q->weights.rows * sizeof *scales);
    ft_quantized_weights_free(quantized, count);
    return table;
}

static void refused(const char *bytes, const char *part, const char *sentence)
{
    ft_error err;
    ft_amax_table *table = read_ranges(bytes, bytes != NULL ? strlen(bytes) : 0, NULL, NULL, &err);
    ok(table == NULL && strstr(err.text, part) != NULL, "%s", sentence);
    if (table != NULL || strstr(err.text, part) == NULL)
        diag("%s", err.text);
    ft_amax_table_free(table);
}

static double amax_of(const ft_amax_table *table, const char *name)
{
    const ft_amax_entry *entry = table != NULL ? ft_amax_table_find(table, name) : NULL;
    return entry != NULL ? (double) entry->amax : (double) NAN;
}

/* ---- amax.tsv ------------------------------------------------------------------------------ */

static char *tsv(size_t *bytes)
{
    ft_artifact *artifact;
    ft_error err;
    char *text;
    if (ft_artifact_open(&artifact, made.quantized, FT_VERIFY_STRUCTURE, &err) != FT_OK ||
        ft_amax_table_format(ft_artifact_amax(artifact), &text, bytes, &err) != FT_OK)
        bail_out("%s", err.text);
    ft_artifact_close(artifact);
    return text;
}

/* A copy of the text with another line in place of the one that starts with `name`. */
static char *with_line(const char *text, const char *name, const char *line)
{
    const char *at = strstr(text, name), *rest = at != NULL ? strchr(at, '\n') + 1 : NULL;
    char *changed;
    if (at == NULL || asprintf(&changed, "%.*s%s%s", (int) (at - text), text, line, rest) < 0)
        bail_out("no line %s", name);
    return changed;
}

static void edited(const char *text, const char *name, const char *line, const char *part,
                   const char *sentence)
{
    char *changed = with_line(text, name, line);
    refused(changed, part, sentence);
    free(changed);
}

static void test_tsv(void)
{
    size_t bytes, again_bytes;
    ft_error err;
    char *text = tsv(&bytes), *again = NULL;
    ft_amax_table *table = read_ranges(text, bytes, NULL, NULL, &err);
    ok(table != NULL && ft_amax_table_format(table, &again, &again_bytes, &err) == FT_OK &&
           strcmp(text, again) == 0,
       "amax.tsv is read to the same table in the same order");
    is_int((long long) notes.count, 0, "a complete amax.tsv gives no note");
    ft_amax_table_free(table);
    free(again);

    char *changed =
        with_line(text, "layer.0.ffn.act\t", "layer.0.ffn.act\t2.5\tper-token\t0\tinf\n");
    table = read_ranges(changed, strlen(changed), NULL, NULL, &err);
    const ft_amax_entry *entry =
        table != NULL ? ft_amax_table_find(table, "layer.0.ffn.act") : NULL;
    ok(entry != NULL && strcmp(entry->method, "per-token") == 0,
       "a method that this version does not know is kept");
    near(amax_of(table, "layer.0.ffn.act"), 2.5, 0.0, "an edited range is used");
    ft_amax_table_free(table);
    free(changed);

    changed = with_line(text, "layer.0.attn.probs\t", "nothing.at.all\t2\tmax\t0\t1\n");
    table = read_ranges(changed, strlen(changed), NULL, NULL, &err);
    near(amax_of(table, "layer.0.attn.probs"), 1.0, 0.0,
         "missing probabilities, which are not quantized with their range, get the bound 1");
    ok(notes.count == 1 && notes.message[0].code != FT_OK &&
           strstr(notes.message[0].text, "1 range is of nothing that is a calibration point of the "
                                         "model: nothing.at.all") != NULL,
       "a range of an unknown point gives a warning that names it");
    ft_amax_table_free(table);
    free(changed);

    changed = with_line(text, "layer.1.ffn.norm\t", "");
    table = read_ranges(changed, strlen(changed), NULL, NULL, &err);
    ok(amax_of(table, "layer.1.ffn.norm") > 0.0,
       "the output of a norm that nothing quantizes gets the bound of its values");
    ft_amax_table_free(table);
    free(changed);

    edited(text, "layer.1.attn.q\t", "",
           "ranges: has no range for 1 calibration point: "
           "layer.1.attn.q",
           "a missing range of a quantized point is an error that names it");
    edited(text, "layer.1.attn.q\t", "layer.1.attn.q\t0\tmax\t0\t1\n", "amax 0",
           "a range of zero is refused");
    edited(text, "layer.1.attn.q\t", "layer.1.attn.q\tone\tmax\t0\t1\n", "is not a number",
           "a range that is no number is refused with its line");
    refused("name\tamax\tmethod\tclipped\tsqnr\n",
            "has no range for 14 calibration points: embed.norm, layer.0.attn.q",
            "an empty amax.tsv is refused with the first names of the missing points");
    refused("name\tamax\tmethod\tclipped\tsqnr\n", " and 9 more",
            "the message counts the missing points that it does not name");
    free(text);
}

/* ---- Other files --------------------------------------------------------------------------- */

static void test_formats(const tiny *t)
{
    ft_error err;
    snprintf(file, sizeof file, "%s", made.quantized);
    ft_amax_table *table = read_ranges(NULL, 0, NULL, NULL, &err);
    ok(table != NULL, "an artifact is read as its amax.tsv");
    ft_amax_table_free(table);
    snprintf(file, sizeof file, "%s", made.real);
    refused(NULL, "model.ft: has no calibrated ranges", "an artifact without ranges is refused");
    snprintf(file, sizeof file, "%s/config.json", t->folder);
    refused(NULL,
            "expected amax.tsv (whose first line names its columns), an artifact, "
            "safetensors with ..._amax tensors, or FasterTransformer's amaxList",
            "a file of another type is refused with the list of formats");
    snprintf(file, sizeof file, "%s/nothing", t->folder);
    refused(NULL, "nothing: cannot open", "a file that does not exist is refused");
    snprintf(file, sizeof file, "%s", t->folder);
    refused(NULL, ": cannot read", "a folder is refused");
    refused("", "is something unknown of 0 bytes", "an empty file is refused");
    snprintf(file, sizeof file, "%s/model.safetensors", t->folder);
    refused(NULL, "no tensor is called ...quantizer._amax",
            "a checkpoint without quantizers is refused");
}

/* ---- Quantizers ---------------------------------------------------------------------------- */

static ft_named_tensor tensor[MAX_TENSORS];
static char tensor_name[MAX_TENSORS][NAME];
static float tensor_data[MAX_TENSORS][FFN];
static size_t tensors;

/* A range with one value, or with one value per row. */
static void add(const char *name, int rows, float value)
{
    ft_named_tensor *new = &tensor[tensors];
    snprintf(tensor_name[tensors], NAME, "%s", name);
    *new = (ft_named_tensor){ tensor_name[tensors], { .dtype = FT_F32, .ndim = rows > 0 ? 2 : 0 } };
    new->tensor.dim[0] = rows;
    new->tensor.dim[1] = 1;
    new->tensor.data = tensor_data[tensors];
    for (int i = 0; i < FFN; i++)
        tensor_data[tensors][i] = value + (float) i;
    tensors++;
}

static void add_in_layer(const char *prefix, int layer, const char *name, int rows, float value)
{
    char full[2 * NAME];
    snprintf(full, sizeof full, "%sencoder.layer.%d.%s._amax", prefix, layer, name);
    add(full, rows, value);
}

/* All quantizers of the encoder: `own` is what pytorch-quantization prepends to their names. */
static void add_all(const char *prefix, const char *own, bool bmm)
{
    static const char *const linears[] = { "attention.self.query", "attention.self.key",
                                           "attention.self.value", "attention.output.dense",
                                           "intermediate.dense",   "output.dense" };
    static const char *const products[] = { "q_bmm_quantizer", "k_bmm_quantizer",
                                            "v_bmm_quantizer" };
    static const char *const matmuls[] = { "matmul_q_input_quantizer", "matmul_k_input_quantizer",
                                           "matmul_v_input_quantizer" };
    char name[NAME];
    tensors = 0;
    for (int layer = 0; layer < LAYERS; layer++) {
        for (size_t i = 0; i < FT_COUNT(linears); i++) {
            snprintf(name, sizeof name, "%s.%sinput_quantizer", linears[i], own);
            add_in_layer(prefix, layer, name, 0, 10.0f * (float) (layer + 1) + (float) (i / 3));
        }
        for (size_t i = 0; i < FT_COUNT(products); i++) {
            snprintf(name, sizeof name, "attention.self.%s", bmm ? products[i] : matmuls[i]);
            add_in_layer(prefix, layer, name, 0, 5.0f + (float) i);
        }
    }
}

static void write_tensors(const tiny *t)
{
    ft_error err;
    snprintf(file, sizeof file, "%s/quantizers.safetensors", t->folder);
    if (ft_safetensors_write(file, tensor, tensors, true, &err) != FT_OK)
        bail_out("%s", err.text);
}

static void test_spellings(const tiny *t)
{
    static const struct {
        const char *prefix, *own, *sentence;
        bool bmm;
    } spelling[] = {
        { "bert.", "_", "the quantizers of pytorch-quantization are read", false },
        { "bert.", "", "the quantizers of ModelOpt are read", true },
        { "", "", "the quantizers of a base model, whose names have no prefix, are read", true },
    };
    ft_error err;
    for (size_t i = 0; i < FT_COUNT(spelling); i++) {
        add_all(spelling[i].prefix, spelling[i].own, spelling[i].bmm);
        write_tensors(t);
        ft_amax_table *table = read_ranges(NULL, 0, NULL, NULL, &err);
        ok(amax_of(table, "embed.norm") == 10.0 && amax_of(table, "layer.0.attn.q") == 5.0 &&
               amax_of(table, "layer.0.attn.v") == 7.0 &&
               amax_of(table, "layer.0.attn.context") == 11.0 &&
               amax_of(table, "layer.0.attn.norm") == 11.0 &&
               amax_of(table, "layer.1.ffn.act") == 21.0 &&
               amax_of(table, "layer.0.ffn.norm") == 20.0 && notes.count == 0,
           "%s", spelling[i].sentence);
        if (table == NULL)
            diag("%s", err.text);
        ft_amax_table_free(table);
    }
}

static void test_merging(const tiny *t)
{
    ft_error err;
    add_all("bert.", "", true);
    tensor_data[1][0] = 12.5f; /* the keys' linear reads the value that has 10 elsewhere */
    write_tensors(t);
    ft_amax_table *table = read_ranges(NULL, 0, NULL, NULL, &err);
    near(amax_of(table, "embed.norm"), 12.5, 0.0,
         "of several ranges of one value the largest is used");
    ok(notes.count == 1 && notes.message[0].code == FT_OK &&
           strstr(notes.message[0].text, "differ by more than 1 %, the largest is used: "
                                         "embed.norm") != NULL,
       "a note names a value whose ranges differ by more than 1 %%");
    ft_amax_table_free(table);

    tensor_data[1][0] = 10.05f;
    write_tensors(t);
    table = read_ranges(NULL, 0, NULL, NULL, &err);
    is_int((long long) notes.count, 0, "ranges that differ by less than 1 %% give no note");
    ft_amax_table_free(table);

    add("bert.pooler.dense.input_quantizer._amax", 0, 1.0f);
    write_tensors(t);
    table = read_ranges(NULL, 0, NULL, NULL, &err);
    ok(table != NULL && notes.count == 1 && notes.message[0].code != FT_OK &&
           strstr(notes.message[0].text, "bert.pooler.dense.input_quantizer._amax") != NULL,
       "a quantizer of a float matrix gives a warning that names it");
    ft_amax_table_free(table);
}

static void test_weights(const tiny *t)
{
    float scales[FFN] = { 0.0f };
    ft_error err;
    add_all("bert.", "", true);
    add_in_layer("bert.", 0, "intermediate.dense.weight_quantizer", FFN, 3.0f);
    add_in_layer("bert.", 0, "output.dense.weight_quantizer", 0, 3.0f);
    write_tensors(t);
    ft_amax_table *table = read_ranges(NULL, 0, "layer.0.ffn.up.weight", scales, &err);
    bool fine = table != NULL;
    for (int i = 0; i < FFN; i++)
        fine = fine && scales[i] == ft_scale_from_amax(3.0f + (float) i);
    ok(fine, "ranges of weights with one value per row become their scales");
    ok(notes.count == 1 && notes.message[0].code == FT_OK &&
           strstr(notes.message[0].text, "output.dense.weight_quantizer._amax") != NULL,
       "a note names a matrix whose weights have one range for all rows");
    ft_amax_table_free(table);

    tensor_data[tensors - 2][4] = -1.0f;
    write_tensors(t);
    refused(NULL, "amax -1 of row 4, expected a finite number from 0",
            "a negative range of a row of weights is refused");
}

static void test_bad_quantizers(const tiny *t)
{
    add_all("bert.", "", true);
    tensor_data[3][0] = 0.0f;
    write_tensors(t);
    refused(NULL, "amax 0, expected a positive finite number; calibrate this quantizer first",
            "a quantizer whose range is zero is refused");
    tensor_data[3][0] = NAN;
    write_tensors(t);
    refused(NULL, "amax nan, expected a positive", "a quantizer whose range is NaN is refused");
    add_all("bert.", "", true);
    tensor[3].tensor.ndim = 1;
    tensor[3].tensor.dim[0] = HIDDEN;
    write_tensors(t);
    refused(NULL, "shape [8], expected one range: activations have one scale per tensor",
            "an activation quantizer with one range per channel is refused");
    add_all("bert.", "", true);
    tensor[3].tensor.dtype = FT_I32;
    write_tensors(t);
    refused(NULL, "dtype I32, expected F32, F16, BF16 or F64", "a range of integers is refused");
    add_all("bert.", "", true);
    tensors -= 3;
    write_tensors(t);
    refused(NULL,
            "has no range for 3 calibration points: layer.1.attn.q, layer.1.attn.k, "
            "layer.1.attn.v",
            "missing quantizers are refused with the names of their points");
}

int main(void)
{
    tiny t;
    ft_error err;
    tiny_make_classifier(&t);
    calibrated_make(&made, &t);
    const ft_quant_config observe = { .mode = FT_MODE_OBSERVE };
    if (ft_model_open_with_config(&model, made.real, NULL, &observe, &err) != FT_OK)
        bail_out("%s", err.text);
    test_tsv();
    test_formats(&t);
    test_spellings(&t);
    test_merging(&t);
    test_weights(&t);
    test_bad_quantizers(&t);
    ft_model_close(model);
    tiny_remove(&t);
    return done_testing();
}
