/*
 * llama_file.h - recreates the random checkpoints of tests/golden/llama-variants.json.
 *
 * That file has configurations, inputs and the logits that transformers computed, but no weights:
 * tests/golden/make-llama.py defines the formula of the weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_MODELS_LLAMA_FILE_H
#define FT_TESTS_LIB_MODELS_LLAMA_FILE_H

#include "tests/lib/models/tiny.h"

#include <jansson.h>

/* The variant of that name in golden_json("llama-variants.json"); borrowed. */
const json_t *llama_variant(const json_t *variants, const char *name);

/*
 * Makes the variant's tensors and config.json in a new folder; tiny_write() writes them as one
 * file, llama_write() as the variant's number of shards with an index.
 */
void llama_make(tiny *t, const json_t *variant);
void llama_write(const tiny *t, const json_t *variant);

/* Whether the tensors equal those that transformers used, to the last bit. */
bool llama_is_same(const tiny *t, const json_t *variant);

#endif
