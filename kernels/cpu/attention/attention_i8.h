/*
 * attention_i8.h - int8 self-attention over sequences that are packed without padding.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CPU_ATTENTION_ATTENTION_I8_H
#define FT_KERNELS_CPU_ATTENTION_ATTENTION_I8_H

#include "kernels/cpu/base/isa.h"

/*
 * For each sequence and each head, over the tokens of that sequence:
 *
 *   score = exact int32 sum of q . k
 *   p     = quantized softmax(score * score_scale), P its sum: kernels/softmax.h
 *   y     = exact int32 sum of p . v, times value_scale / P: float, or int8 with out_inverse
 *
 * Every instruction set and every number of threads gives the same bytes.
 *
 *   q, k, v  [tokens, heads * head_size] int8 in -127..127, rows *_stride bytes apart; they may
 *            be column ranges of one matrix
 *   y        [tokens, heads * head_size] float, or int8 if out_inverse > 0, rows y_stride elements
 *            apart; must not overlap the inputs
 *
 * Exact scores in float need head_size <= 1024; |sum| < 2^31 needs lengths <= 130000. The caller
 * owns all memory.
 */
typedef struct ft_attention_i8 {
    ft_isa isa; /* from ft_cpu_isa() */
    int threads;
    size_t sequences, heads, head_size;
    const int32_t
        *starts; /* [sequences + 1] first token of each sequence, then the number of tokens */
    const int8_t *q, *k, *v;
    size_t q_stride, k_stride, v_stride;
    float score_scale; /* scale of q * scale of k * softmax scale; positive */
    float value_scale; /* scale of v */
    float out_inverse;
    void *y;
    size_t y_stride;
    void *scratch; /* 64-byte aligned, uninitialized */
    size_t scratch_bytes;
} ft_attention_i8;

/*
 * Scratch bytes that suffice for sequences of at most `length` tokens with at most that many
 * threads, on every instruction set; SIZE_MAX if that overflows a size_t.
 */
size_t ft_attention_i8_scratch(size_t length, size_t head_size, int threads);

void ft_attention_i8_run(const ft_attention_i8 *attention);

#endif
