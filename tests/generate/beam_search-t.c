/*
 * beam_search-t.c - beam search of encoder-decoders finds what transformers does, in any batch.
 *
 * numbers-m2m is compared with the texts and scores of its reference file, the random models of
 * tests/golden/translator-variants.json with tests/golden/translations.txt.  The random models must
 * also give the same results alone and in a batch.  All tests run on the CPU and on a GPU if
 * present.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/beam_search.h"
#include "runtime/mem.h"
#include "runtime/generate/beam_search.h"
#include "tests/lib/models/converted.h"
#include "tests/lib/folder.h"
#include "tests/lib/golden.h"
#include "tests/lib/random.h"
#include "tests/lib/models/translator_file.h"
#include "tests/tap/tap.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 64, BEST = 8, NEW = 40 };

/* The hypotheses reported for each source. */
typedef struct result {
    size_t count; /* of hypotheses, as reported with the first one */
    size_t told;
    size_t tokens[BEST];
    int32_t id[BEST][NEW];
    float score[BEST];
    ft_finish_reason reason[BEST];
} result;

typedef struct results {
    result of[ROWS];
    size_t out_of_order; /* calls in the wrong order */
    size_t calls, most;  /* most: the call that cancels the search; 0: none */
} results;

static ft_error err;
static ft_model_options how; /* the device under test */

static bool take(void *user, const ft_hypothesis *found)
{
    results *all = user;
    result *r = &all->of[found->request];
    all->calls++;
    all->out_of_order += found->rank != r->told || found->rank >= BEST || found->tokens > NEW;
    r->count = found->count;
    r->reason[r->told] = found->reason;
    r->tokens[r->told] = found->tokens;
    r->score[r->told] = found->score;
    if (found->tokens > 0)
        memcpy(r->id[r->told], found->ids, found->tokens * sizeof *found->ids);
    r->told++;
    return all->calls != all->most;
}

static ft_session *open_session(const ft_model *model, const ft_session_options *options)
{
    ft_session *session;
    if (ft_session_open(&session, model, options, &err) != FT_OK)
        bail_out("%s", err.text);
    return session;
}

static void search(ft_session *session, const ft_request *requests, size_t count,
                   const ft_beam_search_options *options, results *out)
{
    memset(out, 0, sizeof *out);
    if (ft_beam_search(session, requests, count, options, take, out, &err) != FT_OK)
        bail_out("%s", err.text);
    if (out->out_of_order > 0)
        bail_out("%zu texts are out of order", out->out_of_order);
}

static bool same_result(const result *a, const result *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/*
 * Converts a checkpoint to `model.ft` in a folder and opens it; NULL if the checkpoint does not
 * exist or the device has no kernels for it (see err).
 */
static ft_model *open_model(const char *checkpoint, const char *folder)
{
    char path[128];
    const char *paths[] = { checkpoint };
    ft_messages problems = { .count = 0 };
    ft_conversion *conversion;
    ft_model *model;
    snprintf(path, sizeof path, "%s/model.ft", folder);
    ft_status status = ft_conversion_open(&conversion, paths, 1,
                                          &(ft_convert_options){ .cast = false }, &problems);
    if (status != FT_OK)
        return NULL;
    status = converted_write(conversion, path);
    ft_conversion_close(conversion);
    if (status == FT_OK)
        status = ft_model_open(&model, path, &how, &err);
    if (status != FT_OK && status != FT_EUNSUPPORTED)
        bail_out("%s: cannot be opened: %s", checkpoint, err.text);
    return model;
}

/* ---- A trained model ---------------------------------------------------------------------- */

/* Its reference file, with right-padded rows. */
typedef struct reference {
    ft_safetensors *file;
    const ft_tensor *source, *beam4, *greedy;
    const float *score;
} reference;

/* The tokens of a row without its padding. */
static size_t row_of(const ft_tensor *tensor, size_t row, const int32_t **ids)
{
    const int32_t pad = 1;
    size_t count = (size_t) tensor->dim[1];
    *ids = (const int32_t *) tensor->data + row * count;
    while (count > 0 && (*ids)[count - 1] == pad)
        count--;
    return count;
}

static const ft_tensor *tensor_of(const reference *r, const char *name)
{
    const ft_tensor *tensor = ft_safetensors_find(r->file, name);
    if (tensor == NULL)
        bail_out("the reference has no %s", name);
    return tensor;
}

static void open_reference(reference *r, const char *models)
{
    char path[512];
    snprintf(path, sizeof path, "%s/numbers-m2m/reference.safetensors", models);
    if (ft_safetensors_open(&r->file, path, &err) != FT_OK)
        bail_out("%s", err.text);
    r->source = tensor_of(r, "input_ids");
    r->beam4 = tensor_of(r, "beam4");
    r->greedy = tensor_of(r, "greedy");
    r->score = tensor_of(r, "beam4_scores")->data;
}

static void read_sources(const reference *r, ft_request requests[ROWS])
{
    for (size_t i = 0; i < ROWS; i++) {
        requests[i] = (ft_request){ .max_new_tokens = NEW };
        requests[i].source_tokens = row_of(r->source, i, &requests[i].source);
    }
}

/* The number of rows whose best text equals the reference after its start token. */
static int count_exact(const ft_tensor *expected, const results *found)
{
    int exact = 0;
    for (size_t i = 0; i < ROWS; i++) {
        const int32_t *ids;
        size_t count = row_of(expected, i, &ids) - 1;
        const result *f = &found->of[i];
        exact += f->tokens[0] == count && f->reason[0] == FT_FINISH_STOP_ID &&
                 memcmp(f->id[0], ids + 1, count * sizeof *ids) == 0;
    }
    return exact;
}

/* Both sides sum float32 log probabilities in different orders; the largest difference is 3e-7. */
static const double tolerance = 1e-4;

static void test_reference(const ft_model *model, const reference *r)
{
    static results found, again;
    ft_request requests[ROWS];
    double worst = 0.0;
    read_sources(r, requests);
    ft_session *session = open_session(model, &(ft_session_options){ .max_sequences = 64 });
    search(session, requests, ROWS, &(ft_beam_search_options){ .beams = 4, .n_best = 4 }, &found);
    is_int(count_exact(r->beam4, &found), ROWS,
           "numbers-m2m: beam search with 4 beams finds the texts of transformers");
    for (size_t i = 0; i < ROWS; i++)
        worst = fmax(worst, fabs((double) found.of[i].score[0] - (double) r->score[i]));
    diag("scores differ by up to %.3g", worst);
    ok(worst <= tolerance,
       "numbers-m2m: beam search with 4 beams gives the scores of transformers");
    search(session, requests, ROWS, &(ft_beam_search_options){ .beams = 1 }, &again);
    is_int(count_exact(r->greedy, &again), ROWS,
           "numbers-m2m: beam search with one beam equals greedy decoding");
    ft_session_close(session);
}

static void test_numbers(void)
{
    char folder[FOLDER_PATH], path[512];
    reference r;
    const char *models = getenv("FT_MODELS");
    snprintf(path, sizeof path, "%s/numbers-m2m", models == NULL ? "" : models);
    folder_make(folder);
    ft_model *model = open_model(path, folder);
    if (model == NULL) {
        skip(3, "no checkpoint %s; set FT_MODELS to the folder of the test models", path);
    } else {
        open_reference(&r, models);
        test_reference(model, &r);
        ft_safetensors_close(r.file);
    }
    ft_model_close(model);
    folder_remove(folder);
}

/* ---- Random models ------------------------------------------------------------------------ */

enum { WORDS = 97, SOURCES = 9, LONGEST = 17 };

typedef struct sources {
    ft_request request[SOURCES];
    int32_t id[SOURCES][LONGEST];
} sources;

/* Sources of different lengths; every third text has a decoder prompt. */
static void draw_sources(sources *s, rng *chance)
{
    static const int32_t prompt[] = { 2, 40, 41 };
    for (size_t i = 0; i < SOURCES; i++) {
        ft_request *r = &s->request[i];
        *r = (ft_request){ .source = s->id[i], .source_tokens = 1 + rng_below(chance, LONGEST) };
        for (size_t k = 0; k < r->source_tokens; k++)
            s->id[i][k] = 2 + (int32_t) rng_below(chance, WORDS - 2);
        if (i % 3 == 2) {
            r->prompt = prompt;
            r->prompt_tokens = FT_COUNT(prompt);
        }
        r->max_new_tokens = 3 + (int32_t) rng_below(chance, 20);
        r->min_new_tokens = (int32_t) rng_below(chance, 3);
        r->no_repeat_ngram = (int32_t) rng_below(chance, 4);
        r->repetition_penalty = i % 2 == 0 ? 0.0f : 1.2f;
    }
}

static int count_same(const results *a, const results *b)
{
    int same = 0;
    for (size_t i = 0; i < SOURCES; i++)
        same += same_result(&a->of[i], &b->of[i]);
    return same;
}

static bool best_first(const result *r)
{
    for (size_t i = 1; i < r->told; i++)
        if (r->score[i - 1] < r->score[i])
            return false;
    return true;
}

/* Sources alone, in one batch, and in a session too small to hold them all at once. */
static void test_company(const ft_model *model, const char *name, const sources *s,
                         const ft_beam_search_options *options)
{
    static results together, crowded, alone, one;
    const int64_t beams = options->beams;
    ft_session *large = open_session(model, &(ft_session_options){ .max_sequences = SOURCES * beams,
                                                                   .cache_tokens = 1 << 14,
                                                                   .threads = 2 });
    ft_session *small = open_session(model, &(ft_session_options){ .max_sequences = 2 * beams + 1,
                                                                   .max_tokens = 2 * beams + 19,
                                                                   .cache_tokens = 3 * beams * 64,
                                                                   .source_tokens = 128,
                                                                   .threads = 1 });
    search(large, s->request, SOURCES, options, &together);
    search(small, s->request, SOURCES, options, &crowded);
    memset(&alone, 0, sizeof alone);
    for (size_t i = 0; i < SOURCES; i++) {
        search(large, &s->request[i], 1, options, &one);
        alone.of[i] = one.of[0];
    }
    is_int(count_same(&together, &alone), SOURCES,
           "%s, %d beams: a source gives the same result alone and in a batch", name, (int) beams);
    is_int(count_same(&together, &crowded), SOURCES,
           "a session with few slots gives the results of a large one");
    ft_beam_search_options longer = *options;
    longer.poll_every = 7;
    search(large, s->request, SOURCES, &longer, &one);
    is_int(count_same(&together, &one), SOURCES,
           "decode steps after the end of a search change nothing");
    size_t told = 0, ordered = 0;
    for (size_t i = 0; i < SOURCES; i++) {
        told += together.of[i].told == together.of[i].count && together.of[i].told > 0;
        ordered += best_first(&together.of[i]);
    }
    is_int((long long) told, SOURCES, "every hypothesis of a source is reported");
    is_int((long long) ordered, SOURCES,
           "hypotheses are reported in descending order of their scores");
    ft_session_close(large);
    ft_session_close(small);
}

static const ft_beam_search_options kinds[] = {
    { .beams = 1 },
    { .beams = 3, .n_best = 3, .length_penalty = 0.6, .poll_every = 3 },
    { .beams = 8, .n_best = 4, .early_stopping = FT_EARLY_STOPPING_TRUE, .length_penalty = 2.0 },
    { .beams = 6, .n_best = 6, .beam_groups = 3, .diversity_penalty = 0.5f },
    { .beams = 5,
      .n_best = 2,
      .early_stopping = FT_EARLY_STOPPING_NEVER,
      .no_length_normalization = true },
};

/* Every text has the forced first and last token. */
static void test_forced(const ft_model *model, const sources *s)
{
    static results found;
    static const int32_t first = 33, last = 0; /* last: forced_eos_token_id of the model */
    ft_session *session = open_session(model, &(ft_session_options){ .max_sequences = 8 });
    search(session, s->request, SOURCES,
           &(ft_beam_search_options){ .beams = 4, .n_best = 4, .forced_bos = &first }, &found);
    int begin = 0, begins = 0, end = 0, ends = 0;
    for (size_t i = 0; i < SOURCES; i++)
        for (size_t k = 0; k < found.of[i].told; k++) {
            size_t tokens = found.of[i].tokens[k];
            if (s->request[i].prompt_tokens == 0)
                begins++, begin += found.of[i].id[k][0] == first;
            if ((int32_t) tokens == s->request[i].max_new_tokens)
                ends++, end += found.of[i].id[k][tokens - 1] == last;
        }
    ok(begins > 0 && begin == begins, "forced_bos is the first token of a text without a prompt");
    ok(ends > 0 && end == ends,
       "forced_eos_token_id is the last token of a text of maximum length");
    ft_session_close(session);
}

/* ---- Random models and transformers ------------------------------------------------------- */

/* A line of translations.txt. */
typedef struct search_line {
    char name[32];
    int source, beams, early;
    double penalty, score;
    int32_t id[NEW];
    size_t tokens;
} search_line;

static bool read_line(FILE *file, search_line *line)
{
    char text[512], *at = text;
    int used;
    if (fgets(text, sizeof text, file) == NULL)
        return false;
    if (sscanf(text, "%31s %d %d %d %lf %lf%n", line->name, &line->source, &line->beams,
               &line->early, &line->penalty, &line->score, &used) != 6)
        bail_out("translations.txt: %s", text);
    at += used;
    for (line->tokens = 0; line->tokens < NEW; at += used, line->tokens++)
        if (sscanf(at, "%d%n", &line->id[line->tokens], &used) != 1)
            break;
    return true;
}

static size_t read_source(const json_t *variant, int index, int32_t ids[LONGEST])
{
    const json_t *source = json_array_get(json_object_get(variant, "sources"), (size_t) index);
    size_t count = json_array_size(source);
    for (size_t i = 0; i < count && i < LONGEST; i++)
        ids[i] = (int32_t) json_integer_value(json_array_get(source, i));
    return count;
}

/* The comparison of a variant's texts with those of transformers. */
typedef struct comparison {
    size_t lines, same, ties;
    double worst;
} comparison;

static const double tie = 1e-5;

static void compare_line(ft_session *session, const json_t *variant, const search_line *line,
                         comparison *c)
{
    static results found;
    int32_t ids[LONGEST];
    const ft_request request = { .source = ids,
                                 .source_tokens = read_source(variant, line->source, ids),
                                 .max_new_tokens = 20 };
    search(session, &request, 1,
           &(ft_beam_search_options){ .beams = line->beams,
                                      .early_stopping = (ft_early_stopping) line->early,
                                      .length_penalty = line->penalty },
           &found);
    const result *f = &found.of[0];
    double apart = fabs((double) f->score[0] - line->score);
    bool same = f->tokens[0] == line->tokens &&
                memcmp(f->id[0], line->id, line->tokens * sizeof *line->id) == 0;
    c->lines++;
    c->same += same;
    c->ties += !same && apart <= tie;
    c->worst = fmax(c->worst, apart);
    if (!same)
        diag("%s, source %d, %d beams, early %d, penalty %g: another text, scores %.3g apart",
             line->name, line->source, line->beams, line->early, line->penalty, apart);
}

static void test_transformers(const ft_model *model, const json_t *variant, const char *name)
{
    char path[512];
    const char *folder = getenv("FT_SRCDIR");
    comparison c = { .lines = 0 };
    search_line line;
    snprintf(path, sizeof path, "%s/tests/golden/translations.txt", folder == NULL ? "." : folder);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        bail_out("%s cannot be opened", path);
    ft_session *session =
        open_session(model, &(ft_session_options){ .max_sequences = 32, .threads = 1 });
    while (read_line(file, &line))
        if (strcmp(line.name, name) == 0)
            compare_line(session, variant, &line, &c);
    ok(c.lines == 135 && 100 * c.same >= 99 * c.lines && c.same + c.ties == c.lines,
       "%s: beam search finds the texts of transformers in %zu of %zu cases and ties in the others",
       name, c.same, c.lines);
    diag("scores differ by up to %.3g", c.worst);
    ok(c.worst <= tolerance, "beam search gives the scores of transformers");
    ft_session_close(session);
    (void) fclose(file);
}

/* A GPU computes in the checkpoint's dtype; the expected texts were computed in float32. */
static bool computes_in_float(const json_t *variant)
{
    const char *dtype = json_string_value(json_object_get(variant, "dtype"));
    return strncmp(how.device, "cpu", 3) == 0 || strcmp(dtype, "F32") == 0;
}

/* Tests the random model with the index `number`. */
static void test_variant(const json_t *variant, size_t number, rng *chance)
{
    const char *name = json_string_value(json_object_get(variant, "name"));
    tiny t;
    sources s;
    translator_make(&t, variant);
    tiny_write(&t);
    draw_sources(&s, chance);
    ft_model *model = open_model(t.folder, t.folder);
    if (model == NULL) {
        skip(1, "%s", err.text);
    } else {
        if (computes_in_float(variant))
            test_transformers(model, variant, name);
        for (size_t k = 2 * number; k < 2 * number + 2; k++)
            test_company(model, name, &s, &kinds[k % FT_COUNT(kinds)]);
        if (strcmp(name, "marian") == 0)
            test_forced(model, &s);
    }
    ft_model_close(model);
    tiny_remove(&t);
}

static void test_random(const json_t *variants)
{
    rng chance = { 5 };
    size_t i;
    const json_t *variant;
    json_array_foreach(variants, i, variant) test_variant(variant, i, &chance);
}

/* ---- Refused requests --------------------------------------------------------------------- */

static const int32_t words[50] = { 5, 6, 7 };
static ft_session *session; /* 38 positions, 4 sequences, 20 tokens per pass, 128 cached tokens */

/* Checks that the second of two requests is refused and that no text is reported. */
static void refused(const ft_request *request, const ft_beam_search_options *options,
                    ft_status status, const char *text)
{
    const ft_request both[2] = { { .source = words, .source_tokens = 3, .max_new_tokens = 2 },
                                 *request };
    results out = { .calls = 0 };
    memset(&err, 0, sizeof err);
    ft_status found = ft_beam_search(session, both, 2, options, take, &out, &err);
    ok(found == status && strcmp(err.text, text) == 0 && out.calls == 0,
       "ft_beam_search() refuses the request: %s", text);
    if (strcmp(err.text, text) != 0)
        diag("found %s \"%s\"", ft_status_name(found), err.text);
}

#define REQUEST(...)                                                                               \
    &(ft_request)                                                                                  \
    {                                                                                              \
        .source = words, .source_tokens = 3, .max_new_tokens = 2, __VA_ARGS__                      \
    }

static void refused_request(const ft_request *request, ft_status status, const char *text)
{
    char whole[256];
    snprintf(whole, sizeof whole, "prompt 1: %s", text);
    refused(request, &(ft_beam_search_options){ .beams = 2 }, status, whole);
}

static void test_bad_sources(void)
{
    const int32_t high[2] = { 5, WORDS };
    refused_request(&(ft_request){ .prompt = words, .prompt_tokens = 1 }, FT_EARG,
                    "its source has no token");
    refused_request(&(ft_request){ .source = high, .source_tokens = 2 }, FT_EARG,
                    "source token 1 is 97, expected 0 to 96");
    refused_request(&(ft_request){ .source = words, .source_tokens = 21 }, FT_ELIMIT,
                    "a source of 21 tokens, but the session reads at most 20");
}

static void test_bad_texts(void)
{
    const int32_t high[2] = { 5, WORDS };
    const char *const strings[] = { "end", NULL };
    const int32_t many[FT_MAX_BANNED_IDS + 1] = { 1 };
    refused_request(REQUEST(.prompt = high, .prompt_tokens = 2), FT_EARG,
                    "token 1 is 97, expected 0 to 96");
    refused_request(REQUEST(.prompt = words, .prompt_tokens = 40), FT_ELIMIT,
                    "40 tokens leave no room in a context of 40");
    const char *negative = "top_k, no_repeat_ngram and numbers of tokens cannot be negative";
    refused_request(&(ft_request){ .source = words, .source_tokens = 3, .max_new_tokens = -1 },
                    FT_EARG, negative);
    refused_request(REQUEST(.min_new_tokens = -1), FT_EARG, negative);
    refused_request(REQUEST(.no_repeat_ngram = -1), FT_EARG, negative);
    refused_request(REQUEST(.temperature = 1.0f), FT_EARG,
                    "temperature does not apply to beam search");
    refused_request(REQUEST(.top_k = 1), FT_EARG, "top_k does not apply to beam search");
    refused_request(REQUEST(.top_p = 0.5f), FT_EARG, "top_p does not apply to beam search");
    refused_request(REQUEST(.min_p = 0.5f), FT_EARG, "min_p does not apply to beam search");
    refused_request(REQUEST(.presence_penalty = 1.0f), FT_EARG,
                    "presence_penalty does not apply to beam search");
    refused_request(REQUEST(.frequency_penalty = NAN), FT_EARG,
                    "frequency_penalty does not apply to beam search");
    refused_request(REQUEST(.stop_strings = strings), FT_EARG,
                    "stop_strings does not apply to beam search");
    refused_request(REQUEST(.repetition_penalty = NAN), FT_EARG,
                    "repetition_penalty is nan, expected 0 to 1e+06");
    refused_request(REQUEST(.stop_ids = many, .stops = FT_MAX_BANNED_IDS + 1), FT_ELIMIT,
                    "17 stop ids, expected at most 16");
    refused_request(REQUEST(.stop_ids = high, .stops = 2), FT_EARG, "stop id 97, expected 0 to 96");
}

static void test_bad_options(void)
{
    static const int32_t high = WORDS, low = -2;
    const ft_request *fine = REQUEST(.seed = 0);
    refused(fine, &(ft_beam_search_options){ .beams = 65 }, FT_EARG,
            "beams is 65, expected 1 to 64");
    refused(fine, &(ft_beam_search_options){ .beams = -1 }, FT_EARG,
            "beams is -1, expected 1 to 64");
    refused(fine, &(ft_beam_search_options){ .beams = 2, .n_best = 3 }, FT_EARG,
            "n_best is 3, expected 1 to 2");
    refused(fine, &(ft_beam_search_options){ .beams = 4, .beam_groups = 5 }, FT_EARG,
            "beam_groups is 5, expected 1 to 4");
    refused(fine, &(ft_beam_search_options){ .beams = 4, .beam_groups = 3 }, FT_EARG,
            "beam_groups is 3, which does not divide 4 beams");
    refused(fine, &(ft_beam_search_options){ .beams = 4, .diversity_penalty = 0.5f }, FT_EARG,
            "diversity_penalty is 0.5, which needs beam_groups of at least 2");
    refused(fine,
            &(ft_beam_search_options){ .beams = 4, .beam_groups = 2, .diversity_penalty = -1.0f },
            FT_EARG, "diversity_penalty is -1, expected 0 to 1e+06");
    refused(fine, &(ft_beam_search_options){ .early_stopping = (ft_early_stopping) 3 }, FT_EARG,
            "early_stopping is 3, expected 0 to 2");
    refused(fine, &(ft_beam_search_options){ .length_penalty = (double) NAN }, FT_EARG,
            "length_penalty is nan, expected -8 to 8");
    refused(fine, &(ft_beam_search_options){ .poll_every = -1 }, FT_EARG,
            "poll_every is -1, expected 1 to 2147483647");
    refused(fine, &(ft_beam_search_options){ .forced_bos = &high }, FT_EARG,
            "forced_bos is 97, expected -1 to 96");
    refused(fine, &(ft_beam_search_options){ .forced_bos = &low }, FT_EARG,
            "forced_bos is -2, expected -1 to 96");
    refused(fine, &(ft_beam_search_options){ .beams = 5 }, FT_ELIMIT,
            "5 beams need max_sequences and max_tokens of at least that many; the session has 4 "
            "and 20");
}

static void test_bad_room(const ft_model *model)
{
    session = open_session(model, &(ft_session_options){ .max_sequences = 4,
                                                         .max_tokens = 40,
                                                         .cache_tokens = 64,
                                                         .context = 40,
                                                         .source_tokens = 64 });
    refused(REQUEST(.seed = 0), &(ft_beam_search_options){ .beams = 4 }, FT_ELIMIT,
            "prompt 0: 4 beams of 3 tokens need 256 tokens of KV cache, which has 64");
    ft_session_close(session);
}

static void test_refused(const json_t *variants)
{
    tiny t;
    translator_make(&t, llama_variant(variants, "m2m"));
    tiny_write(&t);
    ft_model *model = open_model(t.folder, t.folder);
    if (model == NULL)
        bail_out("m2m cannot be converted");
    session = open_session(model, &(ft_session_options){ .max_sequences = 4, .max_tokens = 20 });
    test_bad_sources();
    test_bad_texts();
    test_bad_options();
    static results out;
    search(session, REQUEST(.min_new_tokens = 1), 1, NULL, &out);
    ok(out.calls == 1 && out.of[0].tokens[0] == 2,
       "ft_beam_search() works after it has refused requests");
    search(session, NULL, 0, NULL, &out);
    is_int((long long) out.calls, 0, "ft_beam_search() without requests does nothing");
    memset(&out, 0, sizeof out);
    out.most = 2;
    const ft_request three[] = { *REQUEST(.seed = 0), *REQUEST(.seed = 0), *REQUEST(.seed = 0) };
    ok(ft_beam_search(session, three, 3, &(ft_beam_search_options){ .beams = 4, .n_best = 3 }, take,
                      &out, &err) == FT_OK &&
           out.calls == 2,
       "the callback can cancel the search");
    ft_session_close(session);
    test_bad_room(model);
    ft_model_close(model);
    tiny_remove(&t);
}

/* ---- Non-finite logits ---------------------------------------------------------------------- */

/* Overwrites a row of the token embedding under each of its names. */
static void spoil_word(tiny *t, int64_t word)
{
    static const char *const names[] = { "model.shared.weight", "model.encoder.embed_tokens.weight",
                                         "model.decoder.embed_tokens.weight" };
    for (size_t i = 0; i < FT_COUNT(names); i++) {
        ft_tensor *table = tiny_find(t, names[i]);
        for (int64_t k = 0; k < table->dim[1]; k++)
            ((float *) table->data)[word * table->dim[1] + k] = FLT_MAX;
    }
}

/*
 * A token whose embedding overflows when it is scaled makes every source with it fail, and no
 * other: its row of the output head is finite, and the short texts do not contain it.
 */
static void test_no_number(const json_t *variants)
{
    enum { SPOILT = 9, SHORT = 6 };
    static const int32_t first[] = { 5, 6, 7 }, spoilt[] = { 5, SPOILT, 7 }, last[] = { 8, 4 };
    const ft_request requests[] = {
        { .source = first, .source_tokens = FT_COUNT(first), .max_new_tokens = SHORT },
        { .source = spoilt, .source_tokens = FT_COUNT(spoilt), .max_new_tokens = SHORT },
        { .source = last, .source_tokens = FT_COUNT(last), .max_new_tokens = SHORT },
    };
    const ft_beam_search_options options = { .beams = 2 };
    static results sound, found;
    tiny t;
    translator_make(&t, llama_variant(variants, "m2m-untied"));
    for (int which = 0; which < 2; which++) {
        results *out = which == 0 ? &sound : &found;
        if (which == 1)
            spoil_word(&t, SPOILT);
        tiny_write(&t);
        ft_model *model = open_model(t.folder, t.folder);
        if (model == NULL)
            bail_out("m2m-untied cannot be converted");
        session = open_session(model, &(ft_session_options){ .max_sequences = 8 });
        ft_status status = ft_beam_search(session, requests, 3, &options, take, out, &err);
        is_int(status, which == 0 ? FT_OK : FT_ENONFINITE,
               "ft_beam_search() returns the expected status with%s a non-finite embedding",
               which == 0 ? "out" : "");
        ft_session_close(session);
        ft_model_close(model);
    }
    is_str(err.text, "prompt 1: a logit is not finite",
           "the error names the source whose logits are not finite");
    const result *none = &found.of[1];
    ok(none->told == 1 && none->count == 0 && none->tokens[0] == 0 &&
           none->reason[0] == FT_FINISH_FAILED,
       "a source with a non-finite embedding has no hypothesis");
    ok(same_result(&sound.of[0], &found.of[0]) && same_result(&sound.of[2], &found.of[2]),
       "a source with a non-finite embedding does not affect other sources");
    is_str(ft_finish_reason_name(FT_FINISH_FAILED), "failed",
           "ft_finish_reason_name() has a name for FT_FINISH_FAILED");
    tiny_remove(&t);
}

static void test_device(const char *name, const json_t *variants)
{
    how.device = name;
    diag("on %s", name);
    test_numbers();
    test_random(variants);
    test_refused(variants);
    test_no_number(variants);
}

int main(void)
{
    json_t *variants = golden_json("translator-variants.json");
    ft_device_info devices[2]; /* the CPU, and the first GPU or the reason for its absence */
    test_device("cpu", variants);
    if (ft_devices(devices, FT_COUNT(devices)) > 1 && devices[1].usable)
        test_device(devices[1].name, variants);
    else
        skip(1, "%s", devices[1].detail);
    json_decref(variants);
    return done_testing();
}
