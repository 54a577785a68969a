/*
 * vit_file.h - the random checkpoints and images of tests/golden/vit-variants.json, made again.
 *
 * That file keeps configurations and the outputs that transformers computed, neither weights nor
 * images: tests/golden/make-vit.py says by which formula they are made.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_MODELS_VIT_FILE_H
#define FT_TESTS_LIB_MODELS_VIT_FILE_H

#include "tests/lib/models/tiny.h"

#include <jansson.h>

/* Make the variant's tensors in a fresh folder with its config.json; tiny_write() writes them. */
void vit_make(tiny *t, const json_t *variant);

/* Its images, [images, channels, height, width] in F32; free(data). */
ft_tensor vit_images(const json_t *variant);

#endif
