/*
 * check.h - shared by check.t: a fixed set of values and weights, and the cases that use them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_TESTS_OPS_CHECK_H
#define FT_TESTS_OPS_CHECK_H

#include "kernels/op.h"

/* Values, named by their kind; NO_VALUE is none. */
enum {
    NO_VALUE,
    IDS,
    IDS_2,
    IDS_S,
    X,
    Y,
    X4,
    X_S,
    CODES,
    CODES_4,
    CODES_S,
    FAKE,
    FAKE_4,
    UNSCALED,
    NAN_SCALE,
    PROBS,
    WIDE_Q,
    DEEP_Q,
    H,
    H4,
    B4,
    DYNAMIC,
    DYNAMIC_4,
    TWO_SCALES,
    WIDE,
    DEEP,
    LONG,
    LOGITS,
    LOGITS_H,
    LOGITS_4,
    TOKEN,
    TOKEN_2,
    LOGPROB,
    LOGPROB_H,
    KEYS,
    KEYS_H,
    KEYS_I8,
    KEYS_8,
    KEYS_I32,
    KEYS_SLOTS,
    KEYS_RUN,
    SCALES,
    SCALES_H,
    SCALES_4,
    LAST,
    LAST_2,
    LAST_F,
    LAST_RUN,
    HISTORY,
    HISTORY_2,
    HISTORY_RUN,
    MEMORY,
    MEMORY_8,
    MEMORY_I8,
    MEMORY_SCALES,
    SEEN,
    SEEN_9,
    SEEN_F,
    SEEN_CONTEXTS,
    BEAMS,
    HUGE_LOGITS,
    IMAGE,
    IMAGE_H,
    IMAGE_CODES,
    IMAGE_DYNAMIC,
    IMAGE_FAKE,
    IMAGE_T,
    LARGE,
    LARGE_CODES,
    RESULT,
    RESULT_H,
    RESULT_B,
    RESULT_CODES,
    RESULT_DYNAMIC,
    RESULT_T,
    IMAGES,
    IMAGES_H,
    PATCHES,
    PATCHES_H,
    PATCH_CODES,
    PATCH_DYNAMIC,
    VALUES
};

enum {
    NO_WEIGHT,
    TABLE,
    TABLE_F16,
    TABLE_6,
    TABLE_I8,
    V8,
    V4,
    V8_F16,
    V8_COLUMN,
    V2,
    V2_F16,
    W,
    W_BF16,
    W_6,
    W_FAKE,
    W_FAKE_COL4,
    W_INT8,
    W_INT8_ROW,
    W_UNSCALED,
    W_DEEP,
    W_U4,
    W_U8,
    W_U8_6,
    W_U8_ROW,
    W_U8_48,
    W_U8_BELOW,
    W_U8_BARE,
    W_U8_SCALED,
    W_I8_PANELS,
    W_DEEP_U4,
    W_DEEP_U4_ROW,
    W_DEEP_U4_LONG,
    W_DEEP_CODES,
    W_LONG_CODES,
    W_LONG_U8,
    K,
    K_BF16,
    K_10,
    K_FAKE,
    K_INT8,
    K_INT8_ROW,
    K_U4,
    K_U8,
    K_U8_ROW,
    K_U8_48,
    K_U8_BARE,
    K_DEEP,
    K_DEEP_U8,
    K_DEEP_U8_ROW,
    K_DEEP_U8_LONG,
    K_DEEP_CODES,
    K_MANY,
    WEIGHTS
};

extern ft_value check_values[VALUES];
extern const ft_weight check_weights[WEIGHTS];

/* Indices into check_values and check_weights. */
typedef struct a_case {
    ft_op_kind kind;
    int in[FT_MAX_IN], out, quantized, inner, weight[FT_MAX_WEIGHTS], heads;
    const char *sentence, *why; /* the noun phrase of the sentence; the message, or NULL */
    int second, state[FT_MAX_STATES], kv_heads; /* last, because most operations have none */
    ft_norm_kind norm;
    bool cross_kv;
    int window;
    float embed_scale; /* 0: 1 */
    int32_t position_offset;
    const ft_conv *conv;
    int32_t prefix_tokens;
} a_case;

/*
 * Operations of encoders, of decoders, convolutions, and operations that turn images into
 * sequences; each list ends with a case that has no sentence.
 */
extern const a_case check_cases[], check_decoder_cases[], check_conv_cases[], check_image_cases[];

#endif
