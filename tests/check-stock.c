/*
 * check-stock.c - the values and weights of check.t, named for what they are.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/check.h"

#include <math.h>

static const float scales[16] = { 1 };

ft_value check_values[VALUES] = {
    [IDS] = { "ids", FT_TOKENS, 1, FT_I32, .point = false },
    [IDS_2] = { "ids_2", FT_TOKENS, 2, FT_I32, .point = false },
    [IDS_S] = { "ids_s", FT_SEQUENCES, 1, FT_I32, .point = false },
    [X] = { "x", FT_TOKENS, 8, FT_F32, .point = true },
    [Y] = { "y", FT_TOKENS, 8, FT_F32, .point = false },
    [X4] = { "x4", FT_TOKENS, 4, FT_F32, .point = false },
    [X_S] = { "x_s", FT_SEQUENCES, 8, FT_F32, .point = false },
    [CODES] = { "codes", FT_TOKENS, 8, FT_I8, 0.5f, .point = true },
    [CODES_4] = { "codes_4", FT_TOKENS, 4, FT_I8, 0.5f, .point = true },
    [CODES_S] = { "codes_s", FT_SEQUENCES, 8, FT_I8, 0.5f, .point = true },
    [FAKE] = { "fake", FT_TOKENS, 8, FT_F32, 0.5f, .point = true },
    [FAKE_4] = { "fake_4", FT_TOKENS, 4, FT_F32, 0.5f, .point = true },
    [UNSCALED] = { "unscaled", FT_TOKENS, 8, FT_I8, 0.0f, .point = true },
    [NAN_SCALE] = { "nan_scale", FT_TOKENS, 8, FT_I8, (float) NAN, .point = true },
    [PROBS] = { "probs", FT_TOKENS, 1, FT_F32, 0.0f, .point = true, .inner = true },
    [WIDE_Q] = { "wide_q", FT_TOKENS, 2050, FT_I8, 0.1f, .point = true },
    [H] = { "h", FT_TOKENS, 8, FT_F16, .point = false },
    [H4] = { "h4", FT_TOKENS, 4, FT_F16, .point = false },
    [B4] = { "b4", FT_TOKENS, 4, FT_BF16, .point = false },
    [DEEP_Q] = { "deep_q", FT_TOKENS, 65537, FT_I8, 0.1f, .point = true },
    [DYNAMIC] = { "dynamic", FT_TOKENS, 8, FT_I8, .dynamic = true },
    [DYNAMIC_4] = { "dynamic_4", FT_TOKENS, 4, FT_I8, .dynamic = true },
    [TWO_SCALES] = { "two_scales", FT_TOKENS, 8, FT_I8, 0.5f, .dynamic = true },
    [WIDE] = { "wide", FT_TOKENS, 12, FT_F32, .point = false },
    [LOGITS] = { "logits", FT_SELECTED, 8, FT_F32, .point = false },
    [LOGITS_H] = { "logits_h", FT_SELECTED, 8, FT_F16, .point = false },
    [LOGITS_4] = { "logits_4", FT_SELECTED, 4, FT_F32, .point = false },
    [TOKEN] = { "token", FT_SELECTED, 1, FT_I32, .point = false },
    [TOKEN_2] = { "token_2", FT_SELECTED, 2, FT_I32, .point = false },
    [LOGPROB] = { "logprob", FT_SELECTED, 1, FT_F32, .point = false },
    [LOGPROB_H] = { "logprob_h", FT_SELECTED, 1, FT_F16, .point = false },
    [KEYS] = { "keys", FT_CACHE, 4, FT_F32, .state = true },
    [KEYS_H] = { "keys_h", FT_CACHE, 4, FT_F16, .state = true },
    [KEYS_I8] = { "keys_i8", FT_CACHE, 4, FT_I8, .state = true },
    [KEYS_8] = { "keys_8", FT_CACHE, 8, FT_F32, .state = true },
    [KEYS_I32] = { "keys_i32", FT_CACHE, 4, FT_I32, .state = true },
    [KEYS_SEATS] = { "keys_seats", FT_SEATS, 4, FT_F32, .state = true },
    [KEYS_RUN] = { "keys_run", FT_CACHE, 4, FT_F32, .state = false },
    [SCALES] = { "scales", FT_CACHE, 1, FT_F32, .state = true },
    [SCALES_H] = { "scales_h", FT_CACHE, 1, FT_F16, .state = true },
    [SCALES_4] = { "scales_4", FT_CACHE, 4, FT_F32, .state = true },
    [LAST] = { "last", FT_SEATS, 1, FT_I32, .state = true },
    [LAST_2] = { "last_2", FT_SEATS, 2, FT_I32, .state = true },
    [LAST_F] = { "last_f", FT_SEATS, 1, FT_F32, .state = true },
    [LAST_RUN] = { "last_run", FT_SEATS, 1, FT_I32, .state = false },
    [HISTORY] = { "history", FT_CONTEXTS, 1, FT_I32, .state = true },
    [HISTORY_2] = { "history_2", FT_CONTEXTS, 2, FT_I32, .state = true },
    [MEMORY] = { "memory", FT_MEMORY, 4, FT_F32, .state = true },
    [MEMORY_8] = { "memory_8", FT_MEMORY, 8, FT_F32, .state = true },
    [MEMORY_I8] = { "memory_i8", FT_MEMORY, 4, FT_I8, .state = true },
    [MEMORY_SCALES] = { "memory_scales", FT_MEMORY, 1, FT_F32, .state = true },
    [HISTORY_RUN] = { "history_run", FT_CONTEXTS, 1, FT_I32, .state = false },
    [SEEN] = { "seen", FT_SEATS, 8, FT_I32, .state = true },
    [SEEN_9] = { "seen_9", FT_SEATS, 9, FT_I32, .state = true },
    [SEEN_F] = { "seen_f", FT_SEATS, 8, FT_F32, .state = true },
    [SEEN_CONTEXTS] = { "seen_contexts", FT_CONTEXTS, 8, FT_I32, .state = true },
};

const ft_weight check_weights[WEIGHTS] = {
    [TABLE] = { "table", 10, 8, FT_F32, FT_ROW, NULL, NULL, NULL },
    [TABLE_F16] = { "table_f16", 20, 8, FT_F16, FT_ROW, NULL, NULL, NULL },
    [TABLE_6] = { "table_6", 10, 6, FT_F32, FT_ROW, NULL, NULL, NULL },
    [TABLE_I8] = { "table_i8", 10, 8, FT_I8, FT_ROW, NULL, NULL, NULL },
    [V8] = { "v8", 1, 8, FT_F32, FT_ROW, NULL, NULL, NULL },
    [V4] = { "v4", 1, 4, FT_F32, FT_ROW, NULL, NULL, NULL },
    [V8_F16] = { "v8_f16", 1, 8, FT_F16, FT_ROW, NULL, NULL, NULL },
    [V2] = { "v2", 1, 2, FT_F32, FT_ROW, NULL, NULL, NULL },
    [V2_F16] = { "v2_f16", 1, 2, FT_F16, FT_ROW, NULL, NULL, NULL },
    [V8_COLUMN] = { "v8_column", 8, 1, FT_F32, FT_ROW, NULL, NULL, NULL },
    [W] = { "w", 4, 8, FT_F32, FT_ROW, NULL, NULL, NULL },
    [W_BF16] = { "w_bf16", 4, 8, FT_BF16, FT_ROW, NULL, NULL, NULL },
    [W_6] = { "w_6", 4, 6, FT_F32, FT_ROW, NULL, NULL, NULL },
    [W_FAKE] = { "w_fake", 4, 8, FT_F32, FT_ROW, scales, NULL, NULL },
    [W_FAKE_COL4] = { "w_fake_col4", 4, 8, FT_F32, FT_COL4_4R2_8C, scales, NULL, NULL },
    [W_INT8] = { "w_int8", 4, 8, FT_I8, FT_COL4_4R2_8C, scales, NULL, NULL },
    [W_INT8_ROW] = { "w_int8_row", 4, 8, FT_I8, FT_ROW, scales, NULL, NULL },
    [W_UNSCALED] = { "w_unscaled", 4, 8, FT_I8, FT_COL4_4R2_8C, NULL, NULL, NULL },
    [W_DEEP] = { "w_deep", 4, 65537, FT_I8, FT_COL4_4R2_8C, scales, NULL, NULL },
};
