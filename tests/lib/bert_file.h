/*
 * bert_file.h - the small BERT of bert.h as an artifact.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_BERT_FILE_H
#define FT_TESTS_LIB_BERT_FILE_H

#include "tests/lib/bert.h"

/* What is written, and what is wrong with it; NULL: nothing. */
typedef struct bert_file {
    bool int8;              /* the model was made for FT_MODE_INT8 */
    const char *family;     /* instead of "bert" */
    const char *residual;   /* of the recipe, instead of "float" */
    const char *drop;       /* this tensor is left out */
    const char *rename;     /* this one is called "renamed" */
    const char *recast;     /* this one is F16 */
    const char *reshape;    /* this one has a row less */
    const char *recall;     /* this one's role is "sink" */
    const char *unmeasured; /* this point has no amax */
    const char *misname;    /* the amax of this point is called "nowhere" */
} bert_file;

void bert_file_write(const test_bert *model, const bert_file *what, const char *path);

/* The amax of a point in the int8 artifact, by its value's index in the graph. */
float bert_file_amax(int value);

#endif
