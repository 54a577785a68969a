/*
 * rotated_variants-t.c - rotated, every kind of Llama, Mistral, Qwen2 and Qwen3 gives the logits of
 * transformers.
 *
 * The models and rows are those of llama_variants-t.c: several ratios of key-value heads, biases,
 * tied heads, norms of heads, and sizes such as 40 = 8 * 5, whose rotations are no powers of two.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "runtime/model/model.h"
#include "tests/lib/golden.h"
#include "tests/lib/models/variant.h"

/* Of float sums in another order; 1e-5 was observed, and one wrong side of a matrix causes 1. */
static const double tolerance = 1e-3;

static bool has_output(const ft_model *model, const char *name)
{
    bool found = false;
    for (int i = 0; i < model->plan.noutput; i++)
        found = found || strcmp(model->plan.output[i].name, name) == 0;
    return found;
}

/* A rotated model cannot give what others give under the same names. */
static void test_outputs(const json_t *variant)
{
    tiny t;
    char path[128];
    ft_model *model, *embedder;
    ft_error err;
    llama_make(&t, variant);
    model = variant_open(&t, variant);
    ok(has_output(model, "last_hidden_state") && !has_output(model, "rotated_hidden_state"),
       "a decoder has the output last_hidden_state");
    ft_model_close(model);
    model = variant_open_with(&t, variant, &(ft_convert_options){ .rotate = true });
    ok(!has_output(model, "last_hidden_state") && has_output(model, "rotated_hidden_state"),
       "the hidden state of a rotated decoder has a name that says so");
    ft_model_close(model);
    snprintf(path, sizeof path, "%s/model.ft", t.folder);
    is_int(ft_model_open_for_embedding(&embedder, path, NULL, &err), FT_EUNSUPPORTED,
           "a rotated decoder does not embed texts");
    has(err.text, "is rotated, and so would be its embeddings; convert the checkpoint without",
        "the error of a rotated decoder says what to do");
    tiny_remove(&t);
}

static void test_variant(const json_t *variant)
{
    tiny t;
    llama_make(&t, variant);
    ft_model *model = variant_open_with(
        &t, variant, &(ft_convert_options){ .rotate = true, .cast = true, .dtype = FT_F32 });
    ok(model->config.rotated, "%s: the configuration says that the model is rotated",
       json_string_value(json_object_get(variant, "name")));
    variant_compare(model, variant, llama_run, tolerance);
    ft_model_close(model);
    tiny_remove(&t);
}

int main(void)
{
    json_t *variants = golden_json("llama-variants.json"), *variant;
    size_t i;
    json_array_foreach(variants, i, variant) test_variant(variant);
    test_outputs(llama_variant(variants, "grouped"));
    json_decref(variants);
    return done_testing();
}
