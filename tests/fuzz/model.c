/*
 * model.c - exercises all operations on the model of an artifact.
 *
 * Every model that ft_model_open() accepts must run.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/fuzz/model.h"

#include "runtime/model/folded.h"
#include "runtime/selftest/selftest.h"
#include "runtime/tensor.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Larger models are slow without covering more code. */
enum { MAX_OPS = 400, MAX_WIDTH = 1 << 16, MAX_PIXELS = 1 << 16, TOKENS = 3, NEW = 2 };

static bool is_small(const ft_model *model)
{
    const ft_config *c = &model->config;
    const int64_t pixels = (int64_t) c->channels * c->image_height * c->image_width;
    for (int i = 0; i < model->plan.nvalue; i++)
        if (model->plan.value[i].cols > MAX_WIDTH)
            return false;
    return model->plan.nop <= MAX_OPS && pixels <= MAX_PIXELS && c->positions <= MAX_WIDTH;
}

static void get_all(const ft_session *session)
{
    static const char *const names[] = { "logits", "embedding", "last_hidden_state" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ft_tensor out = { .data = NULL };
        if (ft_session_get(session, names[i], &out, NULL) != FT_OK)
            continue;
        out.data = malloc(ft_tensor_bytes(&out) + 1);
        require(out.data != NULL);
        ft_error err = { .code = FT_OK };
        ft_status status = ft_session_get(session, names[i], &out, &err);
        require(status == err.code && (status == FT_OK || err.text[0] != '\0'));
        free(out.data);
    }
}

static bool set_images(ft_session *session, const ft_config *config)
{
    ft_tensor pixels = { .dtype = FT_F32, .ndim = 4 };
    pixels.dim[0] = 1;
    pixels.dim[1] = config->channels;
    pixels.dim[2] = config->image_height;
    pixels.dim[3] = config->image_width;
    pixels.data = calloc(1, ft_tensor_bytes(&pixels) + 1);
    bool fine =
        pixels.data != NULL && ft_session_set(session, "pixel_values", &pixels, NULL) == FT_OK;
    free(pixels.data);
    return fine;
}

static bool set_texts(ft_session *session, const ft_config *config)
{
    int32_t ids[TOKENS] = { 0, config->vocabulary - 1, config->vocabulary / 2 };
    const ft_tensor text = { FT_I32, FT_ROW, 2, { 1, TOKENS }, ids };
    if (ft_session_set(session, "input_ids", &text, NULL) != FT_OK)
        return false;
    return !ft_config_is_encoder_decoder(config) ||
           ft_session_set(session, "decoder_input_ids", &text, NULL) == FT_OK;
}

static bool go_on(void *user, const ft_token *token)
{
    (void) user;
    require(token->id >= -1);
    return true;
}

static bool take(void *user, const ft_hypothesis *found)
{
    (void) user;
    require(found->rank < found->count || found->count == 0);
    return true;
}

/* Text generation token by token, and beam search. */
static void write_texts(ft_session *session, const ft_config *config)
{
    const int32_t id = config->vocabulary / 2;
    ft_request request = { .prompt = &id, .prompt_tokens = 1, .max_new_tokens = NEW };
    if (ft_config_is_encoder_decoder(config)) {
        request.source = &id;
        request.source_tokens = 1;
    }
    ft_error err;
    if (ft_generate(session, &request, 1, NULL, go_on, NULL, &err) != FT_OK)
        require(err.text[0] != '\0');
    if (ft_beam_search(session, &request, 1, &(ft_beam_search_options){ .beams = 2 }, take, NULL,
                       &err) != FT_OK)
        require(err.text[0] != '\0');
}

static void run(const ft_model *model)
{
    const ft_config *config = &model->config;
    ft_session *session;
    ft_session_options options = { .threads = 1, .max_sequences = 2 };
    if (!ft_config_is_vision(config))
        options.max_tokens = 16;
    if (ft_config_is_decoder(config))
        options.context = 8;
    if (ft_session_open(&session, model, &options, NULL) != FT_OK)
        return;
    bool set =
        ft_config_is_vision(config) ? set_images(session, config) : set_texts(session, config);
    if (set && ft_session_run(session, NULL) == FT_OK)
        get_all(session);
    if (ft_config_is_decoder(config))
        write_texts(session, config);
    ft_session_close(session);
}

/* A self-test that is accepted has finite figures. */
static void run_selftest(const ft_model *model)
{
    ft_selftest_result result;
    char text[FT_SELFTEST_TEXT];
    ft_error err = { .code = FT_OK };
    if (ft_selftest_run(&result, model, &err) != FT_OK)
        require(err.text[0] != '\0');
    else
        require(ft_selftest_describe(text, &result)[0] != '\0' &&
                (result.same_bits || !result.passed || result.difference <= result.tolerance));
}

/* Folded factors that are accepted are positive. */
static void read_folded(const ft_model *model)
{
    ft_folded folded;
    require(ft_folded_read(&folded, model, NULL) == FT_OK);
    for (int i = 0; i < folded.nvalue; i++)
        for (int32_t col = 0; folded.divisor[i] != NULL && col < model->graph.value[i].cols; col++)
            require(folded.divisor[i][col] > 0.0f);
    ft_folded_fini(&folded);
}

static void open_and_run(const char *path, const ft_model_options *options)
{
    ft_model *model;
    ft_error err = { .code = FT_OK };
    if (ft_model_open(&model, path, options, &err) != FT_OK) {
        require(model == NULL && err.code != FT_OK && err.text[0] != '\0');
        return;
    }
    require(ft_model_get_info(model).layers >= 0);
    for (int32_t i = 0; i < 3; i++)
        ft_model_label(model, i);
    if (is_small(model)) {
        read_folded(model);
        run(model);
        run_selftest(model);
    }
    ft_model_close(model);
}

void fuzz_model(const uint8_t *artifact, size_t bytes)
{
    char path[64];
    int file = memfd_create("fuzz", 0);
    require(file >= 0 && write(file, artifact, bytes) == (ssize_t) bytes);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    open_and_run(path, NULL);
    open_and_run(path, &(ft_model_options){ .no_fuse = true, .kv = FT_KV_DTYPE_INT8 });
    open_and_run(path, &(ft_model_options){ .fake = true, .kv = FT_KV_DTYPE_F16 });
    close(file);
}
