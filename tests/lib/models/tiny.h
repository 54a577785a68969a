/*
 * tiny.h - small checkpoints of every architecture, whole or with a defect, for tests of the converter.
 *
 * Names and shapes are those of published checkpoints, stated independently of the converter:
 * hidden 8, 2 heads, ffn 12, 2 layers, 20 tokens, 10 positions, 2 types, 3 labels.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_MODELS_TINY_H
#define FT_TESTS_LIB_MODELS_TINY_H

#include "runtime/container/safetensors.h"

enum { TINY_TENSORS = 128, TINY_NAME = 96, TINY_FOLDER = 64 };

typedef struct tiny {
    char folder[TINY_FOLDER]; /* with config.json in it */
    ft_named_tensor tensor[TINY_TENSORS];
    char name[TINY_TENSORS][TINY_NAME];
    size_t count;
} tiny;

typedef enum tiny_kind { TINY_BERT, TINY_ROBERTA, TINY_DISTILBERT } tiny_kind;

/*
 * An encoder whose names start with `prefix`, in a new folder: F32 values that every float dtype
 * represents exactly.  Its config.json has no architectures.
 */
void tiny_make(tiny *t, tiny_kind kind, const char *prefix);
void tiny_remove(tiny *t);

/* A BertForSequenceClassification of 3 labels, with prefix and pooler. */
void tiny_make_classifier(tiny *t);

/* NAME.weight [rows, cols] and NAME.bias [rows]; cols 0: a layer norm. */
void tiny_add_linear(tiny *t, const char *name, int rows, int cols);
ft_tensor *tiny_add(tiny *t, const char *name, ft_dtype dtype, int rows, int cols);

/* By name; the test ends if there is none. */
ft_tensor *tiny_find(tiny *t, const char *name);
void tiny_drop(tiny *t, const char *name);
void tiny_rename(tiny *t, const char *name, const char *other);

/* Store a tensor, or all of them, as F64, F16 or BF16 instead of F32. */
void tiny_cast(ft_tensor *tensor, ft_dtype dtype);
void tiny_cast_all(tiny *t, ft_dtype dtype);

/* Element `index` of a float tensor of the checkpoint. */
double tiny_value(const ft_tensor *tensor, size_t index);

/* Set keys of config.json: the members of a JSON object. */
void tiny_configure(tiny *t, const char *members);

/* Write a file of the folder, and its model.safetensors. */
void tiny_write_file(const tiny *t, const char *file, const char *text);
void tiny_write(const tiny *t);

#endif
