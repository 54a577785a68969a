/*
 * refuse-t.c - invalid checkpoints are refused, and the error names the tensor or file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "tests/lib/models/converted.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

static const ft_convert_options keep;

/* ---- Refused ------------------------------------------------------------------------------- */

static const char up[] = "bert.encoder.layer.1.intermediate.dense.weight"; /* [12, 8] */

static void put_nan(tiny *t)
{
    ((float *) tiny_find(t, up)->data)[8 * 11 + 2] = NAN;
}

static void put_minus_infinity(tiny *t)
{
    ((float *) tiny_find(t, up)->data)[0] = -INFINITY;
}

static void put_nan_f16(tiny *t)
{
    put_nan(t);
    tiny_cast(tiny_find(t, up), FT_F16);
}

static void put_nan_bf16(tiny *t)
{
    put_nan(t);
    tiny_cast(tiny_find(t, up), FT_BF16);
}

static void put_infinity_f64(tiny *t)
{
    put_minus_infinity(t);
    tiny_cast(tiny_find(t, up), FT_F64);
}

static void put_nan_in_bias(tiny *t)
{
    ((float *) tiny_find(t, "bert.encoder.layer.0.output.dense.bias")->data)[5] = NAN;
}

static void put_65520(tiny *t)
{
    ((float *) tiny_find(t, up)->data)[8] = 65520.0f;
}

static void put_largest_float(tiny *t)
{
    ((float *) tiny_find(t, up)->data)[1] = -0x1.fffffep127f;
}

static void put_1e39(tiny *t)
{
    tiny_cast(tiny_find(t, up), FT_F64);
    ((double *) tiny_find(t, up)->data)[7] = 1e39;
}

static void drop(tiny *t)
{
    tiny_drop(t, up);
}

static void transpose(tiny *t)
{
    ft_tensor *tensor = tiny_find(t, up);
    tensor->dim[0] = 8;
    tensor->dim[1] = 12;
}

static void flatten(tiny *t)
{
    ft_tensor *tensor = tiny_find(t, up);
    tensor->ndim = 1;
    tensor->dim[0] = 96;
}

static void make_int8(tiny *t)
{
    tiny_drop(t, up);
    tiny_add(t, up, FT_I8, 12, 8);
}

static void shorten_classifier(tiny *t)
{
    tiny_drop(t, "classifier.weight");
    tiny_add(t, "classifier.weight", FT_F32, 2, 8);
}

static void drop_pooler(tiny *t)
{
    tiny_drop(t, "bert.pooler.dense.weight");
    tiny_drop(t, "bert.pooler.dense.bias");
}

static void rename_head(tiny *t)
{
    tiny_rename(t, "classifier.weight", "score.weight");
}

static void mix_prefixes(tiny *t)
{
    tiny_rename(t, up, up + 5);
}

static void add_adapter(tiny *t)
{
    tiny_write_file(t, "adapter_config.json", "{}");
}

static void remove_config(tiny *t)
{
    char path[128];
    snprintf(path, sizeof path, "%s/config.json", t->folder);
    unlink(path);
}

static const struct {
    const char *what;
    void (*damage)(tiny *t);
    ft_convert_options options;
    ft_status status;
    const char *part;
} refused[] = {
    { "NaN",
      put_nan,
      { 0 },
      FT_EFORMAT,
      "bert.encoder.layer.1.intermediate.dense.weight (layer.1.ffn.up.weight): nan at [11, 2], "
      "expected finite values" },
    { "infinity",
      put_minus_infinity,
      { 0 },
      FT_EFORMAT,
      "(layer.1.ffn.up.weight): -inf at [0, 0]" },
    { "NaN in F16", put_nan_f16, { 0 }, FT_EFORMAT, "(layer.1.ffn.up.weight): nan at [11, 2]" },
    { "NaN in BF16",
      put_nan_bf16,
      { .cast = true, .dtype = FT_F16 },
      FT_EFORMAT,
      "nan at [11, 2]" },
    { "infinity in F64", put_infinity_f64, { 0 }, FT_EFORMAT, "-inf at [0, 0], expected finite" },
    { "NaN in a vector",
      put_nan_in_bias,
      { 0 },
      FT_EFORMAT,
      "bert.encoder.layer.0.output.dense.bias (layer.0.ffn.down.bias): nan at [5]" },
    { "65520 as F16",
      put_65520,
      { .cast = true, .dtype = FT_F16 },
      FT_ELIMIT,
      "(layer.1.ffn.up.weight): 65520 at [1, 0] is too large for F16; try --dtype bf16" },
    { "the largest float as BF16",
      put_largest_float,
      { .cast = true, .dtype = FT_BF16 },
      FT_ELIMIT,
      "-3.40282e+38 at [0, 1] is too large for BF16; try --dtype f32" },
    { "1e39 as F32", put_1e39, { 0 }, FT_ELIMIT, "1e+39 at [0, 7] is too large for F32" },
    { "a missing weight",
      drop,
      { 0 },
      FT_EFORMAT,
      "bert.encoder.layer.1.intermediate.dense.weight (layer.1.ffn.up.weight): missing, expected "
      "shape [12, 8]" },
    { "a transposed weight",
      transpose,
      { 0 },
      FT_ESHAPE,
      "(layer.1.ffn.up.weight): shape [8, 12], expected [12, 8]" },
    { "a vector in place of a matrix", flatten, { 0 }, FT_ESHAPE, "shape [96], expected [12, 8]" },
    { "a weight of integers",
      make_int8,
      { 0 },
      FT_EUNSUPPORTED,
      "(layer.1.ffn.up.weight): dtype I8, expected F32, F16, BF16 or F64" },
    { "a different number of labels",
      shorten_classifier,
      { 0 },
      FT_ESHAPE,
      "classifier.weight (classifier.weight): shape [2, 8], expected [3, 8]" },
    { "a classifier without a pooler",
      drop_pooler,
      { 0 },
      FT_EFORMAT,
      "bert.pooler.dense.weight (pooler.weight): missing" },
    { "a classifier of a different name",
      rename_head,
      { 0 },
      FT_EFORMAT,
      "classifier.weight (classifier.weight): missing" },
    { "one weight without the prefix",
      mix_prefixes,
      { 0 },
      FT_EFORMAT,
      "bert.encoder.layer.1.intermediate.dense.weight (layer.1.ffn.up.weight): missing" },
    { "an adapter", add_adapter, { 0 }, FT_EUNSUPPORTED, "adapter_config.json: an adapter" },
    { "a missing config.json", remove_config, { 0 }, FT_EIO, "config.json: No such file" },
};

static void test_refused(void)
{
    for (size_t i = 0; i < FT_COUNT(refused); i++) {
        tiny t;
        tiny_make_classifier(&t);
        refused[i].damage(&t);
        ft_artifact *a = converted(&t, &refused[i].options);
        ok(a == NULL && converted_problems.count > 0 &&
               converted_problems.message[0].code == refused[i].status,
           "a checkpoint with %s is refused", refused[i].what);
        has(converted_problem(0), refused[i].part,
            "the error of a checkpoint with %s names the cause", refused[i].what);
        ft_artifact_close(a);
        is_int(access(strcat(strcpy((char[128]){ 0 }, t.folder), "/model.ft"), F_OK), -1,
               "a refused checkpoint with %s leaves no artifact", refused[i].what);
        tiny_remove(&t);
    }
}

static void test_all_at_once(void)
{
    tiny t;
    tiny_make_classifier(&t);
    transpose(&t);
    drop_pooler(&t);
    shorten_classifier(&t);
    add_adapter(&t);
    ok(converted(&t, &keep) == NULL, "a checkpoint with five problems is refused");
    is_int((long long) converted_problems.count, 5, "all five problems are reported");
    tiny_remove(&t);
}

int main(void)
{
    test_refused();
    test_all_at_once();
    return done_testing();
}
