/*
 * translator_file.h - recreates the random checkpoints of tests/golden/translator-variants.json.
 *
 * llama_variant(), llama_write() and llama_is_same() serve them too.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_MODELS_TRANSLATOR_FILE_H
#define FT_TESTS_LIB_MODELS_TRANSLATOR_FILE_H

#include "tests/lib/models/llama_file.h"

/* Makes the variant's tensors and config.json in a new folder. */
void translator_make(tiny *t, const json_t *variant);

/* A copy of the token embeddings under this name. */
ft_tensor *translator_copy_words(tiny *t, const char *name);

#endif
