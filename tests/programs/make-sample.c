/*
 * make-sample.c - write the artifact of tests/lib/sample.h, for shell tests.
 *
 *     make-sample FILE float|blocks|int8 SEED [NAME]
 *
 * NAME replaces the name large.weight of a matrix that only the int8 artifact has.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/lib/sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    ft_error err;
    if (argc < 4 || argc > 5)
        return 2;
    const sample what = {
        .state = strcmp(argv[2], "int8") == 0     ? FT_ARTIFACT_INT8
                 : strcmp(argv[2], "blocks") == 0 ? FT_ARTIFACT_GROUPWISE
                                                  : FT_ARTIFACT_FLOAT,
        .seed = (unsigned char) atoi(argv[3]),
        .large = strcmp(argv[2], "int8") == 0 ? 512 : 0,
        .name = argc == 5 ? argv[4] : NULL,
        .force = true,
    };
    if (sample_write(argv[1], &what, &err) == FT_OK)
        return 0;
    fprintf(stderr, "make-sample: %s\n", err.text);
    return 1;
}
