/*
 * translator_variants-t.c - all variants of M2M100 and Marian give the logits of transformers.
 *
 * The models, sources and target prefixes are those of tests/golden/translator-variants.json:
 * encoders and decoders of different depth and width, tied and untied heads, pre-norm and
 * post-norm.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "tests/lib/golden.h"
#include "tests/lib/models/translator_file.h"
#include "tests/lib/models/variant.h"

/*
 * Both sides compute in float and sum in different orders.  Logits have a spread of 1 to 5;
 * differences of 1e-6 to 1e-5 were observed, and ignoring a mask or position causes more than 0.1.
 */
static const double tolerance = 1e-3;

static void run(const ft_model *model, const json_t *variant, int first, int count,
                float logits[VARIANT_ROWS * VARIANT_WORDS])
{
    ft_session *session;
    ft_error err;
    variant_rows source = variant_read(json_object_get(variant, "sources"), first, count);
    variant_rows target = variant_read(json_object_get(variant, "targets"), first, count);
    const ft_session_options options = { .threads = 2, .context = target.cols };
    if (ft_session_open(&session, model, &options, &err) != FT_OK)
        bail_out("%s", err.text);
    variant_set(session, "input_ids", "attention_mask", &source);
    variant_set(session, "decoder_input_ids", "decoder_attention_mask", &target);
    variant_run(session, count, logits);
    ft_session_close(session);
}

static void test_variant(const json_t *variant)
{
    tiny t;
    translator_make(&t, variant);
    ft_model *model = variant_open(&t, variant);
    variant_compare(model, variant, run, tolerance);
    ft_model_close(model);
    tiny_remove(&t);
}

int main(void)
{
    json_t *variants = golden_json("translator-variants.json"), *variant;
    size_t i;
    json_array_foreach(variants, i, variant) test_variant(variant);
    json_decref(variants);
    return done_testing();
}
