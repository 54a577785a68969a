/*
 * check-t.c - the rule of each operation: what it takes, and what it says about anything else.
 *
 * One line a case: an operation over a small stock of values and weights, and the reason for which
 * it must be refused, or NULL.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/op.h"
#include "runtime/mem.h"
#include "tests/tap/tap.h"

static const float scales[16] = { 1 };

/* ---- The stock ---------------------------------------------------------------------------- */

/* Values, by what they are; NO_VALUE is none. */
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
    VALUES
};

static ft_value values[VALUES] = {
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
    W,
    W_BF16,
    W_6,
    W_FAKE,
    W_FAKE_COL4,
    W_INT8,
    W_INT8_ROW,
    W_UNSCALED,
    W_DEEP,
    WEIGHTS
};

static const ft_weight weights[WEIGHTS] = {
    [TABLE] = { "table", 10, 8, FT_F32, FT_ROW, NULL, NULL, NULL },
    [TABLE_F16] = { "table_f16", 20, 8, FT_F16, FT_ROW, NULL, NULL, NULL },
    [TABLE_6] = { "table_6", 10, 6, FT_F32, FT_ROW, NULL, NULL, NULL },
    [TABLE_I8] = { "table_i8", 10, 8, FT_I8, FT_ROW, NULL, NULL, NULL },
    [V8] = { "v8", 1, 8, FT_F32, FT_ROW, NULL, NULL, NULL },
    [V4] = { "v4", 1, 4, FT_F32, FT_ROW, NULL, NULL, NULL },
    [V8_F16] = { "v8_f16", 1, 8, FT_F16, FT_ROW, NULL, NULL, NULL },
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

/* ---- The cases ---------------------------------------------------------------------------- */

/* Indices into the stock. */
typedef struct a_case {
    ft_op_kind kind;
    int in[FT_MAX_IN], out, codes, inner, weight[FT_MAX_WEIGHTS], heads;
    const char *sentence, *why; /* why it is refused, or NULL */
} a_case;

/* clang-format off */
static const a_case cases[] = {
#define OP FT_OP_EMBED
    { OP, { IDS, IDS }, Y, 0, 0, { TABLE, TABLE_F16 }, 0, "ids and positions suffice", NULL },
    { OP, { IDS, IDS, IDS }, Y, 0, 0, { TABLE, TABLE_F16, TABLE }, 0, "types may be there", NULL },
    { OP, { X, IDS }, Y, 0, 0, { TABLE, TABLE }, 0, "float ids",
      "ids, positions and types must be int32, one a token" },
    { OP, { IDS }, Y, 0, 0, { TABLE, TABLE }, 0, "no positions",
      "indices and their table must both be there or both be absent" },
    { OP, { IDS, IDS_2 }, Y, 0, 0, { TABLE, TABLE }, 0, "two positions a token",
      "ids, positions and types must be int32, one a token" },
    { OP, { IDS_S, IDS }, Y, 0, 0, { TABLE, TABLE }, 0, "one id a sequence",
      "ids, positions and types must be int32, one a token" },
    { OP, { IDS, IDS, X }, Y, 0, 0, { TABLE, TABLE, TABLE }, 0, "float types",
      "ids, positions and types must be int32, one a token" },
    { OP, { IDS, IDS }, Y, 0, 0, { TABLE }, 0, "no table of positions",
      "indices and their table must both be there or both be absent" },
    { OP, { IDS, IDS }, Y, 0, 0, { TABLE, TABLE_6 }, 0, "tables of two widths",
      "the tables are not float matrices of one width" },
    { OP, { IDS, IDS }, Y, 0, 0, { TABLE_I8, TABLE }, 0, "a table of codes",
      "the tables are not float matrices of one width" },
    { OP, { IDS, IDS, IDS }, Y, 0, 0, { TABLE, TABLE }, 0, "types without a table",
      "indices and their table must both be there or both be absent" },
    { OP, { IDS, IDS }, Y, 0, 0, { TABLE, TABLE, TABLE }, 0, "a table without types",
      "indices and their table must both be there or both be absent" },
    { OP, { IDS, IDS, IDS }, Y, 0, 0, { TABLE, TABLE, TABLE_6 }, 0, "a narrow table of types",
      "the tables are not float matrices of one width" },
    { OP, { IDS, IDS }, X4, 0, 0, { TABLE, TABLE }, 0, "a narrow result",
      "the float result has another shape or dtype" },
    { OP, { IDS, IDS }, 0, CODES, 0, { TABLE, TABLE }, 0, "codes as the result",
      "cannot write codes" },
    { OP, { IDS, IDS }, X_S, 0, 0, { TABLE, TABLE }, 0, "a row a sequence",
      "the float result has another shape or dtype" },
#undef OP
#define OP FT_OP_NORM
    { OP, { X }, Y, 0, 0, { V8, V8 }, 0, "floats to floats", NULL },
    { OP, { H, X }, H, CODES, 0, { V8, V8 }, 0, "halves plus floats, to halves and codes", NULL },
    { OP, { X, X }, Y, CODES, 0, { V8, V8 }, 0, "a residual, floats and codes at once", NULL },
    { OP, { X, CODES }, 0, CODES, 0, { V8, V8 }, 0, "a residual of codes, codes alone", NULL },
    { OP, { X_S, FAKE }, X_S, 0, 0, { V8, V8 }, 0, "a residual of other rows",
      "the residual has another shape or dtype" },
    { OP, { CODES }, Y, 0, 0, { V8, V8 }, 0, "codes as the input",
      "reads something that is not float" },
    { OP, { 0 }, Y, 0, 0, { V8, V8 }, 0, "no input", "reads something that is not float" },
    { OP, { X, X4 }, Y, 0, 0, { V8, V8 }, 0, "a narrow residual",
      "the residual has another shape or dtype" },
    { OP, { X, UNSCALED }, Y, 0, 0, { V8, V8 }, 0, "a residual of codes without scale",
      "the residual has another shape or dtype" },
    { OP, { X }, Y, 0, 0, { V8, V4 }, 0, "a short bias",
      "weight and bias must be float vectors as wide as the input" },
    { OP, { X }, Y, 0, 0, { V8_F16, V8 }, 0, "an F16 weight",
      "weight and bias must be float vectors as wide as the input" },
    { OP, { X }, Y, 0, 0, { V8 }, 0, "no bias",
      "weight and bias must be float vectors as wide as the input" },
    { OP, { X }, Y, 0, 0, { V8_COLUMN, V8 }, 0, "a column as the weight",
      "weight and bias must be float vectors as wide as the input" },
    { OP, { X }, 0, 0, 0, { V8, V8 }, 0, "no result", "has no result" },
    { OP, { X }, Y, UNSCALED, 0, { V8, V8 }, 0, "codes without scale",
      "the codes have another shape or dtype, or no scale" },
    { OP, { X }, Y, CODES_S, 0, { V8, V8 }, 0, "codes of other rows",
      "the codes have another shape or dtype, or no scale" },
    { OP, { X }, FAKE, 0, 0, { V8, V8 }, 0, "codes as the float result",
      "the float result has another shape or dtype" },
#undef OP
#define OP FT_OP_LINEAR
    { OP, { X }, X4, 0, 0, { W, V4 }, 0, "float by float", NULL },
    { OP, { X }, X4, 0, 0, { W_BF16 }, 0, "a bf16 weight, no bias", NULL },
    { OP, { FAKE }, X4, 0, 0, { W_FAKE, V4 }, 0, "codes in float to floats", NULL },
    { OP, { FAKE }, 0, FAKE_4, 0, { W_FAKE, V4 }, 0, "codes in float to codes in float", NULL },
    { OP, { CODES }, X4, 0, 0, { W_INT8, V4 }, 0, "int8 to floats", NULL },
    { OP, { CODES }, H4, 0, 0, { W_INT8, V4 }, 0, "int8 to halves", NULL },
    { OP, { FAKE }, H4, 0, 0, { W_FAKE, V4 }, 0, "codes in float to halves", NULL },
    { OP, { CODES }, B4, 0, 0, { W_INT8, V4 }, 0, "int8 to bf16",
      "cannot write floats of this precision" },
    { OP, { H }, H4, 0, 0, { W, V4 }, 0, "halves to halves", NULL },
    { OP, { H }, X4, 0, 0, { W, V4 }, 0, "halves to floats",
      "reads and writes floats of two precisions" },
    { OP, { CODES }, 0, CODES_4, 0, { W_INT8 }, 0, "int8 to int8, no bias", NULL },
    { OP, { X }, X4, 0, 0, { 0 }, 0, "no weight", "the weight is not as deep as the input is wide" },
    { OP, { 0 }, X4, 0, 0, { W }, 0, "no input", "the weight is not as deep as the input is wide" },
    { OP, { X }, X4, 0, 0, { W_6 }, 0, "a shallow weight",
      "the weight is not as deep as the input is wide" },
    { OP, { X }, X4, 0, 0, { W, V8 }, 0, "a long bias",
      "the bias must be a float vector, one value an output" },
    { OP, { CODES }, X4, 0, 0, { W }, 0, "codes by a float weight",
      "input and weight are not both float or both codes" },
    { OP, { X }, X4, 0, 0, { W_INT8 }, 0, "floats by an int8 weight",
      "input and weight are not both float or both codes" },
    { OP, { FAKE }, X4, 0, 0, { W_INT8 }, 0, "codes in float by an int8 weight",
      "input and weight are not both float or both codes" },
    { OP, { CODES }, X4, 0, 0, { W_FAKE }, 0, "int8 by codes in float",
      "input and weight are not both float or both codes" },
    { OP, { CODES }, X4, 0, 0, { W_INT8_ROW }, 0, "an int8 weight in rows",
      "input and weight are not both float or both codes" },
    { OP, { FAKE }, X4, 0, 0, { W_FAKE_COL4 }, 0, "codes in float in another order",
      "input and weight are not both float or both codes" },
    { OP, { CODES }, X4, 0, 0, { W_UNSCALED }, 0, "an int8 weight without scales",
      "input and weight are not both float or both codes" },
    { OP, { UNSCALED }, X4, 0, 0, { W_INT8 }, 0, "an int8 input without scale",
      "input and weight are not both float or both codes" },
    { OP, { NAN_SCALE }, X4, 0, 0, { W_INT8 }, 0, "an input whose scale is NaN",
      "input and weight are not both float or both codes" },
    { OP, { CODES }, X4, CODES_4, 0, { W_INT8 }, 0, "two results",
      "cannot write floats and codes at once" },
    { OP, { X }, 0, CODES_4, 0, { W }, 0, "floats to codes", "cannot write codes" },
    { OP, { CODES }, 0, FAKE_4, 0, { W_INT8 }, 0, "int8 to codes in float",
      "the codes have another shape or dtype, or no scale" },
    { OP, { FAKE }, 0, CODES_4, 0, { W_FAKE }, 0, "codes in float to int8",
      "the codes have another shape or dtype, or no scale" },
    { OP, { DEEP_Q }, X4, 0, 0, { W_DEEP }, 0, "more codes than int32 can sum",
      "the weight is deeper than the 65536 codes that int32 adds safely" },
    { OP, { X }, Y, 0, 0, { W }, 0, "a wide result",
      "the float result has another shape or dtype" },
    { OP, { X }, 0, 0, 0, { W }, 0, "no result", "has no result" },
#undef OP
#define OP FT_OP_ACTIVATE
    { OP, { X }, Y, 0, 0, { 0 }, 0, "floats to floats", NULL },
    { OP, { CODES }, Y, 0, 0, { 0 }, 0, "codes as the input", "reads something that is not float" },
    { OP, { X }, 0, CODES, 0, { 0 }, 0, "codes as the result", "cannot write codes" },
    { OP, { X }, X4, 0, 0, { 0 }, 0, "a narrow result",
      "the float result has another shape or dtype" },
#undef OP
#define OP FT_OP_ADD
    { OP, { X, X }, Y, 0, 0, { 0 }, 0, "floats and floats", NULL },
    { OP, { X, CODES }, Y, 0, 0, { 0 }, 0, "floats and codes", NULL },
    { OP, { H, X }, Y, 0, 0, { 0 }, 0, "halves and floats", NULL },
    { OP, { X, FAKE }, Y, 0, 0, { 0 }, 0, "floats and codes in float", NULL },
    { OP, { CODES, X }, Y, 0, 0, { 0 }, 0, "codes first", "reads something that is not float" },
    { OP, { X }, Y, 0, 0, { 0 }, 0, "one operand", "the residual has another shape or dtype" },
    { OP, { X, X_S }, Y, 0, 0, { 0 }, 0, "other rows", "the residual has another shape or dtype" },
    { OP, { X, IDS }, Y, 0, 0, { 0 }, 0, "integers", "the residual has another shape or dtype" },
    { OP, { X, X }, 0, CODES, 0, { 0 }, 0, "codes as the result", "cannot write codes" },
#undef OP
#define OP FT_OP_ATTENTION
    { OP, { X, X, X }, Y, 0, PROBS, { 0 }, 2, "floats to floats", NULL },
    { OP, { CODES, CODES, CODES }, 0, CODES, PROBS, { 0 }, 8, "int8 to int8", NULL },
    { OP, { FAKE, FAKE, FAKE }, Y, 0, PROBS, { 0 }, 1, "codes in float to floats", NULL },
    { OP, { X, X, X }, Y, 0, 0, { 0 }, 2, "no probabilities",
      "lacks queries or probabilities" },
    { OP, { 0, X, X }, Y, 0, PROBS, { 0 }, 2, "no queries", "lacks queries or probabilities" },
    { OP, { X_S, X_S, X_S }, X_S, 0, PROBS, { 0 }, 2, "queries of sequences",
      "lacks queries or probabilities" },
    { OP, { X, X, X }, Y, 0, X4, { 0 }, 2, "probabilities with memory",
      "lacks queries or probabilities" },
    { OP, { X, X, 0 }, Y, 0, PROBS, { 0 }, 2, "no values",
      "queries, keys and values differ in shape or dtype" },
    { OP, { X, X4, X }, Y, 0, PROBS, { 0 }, 2, "narrow keys",
      "queries, keys and values differ in shape or dtype" },
    { OP, { H, H, H }, H, 0, PROBS, { 0 }, 2, "halves to halves", NULL },
    { OP, { H, H, H }, Y, 0, PROBS, { 0 }, 2, "halves to floats",
      "reads and writes floats of two precisions" },
    { OP, { CODES, CODES, CODES }, H, 0, PROBS, { 0 }, 2, "codes to halves",
      "cannot write floats of this precision" },
    { OP, { CODES, CODES, FAKE }, Y, 0, PROBS, { 0 }, 2, "values of another dtype",
      "queries, keys and values differ in shape or dtype" },
    { OP, { FAKE, FAKE, X }, Y, 0, PROBS, { 0 }, 2, "values without scale",
      "queries, keys and values differ in shape or dtype" },
    { OP, { UNSCALED, UNSCALED, UNSCALED }, Y, 0, PROBS, { 0 }, 2, "codes without scale",
      "queries are neither floats nor codes with a scale" },
    { OP, { X, X, X }, Y, 0, PROBS, { 0 }, 3, "three heads of eight columns",
      "the heads do not divide the width" },
    { OP, { X, X, X }, Y, 0, PROBS, { 0 }, 0, "no heads", "the heads do not divide the width" },
    { OP, { WIDE_Q, WIDE_Q, WIDE_Q }, 0, WIDE_Q, PROBS, { 0 }, 2, "heads of 1025 codes",
      "the heads are wider than the 1024 codes whose sums are exact in float" },
    { OP, { CODES, CODES, CODES }, Y, CODES, PROBS, { 0 }, 2, "two results",
      "cannot write floats and codes at once" },
    { OP, { X, X, X }, 0, CODES, PROBS, { 0 }, 2, "floats to codes", "cannot write codes" },
    { OP, { CODES, CODES, CODES }, 0, FAKE, PROBS, { 0 }, 2, "int8 to codes in float",
      "the codes have another shape or dtype, or no scale" },
    { OP, { X, X, X }, X4, 0, PROBS, { 0 }, 2, "a narrow result",
      "the float result has another shape or dtype" },
#undef OP
#define OP FT_OP_QUANTIZE
    { OP, { X }, 0, CODES, 0, { 0 }, 0, "floats to int8", NULL },
    { OP, { X }, 0, FAKE, 0, { 0 }, 0, "floats to codes in float", NULL },
    { OP, { CODES }, 0, CODES, 0, { 0 }, 0, "codes as the input",
      "reads something that is not float" },
    { OP, { X }, Y, 0, 0, { 0 }, 0, "a float result", "cannot write floats" },
    { OP, { X }, 0, UNSCALED, 0, { 0 }, 0, "codes without scale",
      "the codes have another shape or dtype, or no scale" },
    { OP, { X }, 0, CODES_4, 0, { 0 }, 0, "narrow codes",
      "the codes have another shape or dtype, or no scale" },
    { OP, { X }, 0, 0, 0, { 0 }, 0, "no result", "has no result" },
#undef OP
#define OP FT_OP_DEQUANTIZE
    { OP, { CODES }, Y, 0, 0, { 0 }, 0, "int8 to floats", NULL },
    { OP, { FAKE }, Y, 0, 0, { 0 }, 0, "codes in float to floats", NULL },
    { OP, { X }, Y, 0, 0, { 0 }, 0, "floats as the input", "reads something that has no scale" },
    { OP, { PROBS }, Y, 0, 0, { 0 }, 0, "a value without memory",
      "reads something that has no scale" },
    { OP, { CODES }, 0, FAKE, 0, { 0 }, 0, "codes as the result", "cannot write codes" },
    { OP, { CODES }, X_S, 0, 0, { 0 }, 0, "other rows",
      "the float result has another shape or dtype" },
#undef OP
#define OP FT_OP_OBSERVE
    { OP, { X }, 0, 0, 0, { 0 }, 0, "floats", NULL },
    { OP, { CODES }, 0, 0, 0, { 0 }, 0, "codes", "observes what is not float" },
    { OP, { PROBS }, 0, 0, 0, { 0 }, 0, "a value without memory", "observes what is not float" },
    { OP, { X }, Y, 0, 0, { 0 }, 0, "a result", "cannot write anything" },
#undef OP
#define OP FT_OP_POOL
    { OP, { X }, X_S, 0, 0, { 0 }, 0, "tokens to sequences", NULL },
    { OP, { X_S }, X_S, 0, 0, { 0 }, 0, "sequences as the input",
      "reads something that is not float or not per token" },
    { OP, { CODES }, X_S, 0, 0, { 0 }, 0, "codes as the input",
      "reads something that is not float or not per token" },
    { OP, { X }, Y, 0, 0, { 0 }, 0, "tokens as the result",
      "the float result has another shape or dtype" },
    { OP, { X }, 0, CODES_S, 0, { 0 }, 0, "codes as the result", "cannot write codes" },
#undef OP
#define OP FT_OP_NORMALIZE
    { OP, { X_S }, X_S, 0, 0, { 0 }, 0, "floats to floats", NULL },
    { OP, { FAKE }, Y, 0, 0, { 0 }, 0, "codes as the input", "reads something that is not float" },
    { OP, { X }, 0, CODES, 0, { 0 }, 0, "codes as the result", "cannot write codes" },
#undef OP
};
/* clang-format on */

/* ------------------------------------------------------------------------------------------- */

/* Index 0 of the stock stands for none. */
static int16_t index_of(int stock)
{
    return (int16_t) (stock == 0 ? -1 : stock);
}

static ft_op op_of(const a_case *c)
{
    ft_op op = { .kind = c->kind,
                 .out = index_of(c->out),
                 .codes = index_of(c->codes),
                 .inner = index_of(c->inner),
                 .second = -1,
                 .attr = { .heads = c->heads } };
    for (int i = 0; i < FT_MAX_IN; i++)
        op.in[i] = index_of(c->in[i]);
    for (int i = 0; i < FT_MAX_WEIGHTS; i++)
        op.weight[i] = index_of(c->weight[i]);
    for (int i = 0; i < FT_MAX_STATES; i++)
        op.state[i] = -1;
    return op;
}

static void test_case(const ft_plan *plan, const a_case *c)
{
    ft_error err;
    ft_op op = op_of(c);
    ft_status status = ft_op_check(plan, &op, "m.ft", &err);
    const char *kind = ft_op_name(c->kind);
    if (c->why == NULL) {
        if (!ok(status == FT_OK, "%s takes: %s", kind, c->sentence))
            diag("%s", err.text);
        return;
    }
    int named = c->out != 0 ? c->out : c->codes != 0 ? c->codes : c->in[0];
    char expected[256];
    snprintf(expected, sizeof expected, "m.ft: %s %s: %s", kind,
             named == 0 ? "?" : values[named].name, c->why);
    is_str(status == FT_ESHAPE ? err.text : "no FT_ESHAPE", expected, "%s refuses: %s", kind,
           c->sentence);
}

int main(void)
{
    ft_plan plan = { .value = values, .weight = weights, .nvalue = VALUES, .nweight = WEIGHTS };
    int accepted[FT_OP_KINDS] = { 0 }, refused[FT_OP_KINDS] = { 0 };
    for (size_t i = 0; i < FT_COUNT(cases); i++) {
        test_case(&plan, &cases[i]);
        (cases[i].why == NULL ? accepted : refused)[cases[i].kind]++;
    }
    for (int kind = 0; kind < FT_OP_GATE; kind++)
        ok(accepted[kind] > 0 && refused[kind] > 0, "%s has cases of both sorts",
           ft_op_name((ft_op_kind) kind));

    ft_error err;
    ft_op op = {
        .kind = FT_OP_KINDS, .in = { X, -1, -1 }, .out = Y, .codes = -1, .inner = -1, .second = -1
    };
    is_int(ft_op_check(&plan, &op, "m.ft", &err), FT_ESHAPE, "an unknown operation is refused");
    is_str(err.text, "m.ft: unknown y: is no operation", "by its number's lack of a name");
    is_int(ft_op_check(&plan, &op, "m.ft", NULL), FT_ESHAPE, "nobody has to listen");
    return done_testing();
}
