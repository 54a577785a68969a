/*
 * check-images.c - operands that patchify and add_class_token accept and refuse.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/ops/check.h"

/* clang-format off */
#define CONV(...) { 2, 5, 7, __VA_ARGS__, .dilation = { 1, 1 } }

static const ft_conv grid = CONV({ 2, 3 }, { 2, 3 });
static const ft_conv overlapping = CONV({ 2, 3 }, { 2, 2 });
static const ft_conv too_large = CONV({ 6, 1 }, { 6, 1 });
static const ft_conv padded = CONV({ 2, 3 }, { 2, 3 }, { 1, 1 });

const a_case check_image_cases[] = {
#define OP .kind = FT_OP_PATCHIFY
#define GRID .prefix_tokens = 1, .conv = &grid
    { OP, { IMAGES }, PATCHES, 0, 0, { 0 }, 0,
      "images with f32 patches, without the remaining pixels", NULL,
      GRID },
    { OP, { IMAGES }, PATCHES_H, 0, 0, { 0 }, 0, "images with f16 patches", NULL, GRID },
    { OP, { IMAGES }, 0, PATCH_CODES, 0, { 0 }, 0, "images with int8 patches", NULL, GRID },
    { OP, { IMAGES }, PATCHES, PATCH_CODES, 0, { 0 }, 0, "both f32 and int8 patches",
      "cannot write both a float and a quantized result", GRID },
    { OP, { IMAGES }, 0, PATCH_DYNAMIC, 0, { 0 }, 0, "row-scaled int8 patches",
      "cannot write a result with row scales", GRID },
    { OP, { IMAGES }, Y, 0, 0, { 0 }, 0, "rows of another size than patches",
      "the float result has the wrong shape or dtype", GRID },
    { OP, { IMAGES_H }, PATCHES, 0, 0, { 0 }, 0, "f16 images",
      "the input is not one float32 image per sequence", GRID },
    { OP, { X_S }, PATCHES, 0, 0, { 0 }, 0, "images of another size",
      "the input is not one float32 image per sequence", GRID },
    { OP, { PATCHES }, PATCHES, 0, 0, { 0 }, 0, "token rows as input",
      "the input is not one float32 image per sequence", GRID },
    { OP, { IMAGES }, PATCHES, 0, 0, { 0 }, 0, "overlapping patches",
      "the image has no complete patch, or patches overlap",
      .conv = &overlapping },
    { OP, { IMAGES }, PATCHES, 0, 0, { 0 }, 0, "a patch larger than the image",
      "the image has no complete patch, or patches overlap",
      .conv = &too_large },
    { OP, { IMAGES }, PATCHES, 0, 0, { 0 }, 0, "padding",
      "the image has no complete patch, or patches overlap",
      .conv = &padded },
#undef OP
#define OP .kind = FT_OP_ADD_CLASS_TOKEN
    { OP, { X }, Y, 0, 0, { TABLE, V8 }, 0, "one prefix token", NULL, .prefix_tokens = 1 },
    { OP, { H }, H, 0, 0, { TABLE_F16, V8, V8 }, 0, "two prefix tokens in f16", NULL,
      .prefix_tokens = 2 },
    { OP, { X }, Y, 0, 0, { TABLE, V8, V8 }, 0, "more vectors than prefix tokens",
      "the prefix tokens must be float vectors as long as the input is wide", .prefix_tokens = 1 },
    { OP, { X }, Y, 0, 0, { TABLE, V4 }, 0, "a prefix token that is too narrow",
      "the prefix tokens must be float vectors as long as the input is wide", .prefix_tokens = 1 },
    { OP, { X }, Y, 0, 0, { TABLE }, 0, "zero prefix tokens",
      "the prefix tokens must be float vectors as long as the input is wide", .prefix_tokens = 0 },
    { OP, { X }, Y, 0, 0, { TABLE_6, V8 }, 0, "positions that are too narrow",
      "the position table must be a float matrix as wide as the input", .prefix_tokens = 1 },
    { OP, { X }, Y, 0, 0, { V8, V8 }, 0, "positions of the prefix tokens only",
      "the position table has no rows for patches", .prefix_tokens = 1 },
    { OP, { X_S }, X_S, 0, 0, { TABLE, V8 }, 0, "input with one row for each sequence",
      "the input is not float or not one row per token", .prefix_tokens = 1 },
    { OP, { X }, 0, CODES, 0, { TABLE, V8 }, 0, "a quantized result",
      "cannot write a quantized result",
      .prefix_tokens = 1 },
#undef OP
    { .sentence = NULL },
};
/* clang-format on */
