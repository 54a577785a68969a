/*
 * op.h - plans: values (matrices), weights, and operations on them.
 *
 * A plan is a flat list of operations on named matrices.  Rows are the tokens of a batch, packed
 * without padding, or its sequences; the number of columns is fixed.  Operations do not depend on
 * the model.
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

/* ---- Properties: the columns of ops.def --------------------------------------------------- */

/* Which operands may be quantized values, i.e. values with a scale. */
typedef enum ft_reads_kind {
    FT_READS_FLOATS,    /* none */
    FT_READS_QUANTIZED, /* the first, always */
    FT_READS_AS_WEIGHT, /* the first, if the weight is quantized per row */
    FT_READS_STATIC,    /* all, but not with row scales (dynamic) */
    FT_READS_RESIDUAL,  /* the second, of an int8 residual stream */
} ft_reads_kind;

/*
 * Which results an operation can write: floats, quantized values, both at once; with row scales;
 * smoothed before they are quantized.
 */
enum {
    FT_CAN_FLOATS = 1,
    FT_CAN_QUANTIZE = 2,
    FT_CAN_BOTH = 4,
    FT_CAN_DYNAMIC = 8,
    FT_CAN_SMOOTH = 16,
};

typedef enum ft_writes_kind {
    FT_WRITES_OTHER = 0, /* none, or as the rule of the operation checks */
    FT_WRITES_FLOATS = FT_CAN_FLOATS,
    FT_WRITES_QUANTIZED = FT_CAN_QUANTIZE | FT_CAN_DYNAMIC | FT_CAN_SMOOTH,
    FT_WRITES_EITHER = FT_CAN_FLOATS | FT_CAN_QUANTIZE, /* GEMMs of floats: floats only */
    FT_WRITES_EITHER_DYNAMIC = FT_WRITES_EITHER | FT_CAN_DYNAMIC,
    FT_WRITES_BOTH = FT_WRITES_EITHER_DYNAMIC | FT_CAN_BOTH | FT_CAN_SMOOTH,
} ft_writes_kind;

/* Precision of float operands and results in plans with quantized values. */
typedef enum ft_storage_kind {
    FT_STORAGE_ANY,     /* each has its own precision */
    FT_STORAGE_ONE,     /* the same precision for all, if operands are float */
    FT_STORAGE_BOUNDED, /* as ANY, and magnitudes in decoders fit F16 */
} ft_storage_kind;

/* The cost of an operation besides reading operands and writing results: op_cost.c. */
typedef enum ft_work_kind {
    FT_WORK_ROWS,        /* nothing */
    FT_WORK_TABLE,       /* reads one row of its weights per token */
    FT_WORK_MATRIX,      /* multiplies each row by the weight */
    FT_WORK_CONV,        /* multiplies each im2col window by the weight */
    FT_WORK_ATTENTION,   /* each row attends to all rows of its sequence; has heads */
    FT_WORK_CACHE_WRITE, /* writes a row of keys and values for each token; has heads */
    FT_WORK_CACHE_READ,  /* each row attends to cached keys and values; has heads */
} ft_work_kind;

/* In which forward passes an operation is not idle. */
typedef enum ft_runs_kind {
    FT_RUNS_ALWAYS,
    FT_RUNS_NEW_TOKENS,  /* if the host supplies tokens: all but decode steps */
    FT_RUNS_SAMPLING,    /* if tokens are sampled */
    FT_RUNS_BEAM_SEARCH, /* if the batch has steps of beam search */
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

/* Whether it multiplies each row by a matrix, its first weight. */
bool ft_op_is_gemm(ft_op_kind kind);

/* Whether its columns are split into heads: attr.heads, attr.kv_heads. */
bool ft_op_has_heads(ft_op_kind kind);

/* Whether it reads or writes keys and values of a cache, which persist between forward passes. */
bool ft_op_uses_cache(ft_op_kind kind);

/*
 * Whether the operation is idle in a forward pass with or without new tokens from the host,
 * sampling and steps of beam search.
 */
bool ft_op_is_idle(ft_op_kind kind, bool new_tokens, bool samples, bool searches);

/* ---- Attributes --------------------------------------------------------------------------- */

/*
 * "none", "gelu", "gelu_approx", "gelu_tanh", "relu", "tanh", "silu".  parse returns false for
 * other words; it accepts "gelu_codes", the former name of "gelu_approx".
 */
const char *ft_activation_name(ft_activation activation);
bool ft_activation_parse(const char *name, ft_activation *out);

/* The meaning of the rows of a value.  The last five exist in decoders only. */
typedef enum ft_rows {
    FT_TOKENS,         /* tokens of the batch */
    FT_SEQUENCES,      /* sequences of the batch */
    FT_SELECTED,       /* tokens of the batch that the caller requests results of */
    FT_SLOTS,          /* slots: one per sequence that a session can hold */
    FT_SLOT_POSITIONS, /* positions of all slots: row slot * context + position */
    FT_KV_CACHE,       /* token capacity of the KV cache: kernels/kv_cache.h */
    FT_CROSS_KV, /* source token capacity of the cross-attention KV, in pages like the KV cache */
    FT_NUM_ROW_KINDS
} ft_rows;

/* "T", "S", ...: in dumps. */
const char *ft_rows_name(ft_rows rows);

/* The arrays of token inputs of a batch: ft_batch.input. */
typedef enum ft_batch_input {
    FT_BATCH_NONE,
    FT_BATCH_IDS,       /* token ids; -1 - slot stands for the token last sampled in that slot */
    FT_BATCH_POSITIONS, /* position ids */
    FT_BATCH_TYPES,     /* token type ids */
    FT_NUM_BATCH_INPUTS
} ft_batch_input;

/* How POOL makes one row of the n rows of a sequence. */
typedef enum ft_pooling {
    FT_POOL_FIRST,
    FT_POOL_MEAN,
    FT_POOL_LAST,
    FT_POOL_MAX,           /* the largest value of each column; NaN if one is */
    FT_POOL_MEAN_SQRT_LEN, /* the sum divided by sqrt(n) */
    FT_POOL_WEIGHTED_MEAN, /* the mean, where the weight of row i is i + 1 */
    FT_NUM_POOLINGS
} ft_pooling;

/* "first", "mean", ...: in dumps. */
const char *ft_pooling_name(ft_pooling pooling);

/* (x - mean) / standard deviation * weight + bias, or x / root mean square * weight. */
typedef enum ft_norm_kind { FT_NORM_LAYER, FT_NORM_RMS } ft_norm_kind;

enum { FT_NAME = 64, FT_MAX_IN = 3, FT_MAX_WEIGHTS = 3, FT_MAX_STATES = 5 };

/* One matrix of a plan. */
typedef struct ft_value {
    char name[FT_NAME]; /* "layer.3.ffn.gelu": in dumps, in errors and in amax.tsv */
    ft_rows rows;
    int32_t cols;
    ft_dtype dtype;
    float scale;  /* 0: float values; else quantized values q (int8 or float): value = scale * q */
    bool dynamic; /* quantized with row scales that the kernel computes: F32, after the elements */
    bool point;   /* calibration point: calibration observes it, int8 plans quantize it */
    bool state;   /* persists between forward passes: has its own buffer and no producer */
    bool inner;   /* internal to one operation: can be observed, has no buffer and no scale */
    ft_batch_input input; /* the value is that array of the batch and has no buffer; 0: none */
    bool keep;            /* readable after the forward pass: its buffer is not reused */
    size_t offset;        /* bytes into the arena */
} ft_value;

/* One parameter matrix.  `data` and `scale` are borrowed from the mapped file or the model. */
typedef struct ft_weight {
    char name[FT_NAME];
    size_t rows, cols; /* a vector has one row */
    ft_dtype dtype;
    ft_layout layout;
    const float *scale; /* [rows]: quantized (int8, or float if fake-quantized); NULL: groupwise */
    ft_groupwise groupwise; /* U4 or U8 in FT_PANEL32; without a scale: float values */
    const void *data;      /* 64-byte aligned */
    const void *prepacked; /* the same values in a device-specific layout, or NULL */
} ft_weight;

/* Bytes of `data`. */
size_t ft_weight_bytes(const ft_weight *weight);

/*
 * Layout of an image in its row: [channels, height, width] or [height, width, channels].
 */
typedef enum ft_image_layout { FT_IMAGE_NCHW, FT_IMAGE_NHWC } ft_image_layout;

/*
 * A convolution of images [sequences, channels * height * width] with weights [output channels,
 * kernel height * kernel width * channels], channels innermost.  Results are [sequences, output
 * channels * output height * output width].  Pairs are { vertical, horizontal }.
 */
typedef struct ft_conv {
    int32_t channels, height, width; /* of the input */
    int32_t kernel[2], stride[2], padding[2], dilation[2];
    int32_t zero; /* zero point of int8 input, also the padding value; else 0 */
    bool clamps;  /* results of the activation are clamped to low .. high */
    float low, high;
    ft_image_layout in_layout, out_layout; /* of the images, and of the results */
} ft_conv;

/*
 * Maxima of image sizes, and of kernel, stride, padding and dilation: 32-bit computations with them
 * do not overflow.
 */
enum { FT_CONV_MAX_SIZE = 1 << 24, FT_CONV_MAX_WINDOW = 32767 };

/* Height (which = 0) or width (1) of the result; 0: the kernel is larger than the padded image. */
FT_HOST_DEVICE int32_t ft_conv_out_size(const ft_conv *conv, int which)
{
    int32_t size = which == 0 ? conv->height : conv->width;
    int32_t n_tokens = conv->dilation[which] * (conv->kernel[which] - 1) + 1;
    int32_t rest = size + 2 * conv->padding[which] - n_tokens;
    return rest < 0 ? 0 : rest / conv->stride[which] + 1;
}

/* Elements of an image; and, below, of an im2col window or patch. */
FT_HOST_DEVICE int64_t ft_conv_image_size(const ft_conv *conv)
{
    return (int64_t) conv->channels * conv->height * conv->width;
}

FT_HOST_DEVICE int64_t ft_conv_gemm_k(const ft_conv *conv)
{
    return (int64_t) conv->channels * conv->kernel[0] * conv->kernel[1];
}

/* Tokens of an image: prefix tokens and patches. */
FT_HOST_DEVICE int64_t ft_patch_sequence_length(const ft_conv *conv, int32_t prefix_tokens)
{
    return prefix_tokens + (int64_t) ft_conv_out_size(conv, 0) * ft_conv_out_size(conv, 1);
}

typedef struct ft_attr {
    ft_conv conv;          /* CONV; PATCHIFY: kernel = stride, no padding */
    int32_t prefix_tokens; /* PATCHIFY, ADD_CLASS_TOKEN: rows of each sequence before its patches */
    float eps;             /* NORM, HEAD_NORM */
    ft_norm_kind norm;     /* NORM */
    ft_activation activation; /* LINEAR, CONV, ACTIVATE, GATE */
    int32_t heads;            /* ATTENTION, STORE_KV, ATTEND_KV: query heads; HEAD_NORM */
    int32_t kv_heads;         /* STORE_KV, ATTEND_KV: key and value heads; divides heads */
    int32_t window;      /* ATTEND_KV: sliding window in keys, the token itself included; 0: none */
    float softmax_scale; /* ATTENTION, ATTEND_KV: factor of the scores */
    bool cross_kv; /* STORE_KV, ATTEND_KV: cross-attention KV instead of the KV cache, not causal */
    ft_pooling pooling;      /* POOL */
    float embed_scale;       /* EMBED: factor of word embeddings */
    int32_t position_offset; /* EMBED without position ids: position id = offset + position */
    /* STORE_KV: dynamic NTK scaling of rotary frequencies beyond this many tokens; 0: never */
    int32_t rope_positions;
    float rope_theta, rope_factor;
} ft_attr;

/*
 * Indices of op->state[]: what an operation keeps between forward passes.  Scales exist if keys and
 * values are int8.  Rows "positions" are FT_SLOT_POSITIONS.
 */
enum {
    /* STORE_KV writes, ATTEND_KV reads; -1: no scales, no beams. */
    FT_STATE_KEYS = 0,          /* [cache, kv_heads * head_size] */
    FT_STATE_VALUES,            /* the same */
    FT_STATE_KEY_SCALES,        /* F32 [cache, kv_heads] */
    FT_STATE_VALUE_SCALES,      /* the same */
    FT_STATE_CACHE_INDIRECTION, /* I32 [positions, 1]; BEAM_SEARCH writes it: ft_batch.beam_width */

    /* EMBED reads the last token; RECORD_TOKENS and SAMPLE. */
    FT_STATE_LAST_TOKEN = 0, /* I32 [slots, 1]: the token sampled last */
    FT_STATE_HISTORY,        /* I32 [positions, 1]: all tokens of a slot in order */
    FT_STATE_TOKEN_COUNTS,   /* I32 [slots, vocabulary]: kernels/sampling.h */

    /* BEAM_SEARCH, after the last token and the history. */
    FT_STATE_BEAMS = 2, /* I32 [slots, FT_BEAM_WORDS]: ft_beam of kernels/beam_search.h */
    FT_STATE_FINISHED,  /* I32 [positions, 1]: new tokens of finished hypotheses */
};

/*
 * Index of op->weight[] of operations that can smooth (SmoothQuant, arXiv 2211.10438): an F32
 * vector by whose elements the columns are multiplied before they are quantized.  It holds the
 * reciprocals of the smoothing factors, by which the columns of the following weights were
 * multiplied.
 */
enum { FT_WEIGHT_SMOOTHING = 2 };

/* One operation of a plan.  Operands are indices into the plan's values and weights; -1: none. */
typedef struct ft_op {
    ft_op_kind kind;
    int16_t in[FT_MAX_IN];
    int16_t out;    /* the float result */
    int16_t quantized; /* the quantized result; NORM may write both */
    int16_t inner;  /* ATTENTION: the probabilities, observed; int8 plans do not use their amax */
    int16_t second; /* NORM: x + residual, if other operations read it; SAMPLE: log-probabilities */
    int16_t state[FT_MAX_STATES];
    int16_t weight[FT_MAX_WEIGHTS];
    ft_attr attr;
} ft_op;

/* An output of the plan: its name and the value that holds it. */
typedef struct ft_output {
    char name[FT_NAME];
    int value;
    bool one_column; /* only `column` of the value is the output */
    int column;
} ft_output;

enum { FT_MAX_OUTPUTS = 6 };

typedef struct ft_plan {
    ft_value *value;
    ft_op *op;
    const ft_weight *weight; /* borrowed from the model */
    int nvalue, nop, nweight, noutput;
    ft_output output[FT_MAX_OUTPUTS];
    size_t arena; /* bytes, for the limits passed to ft_plan_layout() */

    /*
     * The first `encoder_ops` operations of an encoder-decoder read the source text once and store
     * the cross-attention KV; the others run for target tokens.  0: a forward pass runs all
     * operations.
     */
    int encoder_ops;

    /*
     * The result of a row of a float GEMM must not depend on the number of rows.  Otherwise the
     * text generated for one sequence would depend on the others.  Lowering sets it in plans with a
     * KV cache.
     */
    bool batch_invariant;

    struct ft_fusion_group *group; /* [ngroup], in order: kernels/fused_ops.h */
    int ngroup;
} ft_plan;

/* The batch of one forward pass; rows start[i] .. start[i + 1] - 1 are sequence i. */
typedef struct ft_batch {
    size_t tokens, sequences;
    size_t longest;       /* rows of the longest sequence */
    const int32_t *start; /* [sequences + 1] */

    /* [tokens] each, by ft_batch_input; NULL: no operation of this pass reads it. */
    const int32_t *input[FT_NUM_BATCH_INPUTS];

    /*
     * Plans with a KV cache; zeros elsewhere.  Row r of sequence i has position
     * n_past[i] + r - start[i].
     */
    const int32_t *seq_id;   /* [tokens]: the sequence of each row */
    const int32_t *n_past;   /* [sequences]: tokens in the cache before this forward pass */
    const int32_t *n_tokens; /* [sequences]: tokens known when the forward pass was requested */
    const int32_t *slot;     /* [sequences] */
    const int32_t *pages;    /* [sequences, max_pages]: page table; unused entries are 0 */
    size_t max_pages;        /* per sequence */
    size_t context;          /* maximum tokens of a sequence in the cache after this pass */
    bool decode_step;        /* every sequence has one row, its last sampled token */
    size_t selected;         /* number of rows that results are requested of */
    const int32_t *selected_rows;     /* [selected], ascending */
    const ft_sampling_params
        *sampling; /* [selected]: sample a token for each; NULL: do not sample */

    /* Encoder-decoders. */
    bool source;                   /* run the encoder operations: rows are source tokens */
    const int32_t *cross_kv;       /* [sequences]: source tokens of each */
    const int32_t *cross_kv_pages; /* [sequences, max_cross_kv_pages] */
    size_t max_cross_kv_pages;

    /*
     * Beams of a text: this many consecutive sequences, with consecutive slots, belong to one
     * search.  The keys and values of a position of a beam are in the pages of the beam that
     * FT_STATE_CACHE_INDIRECTION gives.  Beams share their source, so `cross_kv` and
     * `cross_kv_pages` are equal for all of them.  0 or 1: no beams.
     */
    size_t beam_width;
    const struct ft_beam_params *beams; /* [groups]: texts with a step of beam search; NULL: none */
    size_t groups;
} ft_batch;

/* Rows of a value in this batch: FT_TOKENS, FT_SELECTED, or one per sequence. */
static inline size_t ft_batch_rows(const ft_batch *batch, ft_rows rows)
{
    return rows == FT_TOKENS     ? batch->tokens
           : rows == FT_SELECTED ? batch->selected
                                 : batch->sequences;
}

/* The operations of a forward pass: first .. end - 1. */
static inline int ft_batch_first_op(const ft_plan *plan, const ft_batch *batch)
{
    return batch->source ? 0 : plan->encoder_ops;
}

static inline int ft_batch_end_op(const ft_plan *plan, const ft_batch *batch)
{
    return batch->source ? plan->encoder_ops : plan->nop;
}

/* The value that names an operation in messages: its result, or its first input if it has none;
 * -1: neither. */
static inline int ft_op_label_value(const ft_op *op)
{
    return op->out >= 0         ? op->out
           : op->quantized >= 0 ? op->quantized
           : op->in[0] >= 0     ? op->in[0]
                                : op->in[1];
}

/* The value whose magnitudes are counted in observe plans; -1: none. */
static inline int ft_op_observed(const ft_op *op)
{
    return op->kind == FT_OP_OBSERVE ? op->in[0] : op->inner;
}

/* Cost of an operation in one forward pass. */
typedef struct ft_op_cost {
    double int8_ops,
        float_flops; /* multiplications and additions of GEMMs and attention, by input dtype */
    double bytes;    /* each operand is read or written once */
} ft_op_cost;
ft_op_cost ft_op_cost_of(const ft_plan *plan, const ft_op *op, const ft_batch *batch);

/*
 * Check shapes, dtypes and scales of one operation against its rule.  FT_ESHAPE: the text is
 * "`what`: operation value: reason", where `what` is a file name.
 */
FT_MUST_USE ft_status ft_op_check(const ft_plan *plan, const ft_op *op, const char *what,
                                  ft_error *err);

#pragma GCC visibility pop

#endif
