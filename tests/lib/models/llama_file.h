/*
 * llama_file.h - the random checkpoints of tests/golden/llama-variants.json, made again.
 *
 * That file keeps configurations, rows and the logits that transformers computed, not weights:
 * tests/golden/make-llama.py says by which formula they are made.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_MODELS_LLAMA_FILE_H
#define FT_TESTS_LIB_MODELS_LLAMA_FILE_H

#include "tests/lib/models/tiny.h"

#include <jansson.h>

/* The variant of that name among golden_json("llama-variants.json"); borrowed. */
const json_t *llama_variant(const json_t *variants, const char *name);

/*
 * Make the variant's tensors in a fresh folder with its config.json; tiny_write() writes them as
 * one file, llama_write() as the variant's shards with an index, or one file where that is one.
 */
void llama_make(tiny *t, const json_t *variant);
void llama_write(const tiny *t, const json_t *variant);

/* Whether the tensors are those that transformers computed with, to the last bit. */
bool llama_is_same(const tiny *t, const json_t *variant);

#endif
