/*
 * dtype_convert-t.c - values are stored unchanged, or rounded to the requested dtype.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "tests/lib/models/converted.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <string.h>

static const ft_convert_options keep;

/* ---- Dtypes --------------------------------------------------------------------------------- */

/* Two matrices and two vectors. */
static const struct {
    const char *name, *source;
    bool matrix;
} looked_at[] = {
    { "embed.word", "embeddings.word_embeddings.weight", true },
    { "layer.1.ffn.up.weight", "encoder.layer.1.intermediate.dense.weight", true },
    { "layer.1.ffn.up.bias", "encoder.layer.1.intermediate.dense.bias", false },
    { "embed.norm.weight", "embeddings.LayerNorm.weight", false },
};

static void test_dtype(tiny *t, const ft_convert_options *options, ft_dtype matrix)
{
    ft_artifact *a = converted(t, options);
    if (a == NULL)
        bail_out("%s", converted_problem(0));
    int right = 0;
    for (size_t i = 0; i < FT_COUNT(looked_at); i++)
        right += converted_same(a, looked_at[i].name, t, looked_at[i].source) &&
                 ft_artifact_find(a, looked_at[i].name)->dtype ==
                     (looked_at[i].matrix ? matrix : FT_F32);
    is_int(right, FT_COUNT(looked_at),
           "%s weights converted %s --dtype become %s matrices and F32 vectors of equal values",
           ft_dtype_name(t->tensor[0].tensor.dtype), options->cast ? "with" : "without",
           ft_dtype_name(matrix));
    ft_artifact_close(a);
}

static void test_dtypes(void)
{
    static const ft_dtype sources[] = { FT_F32, FT_F16, FT_BF16, FT_F64 };
    static const ft_dtype wanted[] = { FT_F32, FT_F16, FT_BF16 };
    for (size_t i = 0; i < FT_COUNT(sources); i++) {
        tiny t;
        tiny_make(&t, TINY_BERT, "");
        tiny_cast_all(&t, sources[i]);
        test_dtype(&t, &keep, sources[i] == FT_F64 ? FT_F32 : sources[i]);
        for (size_t w = 0; w < FT_COUNT(wanted); w++)
            test_dtype(&t, &(ft_convert_options){ .cast = true, .dtype = wanted[w] }, wanted[w]);
        tiny_remove(&t);
    }
}

static void test_rounding(void)
{
    /* Ties of F16 and BF16, which round to even, and adjacent values. */
    static const struct {
        ft_dtype dtype;
        float value, rounded;
    } cases[] = {
        { FT_F16, 0x1.002p0f, 0x1.0p0f },
        { FT_F16, 0x1.006p0f, 0x1.008p0f },
        { FT_F16, 0x1.00201p0f, 0x1.004p0f },
        { FT_F16, -0x1.002p0f, -0x1.0p0f },
        { FT_F16, 0x1p-25f, 0.0f },
        { FT_F16, 0x1.8p-24f, 0x1p-23f },
        { FT_F16, 65519.0f, 65504.0f },
        { FT_BF16, 0x1.01p0f, 0x1.0p0f },
        { FT_BF16, 0x1.03p0f, 0x1.04p0f },
        { FT_BF16, 0x1.01002p0f, 0x1.02p0f },
        { FT_BF16, -0x1.fefffep127f, -0x1.fep127f },
    };
    tiny t;
    tiny_make(&t, TINY_BERT, "");
    float *value = tiny_find(&t, "encoder.layer.0.output.dense.weight")->data;
    for (size_t i = 0; i < FT_COUNT(cases); i++) {
        memset(value, 0, 96 * sizeof *value);
        value[95] = cases[i].value;
        ft_artifact *a = converted(&t, &(ft_convert_options){ .cast = true, .dtype = cases[i].dtype });
        if (a == NULL)
            bail_out("%s", converted_problem(0));
        near(converted_value(a, "layer.0.ffn.down.weight", 95), (double) cases[i].rounded, 0.0,
             "%a as %s rounds to %a", (double) cases[i].value, ft_dtype_name(cases[i].dtype),
             (double) cases[i].rounded);
        ft_artifact_close(a);
    }
    tiny_remove(&t);
}

/* ---- Tensors larger than the write buffer -------------------------------------------------- */

enum { ROWS = 40000 }; /* 1.28 MB of F32, several buffers of the writer */

static void test_blocks(void)
{
    static const char words[] = "embeddings.word_embeddings.weight";
    static const ft_dtype dtypes[] = { FT_F32, FT_F16 };
    tiny t;
    tiny_make(&t, TINY_BERT, "");
    tiny_drop(&t, words);
    tiny_add(&t, words, FT_F32, ROWS, 8);
    tiny_configure(&t, "{\"vocab_size\": 40000}");
    for (size_t i = 0; i < FT_COUNT(dtypes); i++) {
        ft_artifact *a = converted(&t, &(ft_convert_options){ .cast = true, .dtype = dtypes[i] });
        ok(a != NULL && converted_same(a, "embed.word", &t, words),
           "a table larger than the write buffer has the values of its source as %s",
           ft_dtype_name(dtypes[i]));
        ft_artifact_close(a);
    }
    ((float *) tiny_find(&t, words)->data)[8 * ROWS - 1] = NAN;
    tiny_write(&t);
    ft_conversion *conversion = converted_open(&t, &keep);
    ft_error err;
    is_int(ft_conversion_check(conversion, NULL, NULL, &err), FT_EFORMAT,
           "ft_conversion_check reads every value");
    has(err.text, "nan at [39999, 7]", "the error of a NaN names its indices");
    ft_conversion_close(conversion);
    tiny_remove(&t);
}

int main(void)
{
    test_dtypes();
    test_rounding();
    test_blocks();
    return done_testing();
}
