/*
 * ops.h - shared by ops.t: a test for every operation, and the batch that they use.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_OPS_OPS_H
#define FT_TESTS_OPS_OPS_H

#include "tests/lib/ops/oneop.h"

/* Sequences of 1, 7, 128 and 300 rows, packed. */
enum { TOKENS = 436, SEQUENCES = 4, HIDDEN = 312, HEADS = 12 };
extern const ft_batch mixed_batch;

/* One token a row, one sequence. */
ft_batch single_batch(size_t tokens, int32_t start[2]);

/* Half an ulp of a float, relative: the largest error of one rounding. */
#define ROUNDING 0x1p-24

/* Quantizing multiplies by an inverse: two roundings move a value of up to 127 by this much. */
#define CODE_SLACK (127 * 2 * ROUNDING)

/* void test_embed(bench *on), and so on for every operation. */
#define X(NAME, name, ...) void test_##name(bench *on);
#include "kernels/ops.def"
#undef X

/* Row operations in f16. */
void test_f16(bench *on);

/* Linears with group-wise quantized weights. */
void test_blocks(bench *on);

/* NORM and QUANTIZE with a smoothing of the quantized columns. */
void test_smoothing(bench *on);

/* Row operations of decoders: RMS norms, row-scaled int8, last tokens of slots. */
void test_decoder_rows(bench *on);

#endif
