/*
 * bert_file.h - the small BERT of bert.h as an artifact.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_MODELS_BERT_FILE_H
#define FT_TESTS_LIB_MODELS_BERT_FILE_H

#include "tests/lib/models/bert.h"

/*
 * Write a float artifact; or an int8 one, with that residual stream in its recipe ("float" or
 * "int8"), if the model was made for FT_MODE_INT8.  Stops the test on failure.
 */
void bert_file_write(const test_bert *model, const char *residual, const char *path);

/* The amax of a point in the int8 artifact, by its value's index in the graph. */
float bert_file_amax(int value);

#endif
