/*
 * engine_batches-t.c - an engine gives requests to encoders and beam searches the results that they
 * get alone.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "tests/lib/folder.h"
#include "tests/lib/golden.h"
#include "tests/lib/models/calibrated.h"
#include "tests/lib/models/converted.h"
#include "tests/lib/models/translator_file.h"
#include "tests/lib/models/vit_file.h"
#include "tests/lib/random.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXTS = 40, ROWS = 3, COLS = 10, WORDS = 20, FLOATS = 1 << 12 };

static ft_error err;

static ft_engine *opened(const ft_model *model, const ft_engine_options *options)
{
    ft_engine *engine;
    if (ft_engine_open(&engine, model, options, &err) != FT_OK)
        bail_out("no engine: %s", err.text);
    return engine;
}

static void close_drained(ft_engine *engine, ft_engine_stats *stats)
{
    *stats = (ft_engine_stats){ .size = sizeof *stats };
    if (ft_engine_drain(engine, &err) != FT_OK ||
        ft_engine_get_stats(engine, stats, &err) != FT_OK || ft_engine_close(engine, &err) != FT_OK)
        bail_out("%s", err.text);
}

/* ---- Encoders ------------------------------------------------------------------------------- */

typedef struct text {
    int32_t ids[ROWS * COLS], mask[ROWS * COLS], types[ROWS * COLS];
    model_input input;
    const char *name; /* of its output */
    float found[FLOATS];
    size_t count;
    ft_status status;
    int ends;
} text;

static const char *const names[] = { "last_hidden_state", "logits" };

static void make_text(text *t, int index, rng *chance)
{
    int rows = 1 + (int) rng_below(chance, ROWS), cols = 1 + (int) rng_below(chance, COLS);
    memset(t, 0, sizeof *t);
    for (int i = 0; i < rows * cols; i++) {
        t->ids[i] = (int32_t) rng_below(chance, WORDS);
        t->mask[i] = i % cols == 0 || rng_below(chance, 4) > 0;
        t->types[i] = (int32_t) rng_below(chance, 2);
    }
    t->input = (model_input){ rows, cols, t->ids, index % 3 == 0 ? NULL : t->mask,
                              index % 4 == 0 ? NULL : t->types };
    t->name = names[index % 2];
}

static void take_outputs(void *user, uint64_t id, const ft_engine_tensor *outputs, size_t count)
{
    text *t = user;
    (void) id;
    t->count = ft_tensor_numel(&outputs[0].tensor);
    if (count != 1 || strcmp(outputs[0].name, t->name) != 0 || t->count > FLOATS)
        bail_out("the outputs are not those of the request");
    memcpy(t->found, outputs[0].tensor.data, t->count * sizeof *t->found);
}

static void end_text(void *user, uint64_t id, ft_status status, const ft_error *failure)
{
    text *t = user;
    (void) id, (void) failure;
    t->status = status;
    t->ends++;
}

static ft_tensor matrix(const int32_t *values, const model_input *in)
{
    return (ft_tensor){ .dtype = FT_I32,
                        .ndim = 2,
                        .dim = { in->rows, in->cols },
                        .data = (int32_t *) (uintptr_t) values };
}

static ft_status submit_text(ft_engine *engine, text *t)
{
    const model_input *in = &t->input;
    ft_engine_tensor inputs[3] = { { "input_ids", matrix(in->ids, in) } };
    size_t count = 1;
    if (in->mask != NULL)
        inputs[count++] = (ft_engine_tensor){ "attention_mask", matrix(in->mask, in) };
    if (in->types != NULL)
        inputs[count++] = (ft_engine_tensor){ "token_type_ids", matrix(in->types, in) };
    const ft_engine_request request = { .inputs = inputs,
                                        .num_inputs = count,
                                        .outputs = (const char *const[]){ t->name, NULL },
                                        .on_outputs = take_outputs,
                                        .on_end = end_text,
                                        .user = t };
    return ft_engine_submit(engine, &request, NULL, &err);
}

static bool is_alone(const ft_model *model, const text *t)
{
    size_t count;
    float *alone = calibrated_result(model, &t->input, t->name, &count);
    bool same = count == t->count && memcmp(alone, t->found, count * sizeof *alone) == 0;
    free(alone);
    return same;
}

static void test_encoder(const char *path, const char *kind, int64_t wait)
{
    static text texts[TEXTS];
    ft_model *model = calibrated_open(path, NULL);
    ft_engine_stats stats;
    rng chance = { 5 };
    ft_engine *engine =
        opened(model, &(ft_engine_options){ .threads = 1, .max_sequences = 8, .batch_wait = wait });
    int right = 0;
    for (int i = 0; i < TEXTS; i++) {
        make_text(&texts[i], i, &chance);
        if (submit_text(engine, &texts[i]) != FT_OK)
            bail_out("%s", err.text);
    }
    close_drained(engine, &stats);
    for (int i = 0; i < TEXTS; i++)
        right += texts[i].status == FT_OK && texts[i].ends == 1 && is_alone(model, &texts[i]);
    is_int(right, TEXTS, "%s, batches that wait %d us: every request has the outputs it has alone",
           kind, (int) wait);
    if (wait > 0)
        ok(stats.passes < TEXTS / 2, "%s: %d requests took %d forward passes", kind, TEXTS,
           (int) stats.passes);
    ft_model_close(model);
}

static void test_refused_texts(const char *path)
{
    ft_model *model = calibrated_open(path, NULL);
    ft_engine *engine = opened(model, &(ft_engine_options){ .threads = 1, .max_sequences = 2 });
    rng chance = { 6 };
    static text t;
    make_text(&t, 0, &chance);
    t.name = "embedding";
    is_int(submit_text(engine, &t), FT_EARG, "an output that the model has not is refused");
    t.name = "logits";
    t.input.rows = 1;
    t.ids[0] = 1 << 20;
    is_int(submit_text(engine, &t), FT_EARG, "a token outside the vocabulary is refused");
    t.ids[0] = 1;
    t.input.rows = 3;
    is_int(submit_text(engine, &t), FT_ELIMIT, "more rows than a batch has are refused");
    const int32_t ids[1] = { 1 };
    is_int(ft_engine_submit(
               engine,
               &(ft_engine_request){ .generate = &(ft_request){ .prompt = ids, .prompt_tokens = 1 },
                                     .on_token = (ft_on_token) (uintptr_t) take_outputs },
               NULL, &err),
           FT_EUNSUPPORTED, "an encoder does not generate text");
    ft_engine_close(engine, NULL);
    ft_model_close(model);
}

/* ---- Images --------------------------------------------------------------------------------- */

enum { REQUESTS = 12, MOST_IMAGES = 3, PIXELS = 3 * 12 * 12, CLASSES = 5 };

typedef struct pictures {
    float pixels[MOST_IMAGES * PIXELS];
    ft_tensor tensor;
    float found[MOST_IMAGES * CLASSES], alone[MOST_IMAGES * CLASSES];
    size_t count;
} pictures;

static void take_classes(void *user, uint64_t id, const ft_engine_tensor *outputs, size_t count)
{
    pictures *p = user;
    (void) id, (void) count;
    p->count = ft_tensor_numel(&outputs[0].tensor);
    memcpy(p->found, outputs[0].tensor.data, p->count * sizeof *p->found);
}

static void make_pictures(pictures *p, rng *chance)
{
    memset(p, 0, sizeof *p);
    int images = 1 + (int) rng_below(chance, MOST_IMAGES);
    for (int i = 0; i < images * PIXELS; i++)
        p->pixels[i] = (float) rng_below(chance, 256) / 128.0f - 1.0f;
    p->tensor = (ft_tensor){ FT_F32, FT_ROW, 4, { images, 3, 12, 12 }, p->pixels };
}

static void classify_alone(ft_session *session, pictures *p)
{
    ft_tensor logits = { .data = p->alone };
    if (ft_session_set(session, "pixel_values", &p->tensor, &err) != FT_OK ||
        ft_session_run(session, &err) != FT_OK ||
        ft_session_get(session, "logits", &logits, &err) != FT_OK)
        bail_out("%s", err.text);
}

static void submit_pictures(ft_engine *engine, pictures *p)
{
    static const char *const classes[] = { "logits", NULL };
    const ft_engine_tensor input = { "pixel_values", p->tensor };
    const ft_engine_request request = {
        .inputs = &input, .num_inputs = 1, .outputs = classes, .on_outputs = take_classes, .user = p
    };
    if (ft_engine_submit(engine, &request, NULL, &err) != FT_OK)
        bail_out("%s", err.text);
}

static void test_images(void)
{
    static pictures p[REQUESTS];
    tiny t;
    char path[TINY_FOLDER + 16];
    ft_engine_stats stats;
    rng chance = { 12 };
    json_t *variants = golden_json("vit-variants.json");
    vit_make(&t, llama_variant(variants, "classes"));
    ft_artifact_close(converted(&t, &(const ft_convert_options){ .cast = false }));
    snprintf(path, sizeof path, "%s/model.ft", t.folder);
    ft_model *model = calibrated_open(path, NULL);
    ft_session *session = calibrated_session(model, &(ft_session_options){ .threads = 1 });
    ft_engine *engine =
        opened(model, &(ft_engine_options){ .threads = 1, .max_sequences = 7, .batch_wait = 5000 });
    int right = 0;
    for (int i = 0; i < REQUESTS; i++) {
        make_pictures(&p[i], &chance);
        classify_alone(session, &p[i]);
        submit_pictures(engine, &p[i]);
    }
    p[0].tensor.dim[2] = 11;
    const ft_engine_request odd = {
        .inputs = &(const ft_engine_tensor){ "pixel_values", p[0].tensor },
        .num_inputs = 1,
        .outputs = (const char *const[]){ "logits", NULL },
        .on_outputs = take_classes,
    };
    is_int(ft_engine_submit(engine, &odd, NULL, &err), FT_ESHAPE,
           "images of another size than the model's are refused");
    close_drained(engine, &stats);
    for (int i = 0; i < REQUESTS; i++)
        right += p[i].count == (size_t) p[i].tensor.dim[0] * CLASSES &&
                 memcmp(p[i].found, p[i].alone, sizeof p[i].found) == 0;
    is_int(right, REQUESTS, "images get the logits that they get alone");
    ok(stats.passes < REQUESTS, "%d requests with images took %d forward passes", REQUESTS,
       (int) stats.passes);
    ft_session_close(session);
    ft_model_close(model);
    tiny_remove(&t);
    json_decref(variants);
}

/* ---- Beam searches -------------------------------------------------------------------------- */

enum { SOURCES = 9, BEST = 3, NEW = 16 };

typedef struct source {
    int32_t id[12];
    ft_request request;
    int32_t alone[BEST][NEW], found[BEST][NEW];
    float alone_score[BEST], found_score[BEST];
    size_t tokens; /* of the answer by generation */
    ft_status status;
    int ends;
} source;

static bool take_alone(void *user, const ft_hypothesis *h)
{
    source *s = user;
    memcpy(s->alone[h->rank], h->ids, h->tokens * sizeof *h->ids);
    s->alone_score[h->rank] = h->score;
    return true;
}

static bool take_found(void *user, const ft_hypothesis *h)
{
    source *s = user;
    memcpy(s->found[h->rank], h->ids, h->tokens * sizeof *h->ids);
    s->found_score[h->rank] = h->score;
    return true;
}

static bool count_token(void *user, const ft_token *token)
{
    source *s = user;
    (void) token;
    s->tokens++;
    return true;
}

static void end_source(void *user, uint64_t id, ft_status status, const ft_error *failure)
{
    source *s = user;
    (void) id, (void) failure;
    s->status = status;
    s->ends++;
}

static void make_source(source *s, rng *chance)
{
    memset(s, 0, sizeof *s);
    size_t count = 1 + rng_below(chance, 12);
    for (size_t i = 0; i < count; i++)
        s->id[i] = 2 + (int32_t) rng_below(chance, 30);
    s->request = (ft_request){ .source = s->id, .source_tokens = count, .max_new_tokens = NEW };
}

static const ft_beam_search_options kinds[] = {
    { .beams = 3, .n_best = BEST },
    { .beams = 2, .n_best = 2, .length_penalty = 0.6 },
};

static void submit_sources(ft_engine *engine, source *sources)
{
    for (int i = 0; i < SOURCES; i++) {
        ft_engine_request r = { .generate = &sources[i].request,
                                .on_end = end_source,
                                .user = &sources[i] };
        if (i % 3 == 2)
            r.on_token = count_token;
        else {
            r.beams = &kinds[i % 3];
            r.on_hypothesis = take_found;
        }
        if (ft_engine_submit(engine, &r, NULL, &err) != FT_OK)
            bail_out("%s", err.text);
    }
}

static void test_searches(void)
{
    static source s[SOURCES];
    tiny t;
    char path[TINY_FOLDER + 16];
    ft_model *model;
    ft_session *session;
    ft_engine_stats stats;
    rng chance = { 9 };
    json_t *variants = golden_json("translator-variants.json");
    translator_make(&t, llama_variant(variants, "m2m"));
    ft_artifact *artifact = converted(&t, &(const ft_convert_options){ .cast = false });
    snprintf(path, sizeof path, "%s/model.ft", t.folder);
    if (artifact == NULL || ft_model_open(&model, path, NULL, &err) != FT_OK ||
        ft_session_open(&session, model, &(ft_session_options){ .threads = 1 }, &err) != FT_OK)
        bail_out("no model: %s", err.text);
    for (int i = 0; i < SOURCES; i++) {
        make_source(&s[i], &chance);
        if (i % 3 != 2 && ft_beam_search(session, &s[i].request, 1, &kinds[i % 3], take_alone,
                                         &s[i], &err) != FT_OK)
            bail_out("%s", err.text);
    }
    ft_engine *engine = opened(model, &(ft_engine_options){ .threads = 1, .max_sequences = 12 });
    submit_sources(engine, s);
    close_drained(engine, &stats);
    int searched = 0, generated = 0;
    for (int i = 0; i < SOURCES; i++) {
        bool ended = s[i].status == FT_OK && s[i].ends == 1;
        generated += i % 3 == 2 && ended && s[i].tokens > 0;
        searched += i % 3 != 2 && ended && memcmp(s[i].alone, s[i].found, sizeof s[i].alone) == 0 &&
                    memcmp(s[i].alone_score, s[i].found_score, sizeof s[i].alone_score) == 0;
    }
    is_int(searched, 6, "beam searches find the hypotheses and scores that they find alone");
    is_int(generated, 3, "an engine generates and searches in turn");
    ft_session_close(session);
    ft_model_close(model);
    ft_artifact_close(artifact);
    tiny_remove(&t);
    json_decref(variants);
}

int main(void)
{
    calibrated made;
    tiny t;
    tiny_make_classifier(&t);
    calibrated_make(&made, &t);
    test_encoder(made.real, "float", 0);
    test_encoder(made.quantized, "int8", 0);
    test_encoder(made.quantized, "int8", 200000);
    test_refused_texts(made.real);
    tiny_remove(&t);
    test_images();
    test_searches();
    return done_testing();
}
