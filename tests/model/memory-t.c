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
#include "tests/lib/models/tiny_tokenizer.h"
#include "tests/tap/tap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Allocations -------------------------------------------------------------------------- */

static bool counting;
static long allocations, failing; /* the count so far; the failing one, counted from 1 */

static bool is_refused(void)
{
    if (!counting || ++allocations != failing)
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
    tiny_remove(&checkpoint);
    return done_testing();
}
