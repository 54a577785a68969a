/*
 * serving.h - requests to a model by the names of inputs, settings and outputs, for servers.
 *
 * A call is a request of a client from its arrival to its last response.  Its jobs are requests of
 * an engine: one for a text to generate, or one for each row that an encoder reads.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_SERVING_SERVING_H
#define FT_RUNTIME_SERVING_SERVING_H

#include "runtime/error.h"
#include "runtime/model/model.h"

#include <jansson.h>
#include <pthread.h>

/* ---- values.c: bytes, and members that JSON sets --------------------------------------------- */

/* Bytes that grow at the end.  Zero-initialized means empty. */
typedef struct ft_serving_buffer {
    char *data; /* owned; not NULL once something, even nothing, has been appended */
    size_t bytes, capacity;
} ft_serving_buffer;

FT_MUST_USE ft_status ft_serving_append(ft_serving_buffer *buffer, const void *data, size_t bytes,
                                        ft_error *err);

/* Append a text behind its length of 4 bytes. */
FT_MUST_USE ft_status ft_serving_append_text(ft_serving_buffer *buffer, const char *text,
                                             size_t bytes, ft_error *err);

/* A struct member that is set from JSON by name.  Types: i int32_t, I int64_t, f float, F double,
 * b bool, s const char *, a json_t * (a string or an array of strings); the JSON owns both. */
typedef struct ft_serving_member {
    const char *name;
    char type;
    size_t offset;
} ft_serving_member;

/* Set the members named in `values`.  FT_EARG: an unknown name, or a value of another type. */
FT_MUST_USE ft_status ft_serving_set(void *object, const ft_serving_member *members,
                                     const json_t *values, ft_error *err);

/* The index of the object with this "name" in a list, or -1. */
int ft_serving_find(const json_t *list, const char *name);

/* ---- signature.c: inputs and outputs of a model ---------------------------------------------- */

/* Lists of { "name", "data_type": "TYPE_INT32", "dims": [-1] }, without the dimension of a batch.
 */
typedef struct ft_serving_signature {
    json_t *inputs, *outputs; /* owned */
    bool generates, translates;
} ft_serving_signature;

FT_MUST_USE ft_status ft_serving_signature_init(ft_serving_signature *out, const ft_model *model,
                                                bool has_text, ft_error *err);

/* ---- model.c: a model and what all devices share of it --------------------------------------- */

typedef struct ft_serving_options {
    ft_engine_options engine;
    ft_model_options model;
    const char *kv, *verify;  /* while they are read */
    int64_t max_sequence_ids; /* that are remembered between requests */
    bool embed;               /* a decoder computes embeddings */
} ft_serving_options;

/* By their names, from texts.  FT_EARG as of ft_serving_set(). */
FT_MUST_USE ft_status ft_serving_options_read(ft_serving_options *out, const json_t *texts,
                                              ft_error *err);

/* A translator for two languages. */
typedef struct ft_serving_pair {
    char source[32], target[32]; /* "": none is named */
    ft_translator translator;    /* closed: nothing of this is valid */
} ft_serving_pair;

enum { FT_SERVING_PAIRS = 8 };

typedef struct ft_serving_model {
    ft_serving_options options;
    ft_serving_signature signature;
    char *path;               /* of the artifact */
    ft_model *cpu;            /* its tokenizers and labels serve GPUs, too */
    ft_translator tokenizers; /* of any languages; closed if the artifact has none */
    ft_embedding_prompts prompts;
    bool decoupled; /* a server may send several responses to a request */

    pthread_mutex_t lock; /* of what follows */
    ft_serving_pair pair[FT_SERVING_PAIRS];
    size_t num_opened;
    json_t *sequences; /* texts by correlation id, the one used last at the end */
} ft_serving_model;

/* On failure *out is not complete, but is to be closed. */
FT_MUST_USE ft_status ft_serving_model_open(ft_serving_model **out, const char *path,
                                            const ft_serving_options *options, ft_error *err);
void ft_serving_model_close(ft_serving_model *model); /* accepts NULL */

/* ---- instance.c: a model on a device --------------------------------------------------------- */

typedef struct ft_serving_call ft_serving_call;

typedef struct ft_serving_instance {
    ft_serving_model *shared;
    ft_model *model; /* shared->cpu, or owned */
    ft_engine *engine;
    size_t context; /* tokens of a prompt and its continuation */

    pthread_mutex_t lock;   /* of what follows */
    ft_serving_call *first; /* all calls with jobs */
    uint64_t swept;         /* when they were asked whether they are cancelled */
} ft_serving_instance;

/* `gpu`: its number; -1: the CPU.  On failure to be closed as well. */
FT_MUST_USE ft_status ft_serving_instance_open(ft_serving_instance **out, ft_serving_model *model,
                                               int gpu, ft_error *err);
void ft_serving_instance_close(ft_serving_instance *instance); /* accepts NULL */

/* ---- settings.c: what a request says besides tensors ----------------------------------------- */

/* By the names of inputs or parameters. */
typedef struct ft_serving_settings {
    ft_request sampling;
    ft_beam_search_options search; /* beams 0: no beam search */
    int32_t priority;
    bool stream, ignore_eos, truncate;
    const char *source_lang, *target_lang, *prompt_name;
    json_t *stop, *text_input, *text_pair;
} ft_serving_settings;

/* Those of a model. */
const ft_serving_member *ft_serving_members_of(const ft_serving_signature *model);

enum { FT_IN_IDS, FT_IN_MASK, FT_IN_TYPES, FT_IN_PIXELS, FT_IN_COUNT };
extern const char *const ft_serving_tensor_name[FT_IN_COUNT];

/* ---- call.c ---------------------------------------------------------------------------------- */

/* An output of a response.  FT_U8: texts, each behind its length of 4 bytes. */
typedef struct ft_serving_output {
    const char *name;
    ft_dtype dtype;
    int num_dims;
    const int64_t *shape;
    const void *data;
    size_t bytes;
} ft_serving_output;

/* What a server does for calls; in the thread of an engine, or in that of ft_serving_run(). */
typedef struct ft_serving_server {
    bool (*is_cancelled)(const ft_serving_call *call);

    /* A response, with those outputs that the client wants; without any, the end of a stream. */
    ft_status (*send)(ft_serving_call *call, const ft_serving_output *outputs, size_t count,
                      bool final, ft_error *err);

    /* The call has ended, by call->failure if that is not FT_OK, and is no longer used. */
    void (*end)(ft_serving_call *call);
} ft_serving_server;

/* What an encoder computes for a row. */
typedef struct ft_serving_row {
    ft_serving_call *call;
    ft_tensor output[FT_MAX_OUTPUTS];
    void *data; /* of all outputs; owned */
} ft_serving_row;

/* A server fills in the first part of a zero-initialized call. */
struct ft_serving_call {
    const ft_serving_server *server;
    ft_serving_instance *instance;
    ft_tensor input[FT_IN_COUNT]; /* data is owned; NULL: not given */
    json_t *values;               /* owned; by the names of settings */
    uint32_t wanted;              /* a bit for each output of the signature */
    char sequence[128];           /* correlation id; "": none */
    bool starts_sequence, ends_sequence;
    double timeout; /* seconds; 0: none */

    uint64_t submitted, computed; /* nanoseconds of the monotonic clock; 0: not yet */
    ft_serving_settings settings;
    ft_status (*respond)(ft_serving_call *call, ft_error *err); /* with what the jobs computed */

    /* Encoders. */
    const char *output[FT_MAX_OUTPUTS + 1]; /* of the engine, NULL-terminated */
    size_t outputs;
    ft_serving_row *row; /* [rows] */

    /* Generation. */
    ft_serving_buffer text, ids, logprobs; /* for the next response */
    ft_finish_reason reason;
    float score;
    ft_serving_buffer said; /* text of the sequence */
    size_t said_before;     /* bytes without this call */

    /* Under the lock of the instance. */
    size_t rows, running; /* jobs; and those that run, with one for their submission */
    uint64_t *job;        /* [rows]: ids of the engine; 0: none yet */
    ft_error failure;
    ft_serving_call *next, *previous;
};

/* Free the memory that a call owns. */
void ft_serving_call_fini(ft_serving_call *call);

/* Make room for the jobs of a call; from now on it can be cancelled. */
FT_MUST_USE ft_status ft_serving_call_set_rows(ft_serving_call *call, size_t rows, ft_error *err);

/* Start the job of a row, whose on_end leaves the call. */
FT_MUST_USE ft_status ft_serving_call_submit(ft_serving_call *call, ft_engine_request *request,
                                             size_t row, ft_error *err);

/* A job, or the submission, has ended.  The last of them responds and ends the call. */
void ft_serving_call_leave(ft_serving_call *call, ft_status status, const ft_error *failure);

/* Cancel the jobs of all calls that the client has cancelled; checks at most every 10 ms. */
void ft_serving_sweep(ft_serving_instance *instance);
uint64_t ft_serving_now(void);

/* ---- sequences.c: texts that requests of one correlation id continue ------------------------- */

/* Take the text of the call's sequence, if there is one, with `text` appended. */
FT_MUST_USE ft_status ft_serving_sequence_begin(ft_serving_call *call, const json_t *text,
                                                ft_error *err);

/* Put it back; after a failure as it was before. */
void ft_serving_sequence_end(ft_serving_call *call);

/* ---- translation.c: what generation reads ---------------------------------------------------- */

FT_MUST_USE ft_status ft_serving_encode_text(ft_serving_buffer *ids, const ft_tokenizer *tokenizer,
                                             const char *text, size_t bytes, ft_error *err);

/* Append the ids of the text, which may be NULL, by the languages of the call; *first is the token
 * that begins the translation, -1: none. */
FT_MUST_USE ft_status ft_serving_read_source(ft_serving_buffer *ids, int32_t *first,
                                             const ft_serving_call *call, const json_t *text,
                                             ft_error *err);

/* ---- encoder_response.c: what encoders answer ------------------------------------------------ */

/* Name what the engine computes for the outputs that the client wants: logits, for what they mean.
 */
void ft_serving_choose_outputs(ft_serving_call *call);

/* The outputs of all rows, each padded with zeros to the longest. */
FT_MUST_USE ft_status ft_serving_respond_encoded(ft_serving_call *call, ft_error *err);

/* ---- generation.c, encoding.c, run.c --------------------------------------------------------- */

/* Submit the jobs of a call. */
FT_MUST_USE ft_status ft_serving_generate(ft_serving_call *call, ft_error *err);
FT_MUST_USE ft_status ft_serving_encode(ft_serving_call *call, ft_error *err);

/* Answer a call, or fail it if `status`, with `err`, says that it could not be read.  Returns as
 * soon as the engine has its jobs. */
void ft_serving_run(ft_serving_call *call, ft_status status, ft_error *err);

#endif
