/*
 * llama_variants-t.c - every kind of Llama, Mistral, Qwen2 and Qwen3 gives the logits of transformers.
 *
 * The models and rows are those of tests/golden/llama-variants.json: several ratios
 * of key-value heads, explicit head sizes, biases, tied heads, every RoPE scaling with rows longer
 * than its threshold, and sliding windows shorter than the rows.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "tests/lib/golden.h"
#include "tests/lib/models/variant.h"

/*
 * Both sides compute in float and sum in different orders.  Logits have a spread of 1 to 5 over two
 * or three layers; differences of 2e-6 to 9e-6 were observed, and ignoring a scaling or window
 * causes more than 1.
 */
static const double tolerance = 1e-3;

static void test_variant(const json_t *variant)
{
    tiny t;
    llama_make(&t, variant);
    ft_model *model = variant_open(&t, variant);
    variant_compare(model, variant, llama_run, tolerance);
    ft_model_close(model);
    tiny_remove(&t);
}

int main(void)
{
    json_t *variants = golden_json("llama-variants.json"), *variant;
    size_t i;
    json_array_foreach(variants, i, variant) test_variant(variant);
    json_decref(variants);
    return done_testing();
}
