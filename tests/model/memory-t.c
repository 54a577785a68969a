/*
 * memory-t.c - every job handles a failed allocation cleanly: each allocation fails in turn, every
 * third one of a long job.
 *
 * The linker intercepts only calls from our own objects, not those of other libraries.  Together
 * with a sanitizer or valgrind this test finds leaks on error paths.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/calibrate.h"
#include "runtime/mem.h"
#include "runtime/model/model.h"
#include "runtime/container/safetensors.h"
#include "tests/lib/models/calibrated.h"
#include "tests/lib/models/converted.h"
#include "tests/lib/folder.h"
#include "tests/lib/golden.h"
#include "tests/lib/models/tiny_tokenizer.h"
#include "tests/lib/models/translator_file.h"
#include "tests/tap/tap.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Allocations -------------------------------------------------------------------------- */

/* Of all threads of a job. */
static atomic_bool counting;
static atomic_long allocations; /* so far */
static long failing;            /* counted from 1 */

static bool is_refused(void)
{
    if (!counting || atomic_fetch_add(&allocations, 1) + 1 != failing)
        return false;
    errno = ENOMEM;
    return true;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__real_reallocarray(void *memory, size_t count, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
FILE *__real_open_memstream(char **text, size_t *size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_reallocarray(void *memory, size_t count, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
FILE *__wrap_open_memstream(char **text, size_t *size);

void *__wrap_malloc(size_t size)
{
    return is_refused() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return is_refused() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return is_refused() ? NULL : __real_realloc(memory, size);
}

void *__wrap_reallocarray(void *memory, size_t count, size_t size)
{
    return is_refused() ? NULL : __real_reallocarray(memory, count, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return is_refused() ? NULL : __real_aligned_alloc(alignment, size);
}

FILE *__wrap_open_memstream(char **text, size_t *size)
{
    return is_refused() ? NULL : __real_open_memstream(text, size);
}

/* ---- Jobs --------------------------------------------------------------------------------- */

static tiny checkpoint;
static calibrated made;
static char output[128]; /* of the job, which changes no other file in the folder */

static ft_status convert(ft_error *err)
{
    ft_conversion *conversion = converted_open(&checkpoint, &(ft_convert_options){ 0 });
    ft_status status = conversion == NULL ? converted_problems.message[0].code
                                          : converted_write(conversion, output);
    ft_conversion_close(conversion);
    *err = converted_problems.message[0];
    return status;
}

static ft_status calibrate(ft_error *err)
{
    ft_report report;
    ft_status status = ft_calibrate(
        &(ft_calibration_options){
            .input = made.real, .output = output, .data = made.samples, .threads = 1 },
        NULL, &report, err);
    ft_report_fini(&report);
    return status;
}

static ft_status count_only(ft_error *err)
{
    ft_report report;
    ft_status status = ft_calibrate(
        &(ft_calibration_options){
            .input = made.real, .save = output, .data = made.samples, .threads = 1 },
        NULL, &report, err);
    ft_report_fini(&report);
    return status;
}

/* Group-wise quantization with every data-driven method. */
static ft_status learn(ft_error *err)
{
    ft_report report;
    ft_recipe recipe = { .scheme = FT_SCHEME_W4A16,
                         .group = 32,
                         .group_pad = true,
                         .asymmetric = true,
                         .clip = FT_CLIP_IMATRIX,
                         .awq = true,
                         .round = FT_ROUND_GPTQ };
    ft_status status = ft_calibrate(&(ft_calibration_options){ .input = made.real,
                                                               .output = output,
                                                               .data = made.samples,
                                                               .last = 4,
                                                               .recipe = &recipe,
                                                               .threads = 1 },
                                    NULL, &report, err);
    ft_report_fini(&report);
    return status;
}

static ft_status write_logits(ft_session *session, ft_error *err)
{
    float logits[2 * 3];
    const int32_t ids[] = { 2, 3, 4, 5, 6, 7, 8, 9 };
    const ft_tensor input = { FT_I32, FT_ROW, 2, { 2, 4 }, (void *) (uintptr_t) ids };
    ft_named_tensor result = { "logits", { .data = logits } };
    ft_status status = ft_session_set(session, "input_ids", &input, err);
    if (status == FT_OK)
        status = ft_session_run(session, err);
    if (status == FT_OK)
        status = ft_session_get(session, "logits", &result.tensor, err);
    return status == FT_OK ? ft_safetensors_write(output, &result, 1, true, err) : status;
}

static ft_status run(ft_error *err)
{
    ft_model *model;
    ft_session *session = NULL;
    ft_status status = ft_model_open(&model, made.quantized, NULL, err);
    if (status == FT_OK)
        status = ft_session_open(&session, model, &(ft_session_options){ .threads = 1 }, err);
    if (status == FT_OK)
        status = write_logits(session, err);
    ft_session_close(session);
    ft_model_close(model);
    return status;
}

/* ---- Engines ------------------------------------------------------------------------------ */

enum { REQUESTS = 5, LETTERS = 64 };

static char decoder[FOLDER_PATH + 16], translator[FOLDER_PATH + 16]; /* artifacts */

/* Ids and values that a request has got. */
typedef struct reply {
    float value[LETTERS];
    size_t count;
    ft_status status; /* at its end; -1: has not ended */
    ft_error err;
} reply;

static void add_value(reply *r, float value)
{
    if (r->count < LETTERS)
        r->value[r->count++] = value;
}

static bool add_token(void *user, const ft_token *token)
{
    add_value(user, (float) token->id);
    return true;
}

static bool add_hypothesis(void *user, const ft_hypothesis *hypothesis)
{
    for (size_t i = 0; i < hypothesis->tokens; i++)
        add_value(user, (float) hypothesis->ids[i]);
    return true;
}

static void add_outputs(void *user, uint64_t id, const ft_engine_tensor *outputs, size_t count)
{
    const float *value = outputs[0].tensor.data;
    (void) id, (void) count;
    for (size_t i = 0; i < ft_tensor_numel(&outputs[0].tensor); i++)
        add_value(user, value[i]);
}

static void end_reply(void *user, uint64_t id, ft_status status, const ft_error *err)
{
    reply *r = user;
    (void) id;
    r->status = status;
    if (err != NULL)
        r->err = *err;
}

/* The first failure of a request, or all values as the output. */
static ft_status write_replies(const reply *replies, ft_error *err)
{
    for (size_t i = 0; i < REQUESTS; i++)
        if (replies[i].status != FT_OK) {
            *err = replies[i].err;
            return replies[i].status;
        }
    ft_named_tensor all = { "replies", { FT_U8, FT_ROW, 1, { REQUESTS * sizeof *replies }, NULL } };
    static unsigned char bytes[REQUESTS * sizeof(reply)];
    memset(bytes, 0, sizeof bytes);
    for (size_t i = 0; i < REQUESTS; i++)
        memcpy(bytes + i * sizeof(reply), replies[i].value, sizeof replies[i].value);
    all.tensor.data = bytes;
    return ft_safetensors_write(output, &all, 1, true, err);
}

/* Submit requests made by `fill` to an engine with room for three at a time, and drain it. */
static ft_status answer(const char *path, void (*fill)(ft_engine_request *, size_t), ft_error *err)
{
    static reply replies[REQUESTS];
    ft_model *model;
    ft_engine *engine = NULL;
    memset(replies, 0, sizeof replies);
    ft_status status = ft_model_open(&model, path, NULL, err);
    if (status == FT_OK)
        status = ft_engine_open(
            &engine, model, &(ft_engine_options){ .threads = 1, .max_sequences = 3, .context = 24 },
            err);
    for (size_t i = 0; i < REQUESTS && status == FT_OK; i++) {
        ft_engine_request request = { .on_end = end_reply, .user = &replies[i] };
        fill(&request, i);
        status = ft_engine_submit(engine, &request, NULL, err);
    }
    if (status == FT_OK)
        status = ft_engine_drain(engine, err);
    ft_engine_close(engine, NULL);
    ft_model_close(model);
    return status == FT_OK ? write_replies(replies, err) : status;
}

static const int32_t words[] = { 2, 3, 4, 5, 6, 7, 8, 9 };

static void fill_generation(ft_engine_request *request, size_t i)
{
    static ft_request generate;
    generate = (ft_request){ .prompt = words, .prompt_tokens = 3 + i, .max_new_tokens = 6 };
    request->generate = &generate;
    request->on_token = add_token;
}

static void fill_search(ft_engine_request *request, size_t i)
{
    static const ft_beam_search_options beams = { .beams = 2 };
    static ft_request generate;
    generate = (ft_request){ .source = words, .source_tokens = 3 + i, .max_new_tokens = 4 };
    request->generate = &generate;
    request->beams = &beams;
    request->on_hypothesis = add_hypothesis;
}

static void fill_encoding(ft_engine_request *request, size_t i)
{
    static ft_engine_tensor input;
    static const char *const outputs[] = { "logits", NULL };
    input = (ft_engine_tensor){
        "input_ids", { FT_I32, FT_ROW, 2, { 1, (int64_t) (3 + i) }, (void *) (uintptr_t) words }
    };
    request->inputs = &input;
    request->num_inputs = 1;
    request->outputs = outputs;
    request->on_outputs = add_outputs;
}

static ft_status engine_generates(ft_error *err)
{
    return answer(decoder, fill_generation, err);
}

static ft_status engine_searches(ft_error *err)
{
    return answer(translator, fill_search, err);
}

static ft_status engine_encodes(ft_error *err)
{
    return answer(made.quantized, fill_encoding, err);
}

/* ---- One failing allocation per run ------------------------------------------------------- */

static ft_status attempt(ft_status (*job)(ft_error *), long which, ft_error *err)
{
    *err = (ft_error){ .code = FT_OK };
    unlink(output);
    allocations = 0;
    failing = which;
    counting = true;
    ft_status status = job(err);
    counting = false;
    return status;
}

static void test_job(const char *name, ft_status (*job)(ft_error *))
{
    ft_error err;
    size_t bytes, again;
    if (attempt(job, 0, &err) != FT_OK)
        bail_out("%s: %s", name, err.text);
    long total = allocations;
    unsigned char *expected = folder_read(output, &bytes);
    int files = folder_count(checkpoint.folder), different = 0, silent = 0, others = 0, left = 0;
    for (long which = 1; which <= total; which += total > 100 ? 3 : 1) {
        ft_status status = attempt(job, which, &err);
        left += folder_count(checkpoint.folder) != files - (status != FT_OK);
        if (status != FT_OK) {
            silent += err.code != status || err.text[0] == '\0';
            others += status != FT_ENOMEM;
            continue;
        }
        unsigned char *found = folder_read(output, &again);
        different += bytes != again || memcmp(found, expected, bytes) != 0;
        free(found);
    }
    free(expected);
    diag("%s: %ld allocations", name, total);
    ok(total > 10, "%s: the linker intercepts the allocations", name);
    is_int(different, 0,
           "%s: a job that succeeds despite a failed allocation writes the same output", name);
    is_int(others, 0, "%s: a job that fails returns FT_ENOMEM", name);
    is_int(silent, 0, "%s: a job that fails sets the error text", name);
    is_int(left, 0, "%s: a job that fails leaves no file behind", name);
}

/* The C library loses a text that it cannot shrink and still reports success. */
static void test_lost_text(void)
{
    char *text = NULL;
    FILE *file = tmpfile();
    ok(file != NULL && !ft_memstream_close(file, &text),
       "ft_memstream_close() fails when the C library loses the text");
}

/* Convert the checkpoint of a variant; `path` receives the artifact. */
static void make_model(tiny *t, char *path, size_t bytes)
{
    ft_artifact *artifact = converted(t, &(const ft_convert_options){ .cast = false });
    if (artifact == NULL)
        bail_out("%s", converted_problem(0));
    ft_artifact_close(artifact);
    snprintf(path, bytes, "%s/model.ft", t->folder);
}

static void test_engines(void)
{
    tiny llama, m2m;
    json_t *llamas = golden_json("llama-variants.json"),
           *translators = golden_json("translator-variants.json");
    llama_make(&llama, llama_variant(llamas, "grouped"));
    translator_make(&m2m, llama_variant(translators, "m2m"));
    make_model(&llama, decoder, sizeof decoder);
    make_model(&m2m, translator, sizeof translator);
    test_job("an engine that generates", engine_generates);
    test_job("an engine that searches", engine_searches);
    test_job("an engine that encodes", engine_encodes);
    tiny_remove(&llama);
    tiny_remove(&m2m);
    json_decref(llamas);
    json_decref(translators);
}

int main(void)
{
    test_lost_text();
    tiny_make_classifier(&checkpoint);
    char *tokenizer = edited(tiny_json, "", "");
    tiny_write_file(&checkpoint, "tokenizer.json", tokenizer);
    free(tokenizer);
    calibrated_make(&made, &checkpoint);
    snprintf(output, sizeof output, "%s/output", checkpoint.folder);
    test_job("convert", convert);
    test_job("calibrate", calibrate);
    test_job("count", count_only);
    test_job("learn", learn);
    test_job("run", run);
    test_engines();
    tiny_remove(&checkpoint);
    return done_testing();
}
