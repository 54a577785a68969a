/*
 * bert.h - a small BERT with random weights, built in memory.
 *
 * The weights of its linears are int8 values times scales, so that the float, the fake-quantized
 * and the int8 model are the same model: they differ only in how the weights are stored.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_LIB_MODELS_BERT_H
#define FT_TESTS_LIB_MODELS_BERT_H

#include "runtime/families/family.h"
#include "runtime/graph/lower.h"

typedef struct test_bert {
    ft_config config;
    ft_weight *weight;
    bool *quantizable; /* [nweight] */
    int nweight;
    ft_plan graph;
} test_bert;

/* Two layers with all features of BERT: token types, pooler, classifier, embedding. */
ft_config test_bert_config(int32_t hidden, int32_t heads, int32_t ffn);

/* Weights of `config`, stored as plans of `mode` expect them; the same seed gives the same model.
 */
void test_bert_make(test_bert *out, const ft_config *config, ft_mode mode, uint64_t seed);
void test_bert_free(test_bert *model);

/* The plan of `graph`, checked; stops the test when there is none. */
ft_plan test_lower(const ft_plan *graph, const ft_lower_options *how);

#endif
