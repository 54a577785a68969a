/*
 * ft.h - the public API of libftruntime: open an artifact, run it, read the outputs.
 *
 *     ft_model *model;
 *     ft_session *session;
 *     ft_error err;
 *     if (ft_model_open(&model, "model.int8.ft", NULL, &err) != FT_OK ||
 *         ft_session_open(&session, model, NULL, &err) != FT_OK)
 *         ...err.text names the file, what was found and what was expected...
 *     ft_session_set(session, "input_ids", &ids, &err);
 *     ft_session_run(session, &err);
 *     ft_session_get(session, "logits", &logits, &err);
 *
 * Conventions.  Arguments come in this order: the object, inputs, outputs, the error.  Pointers
 * must not be NULL unless the comment allows it; `err` may always be NULL, and so may an array of
 * zero elements.  For any other NULL pointer, a call that takes an error returns FT_EARG, and a
 * call that takes none returns its empty value: NULL, 0, -1 or false.  Strings are UTF-8 and sizes
 * are in bytes.  In option structures zero always means the default, so it is enough to write
 * &(ft_session_options){ .threads = 4 }; NULL options mean all defaults.  The library never logs,
 * exits or aborts on invalid input, and it keeps no global state.  Many threads may use a model at
 * the same time, but only one thread at a time may use a session.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_H
#define FT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined __GNUC__
#define FT_API __attribute__((visibility("default")))
#define FT_MUST_USE __attribute__((warn_unused_result))
#else
#define FT_API
#define FT_MUST_USE
#endif

/* ---- Errors ------------------------------------------------------------------------------- */

typedef enum ft_status {
    FT_OK = 0,
    FT_ENOMEM,       /* out of memory */
    FT_EIO,          /* the operating system failed to read or write */
    FT_EFORMAT,      /* a file is malformed or not of the expected type */
    FT_ESHAPE,       /* a shape differs from the expected one */
    FT_EUNSUPPORTED, /* valid, but not supported by this build or device */
    FT_EARG,         /* invalid argument */
    FT_EDEVICE,      /* a device failed or is not available */
    FT_ELIMIT,       /* a limit was exceeded */
    FT_ENONFINITE,   /* a model output is NaN or infinite */
    FT_ECANCELLED,   /* a request was cancelled */
    FT_ETIMEOUT,     /* a request did not end in time */
} ft_status;

typedef struct ft_error {
    ft_status code;
    char text[1020]; /* one line without full stop, always NUL-terminated */
} ft_error;

/* "FT_EFORMAT" etc.; "unknown" for a value outside the enum. */
FT_API const char *ft_status_name(ft_status status);

/* The library version, for example "0.1.0". */
FT_API const char *ft_version(void);

/* ---- Tensors ------------------------------------------------------------------------------ */

typedef enum ft_dtype {
    FT_F32,
    FT_F16,
    FT_BF16,
    FT_F64,
    FT_I8,
    FT_I16,
    FT_I32,
    FT_I64,
    FT_U8,
    FT_BOOL,
    FT_U4, /* two per byte; only for weights in artifacts */
} ft_dtype;

/* Memory layout of a matrix; kernels/layout.h defines the index formulas. */
typedef enum ft_layout {
    FT_ROW,
    FT_COL32,
    FT_COL4_4R2_8C,
    FT_COL32_2R_4R4,
    FT_PANEL32,
} ft_layout;

enum { FT_MAX_DIMS = 8 };

typedef struct ft_tensor {
    ft_dtype dtype;
    ft_layout layout;
    int ndim;
    int64_t dim[FT_MAX_DIMS];
    void *data; /* owned by the code that created the tensor */
} ft_tensor;

/* "F32", "BF16", ...; NULL for a value outside the enum. */
FT_API const char *ft_dtype_name(ft_dtype dtype);

/* Bytes per element; 0 for a value outside the enum, and for U4. */
FT_API size_t ft_dtype_size(ft_dtype dtype);

/* Number of elements, and bytes; both are 0 if a dimension is negative or the product overflows. */
FT_API size_t ft_tensor_numel(const ft_tensor *tensor);
FT_API size_t ft_tensor_bytes(const ft_tensor *tensor);

/* ---- Devices ------------------------------------------------------------------------------ */

typedef struct ft_device_info {
    char name[32];    /* as accepted in options: "cpu", "cuda:0" */
    char detail[128]; /* processor or GPU model and instruction set in use, or the reason why the
                         device is not usable */
    bool usable;
} ft_device_info;

/*
 * List the devices: first the CPU, then the GPUs.  Writes at most `capacity` entries and returns
 * the total number.  On a machine without a GPU, one "cuda" entry with usable = false gives the
 * reason.
 */
FT_API size_t ft_devices(ft_device_info *out, size_t capacity);

/* ---- Models ------------------------------------------------------------------------------- */

typedef struct ft_model ft_model;

/* How thoroughly a file is verified when it is opened.  Its structure is always checked. */
typedef enum ft_verify { FT_VERIFY_STRUCTURE, FT_VERIFY_CRC, FT_VERIFY_SHA256 } ft_verify;

/* dtype of the KV cache.  INT8 stores one scale per token and head. */
typedef enum ft_kv_dtype { FT_KV_DTYPE_AUTO, FT_KV_DTYPE_F16, FT_KV_DTYPE_INT8 } ft_kv_dtype;

typedef struct ft_model_options {
    size_t size;        /* 0 or sizeof(ft_model_options) */
    const char *device; /* "cpu" (default) or "cuda:N" */
    ft_verify verify;
    ft_kv_dtype
        kv;       /* decoders only; default: the dtype of the attention inputs, F32 or F16 / BF16 */
    bool no_fuse; /* run the graph without operator fusion; slow, for tests */
    bool fake;    /* run an int8 artifact fake-quantized: int8 values held in float, sums in double */
    int64_t
        selftest; /* not 0: run the self-test of the artifact when it is opened; FT_EDEVICE if this
                     device computes other outputs, FT_EUNSUPPORTED if the artifact has none */
    const char *tuning; /* file of ft-bench --tune, which changes times only and is ignored where it
                           is not for this device; default: $FT_TUNING, else ft/tuning.json in
                           $XDG_CACHE_HOME or $HOME/.cache; "": none */
} ft_model_options;

typedef struct ft_model_info {
    const char *family;    /* "bert" */
    const char *precision; /* "float", "groupwise" (group-wise quantized weights) or "int8" */
    int32_t layers, hidden, heads, vocabulary, max_positions,
        max_seq_length, /* length to which texts are truncated; <= max_positions */
        labels;         /* labels: 0 = no classification head */
    const char
        *problem_type;   /* problem_type of transformers: "single_label_classification" (softmax),
                       "multi_label_classification" (a sigmoid per label) or "regression"
                       (logits are the predictions); NULL: no classification head */
    bool embedding;      /* the model has the output "embedding" */
    size_t weight_bytes; /* of all tensors in the file */
} ft_model_info;

/*
 * Memory-map an artifact, verify it and plan its execution.  On failure *out is NULL.
 * The CPU reads the weights in place, so the file must not change while the model is open.
 */
FT_API FT_MUST_USE ft_status ft_model_open(ft_model **out, const char *path,
                                           const ft_model_options *options, ft_error *err);
FT_API void ft_model_close(ft_model *model); /* accepts NULL; close all sessions first */

/* The strings stay valid as long as the model is open. */
FT_API ft_model_info ft_model_get_info(const ft_model *model);

/* Name of label `index` from the checkpoint's id2label, or NULL. */
FT_API const char *ft_model_label(const ft_model *model, int32_t index);

/* Write the plan as text, one operation per line. */
FT_API FT_MUST_USE ft_status ft_model_write_plan(const ft_model *model, FILE *file, ft_error *err);

/* ---- Sessions ----------------------------------------------------------------------------- */

typedef struct ft_session ft_session;

typedef struct ft_session_options {
    size_t size;           /* 0 or sizeof(ft_session_options) */
    int threads;           /* <= 1024; default: the processors that affinity and CPU quota allow */
    int64_t max_tokens;    /* of one run, padding not counted; default 4096 */
    int64_t max_sequences; /* of one run; default 512, of a decoder 64; of images those that
                              max_tokens allows, which are as many as fit if only this is set */
    const char *const *keep; /* values to keep for ft_session_get, NULL-terminated; may be NULL */

    /* Decoders only. */
    int64_t context;      /* tokens per sequence; default: the model's positions, at most 4096 */
    int64_t cache_tokens; /* KV cache capacity in tokens, for all sequences; default: one forward
                             pass or one context, whichever is larger */
    bool all_logits; /* return "logits" for every token instead of the last token per sequence */
    int64_t source_tokens; /* encoder-decoders: capacity of the cross-attention KV cache in tokens,
                              for all sources; default: one forward pass */
} ft_session_options;

/* Allocates all memory of the session; running it allocates nothing. */
FT_API FT_MUST_USE ft_status ft_session_open(ft_session **out, const ft_model *model,
                                             const ft_session_options *options, ft_error *err);
FT_API void ft_session_close(ft_session *session); /* accepts NULL */

/*
 * Copy an input: "input_ids" [N, S] I32 or I64, and optionally "attention_mask" (1 = token) and
 * "token_type_ids" of the same shape.  Setting "input_ids" clears the other two.  Masked positions
 * are removed before the computation.  Encoder-decoders read the source from these inputs and the
 * target from "decoder_input_ids" [N, T] and "decoder_attention_mask".  Vision models have a single
 * input, "pixel_values" [N, channels, height, width] F32, already rescaled and normalized.
 */
FT_API FT_MUST_USE ft_status ft_session_set(ft_session *session, const char *name,
                                            const ft_tensor *tensor, ft_error *err);

FT_API FT_MUST_USE ft_status ft_session_run(ft_session *session, ft_error *err);

/*
 * Read an output of the last forward pass.
 *
 *   "logits"                     classifiers: [N, C]; token classifiers: [N, S, C]; masked
 *                                language models: [N, S, V]; decoders: [N, V] of the last
 *                                token, or [N, S, V] with options.all_logits
 *   "start_logits"               question answering: [N, S]; so is "end_logits"
 *   "embedding"                  [N, D]: pooled, through the Dense layers and normalized as
 *                                the checkpoint says; D is H without Dense layers
 *   "last_hidden_state"          [N, S, H]; vision models: the class token, then the patches;
 *                                encoder-decoders: of the decoder
 *   "rotated_hidden_state"       in place of it, of decoders that ft-convert --rotate made
 *   "encoder_last_hidden_state"  encoder-decoders: [N, S, H] of the encoder
 *   a name from options.keep     [tokens, columns], packed without padding
 *
 * Masked positions are zero.  The result is always F32; quantized values are dequantized.  If
 * out->data is NULL, only dtype and shape are filled in; otherwise out->data must have room for
 * the whole tensor.
 *
 * Returns FT_ENONFINITE if a row of an output holds NaN or infinity; the error text names the row,
 * and the data are copied nevertheless.  Values from options.keep are returned without this check.
 */
FT_API FT_MUST_USE ft_status ft_session_get(const ft_session *session, const char *name,
                                            ft_tensor *out, ft_error *err);

/* ---- Generation --------------------------------------------------------------------------- */

/* Why generation of a sequence finished. */
typedef enum ft_finish_reason {
    FT_FINISH_NONE,        /* not finished */
    FT_FINISH_STOP_ID,     /* a stop token, which is the last token and not part of the text */
    FT_FINISH_STOP_STRING, /* the text contains a stop string */
    FT_FINISH_LENGTH,      /* max_new_tokens or the context length is reached */
    FT_FINISH_CANCELLED,   /* cancelled by the callback */
    FT_FINISH_FAILED, /* a logit was NaN or +infinity; tokens with -infinity are never sampled */
} ft_finish_reason;

/* "none", "stop_id", "stop_string", "length", "cancelled", "failed". */
FT_API const char *ft_finish_reason_name(ft_finish_reason reason);

/*
 * A generation request.  Logits are processed in this order: repetition, presence and frequency
 * penalty, no_repeat_ngram, temperature, top_k, top_p, min_p.  The same request yields the same
 * tokens regardless of what else is in the batch.
 */
typedef struct ft_request {
    const int32_t *prompt; /* [prompt_tokens], at least one; encoder-decoders: NULL means */
    size_t prompt_tokens;  /* decoder_start_token_id, then forced_bos_token_id */
    const int32_t *source; /* [source_tokens], encoder-decoders: the encoder input; at least one */
    size_t source_tokens;
    int32_t max_new_tokens; /* default: up to the context length */
    int32_t min_new_tokens; /* stop tokens are suppressed until then */
    float temperature;      /* default 0: greedy decoding */
    int32_t top_k;          /* keep the k most likely tokens; default all */
    float top_p; /* nucleus sampling: smallest set with this cumulative probability; default all */
    float min_p; /* minimum probability relative to the most likely token; default all */
    float repetition_penalty; /* as in transformers: divides positive and multiplies negative logits
                                 of all tokens of prompt and output; default 1 */
    float presence_penalty;   /* subtracted from the logits of generated tokens */
    float frequency_penalty;  /* the same, times the number of occurrences */
    int32_t no_repeat_ngram;  /* no n-gram of this size occurs twice; default: no limit */
    uint64_t seed;
    const int32_t *stop_ids; /* [stops]; NULL: the model's eos_token_id */
    size_t stops;
    const char *const *stop_strings; /* NULL-terminated; may be NULL; requires
                                        options.tokenizer */
} ft_request;

/* A generated token. */
typedef struct ft_token {
    size_t request; /* index of its request */
    size_t index;   /* 0 for the first generated token */
    int32_t id;     /* -1 with FT_FINISH_FAILED */
    float logprob;  /* log-softmax of the unmodified logits */
    ft_finish_reason reason;

    /*
     * With options.tokenizer, the new text: complete UTF-8 characters that cannot become part of a
     * stop string any more.  So a token may add no text, and a later token adds more.  The last
     * token adds the rest.  Valid until the callback returns; not NUL-terminated.
     */
    const char *text;
    size_t text_bytes;
} ft_token;

/*
 * Called for every token, in order within each request.  Return false to cancel the request.  A GPU
 * may compute the next decode step meanwhile.
 */
typedef bool (*ft_on_token)(void *user, const ft_token *token);

struct ft_tokenizer;

/* Throughput.  The first new token of a sequence is part of its prefill. */
typedef struct ft_generate_stats {
    size_t prompt_tokens, decode_tokens; /* of prompts; generated by decode steps */
    double prefill_seconds, decode_seconds;
} ft_generate_stats;

typedef struct ft_generate_options {
    size_t size;   /* 0 or sizeof(ft_generate_options) */
    int64_t chunk; /* prompt tokens of one run; default and most: the session's max_tokens */
    const struct ft_tokenizer *tokenizer; /* for text, and so for stop strings; may be NULL */
    ft_generate_stats *stats;             /* filled in, also on failure; may be NULL */
    bool keep_cache; /* for conversations, with one request in a session of max_sequences 1: the KV
                        cache outlives the call, and the next call with this option computes only
                        the tokens behind what its prompt has in common with the last sequence.
                        Penalties make it compute all tokens */
} ft_generate_options;

/*
 * Generate text for all requests with continuous batching: a waiting request starts as soon as a
 * sequence slot and enough KV cache pages are free.  All requests are validated first: token ids,
 * non-empty prompts, prompts that leave room in the context, and KV cache capacity.  A sequence
 * with non-finite logits ends with FT_FINISH_FAILED; the others continue, and the call returns
 * FT_ENONFINITE at the end.
 */
FT_API FT_MUST_USE ft_status ft_generate(ft_session *session, const ft_request *requests,
                                         size_t count, const ft_generate_options *options,
                                         ft_on_token on_token, void *user, ft_error *err);

/* ---- Beam search -------------------------------------------------------------------------- */

/* early_stopping of transformers: when a search that has `beams` finished hypotheses ends. */
typedef enum ft_early_stopping {
    FT_EARLY_STOPPING_FALSE, /* when the best running beam, finished now, would not beat the worst
                              * hypothesis
                              */
    FT_EARLY_STOPPING_TRUE,  /* at once */
    FT_EARLY_STOPPING_NEVER, /* when it could not beat it even at the maximum length */
} ft_early_stopping;

/*
 * Beam search parameters, with the semantics of Hugging Face transformers.  The score of a
 * hypothesis is the sum of the log-probabilities of its new tokens, divided by
 * (number of new tokens)^length_penalty.
 */
typedef struct ft_beam_search_options {
    size_t size;                      /* 0 or sizeof(ft_beam_search_options) */
    int32_t beams;                    /* 1 (default) to 64 */
    int32_t n_best;                   /* texts of each source, at most `beams`; default 1 */
    double length_penalty;            /* default 1 */
    bool no_length_normalization;     /* a length penalty of 0: scores are sums */
    ft_early_stopping early_stopping; /* default FT_EARLY_STOPPING_FALSE */
    int32_t beam_groups;              /* diverse beam search: number of groups, divides `beams`;
                                         default 1 */
    float diversity_penalty;   /* subtracted per beam of an earlier group that selected the token */
    const int32_t *forced_bos; /* forced_bos_token_id, -1 for none; NULL: from the checkpoint */
    int32_t poll_every;        /* decode steps between checks for finished searches, each of which
                                  synchronizes with the device; default 1 on the CPU, 4 on GPUs */
    ft_generate_stats *stats;  /* here prompt_tokens counts source tokens, and decode tokens count
                                  all beams; may be NULL */
} ft_beam_search_options;

/* A finished hypothesis. */
typedef struct ft_hypothesis {
    size_t request;     /* index of its request */
    size_t rank;        /* 0 for the best */
    size_t count;       /* hypotheses of this request: n_best, or fewer if fewer have finished */
    const int32_t *ids; /* [tokens]: new tokens, including the stop token; valid until the callback
                           returns */
    size_t tokens;
    float score;
    ft_finish_reason
        reason; /* FT_FINISH_STOP_ID or FT_FINISH_LENGTH; FT_FINISH_FAILED: no hypothesis */
} ft_hypothesis;

/*
 * Called for the hypotheses of a request, best first, when its search is finished.  Return false to
 * cancel all requests.
 */
typedef bool (*ft_on_hypothesis)(void *user, const ft_hypothesis *found);

/*
 * Beam search for all requests; the session's sequence slots (`beams` per source) and KV cache
 * capacity limit how many sources run at the same time.  request.source is the encoder input and
 * request.prompt is the decoder prefix, by default decoder_start_token_id alone; a token forced
 * after a prefix of one token counts as a new token.  max_new_tokens, min_new_tokens,
 * repetition_penalty (applied to log-probabilities), no_repeat_ngram and stop_ids apply; all other
 * sampling fields must be zero.  All requests are validated first.  A source with a logit of NaN or
 * +infinity has no hypothesis; the others continue, and the call returns FT_ENONFINITE at the end.
 */
FT_API FT_MUST_USE ft_status ft_beam_search(ft_session *session, const ft_request *requests,
                                            size_t count, const ft_beam_search_options *options,
                                            ft_on_hypothesis on_hypothesis, void *user,
                                            ft_error *err);

/* ---- Engines ------------------------------------------------------------------------------ */

/*
 * An engine takes requests as they come and runs them together: generation by continuous batching,
 * with prefill passes and decode steps in turn; beam searches that wait together; encoders and
 * embedding models in batches.  It has a thread of its own, which sleeps while there is no request.
 * On the CPU a request gets the result that it has alone, bit for bit; on GPUs so do decoders and
 * int8 models.
 *
 *     ft_engine_open(&engine, model, NULL, &err);
 *     ft_engine_submit(engine, &(ft_engine_request){ .generate = &request, .on_token = print,
 *                                                    .on_end = done }, &id, &err);
 *
 * All functions may be called from any thread, and submit, cancel and get_stats from callbacks too.
 */
typedef struct ft_engine ft_engine;

typedef struct ft_engine_options {
    size_t size;           /* 0 or sizeof(ft_engine_options) */
    int threads;           /* as in ft_session_options */
    int64_t max_sequences; /* that run at the same time, beams included; of encoders, rows of a
                              batch; default 64 */
    int64_t chunk;   /* tokens of a forward pass: a longer prompt takes several, between which the
                        running sequences go on; default 512, of encoders 4096 */
    int64_t context; /* as in ft_session_options */
    int64_t cache_tokens;  /* KV cache capacity in tokens, for all sequences and for prefixes;
                              default: max_sequences contexts, at most 65536 tokens or one context */
    int64_t source_tokens; /* as in ft_session_options */
    int64_t queue;         /* most requests that wait; default 1024 */
    int64_t batch_wait;    /* encoders: microseconds that a batch waits for more rows; default 0:
                              what has come while the last batch ran is the next one */
    const struct ft_tokenizer *tokenizer; /* for text, and so for stop strings; may be NULL; stays
                                             open as long as the engine */
    bool no_prefix_cache; /* compute each prompt completely.  By default the keys and values of 64
                             tokens each that prompts have in common at their beginning are
                             computed once and stay in the KV cache until their memory is needed */
} ft_engine_options;

/* Open a session and start the thread.  On failure *out is NULL.  The model stays open. */
FT_API FT_MUST_USE ft_status ft_engine_open(ft_engine **out, const ft_model *model,
                                            const ft_engine_options *options, ft_error *err);

/*
 * Cancel what is left, with its callbacks, and free the engine.  No other thread uses it any more.
 * Accepts NULL.  FT_EARG, and nothing happens: called from a callback.
 */
FT_API ft_status ft_engine_close(ft_engine *engine, ft_error *err);

/*
 * Wait until every request has ended, also those that are submitted meanwhile.
 * FT_EARG: called from a callback.
 */
FT_API FT_MUST_USE ft_status ft_engine_drain(ft_engine *engine, ft_error *err);

/* A tensor and its name: an input or an output. */
typedef struct ft_engine_tensor {
    const char *name;
    ft_tensor tensor;
} ft_engine_tensor;

/*
 * The outputs of a request to an encoder, F32, in the order in which it names them; valid until the
 * callback returns.
 */
typedef void (*ft_on_outputs)(void *user, uint64_t id, const ft_engine_tensor *outputs,
                              size_t count);

/*
 * The request has ended: FT_OK; FT_ECANCELLED; FT_ETIMEOUT; FT_ENONFINITE; or another failure, of
 * which `err` (NULL with FT_OK) has the text.  Called exactly once, and last.
 */
typedef void (*ft_on_end)(void *user, uint64_t id, ft_status status, const ft_error *err);

/*
 * A request, of one kind: generation (`generate`), beam search (`generate` and `beams`), or a
 * forward pass of an encoder or embedding model (`inputs` and `outputs`).
 *
 * Callbacks come from the engine's thread, one at a time, and one that takes long delays all
 * requests.  In ft_token and ft_hypothesis, `request` is the id.  on_token may return false to
 * cancel its request, and so may on_hypothesis.
 */
typedef struct ft_engine_request {
    size_t size; /* 0 or sizeof(ft_engine_request) */
    const ft_request *generate;
    const ft_beam_search_options *beams; /* searches with equal options run together; `stats` must
                                            be NULL */
    const ft_engine_tensor *inputs;      /* [num_inputs]: as ft_session_set() takes them */
    size_t num_inputs;
    const char *const *outputs; /* names of outputs for on_outputs, NULL-terminated */
    int32_t priority;     /* requests with a higher one start earlier, but only 64 of them before a
                             request that came first */
    double timeout;       /* seconds from now, after which the request ends; default: none */
    ft_on_token on_token; /* generation */
    ft_on_hypothesis on_hypothesis; /* beam search */
    ft_on_outputs on_outputs;       /* encoders */
    ft_on_end on_end;               /* may be NULL */
    void *user;                     /* of all callbacks */
} ft_engine_request;

/*
 * Check a request, copy what it points to, and let it wait for its turn.  Callbacks may come before
 * the call returns.  *id, which may be NULL, is a number from 1 that is never used again.
 * FT_ELIMIT: as many requests wait as the queue has room for, so try later; or the request exceeds
 * a limit of the engine.  After a failure of the device, that failure.
 */
FT_API FT_MUST_USE ft_status ft_engine_submit(ft_engine *engine, const ft_engine_request *request,
                                              uint64_t *id, ft_error *err);

/*
 * End a request with FT_ECANCELLED before the next forward pass, unless it ends by itself earlier.
 * An id of a request that has ended, or of none, is no error.
 */
FT_API void ft_engine_cancel(ft_engine *engine, uint64_t id);

typedef struct ft_engine_stats {
    size_t size;                                     /* in: 0 or sizeof(ft_engine_stats) */
    uint64_t queued, running;                        /* requests, now */
    uint64_t finished, cancelled, timed_out, failed; /* requests, so far */
    uint64_t prompt_tokens, decode_tokens; /* computed of prompts or inputs; by decode steps */
    uint64_t prefix_tokens;                /* of prompts: in the prefix cache, so not computed */
    uint64_t passes;                       /* forward passes, or steps of beam searches */
    uint64_t free_pages, pages;            /* of the KV cache: 64 tokens each */
} ft_engine_stats;

/* Tokens and pages are those after the last forward pass. */
FT_API FT_MUST_USE ft_status ft_engine_get_stats(ft_engine *engine, ft_engine_stats *out,
                                                 ft_error *err);

/* ---- Tokenizers --------------------------------------------------------------------------- */

typedef struct ft_tokenizer ft_tokenizer;

/*
 * From the tokenizer.json inside a model, or from a file. The one of a model refuses to encode a
 * token that the model has no embedding for, with FT_EUNSUPPORTED.
 */
FT_API FT_MUST_USE ft_status ft_tokenizer_open_model(ft_tokenizer **out, const ft_model *model,
                                                     ft_error *err);
FT_API FT_MUST_USE ft_status ft_tokenizer_open(ft_tokenizer **out, const char *path, ft_error *err);
FT_API void ft_tokenizer_close(ft_tokenizer *tokenizer); /* accepts NULL */

/*
 * Encode text and add the special tokens of the post-processor.  Writes at most `capacity` ids and
 * sets *count to the total number, so the caller can retry with a larger buffer.  Does not
 * truncate. FT_EFORMAT: invalid UTF-8.  Thread-safe.
 */
FT_API FT_MUST_USE ft_status ft_tokenizer_encode(const ft_tokenizer *tokenizer, const char *text,
                                                 size_t bytes, int32_t *ids, size_t capacity,
                                                 size_t *count, ft_error *err);

/* The same with add_special_tokens = false: for text that already contains them, such as chats. */
FT_API FT_MUST_USE ft_status ft_tokenizer_encode_no_special(const ft_tokenizer *tokenizer,
                                                            const char *text, size_t bytes,
                                                            int32_t *ids, size_t capacity,
                                                            size_t *count, ft_error *err);

/* Bytes [start, end) of a text. */
typedef struct ft_text_range {
    uint32_t start, end;
} ft_text_range;

typedef struct ft_encode_options {
    size_t size;      /* 0 or sizeof(ft_encode_options) */
    const char *pair; /* [pair_bytes]: the second text of a pair; NULL: one text */
    size_t pair_bytes;
    bool no_special_tokens;   /* add_special_tokens = false */
    bool offsets;             /* fill in `offsets` and `words` of the encoding */
    size_t max_length;        /* truncate to this many tokens, special ones included, of a pair from
                                 the longer text first; default: no limit */
    const uint8_t *untrusted; /* [bytes]: a token of added_tokens is not matched where it touches a
                                 byte with a 1; NULL: all of the text is trusted */
} ft_encode_options;

/* A text or a pair as tokens.  All arrays have `count` elements and belong to the encoding. */
typedef struct ft_encoding {
    size_t count;
    const int32_t *ids;
    const int32_t *type_ids;      /* token_type_ids */
    const int8_t *sequence;       /* 0: of the text, 1: of its pair, -1: a special token added */
    const ft_text_range *offsets; /* the bytes that a token comes from, of its own text; 0, 0 for
                                     special tokens added; NULL unless asked for */
    const int32_t *words;         /* number of the word that a token is part of, from 0 in each
                                     text; -1 for special tokens added; NULL unless asked for */
    bool truncated;               /* tokens were left out because of max_length */
} ft_encoding;

/*
 * Encode a text, or a pair of texts, as one sequence with the special tokens and type ids of the
 * post-processor.  On success *out is freed with ft_encoding_free(), else it is NULL.
 * FT_EFORMAT: invalid UTF-8; FT_EUNSUPPORTED: a pair, but the tokenizer has no template for pairs;
 * FT_ELIMIT: max_length has no room for the special tokens.  Thread-safe.
 */
FT_API FT_MUST_USE ft_status ft_tokenizer_encode_text(const ft_tokenizer *tokenizer,
                                                      const char *text, size_t bytes,
                                                      const ft_encode_options *options,
                                                      ft_encoding **out, ft_error *err);
FT_API void ft_encoding_free(ft_encoding *encoding); /* accepts NULL */

/*
 * Decode ids to valid UTF-8 text, not NUL-terminated.  Writes at most `capacity` bytes and sets
 * *bytes to the total number.  Invalid UTF-8 becomes U+FFFD.  Ids without a token are ignored, and
 * so are special tokens if `skip_special` is set.  FT_EUNSUPPORTED: unknown decoder type.
 * Thread-safe.
 */
FT_API FT_MUST_USE ft_status ft_tokenizer_decode(const ft_tokenizer *tokenizer, const int32_t *ids,
                                                 size_t count, bool skip_special, char *text,
                                                 size_t capacity, size_t *bytes, ft_error *err);

/* Number of tokens in the vocabulary; ids may have gaps, so the largest id may exceed it. */
FT_API size_t ft_tokenizer_vocab_size(const ft_tokenizer *tokenizer);

/* The id of a token as written in tokenizer.json ("</s>", "\u0120the"), or -1. */
FT_API int32_t ft_tokenizer_token_to_id(const ft_tokenizer *tokenizer, const char *token);

/* The token of an id as written in tokenizer.json, not NUL-terminated, or NULL. */
FT_API const char *ft_tokenizer_id_to_token(const ft_tokenizer *tokenizer, int32_t id,
                                            size_t *bytes);

/* Whether `id` is a special token. */
FT_API bool ft_tokenizer_is_special(const ft_tokenizer *tokenizer, int32_t id);

/* The id of the token that ends a sequence ("[SEP]"), or -1; needed for truncation. */
FT_API int32_t ft_tokenizer_end_id(const ft_tokenizer *tokenizer);

typedef struct ft_detokenizer ft_detokenizer;

/* Incremental (streaming) decoding.  The tokenizer must stay open. */
FT_API FT_MUST_USE ft_status ft_detokenizer_open(ft_detokenizer **out,
                                                 const ft_tokenizer *tokenizer, bool skip_special,
                                                 ft_error *err);
FT_API void ft_detokenizer_close(ft_detokenizer *decoder); /* accepts NULL */

/*
 * Decode one more id.  *text points to *bytes of new text, valid until the next call.  The text
 * consists of complete characters and is final: whatever a later id may change is held back, so
 * *bytes may be 0.
 */
FT_API FT_MUST_USE ft_status ft_detokenizer_push(ft_detokenizer *decoder, int32_t id,
                                                 const char **text, size_t *bytes, ft_error *err);

/*
 * Return the text that was held back.  All pieces together equal the result of ft_tokenizer_decode
 * for the ids.  The decoder can then be reused for another sequence.
 */
FT_API FT_MUST_USE ft_status ft_detokenizer_finish(ft_detokenizer *decoder, const char **text,
                                                   size_t *bytes, ft_error *err);

/* ---- Chats -------------------------------------------------------------------------------- */

/* A model's chat template (Jinja), which turns messages into the text that the model continues. */
typedef struct ft_chat_template ft_chat_template;

/*
 * From the files inside a model: chat_template.jinja, or chat_template in tokenizer_config.json or
 * chat_template.json (of several the one called "default"), with the special tokens of
 * tokenizer_config.json.  Or from a Jinja file, with these tokens, which may be NULL.
 * FT_EUNSUPPORTED: the model has no template, or it uses a construct that is not supported;
 * FT_EFORMAT: it is malformed.  The text names the line.
 */
FT_API FT_MUST_USE ft_status ft_chat_template_open_model(ft_chat_template **out,
                                                         const ft_model *model, ft_error *err);
FT_API FT_MUST_USE ft_status ft_chat_template_open(ft_chat_template **out, const char *path,
                                                   const char *bos_token, const char *eos_token,
                                                   ft_error *err);
FT_API void ft_chat_template_close(ft_chat_template *chat); /* accepts NULL */

/* The file that the template is from: "tokenizer_config.json". */
FT_API const char *ft_chat_template_name(const ft_chat_template *chat);

typedef struct ft_chat_message {
    const char *role; /* "system", "user", "assistant", or another that the template knows */
    const char *content;
} ft_chat_message;

typedef struct ft_chat_options {
    size_t size;               /* 0 or sizeof(ft_chat_options) */
    bool no_generation_prompt; /* add_generation_prompt = false: do not open the assistant's turn */
    int64_t date;              /* for templates with a date: seconds since 1970; default: now */
} ft_chat_options;

/*
 * Render a conversation as text for ft_tokenizer_encode_text() with no_special_tokens.  Writes at
 * most `capacity` bytes, not NUL-terminated, and sets *bytes to the total number.  `untrusted`, which
 * may be NULL, is filled with a 1 for each byte that comes from a message, for the option of this
 * name: contents then never become special tokens.
 * FT_EARG: the template refuses the messages, or there is none; FT_EFORMAT: it fails, or a content
 * is not valid UTF-8; FT_ELIMIT: it needs too much time or memory.  Thread-safe.
 */
FT_API FT_MUST_USE ft_status ft_chat_render(const ft_chat_template *chat,
                                            const ft_chat_message *messages, size_t count,
                                            const ft_chat_options *options, char *text,
                                            uint8_t *untrusted, size_t capacity, size_t *bytes,
                                            ft_error *err);

/*
 * Render and encode a conversation.  The ids are those of transformers' apply_chat_template(),
 * except that a content which spells a special token stays text.  Free *out with ft_encoding_free().
 */
FT_API FT_MUST_USE ft_status ft_chat_encode(const ft_chat_template *chat,
                                            const ft_tokenizer *tokenizer,
                                            const ft_chat_message *messages, size_t count,
                                            const ft_chat_options *options, ft_encoding **out,
                                            ft_error *err);

#ifdef __cplusplus
}
#endif
#endif
