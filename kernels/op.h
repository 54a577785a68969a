/*
 * op.h - what a plan is made of: values (matrices), weights, and operations on them.
 *
 * A plan is a flat list of operations on named matrices.  Rows are the tokens of a run, packed
 * without padding, or its sequences; columns are fixed.  Operations know nothing of models.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_OP_H
#define FT_KERNELS_OP_H

#include "kernels/activation.h"
#include "kernels/count.h"
#include "runtime/ft.h"

typedef enum ft_op_kind {
#define X(NAME, name) FT_OP_##NAME,
#include "kernels/ops.def"
#undef X
    FT_OP_KINDS
} ft_op_kind;

/* "linear", "attention", ... */
const char *ft_op_name(ft_op_kind kind);

/* "none", "gelu", "gelu_codes", "gelu_tanh", "relu", "tanh", "silu"; parse is false for other words. */
const char *ft_activation_name(ft_activation activation);
bool ft_activation_parse(const char *name, ft_activation *out);

typedef enum ft_rows { FT_TOKENS, FT_SEQUENCES } ft_rows;
typedef enum ft_pooling { FT_POOL_FIRST, FT_POOL_MEAN } ft_pooling;

enum { FT_NAME = 64, FT_MAX_IN = 3, FT_MAX_WEIGHTS = 3 };

/* One matrix of a plan. */
typedef struct ft_value {
    char name[FT_NAME]; /* "layer.3.ffn.gelu": in dumps, in errors and in amax.tsv */
    ft_rows rows;
    int32_t cols;
    ft_dtype dtype;
    float scale;   /* 0: real values; else codes (in int8 or float): real value = scale * code */
    bool point;    /* calibration observes it, int8 quantizes it */
    bool inner;    /* exists only inside one operation: is observed, has no memory and no scale */
    bool keep;     /* readable after the run: its memory is not reused */
    size_t offset; /* bytes into the arena */
} ft_value;

/* One parameter matrix.  `data` and `scale` are borrowed: from the mapped file or the model. */
typedef struct ft_weight {
    char name[FT_NAME];
    size_t rows, cols; /* a vector has one row */
    ft_dtype dtype;
    ft_layout layout;
    const float *scale; /* [rows], codes (int8, or float when faked); NULL: real values */
    const void *data;   /* 64-byte aligned */
    const void *tiles;  /* the same codes in an order of the device's own; NULL: there is none */
} ft_weight;

typedef struct ft_attr {
    float eps;                /* NORM */
    ft_activation activation; /* LINEAR, ACTIVATE */
    int32_t heads;            /* ATTENTION */
    float softmax_scale;      /* ATTENTION: scores are multiplied by it */
    ft_pooling pooling;       /* POOL */
} ft_attr;

/* One step of a plan.  Indices into the plan's values and weights; -1 = none. */
typedef struct ft_op {
    ft_op_kind kind;
    int16_t in[FT_MAX_IN];
    int16_t out;   /* the result in float */
    int16_t codes; /* the result quantized with that value's scale; NORM may write both */
    int16_t inner; /* ATTENTION: the probabilities; amax lists hold them, int8 plans do not ask */
    int16_t weight[FT_MAX_WEIGHTS];
    ft_attr attr;
} ft_op;

/* What a run promises to its caller: the value that holds the output of this name. */
typedef struct ft_output {
    char name[FT_NAME];
    int value;
} ft_output;

enum { FT_MAX_OUTPUTS = 4 };

typedef struct ft_plan {
    ft_value *value;
    ft_op *op;
    const ft_weight *weight; /* borrowed from the model */
    int nvalue, nop, nweight, noutput;
    ft_output output[FT_MAX_OUTPUTS];
    size_t arena; /* bytes for the limits that ft_plan_layout() was given */
} ft_plan;

/* The sequences of one run; rows start[i] .. start[i + 1] - 1 are sequence i. */
typedef struct ft_batch {
    size_t tokens, sequences;
    size_t longest;       /* rows of the longest sequence */
    const int32_t *start; /* [sequences + 1] */
} ft_batch;

/*
 * Check shapes, dtypes and scales of one operation against its rule, before any backend sees it.
 * `what` (a file name) opens the error text, which names the operation and its values.
 */
FT_MUST_USE ft_status ft_op_check(const ft_plan *plan, const ft_op *op, const char *what,
                                  ft_error *err);

#endif
