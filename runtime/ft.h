/*
 * ft.h - the whole public interface of libftruntime: open an artifact, run it, read the results.
 *
 *     ft_model *model;
 *     ft_session *session;
 *     ft_error err;
 *     if (ft_model_open(&model, "model.int8.ft", NULL, &err) != FT_OK ||
 *         ft_session_open(&session, model, NULL, &err) != FT_OK)
 *         ...err.text says what, where, expected and found...
 *     ft_session_set(session, "input_ids", &ids, &err);
 *     ft_session_run(session, &err);
 *     ft_session_get(session, "logits", &logits, &err);
 *
 * Rules for every call.  The object comes first, then inputs, then outputs, then the error.
 * Pointers are non-NULL unless said otherwise; `err` may always be NULL, and so may an array of no
 * elements.  A call with an error answers another NULL with FT_EARG, one without an error with its
 * word for nothing: NULL, 0, -1 or false.  Strings are UTF-8, sizes are bytes.  Option structures
 * are all-zero by default, and zero always means the default, so
 * &(ft_session_options){ .threads = 4 } is the whole idiom; NULL options mean all defaults.
 * The library never logs, exits or aborts on bad input, and keeps no global state: a model may be
 * used by many threads at once, a session by one at a time.
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
    FT_ENOMEM,       /* no memory */
    FT_EIO,          /* the operating system refused to read or write */
    FT_EFORMAT,      /* a file is not what it should be */
    FT_ESHAPE,       /* a shape differs from the expected one */
    FT_EUNSUPPORTED, /* valid, but not something this build or device can do */
    FT_EARG,         /* the caller's mistake */
    FT_EDEVICE,      /* a device failed or is absent */
    FT_ELIMIT,       /* a limit was exceeded */
    FT_ENUMBER,      /* a model computed what is no finite number */
} ft_status;

typedef struct ft_error {
    ft_status code;
    char text[1020]; /* one line, no full stop, always terminated */
} ft_error;

/* "FT_EFORMAT" and so on; "unknown" for other numbers. */
FT_API const char *ft_status_name(ft_status status);

/* "0.1.0". */
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
    FT_U4, /* two to a byte; weights of artifacts only */
} ft_dtype;

/* How the elements of a matrix lie in memory; kernels/layout.h has the formulas. */
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
    void *data; /* owned by whoever made the tensor */
} ft_tensor;

/* "F32", "BF16", ...; NULL for a value that is no dtype. */
FT_API const char *ft_dtype_name(ft_dtype dtype);

/* Bytes of one element; 0 for a value that is no dtype, and for U4. */
FT_API size_t ft_dtype_size(ft_dtype dtype);

/* Elements and bytes of a tensor; both 0 when a dimension is negative or the product overflows. */
FT_API size_t ft_tensor_count(const ft_tensor *tensor);
FT_API size_t ft_tensor_bytes(const ft_tensor *tensor);

/* ---- Devices ------------------------------------------------------------------------------ */

typedef struct ft_device_info {
    char name[32];    /* what options take: "cpu", "cuda:0" */
    char detail[128]; /* processor or GPU model and the instruction set in use, or why it is absent
                       */
    bool usable;
} ft_device_info;

/*
 * List devices: the CPU first, then GPUs.  Writes at most `capacity` entries and returns how many
 * there are.  A machine without GPU gets one unusable "cuda" entry that says why.
 */
FT_API size_t ft_devices(ft_device_info *out, size_t capacity);

/* ---- Models ------------------------------------------------------------------------------- */

typedef struct ft_model ft_model;

/* How much of a file is checked before it is used.  Its structure always is. */
typedef enum ft_verify { FT_VERIFY_STRUCTURE, FT_VERIFY_CRC, FT_VERIFY_SHA256 } ft_verify;

/* What keys and values are cached in.  Codes have one scale for each token and head. */
typedef enum ft_kv { FT_KV_AUTO, FT_KV_F16, FT_KV_INT8 } ft_kv;

typedef struct ft_model_options {
    const char *device; /* "cpu" (default) or "cuda:N" */
    ft_verify verify;
    ft_kv kv;     /* decoders only; default: as attention's other values, F32 or a half */
    bool no_fuse; /* run every operation of the graph alone; slow, for tests */
    bool fake; /* run an int8 artifact with codes held in float, multiplied by the float library */
} ft_model_options;

typedef struct ft_model_info {
    const char *family;    /* "bert" */
    const char *precision; /* "float", "blocks" (codes, computed with in float) or "int8" */
    int32_t layers, hidden, heads, vocabulary, max_positions,
        max_seq_length,  /* tokens to which texts are cut, where they are; <= max_positions */
        labels;          /* labels: 0 = no classifier */
    const char *problem; /* what becomes of logits: "single_label_classification" (softmax),
                            "multi_label_classification" (sigmoid of each) or "regression"
                            (nothing: they are the result); NULL: no classifier */
    bool embedding;      /* has the output "embedding" */
    size_t weight_bytes; /* of all tensors in the file */
} ft_model_info;

/*
 * Map an artifact, check it, and plan its execution.  On failure *out is NULL.
 * Weights are used in place on the CPU; the file must stay unchanged while the model is open.
 */
FT_API FT_MUST_USE ft_status ft_model_open(ft_model **out, const char *path,
                                           const ft_model_options *options, ft_error *err);
FT_API void ft_model_close(ft_model *model); /* takes NULL; close all sessions first */

/* Strings live as long as the model. */
FT_API ft_model_info ft_model_get_info(const ft_model *model);

/* Name of class `index` from the checkpoint's id2label, or NULL. */
FT_API const char *ft_model_label(const ft_model *model, int32_t index);

/* Write the plan, one operation a line, for people. */
FT_API FT_MUST_USE ft_status ft_model_write_plan(const ft_model *model, FILE *file, ft_error *err);

/* ---- Sessions ----------------------------------------------------------------------------- */

typedef struct ft_session ft_session;

typedef struct ft_session_options {
    int threads;           /* <= 1024; default: the processors that affinity and CPU quota allow */
    int64_t max_tokens;    /* of one run, padding not counted; default 4096 */
    int64_t max_sequences; /* of one run; default 512, of a decoder 64; of images those that
                              max_tokens allows, which are as many as fit if only this is set */
    const char *const *keep; /* values to keep for ft_session_get, NULL-terminated; may be NULL */

    /* Decoders only. */
    int64_t context;      /* tokens of one sequence; default: the model's positions, at most 4096 */
    int64_t cache_tokens; /* of all sequences together; default: what one run reads, or a context */
    bool every_logits;    /* "logits" of every token of a run, not of each sequence's last one */
    int64_t
        source_tokens; /* encoder-decoders: of all sources together; default: what a run reads */
} ft_session_options;

/* All memory of a session is allocated here; running allocates nothing. */
FT_API FT_MUST_USE ft_status ft_session_open(ft_session **out, const ft_model *model,
                                             const ft_session_options *options, ft_error *err);
FT_API void ft_session_close(ft_session *session); /* takes NULL */

/*
 * Set an input by copy: "input_ids" [N, S] I32 or I64, and optionally "attention_mask" and
 * "token_type_ids" of the same shape (1 = token).  Setting "input_ids" forgets the other two.
 * Masked positions are dropped, not computed.  An encoder-decoder reads sources from these and
 * targets from "decoder_input_ids" [N, T] and "decoder_attention_mask".  A model of images has the
 * one input "pixel_values" [N, channels, height, width] F32, already scaled and normalized.
 */
FT_API FT_MUST_USE ft_status ft_session_set(ft_session *session, const char *name,
                                            const ft_tensor *tensor, ft_error *err);

FT_API FT_MUST_USE ft_status ft_session_run(ft_session *session, ft_error *err);

/*
 * Read an output of the last run: "logits" [N, C] (of a decoder [N, V], the last token's; with
 * options.every_logits [N, S, V]), "embedding" [N, H], "last_hidden_state"
 * [N, S, H] (of images the class's row, then patches; zeros at masked positions; of an
 * encoder-decoder the target's, and "encoder_last_hidden_state" the source's), or a value named in
 * options.keep ([tokens, columns], tokens packed without padding).  Always F32, real values: codes
 * are multiplied by their scale. With out->data NULL only dtype and shape are filled in; otherwise
 * data must hold that many bytes.
 *
 * FT_ENUMBER: a row of an output holds NaN or infinity, and the text says which one; data are
 * filled in all the same.  Kept values are handed out whatever they are.
 */
FT_API FT_MUST_USE ft_status ft_session_get(const ft_session *session, const char *name,
                                            ft_tensor *out, ft_error *err);

/* ---- Generation --------------------------------------------------------------------------- */

/* Why a text ended. */
typedef enum ft_reason {
    FT_REASON_NONE,   /* it goes on */
    FT_REASON_END,    /* a stop id: the token is the last one, and is not part of the text */
    FT_REASON_STRING, /* a stop string has appeared */
    FT_REASON_LENGTH, /* max_new_tokens, or the end of the context */
    FT_REASON_CALLER, /* the callback said so */
    FT_REASON_FAILED, /* a logit was NaN or +infinity; one of -infinity is never chosen */
} ft_reason;

/* "none", "end", "string", "length", "caller", "failed". */
FT_API const char *ft_reason_name(ft_reason reason);

/*
 * A text to be continued.  Logits are changed in this order: repetition, presence and frequency
 * penalty, ban of repeated runs, temperature, top_k, top_p, min_p.  The same request gives the same
 * tokens whatever else a session generates beside it.
 */
typedef struct ft_request {
    const int32_t *prompt; /* [prompt_tokens], at least one; of an encoder-decoder NULL: */
    size_t prompt_tokens;  /* the model's start, and the first token that it forces */
    const int32_t *source; /* [source_tokens], encoder-decoders: what is read; at least one */
    size_t source_tokens;
    int32_t max_new_tokens; /* default: what the context leaves */
    int32_t min_new_tokens; /* no stop id is chosen before */
    float temperature;      /* default 0: the most likely token each time */
    int32_t top_k;          /* only the k most likely; default all */
    float top_p;            /* only the fewest that have this probability together; default all */
    float min_p;            /* only those this likely, relative to the most likely; default all */
    float
        repetition_penalty; /* logits of all tokens of the text: / if positive, else *; default 1 */
    float presence_penalty; /* off the logits of new tokens that occurred */
    float frequency_penalty; /* the same, for each time that they did */
    int32_t no_repeat_ngram; /* no run of so many tokens occurs twice; default: any may */
    uint64_t seed;
    const int32_t *stop_ids; /* [stops]; NULL: those of the model */
    size_t stops;
    const char *const *stop_strings; /* NULL-terminated; may be NULL; need options.tokenizer */
} ft_request;

/* One new token. */
typedef struct ft_token {
    size_t request; /* index of its request */
    size_t index;   /* 0 for the first new token */
    int32_t id;     /* -1 with FT_REASON_FAILED */
    float logprob;  /* of the unchanged logits */
    ft_reason reason;

    /*
     * With options.tokenizer, what the text has grown by: whole characters, and nothing that may
     * still become a stop string.  So a token may add nothing, and a later one more.  The last one
     * adds all that is left.  Until the callback returns; not terminated.
     */
    const char *text;
    size_t text_bytes;
} ft_token;

/*
 * Called for every token, in order within a request.  False ends that request.  A GPU may be busy
 * with the next tokens meanwhile.
 */
typedef bool (*ft_on_token)(void *user, const ft_token *token);

struct ft_tokenizer;

/* Where the time went: a text's first new token comes out of reading its prompt. */
typedef struct ft_generate_stats {
    size_t prompt_tokens, step_tokens; /* read from prompts; chosen by later steps */
    double prompt_seconds, step_seconds;
} ft_generate_stats;

typedef struct ft_generate_options {
    int64_t chunk; /* prompt tokens of one run; default and most: the session's max_tokens */
    const struct ft_tokenizer *tokenizer; /* for text, and so for stop strings; may be NULL */
    ft_generate_stats *stats;             /* filled in, also on failure; may be NULL */
} ft_generate_options;

/*
 * Continue all texts, as many at a time as the session has sequences and room in its cache; a text
 * that ends makes room for one that waits.  All requests are checked before work begins: ids
 * outside the vocabulary, an empty prompt, one that leaves no room in the context, or a text that
 * cannot fit into the cache.  A text whose logits are no finite numbers ends; the others go on,
 * then that is the error, FT_ENUMBER.
 */
FT_API FT_MUST_USE ft_status ft_generate(ft_session *session, const ft_request *requests,
                                         size_t count, const ft_generate_options *options,
                                         ft_on_token on_token, void *user, ft_error *err);

/* ---- Beam search -------------------------------------------------------------------------- */

/* When a search that has found as many texts as it has beams ends. */
typedef enum ft_early {
    FT_EARLY_FALSE, /* when the best beam, ending now, would be no better than the worst of them */
    FT_EARLY_TRUE,  /* at once */
    FT_EARLY_NEVER, /* when it could be no better even by ending at the largest length */
} ft_early;

/*
 * How texts are searched for, with the meanings that Hugging Face transformers gave to these words.
 * The score of a text is the sum of its new tokens' log-probabilities, divided by their number to
 * the power of the length penalty.
 */
typedef struct ft_search_options {
    int32_t beams;             /* 1 (default) to 64 */
    int32_t n_best;            /* texts of each source, at most `beams`; default 1 */
    double length_penalty;     /* default 1 */
    bool keep_sums;            /* a length penalty of 0: scores are sums */
    ft_early early_stopping;   /* default FT_EARLY_FALSE */
    int32_t beam_groups;       /* divides `beams`: so many searches that avoid each other's tokens;
                                  default 1 */
    float diversity_penalty;   /* what a token costs for each beam of earlier groups that took it */
    const int32_t *forced_bos; /* the first new token, -1 for any; NULL: as the model's files say */
    int32_t look_every;        /* steps between looks whether searches are over, which make a device
                                  wait; default 1 on the CPU, elsewhere 4 */
    ft_generate_stats *stats;  /* prompts are sources here, and steps those of all beams; may be
                                  NULL */
} ft_search_options;

/* One text that was found. */
typedef struct ft_found {
    size_t request;     /* index of its request */
    size_t rank;        /* 0 for the best */
    size_t count;       /* texts of this request: n_best, or less where no more have ended */
    const int32_t *ids; /* [tokens]: new ones, an end included; until the callback returns */
    size_t tokens;
    float score;
    ft_reason reason; /* FT_REASON_END or _LENGTH; _FAILED: there is no text */
} ft_found;

/* Called for the texts of a request, the best first, once its search is over.  False ends it all.
 */
typedef bool (*ft_on_found)(void *user, const ft_found *found);

/*
 * Search for the best texts of all sources, as many sources at a time as the session has groups of
 * `beams` sequences and room in its caches.  Of a request, `source` is what is translated; `prompt`
 * is how every text begins, by default with the model's start alone: a first token that is forced
 * behind a prompt of one token is a new one.  The bounds of length, repetition_penalty (of
 * log-probabilities here), no_repeat_ngram and stop_ids hold; all else must be zero.  All is
 * checked before work begins.  A source where a logit is NaN or +infinity has no text; the others
 * go on, then that is the error.
 */
FT_API FT_MUST_USE ft_status ft_search(ft_session *session, const ft_request *requests,
                                       size_t count, const ft_search_options *options,
                                       ft_on_found on_found, void *user, ft_error *err);

/* ---- Tokenizers --------------------------------------------------------------------------- */

typedef struct ft_tokenizer ft_tokenizer;

/* From a model's own tokenizer.json, or from a file. */
FT_API FT_MUST_USE ft_status ft_tokenizer_open_model(ft_tokenizer **out, const ft_model *model,
                                                     ft_error *err);
FT_API FT_MUST_USE ft_status ft_tokenizer_open(ft_tokenizer **out, const char *path, ft_error *err);
FT_API void ft_tokenizer_close(ft_tokenizer *tokenizer); /* takes NULL */

/*
 * Encode text with the special tokens around it.  Writes at most `capacity` ids; *count is the
 * number that there are, so a second call with more room is enough.  A maximum length is the
 * caller's business.  Invalid UTF-8 is FT_EFORMAT.  May be used by many threads at once.
 */
FT_API FT_MUST_USE ft_status ft_tokenizer_encode(const ft_tokenizer *tokenizer, const char *text,
                                                 size_t bytes, int32_t *ids, size_t capacity,
                                                 size_t *count, ft_error *err);

/* The same without special tokens around it: for texts that spell them out, such as chats. */
FT_API FT_MUST_USE ft_status ft_tokenizer_encode_bare(const ft_tokenizer *tokenizer,
                                                      const char *text, size_t bytes, int32_t *ids,
                                                      size_t capacity, size_t *count,
                                                      ft_error *err);

/*
 * Decode ids to text, which is valid UTF-8 and not terminated.  Writes at most `capacity` bytes,
 * *bytes is how many there are.  Bytes that are no UTF-8 become U+FFFD; ids without a token add
 * nothing, nor do special tokens with `skip_special`.  FT_EUNSUPPORTED for a decoder that is not
 * known.  May be used by many threads at once.
 */
FT_API FT_MUST_USE ft_status ft_tokenizer_decode(const ft_tokenizer *tokenizer, const int32_t *ids,
                                                 size_t count, bool skip_special, char *text,
                                                 size_t capacity, size_t *bytes, ft_error *err);

/* How many tokens there are; ids may have gaps and so go further. */
FT_API size_t ft_tokenizer_count(const ft_tokenizer *tokenizer);

/* The id of a token by its text as tokenizer.json writes it ("</s>", "\u0120the"), or -1. */
FT_API int32_t ft_tokenizer_find(const ft_tokenizer *tokenizer, const char *token);

/* Whether an id is that of a special token, which text for people leaves out. */
FT_API bool ft_tokenizer_is_special(const ft_tokenizer *tokenizer, int32_t id);

/* The id of the token that closes a sequence ("[SEP]"), or -1: for those who must cut one. */
FT_API int32_t ft_tokenizer_end_id(const ft_tokenizer *tokenizer);

typedef struct ft_decoder ft_decoder;

/* Decode ids as they come.  The tokenizer must stay open. */
FT_API FT_MUST_USE ft_status ft_decoder_open(ft_decoder **out, const ft_tokenizer *tokenizer,
                                             bool skip_special, ft_error *err);
FT_API void ft_decoder_close(ft_decoder *decoder); /* takes NULL */

/*
 * Decode one more id: *text shows the *bytes that are ready, until the next call.  They are whole
 * characters and final: what a later id could change waits, so there may be none.
 */
FT_API FT_MUST_USE ft_status ft_decoder_push(ft_decoder *decoder, int32_t id, const char **text,
                                             size_t *bytes, ft_error *err);

/*
 * Show what still waits, as the end of the text: all pieces together are what ft_tokenizer_decode
 * makes of the ids.  The decoder is then ready for another text.
 */
FT_API FT_MUST_USE ft_status ft_decoder_finish(ft_decoder *decoder, const char **text,
                                               size_t *bytes, ft_error *err);

/* ---- Chats -------------------------------------------------------------------------------- */

/*
 * The texts that chat models are trained on, with special tokens spelled out:
 *
 *   llama2    <s>[INST] <<SYS>>\nSYSTEM\n<</SYS>>\n\nUSER [/INST] ASSISTANT </s><s>[INST] USER
 * [/INST] llama3    <|begin_of_text|>, then for each message
 *             <|start_header_id|>ROLE<|end_header_id|>\n\nCONTENT<|eot_id|>
 *   mistral   <s>[INST] SYSTEM\n\nUSER [/INST] ASSISTANT</s>[INST] USER [/INST]
 *   qwen2     for each message <|im_start|>ROLE\nCONTENT<|im_end|>\n; without a system message
 *             one goes before, "You are a helpful assistant."
 *
 * Where the last message is not the assistant's, its turn is opened, so that what a model adds is
 * the answer.  llama2 and llama3 trim white space around contents.  Llama 3.1 and later were also
 * given the date by a system message; who wants that writes it.
 */
typedef enum ft_chat {
    FT_CHAT_NONE,
    FT_CHAT_LLAMA2,
    FT_CHAT_LLAMA3,
    FT_CHAT_MISTRAL,
    FT_CHAT_QWEN2,
} ft_chat;

typedef struct ft_chat_message {
    const char *role; /* "system", "user" or "assistant" */
    const char *content;
} ft_chat_message;

/* "llama2" and so on, "none"; NULL for other numbers. */
FT_API const char *ft_chat_name(ft_chat chat);

/*
 * The chat format of a model.  The tokenizer decides: one with <|start_header_id|> and <|eot_id|>
 * is for llama3, with <|im_start|> and <|im_end|> for qwen2.  With neither, but with <s> and </s>,
 * it is mistral or llama2 for a model_type of "mistral" or "llama" (NULL where that is not known).
 * That a model was trained to chat at all, no file says.
 */
FT_API ft_chat ft_chat_find(const ft_tokenizer *tokenizer, const char *model_type);

/*
 * Write a conversation as text, for ft_tokenizer_encode_bare.  Writes at most `capacity` bytes, not
 * terminated; *bytes is how many there are.  A system message may come first; in llama2 and
 * mistral, then, user and assistant take turns.  Contents go in as they are: who lets strangers
 * write them must keep special tokens out.
 */
FT_API FT_MUST_USE ft_status ft_chat_render(ft_chat chat, const ft_chat_message *messages,
                                            size_t count, char *text, size_t capacity,
                                            size_t *bytes, ft_error *err);

#ifdef __cplusplus
}
#endif
#endif
