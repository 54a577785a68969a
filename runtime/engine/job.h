/*
 * job.h - a request that an engine has accepted: a copy of everything that the caller gave.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_ENGINE_JOB_H
#define FT_RUNTIME_ENGINE_JOB_H

#include "runtime/generate/sequence.h"
#include "runtime/model/session.h"

typedef enum ft_job_kind { FT_JOB_GENERATION, FT_JOB_SEARCH, FT_JOB_ENCODING } ft_job_kind;

typedef struct ft_job ft_job;

/* Inputs of an encoder: ids, mask and types of the same shape, or images. */
typedef struct ft_job_inputs {
    size_t rows, cols;             /* of images, cols is 0 */
    size_t tokens;                 /* that are not masked */
    int32_t *value[FT_NUM_INPUTS]; /* [rows, cols] each; NULL: not given */
    float *pixels;                 /* [rows, channels, height, width]; NULL: no images */
    int64_t image[3];              /* channels, height, width */
} ft_job_inputs;

struct ft_job {
    ft_sequence sequence; /* the first member; of all kinds, for lists and priorities */
    ft_job_kind kind;
    uint64_t id;
    double submitted, deadline;  /* on the monotonic clock; deadline INFINITY: none */
    ft_engine_request callbacks; /* nothing else of it is valid */
    ft_beam_search_options beams;
    int32_t forced_bos;
    ft_job_inputs inputs;
    bool default_prompt; /* the prompt is the model's, not a copy */
    char **outputs;      /* NULL-terminated */
    size_t num_outputs;

    /* Of the engine, under its lock. */
    ft_job *next, *previous; /* in the list of all jobs */
    bool cancelled;
    bool runs; /* counted in ft_engine_stats.running */

    /* Of the engine's thread. */
    bool started, late;  /* late: its deadline has passed */
    bool search_stopped; /* by on_hypothesis */
};

/* The job of a list element. */
static inline ft_job *ft_job_of(ft_sequence *sequence)
{
    return (ft_job *) sequence;
}

/*
 * Copy a request of the right form, without checking its contents: FT_EARG, FT_ESHAPE, FT_ENOMEM.
 * Free with ft_job_free(), which accepts NULL.
 */
FT_MUST_USE ft_status ft_job_new(ft_job **out, const ft_engine_request *request, ft_error *err);
void ft_job_free(ft_job *job);

/* The parts of ft_job_new(): a NULL-terminated array, and the inputs and outputs of an encoder. */
FT_MUST_USE ft_status ft_job_copy_strings(char ***out, const char *const *strings, ft_error *err);
FT_MUST_USE ft_status ft_job_copy_inputs(ft_job *job, const ft_engine_request *from, ft_error *err);

/* "input_ids", ... by FT_INPUT_*. */
extern const char *const ft_job_input_name[FT_NUM_INPUTS];

/* Tensors of the shapes that sessions take. */
ft_tensor ft_job_token_tensor(int32_t *values, size_t rows, size_t cols);
ft_tensor ft_job_pixel_tensor(const ft_job_inputs *like, float *pixels, size_t rows);

/* Check the inputs and outputs of an encoder job as a session would, and count its tokens. */
FT_MUST_USE ft_status ft_job_check_inputs(ft_job *job, const ft_session *session, ft_error *err);

#endif
