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
#include "kernels/groupwise.h"
#include "kernels/sampling_params.h"
#include "kernels/count.h"
#include "runtime/ft.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

typedef enum ft_op_kind {
#define X(NAME, ...) FT_OP_##NAME,
#include "kernels/ops.def"
#undef X
    FT_NUM_OP_KINDS
} ft_op_kind;

/* "linear", "attention", ... */
const char *ft_op_name(ft_op_kind kind);

/* ---- Properties: the columns of ops.def ----------------------------------------------------- */

/* Which operands are read as quantized values, where these have a scale. */
typedef enum ft_reads_kind {
    FT_READS_FLOATS,    /* none */
    FT_READS_QUANTIZED, /* the first, always */
    FT_READS_AS_WEIGHT, /* the first, where the weight is quantized by row */
    FT_READS_STATIC,    /* all, unless each row has a scale of its own */
    FT_READS_RESIDUAL,  /* the second, of an int8 residual stream */
} ft_reads_kind;

/* What results can be: floats, quantized values, both at once; with a scale a row. */
enum { FT_CAN_FLOATS = 1, FT_CAN_QUANTIZE = 2, FT_CAN_BOTH = 4, FT_CAN_DYNAMIC = 8 };

typedef enum ft_writes_kind {
    FT_WRITES_OTHER = 0, /* nothing, or what the operation's own rule says */
    FT_WRITES_FLOATS = FT_CAN_FLOATS,
    FT_WRITES_QUANTIZED = FT_CAN_QUANTIZE | FT_CAN_DYNAMIC,
    FT_WRITES_EITHER = FT_CAN_FLOATS | FT_CAN_QUANTIZE, /* of floats multiplied, floats alone */
    FT_WRITES_EITHER_DYNAMIC = FT_WRITES_EITHER | FT_CAN_DYNAMIC,
    FT_WRITES_BOTH = FT_WRITES_EITHER_DYNAMIC | FT_CAN_BOTH,
} ft_writes_kind;

/* How floats of operands and results may be stored beside quantized values. */
typedef enum ft_storage_kind {
    FT_STORAGE_ANY,     /* each in a precision of its own */
    FT_STORAGE_ONE,     /* one precision for all, where operands are floats */
    FT_STORAGE_BOUNDED, /* as ANY; and in decoders their magnitudes fit F16 */
} ft_storage_kind;

/* What an operation computes and moves beside the rows of its operands and results: op_cost.c. */
typedef enum ft_work_kind {
    FT_WORK_ROWS,        /* nothing */
    FT_WORK_TABLE,       /* as many rows of its weights as there are tokens */
    FT_WORK_MATRIX,      /* each row by all of a weight */
    FT_WORK_CONV,        /* each window by all of a weight */
    FT_WORK_ATTENTION,   /* each row of a sequence with each other one; has heads */
    FT_WORK_CACHE_WRITE, /* writes a row of keys and values for each token; has heads */
    FT_WORK_CACHE_READ,  /* each row with all keys and values that it attends to; has heads */
} ft_work_kind;

/* In which runs it has something to do. */
typedef enum ft_runs_kind {
    FT_RUNS_ALWAYS,
    FT_RUNS_NEW_TOKENS,  /* not where every token is the one that was chosen before */
    FT_RUNS_SAMPLING,    /* where tokens are chosen */
    FT_RUNS_BEAM_SEARCH, /* where beams take a step */
} ft_runs_kind;

typedef struct ft_op_info {
    const char *name;
    ft_reads_kind reads;
    ft_writes_kind writes;
    ft_storage_kind storage;
    ft_work_kind work;
    ft_runs_kind runs;
} ft_op_info;

/* `kind` is below FT_NUM_OP_KINDS. */
const ft_op_info *ft_op_info_of(ft_op_kind kind);

/* Whether its columns are those of heads: attr.heads, attr.kv_heads. */
bool ft_op_has_heads(ft_op_kind kind);

/* Whether it reads or writes keys and values that live from run to run. */
bool ft_op_uses_cache(ft_op_kind kind);

/* Whether a run of this sort has nothing to do for it. */
bool ft_op_is_idle(ft_op_kind kind, bool new_tokens, bool samples, bool searches);

/* ---- Attributes ----------------------------------------------------------------------------- */

/* "none", "gelu", "gelu_codes", "gelu_tanh", "relu", "tanh", "silu"; parse is false for other
 * words. */
const char *ft_activation_name(ft_activation activation);
bool ft_activation_parse(const char *name, ft_activation *out);

/* What the rows of a value are.  The last five exist in decoders only. */
typedef enum ft_rows {
    FT_TOKENS,         /* tokens of this run */
    FT_SEQUENCES,      /* sequences of this run */
    FT_SELECTED,       /* those tokens of this run that the caller wants results of */
    FT_SLOTS,          /* sequences that the session remembers: what it knows of them */
    FT_SLOT_POSITIONS, /* tokens of all seats: row seat * context + position */
    FT_KV_CACHE,       /* tokens that the cache has room for: kernels/kv_cache.h */
    FT_CROSS_KV, /* tokens of sources that the memory has room for, in pages like the cache's */
    FT_NUM_ROW_KINDS
} ft_rows;

/* "T", "S", ...: in dumps. */
const char *ft_rows_name(ft_rows rows);

typedef enum ft_pooling { FT_POOL_FIRST, FT_POOL_MEAN } ft_pooling;

/* (x - mean) / deviation * weight + bias, or x / root of the mean square * weight. */
typedef enum ft_norm_kind { FT_NORM_LAYER, FT_NORM_RMS } ft_norm_kind;

enum { FT_NAME = 64, FT_MAX_IN = 3, FT_MAX_WEIGHTS = 3, FT_MAX_STATES = 5 };

/* One matrix of a plan. */
typedef struct ft_value {
    char name[FT_NAME]; /* "layer.3.ffn.gelu": in dumps, in errors and in amax.tsv */
    ft_rows rows;
    int32_t cols;
    ft_dtype dtype;
    float scale;   /* 0: real values; else codes (in int8 or float): real value = scale * code */
    bool dynamic;  /* codes whose scale each run makes for each row: floats that lie behind them */
    bool point;    /* calibration observes it, int8 quantizes it */
    bool state;    /* lives from run to run: has memory of its own and no producer */
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
    const float *scale;    /* [rows], codes (int8, or float when faked); NULL: real values, or: */
    ft_groupwise blocks;   /* codes with a scale for each group: U4 or U8 in FT_PANEL32 */
    const void *data;      /* 64-byte aligned */
    const void *prepacked; /* the same codes in an order of the device's own; NULL: there is none */
} ft_weight;

/* Bytes of its data. */
size_t ft_weight_bytes(const ft_weight *weight);

/*
 * How an image lies in its row: channel by channel, [channels, height, width], or pixel by pixel
 * with their channels side by side, [height, width, channels].
 */
typedef enum ft_image_layout { FT_IMAGE_NCHW, FT_IMAGE_NHWC } ft_image_layout;

/*
 * A convolution of images [sequences, channels * height * width] with the weights [outputs,
 * kernel rows * kernel columns * channels], channels innermost; results are [sequences, outputs *
 * rows * columns].  Pairs are of rows and of columns.
 */
typedef struct ft_conv {
    int32_t channels, height, width; /* of the input */
    int32_t kernel[2], stride[2], padding[2], dilation[2];
    int32_t zero; /* of codes: the one that stands for 0, and that is padded with */
    bool clamps;  /* what the activation gives is cut to low .. high */
    float low, high;
    ft_image_layout in_layout, out_layout; /* of the images, and of the results */
} ft_conv;

/*
 * What sizes of images, and all other lengths, are at most: nothing that is computed with them in
 * 32 bits can overflow.
 */
enum { FT_CONV_MAX_SIZE = 1 << 24, FT_CONV_MAX_WINDOW = 32767 };

/* Rows (which 0) or columns (1) of the result; below 1: the kernel does not fit. */
FT_HOST_DEVICE int32_t ft_conv_out_size(const ft_conv *conv, int which)
{
    int32_t size = which == 0 ? conv->height : conv->width;
    int32_t n_tokens = conv->dilation[which] * (conv->kernel[which] - 1) + 1;
    int32_t room = size + 2 * conv->padding[which] - n_tokens;
    return room < 0 ? 0 : room / conv->stride[which] + 1;
}

/* Columns of an image, channel by channel; and of a patch that is cut from it. */
FT_HOST_DEVICE int64_t ft_conv_image_size(const ft_conv *conv)
{
    return (int64_t) conv->channels * conv->height * conv->width;
}

FT_HOST_DEVICE int64_t ft_conv_gemm_k(const ft_conv *conv)
{
    return (int64_t) conv->channels * conv->kernel[0] * conv->kernel[1];
}

/* Rows of a sequence of patches. */
FT_HOST_DEVICE int64_t ft_patch_sequence_length(const ft_conv *conv, int32_t prefix_tokens)
{
    return prefix_tokens + (int64_t) ft_conv_out_size(conv, 0) * ft_conv_out_size(conv, 1);
}

typedef struct ft_attr {
    ft_conv conv;             /* CONV; PATCHES: kernel = stride, nothing is padded */
    int32_t prefix_tokens;    /* PATCHES, PLACE: rows of each sequence before its patches */
    float eps;                /* NORM, HEAD_NORM */
    ft_norm_kind norm;        /* NORM */
    ft_activation activation; /* LINEAR, CONV, ACTIVATE, GATE */
    int32_t heads;            /* ATTENTION, STORE, ATTEND: of queries; HEAD_NORM */
    int32_t kv_heads;         /* STORE, ATTEND: of keys and values; divides heads */
    int32_t window;      /* ATTEND: keys that a query sees, itself included; 0: all before it */
    float softmax_scale; /* ATTENTION, ATTEND: scores are multiplied by it */
    bool cross_kv;       /* STORE, ATTEND: of the memory instead of the cache; nothing is causal */
    ft_pooling pooling;  /* POOL */
    float embed_scale;   /* EMBED: rows of words are multiplied by it */
    int32_t position_offset; /* EMBED: of positions that nobody gives: offset + place in the text */
    /* STORE: rotary frequencies stretch for sequences longer than this many tokens; 0: never */
    int32_t rope_positions;
    float rope_theta, rope_factor;
} ft_attr;

/* What an operation reads and writes from run to run: op->state[]. */
enum {
    FT_STATE_KEYS = 0,   /* STORE writes, ATTEND reads: [cache, kv_heads * head_size] ... */
    FT_STATE_VALUES,     /* ... the same for values ... */
    FT_STATE_KEY_SCALES, /* ... and where they are int8: F32 [cache, kv_heads]; else -1 */
    FT_STATE_VALUE_SCALES,
    FT_STATE_CACHE_INDIRECTION, /* ATTEND, or -1: I32 [contexts, 1], ft_batch.lanes; BEAM writes */
    FT_STATE_LAST_TOKEN = 0, /* EMBED reads, CHOOSE, BEAM: I32 [seats, 1], the token chosen last */
    FT_STATE_HISTORY, /* NOTE, CHOOSE, BEAM: I32 [contexts, 1], all tokens of a seat in order */
    FT_STATE_TOKEN_COUNTS, /* NOTE, CHOOSE: I32 [seats, vocabulary], kernels/sampling_params.h */
    FT_STATE_BEAMS = 2,    /* BEAM: I32 [seats, FT_BEAM_WORDS], ft_beam of kernels/beam_search.h */
    FT_STATE_FINISHED,     /* BEAM: I32 [contexts, 1], new tokens of finished texts */
};

/* One step of a plan.  Indices into the plan's values and weights; -1 = none. */
typedef struct ft_op {
    ft_op_kind kind;
    int16_t in[FT_MAX_IN];
    int16_t out;    /* the result in float */
    int16_t codes;  /* the result quantized with that value's scale; NORM may write both */
    int16_t inner;  /* ATTENTION: the probabilities; amax lists hold them, int8 plans do not ask */
    int16_t second; /* NORM: x + residual, which others read too; CHOOSE: log-probabilities */
    int16_t state[FT_MAX_STATES];
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

    /*
     * The first operations of an encoder-decoder read a source text and leave the memory behind,
     * once; the others are run for the tokens of the target.  0: all operations are one run.
     */
    int encoder_ops;

    /*
     * A row of a float GEMM must not depend on how many rows there are, or what is generated for
     * one sequence would depend on the others.  Lowering sets it in plans with a KV cache.
     */
    bool batch_invariant;

    struct ft_fusion_group *group; /* [ngroup], in order: kernels/fused_ops.h */
    int ngroup;
} ft_plan;

/* The sequences of one run; rows start[i] .. start[i + 1] - 1 are sequence i. */
typedef struct ft_batch {
    size_t tokens, sequences;
    size_t longest;       /* rows of the longest sequence */
    const int32_t *start; /* [sequences + 1] */

    /*
     * Plans with a cache; zeros elsewhere.  Row r of sequence i stands at position
     * past[i] + r - start[i] of its text.
     */
    const int32_t *seq_id;   /* [tokens]: the sequence of each row */
    const int32_t *n_past;   /* [sequences]: tokens that the cache holds of it before this run */
    const int32_t *n_tokens; /* [sequences]: tokens of its text known when the run was asked for */
    const int32_t *slot;     /* [sequences] */
    const int32_t *pages;    /* [sequences, max_pages]: pages of each; unused ones are 0 */
    size_t max_pages;        /* of a sequence */
    size_t context;          /* most tokens that the cache holds of a sequence after this run */
    bool step;               /* every sequence has one row: the token that was chosen before */
    size_t selected;         /* rows that results are wanted of ... */
    const int32_t *selected_rows;     /* ... [selected], ascending */
    const ft_sampling_params *choice; /* [selected]: a token is chosen for each; NULL: none is */

    /* Encoder-decoders. */
    bool source;                   /* a run of the first operations: rows are tokens of sources */
    const int32_t *cross_kv;       /* [sequences]: tokens of each one's source */
    const int32_t *cross_kv_pages; /* [sequences, max_cross_kv_pages] */
    size_t max_cross_kv_pages;

    /*
     * Beams: so many neighbouring sequences, of neighbouring seats, are `lanes` of one text.  The
     * token at a position of a lane lies in the pages of the lane that FT_STATE_CACHE_INDIRECTION
     * names; their source is one, so that `memory` and `cross_kv_pages` are the same for all.  0 or
     * 1: every sequence has its own.
     */
    size_t lanes;
    const struct ft_beam_params
        *beams; /* [groups]: texts whose beams take a step; NULL: none does */
    size_t groups;
} ft_batch;

/* Rows of this run, of the kinds that differ from run to run. */
static inline size_t ft_batch_rows(const ft_batch *batch, ft_rows rows)
{
    return rows == FT_TOKENS     ? batch->tokens
           : rows == FT_SELECTED ? batch->selected
                                 : batch->sequences;
}

/* The operations of a run: first .. end - 1. */
static inline int ft_batch_first_op(const ft_plan *plan, const ft_batch *batch)
{
    return batch->source ? 0 : plan->encoder_ops;
}

static inline int ft_batch_end_op(const ft_plan *plan, const ft_batch *batch)
{
    return batch->source ? plan->encoder_ops : plan->nop;
}

/* The value that names an operation to people: its result, or what it reads first where it has
 * none; -1.
 */
static inline int ft_op_label_value(const ft_op *op)
{
    return op->out >= 0     ? op->out
           : op->codes >= 0 ? op->codes
           : op->in[0] >= 0 ? op->in[0]
                            : op->in[1];
}

/* The value whose elements are counted where it runs in a plan that observes; -1. */
static inline int ft_op_observed(const ft_op *op)
{
    return op->kind == FT_OP_OBSERVE ? op->in[0] : op->inner;
}

/* Cost of an operation in one forward pass. */
typedef struct ft_op_cost {
    double int8_ops,
        float_flops; /* multiplications and additions of GEMMs and attention, by input type */
    double bytes;    /* each operand read or written once */
} ft_op_cost;
ft_op_cost ft_op_cost_of(const ft_plan *plan, const ft_op *op, const ft_batch *batch);

/*
 * Check shapes, dtypes and scales of one operation against its rule, before any backend sees it.
 * `what` (a file name) opens the error text, which names the operation and its values.
 */
FT_MUST_USE ft_status ft_op_check(const ft_plan *plan, const ft_op *op, const char *what,
                                  ft_error *err);

#pragma GCC visibility pop

#endif
