/*
 * failure-t.c - errors on a GPU are reported and leave other sessions intact: out of memory, a
 * sequence that is too long; and after an error that destroys the CUDA context, every call reports
 * the lost context.
 *
 * The last test destroys the context of this process, so it comes last.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/tap/tap.h"

#ifdef HAVE_CUDA

#include "kernels/backend.h"
#include "kernels/cuda/cuda.h"
#include "runtime/mem.h"
#include "tests/lib/models/bert_file.h"
#include "tests/lib/models/calibrated.h"
#include "tests/lib/folder.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

enum { POSITIONS = 300, ROWS = 2, COLS = 20 };

static char folder[FOLDER_PATH], path[FOLDER_PATH + 16];
static const ft_model_options on_gpu = { .device = "cuda" };

/* ---- The bystander ------------------------------------------------------------------------ */

/* A session that has run, and must go on giving the same bytes. */
typedef struct bystander {
    ft_model *model;
    ft_session *session;
    model_input input;
    float *expected;
    size_t count;
} bystander;

static void bystander_open(bystander *s)
{
    static int32_t ids[ROWS * COLS];
    for (int i = 0; i < ROWS * COLS; i++)
        ids[i] = (i * 7 + 3) % 50;
    s->input = (model_input){ ROWS, COLS, ids, NULL, NULL };
    s->model = calibrated_open(path, &on_gpu);
    s->session = calibrated_session(s->model, &(ft_session_options){ .max_tokens = 600 });
    calibrated_run(s->session, &s->input);
    s->expected = calibrated_get(s->session, "last_hidden_state", &s->count);
}

static void is_undisturbed(bystander *s, const char *what)
{
    size_t count;
    calibrated_run(s->session, &s->input);
    float *found = calibrated_get(s->session, "last_hidden_state", &count);
    ok(count == s->count && memcmp(found, s->expected, count * sizeof *found) == 0,
       "%s, another session gives the same bytes", what);
    free(found);
}

/* ---- Memory ------------------------------------------------------------------------------- */

static void says_memory(const char *text, const char *what)
{
    size_t asked = 0, available = 0;
    const char *number = strstr(text, what);
    bool fine =
        strncmp(text, "cuda:0: ", 8) == 0 && number != NULL &&
        sscanf(number + strlen(what), ": %zu bytes asked, %zu free of", &asked, &available) == 2;
    ok(fine && asked > 0,
       "the out-of-memory message names the purpose, the requested bytes and the free bytes");
    diag("%s", text);
}

static void test_large_session(bystander *s)
{
    ft_session *session;
    ft_error err;
    is_int(
        ft_session_open(&session, s->model, &(ft_session_options){ .max_tokens = 1 << 26 }, &err),
        FT_ENOMEM, "ft_session_open() refuses a session for 67 million tokens");
    says_memory(err.text, "memory of a session");
    is_undisturbed(s, "after an error");
}

/* Allocates almost all device memory, in pieces; hog_free() frees it. */
typedef struct hog {
    void *piece[512];
    int count;
} hog;

static void hog_take(hog *h)
{
    h->count = 0;
    for (size_t bytes = (size_t) 16 << 30; bytes >= 4 << 20; bytes /= 2)
        while (h->count < (int) FT_COUNT(h->piece) &&
               cudaMalloc(&h->piece[h->count], bytes) == cudaSuccess)
            h->count++;
    (void) cudaGetLastError();
}

static void hog_free(hog *h)
{
    while (h->count > 0)
        (void) cudaFree(h->piece[--h->count]);
}

static void test_full_device(bystander *s)
{
    hog h;
    ft_model *model = NULL;
    ft_session *session = NULL;
    ft_error err;
    hog_take(&h);
    is_int(ft_session_open(&session, s->model, NULL, &err), FT_ENOMEM,
           "ft_session_open() returns FT_ENOMEM on a full device");
    says_memory(err.text, "memory of a session");
    is_int(ft_model_open(&model, path, &on_gpu, &err), FT_ENOMEM,
           "ft_model_open() returns FT_ENOMEM on a full device");
    says_memory(err.text, "weights");
    is_undisturbed(s, "on a full device");
    hog_free(&h);
    model = calibrated_open(path, &on_gpu);
    session = calibrated_session(model, NULL);
    ok(model != NULL && session != NULL,
       "a model and a session open once device memory is free again");
    ft_session_close(session);
    ft_model_close(model);
    is_undisturbed(s, "after an error");
}

/* ---- Too long ----------------------------------------------------------------------------- */

static void test_too_long(bystander *s)
{
    static int32_t ids[3 * POSITIONS];
    ft_tensor tensor = { .dtype = FT_I32, .ndim = 2, .dim = { 1, POSITIONS + 1 }, .data = ids };
    ft_error err;
    is_int(ft_session_set(s->session, "input_ids", &tensor, &err), FT_ELIMIT,
           "ft_session_set() refuses a sequence longer than the model's positions");
    has(err.text, "input_ids: sequences of 301 positions, but the model has 300",
        "the message names the sequence's length and the model's positions");
    tensor.dim[0] = 3;
    tensor.dim[1] = POSITIONS;
    if (ft_session_set(s->session, "input_ids", &tensor, &err) != FT_OK)
        bail_out("%s", err.text);
    is_int(ft_session_run(s->session, &err), FT_ELIMIT,
           "ft_session_run() refuses more tokens than the session allows");
    has(err.text, "more than the 600 tokens that the session allows",
        "the message names the number of tokens that the session allows");
    is_undisturbed(s, "after an error");
}

/* ---- A lost context ----------------------------------------------------------------------- */

static void says_lost(ft_status status, const ft_error *err, const char *what)
{
    bool said =
        strstr(err->text, "the device's context is lost: this process cannot use it again") != NULL;
    ok(status == FT_EDEVICE && said, "%s fails and reports that the context is lost", what);
    diag("%s", err->text);
}

/* A kernel reads an unmapped address. */
static void lose_context(void)
{
    const float *nowhere = (const float *) (uintptr_t) 4096;
    int8_t *quantized;
    if (cudaMalloc((void **) &quantized, 4096) != cudaSuccess)
        bail_out("cannot allocate 4096 bytes of device memory");
    int launched = ft_cuda_quantize_array(NULL, quantized, nowhere, 1.0f, 4096);
    ok(launched == 0 && cudaDeviceSynchronize() == cudaErrorIllegalAddress,
       "a kernel that reads an unmapped address fails with cudaErrorIllegalAddress");
}

static void test_lost(bystander *s)
{
    ft_session *session;
    ft_model *model;
    ft_tensor tensor = { .data = s->expected };
    ft_device_info info = { 0 };
    ft_error err;
    lose_context();
    ft_status status = ft_session_get(s->session, "last_hidden_state", &tensor, &err);
    says_lost(status, &err, "reading a result");
    for (int i = 0; i < 2; i++) {
        status = ft_session_run(s->session, &err);
        says_lost(status, &err,
                  i == 0 ? "the first run after the error" : "the second run after the error");
    }
    status = ft_session_open(&session, s->model, NULL, &err);
    says_lost(status, &err, "opening a session");
    status = ft_model_open(&model, path, &on_gpu, &err);
    says_lost(status, &err, "opening a model");
    ok(!ft_backend_cuda.describe(0, &info) && strstr(info.detail, "context is lost") != NULL,
       "the list of devices reports that the context is lost");
    diag("%s: %s", info.name, info.detail);
    ft_session_close(s->session);
    ft_model_close(s->model);
    model = calibrated_open(path, NULL);
    size_t count;
    float *on_cpu = calibrated_result(model, &s->input, "embedding", &count);
    ok(count > 0, "after a lost context the session and model close, and the CPU still runs");
    free(on_cpu);
    ft_model_close(model);
}

int main(void)
{
    ft_device_info info = { 0 };
    if (!ft_backend_cuda.describe(0, &info))
        skip_all("%s", info.detail);
    folder_make(folder);
    snprintf(path, sizeof path, "%s/model.ft", folder);
    ft_config config = test_bert_config(384, 12, 1536);
    test_bert weights;
    test_bert_make(&weights, &config, FT_MODE_INT8, 1);
    bert_file_write(&weights, "float", path);
    test_bert_free(&weights);
    bystander s;
    bystander_open(&s);
    test_large_session(&s);
    test_full_device(&s);
    test_too_long(&s);
    test_lost(&s);
    free(s.expected);
    folder_remove(folder);
    return done_testing();
}

#else

int main(void)
{
    skip_all("this build has no CUDA backend");
}

#endif
