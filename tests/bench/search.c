/*
 * search.c - speed of complete beam searches of an artifact through the public interface.
 *
 *     tests/bench/search MODEL.ft DATA.safetensors [-k BEAMS] [-n TOKENS] [-b SOURCES] [-g SOURCES]
 *                        [-t THREADS] [-r RUNS]
 *
 * Translates all sources of the data in calls of b sources (default: one call), of which a session
 * holds g at a time (default: all of a call).  Hypotheses have at most n new tokens.  Prints
 * "seconds MEDIAN MIN, N tokens" of r runs over the data, after one warm-up run: N is the number of
 * new tokens of the best hypotheses, including their end tokens.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/kv_cache.h"
#include "runtime/base/clock.h"
#include "runtime/data/dataset.h"
#include "runtime/mem.h"
#include "tests/bench/measure.h"

#include <stdlib.h>
#include <unistd.h>

typedef struct options {
    int beams, tokens, call, groups, threads, runs;
} options;

static options read_options(int argc, char **argv)
{
    options o = { .beams = 4, .tokens = 28, .threads = 2, .runs = 20 };
    for (int option; (option = getopt(argc, argv, "k:n:b:g:t:r:")) != -1;) {
        int number = option == '?' ? 0 : atoi(optarg);
        if (number < 1)
            fail("usage: search MODEL.ft DATA.safetensors [-k BEAMS] [-n TOKENS] [-b SOURCES] "
                 "[-g SOURCES] [-t THREADS] [-r RUNS]");
        *(option == 'k'   ? &o.beams
          : option == 'n' ? &o.tokens
          : option == 'b' ? &o.call
          : option == 'g' ? &o.groups
          : option == 't' ? &o.threads
                          : &o.runs) = number;
    }
    if (optind + 2 != argc)
        fail("give one artifact and one file of sources");
    return o;
}

/* A request for each row of the data, whose tokens are moved to the front of the row. */
static ft_request *requests_of(const ft_dataset *data, int tokens)
{
    ft_request *request = ft_calloc(data->rows, sizeof *request);
    if (request == NULL)
        fail("out of memory");
    for (size_t i = 0; i < data->rows; i++) {
        int32_t *ids = data->ids + i * data->cols;
        request[i].source = ids;
        request[i].max_new_tokens = tokens;
        for (size_t k = 0; k < data->cols; k++)
            if (data->mask[i * data->cols + k] != 0)
                ids[request[i].source_tokens++] = ids[k];
    }
    return request;
}

/* A session with capacity for `groups` sources and all their beams. */
static ft_session *open_session(const ft_model *model, const options *o, const ft_dataset *data)
{
    size_t groups = (size_t) o->groups, num_slots = groups * (size_t) o->beams;
    size_t context = (size_t) o->tokens + 1, longest = ft_dataset_max_length(data);
    size_t tokens = longest > 512 ? longest : 512;
    ft_session_options room = {
        .threads = o->threads,
        .max_sequences = (int64_t) num_slots,
        .max_tokens = (int64_t) (tokens > num_slots ? tokens : num_slots),
        .context = (int64_t) context,
        .source_tokens = (int64_t) (groups * ft_round_up(data->cols, FT_PAGE_TOKENS)),
        .cache_tokens = (int64_t) (num_slots * ft_round_up(context, FT_PAGE_TOKENS)),
    };
    ft_session *session;
    ft_error err;
    must(ft_session_open(&session, model, &room, &err), &err);
    return session;
}

static bool count_tokens(void *user, const ft_hypothesis *found)
{
    *(size_t *) user += found->tokens;
    return true;
}

/* Runs all searches; returns the number of tokens found. */
static size_t search_all(ft_session *session, const ft_request *request, size_t count,
                         const options *o)
{
    size_t found = 0, call = (size_t) o->call;
    const ft_beam_search_options how = { .beams = o->beams };
    ft_error err;
    for (size_t i = 0; i < count; i += call)
        must(ft_beam_search(session, request + i, ft_min_size(call, count - i), &how, count_tokens,
                            &found, &err),
             &err);
    return found;
}

int main(int argc, char **argv)
{
    options o = read_options(argc, argv);
    ft_model *model;
    ft_dataset data;
    ft_error err;
    must(ft_model_open(&model, argv[optind], NULL, &err), &err);
    must(ft_dataset_read(&data, argv[optind + 1], model, &err), &err);
    o.call = o.call > 0 ? o.call : (int) data.rows;
    o.groups = o.groups > 0 ? o.groups : o.call;
    ft_request *request = requests_of(&data, o.tokens);
    ft_session *session = open_session(model, &o, &data);
    double *seconds = ft_calloc((size_t) o.runs, sizeof *seconds);
    if (seconds == NULL)
        fail("out of memory");
    size_t found = search_all(session, request, data.rows, &o);
    for (int i = 0; i < o.runs; i++) {
        double before = ft_monotonic_seconds();
        if (search_all(session, request, data.rows, &o) != found)
            fail("two runs found different hypotheses");
        seconds[i] = ft_monotonic_seconds() - before;
    }
    double median = quantile(seconds, (size_t) o.runs, 50);
    printf("seconds %.6f %.6f, %zu tokens\n", median, seconds[0], found);
    ft_session_close(session);
    free(seconds);
    free(request);
    ft_dataset_fini(&data);
    ft_model_close(model);
    return 0;
}
