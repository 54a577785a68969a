/*
 * option_sizes-t.c - callers that were built with an older or a newer ft.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/ft.h"
#include "tests/lib/models/calibrated.h"
#include "tests/tap/tap.h"

#include <stdio.h>
#include <string.h>

static ft_error err;

static const char *path;
static ft_model *model;
static ft_session *session;

/* A later version's structure: the known one, and options behind it. */
typedef struct later {
    union {
        ft_model_options model;
        ft_session_options session;
        ft_generate_options generate;
        ft_beam_search_options search;
        ft_engine_options engine;
        size_t size;
    } known;
    unsigned char more[64];
} later;

static ft_status open_model(const void *options)
{
    ft_model *out;
    ft_status status = ft_model_open(&out, path, options, &err);
    ft_model_close(out);
    return status;
}

static ft_status open_session(const void *options)
{
    ft_session *out;
    ft_status status = ft_session_open(&out, model, options, &err);
    ft_session_close(out);
    return status;
}

static ft_status open_engine(const void *options)
{
    ft_engine *out;
    ft_status status = ft_engine_open(&out, model, options, &err);
    return status == FT_OK ? ft_engine_close(out, &err) : status;
}

static bool take_token(void *user, const ft_token *token)
{
    (void) user, (void) token;
    return true;
}

static bool take_found(void *user, const ft_hypothesis *found)
{
    (void) user, (void) found;
    return true;
}

static ft_status generate(const void *options)
{
    const ft_request request = { .prompt = NULL };
    return ft_generate(session, &request, 1, options, take_token, NULL, &err);
}

static ft_status search(const void *options)
{
    const ft_request request = { .prompt = NULL };
    return ft_beam_search(session, &request, 1, options, take_found, NULL, &err);
}

/* The model is an encoder, so it refuses to write: once the options have been read. */
static const char no_writer[] = "models of family bert";

static const struct call {
    const char *name;
    size_t size;
    ft_status (*make)(const void *options);
    ft_status status;
    const char *text; /* the error of a call whose options are fine */
} calls[] = {
    { "ft_model_options", sizeof(ft_model_options), open_model, FT_OK, "" },
    { "ft_session_options", sizeof(ft_session_options), open_session, FT_OK, "" },
    { "ft_generate_options", sizeof(ft_generate_options), generate, FT_EUNSUPPORTED, no_writer },
    { "ft_beam_search_options", sizeof(ft_beam_search_options), search, FT_EUNSUPPORTED,
      no_writer },
    { "ft_engine_options", sizeof(ft_engine_options), open_engine, FT_OK, "" },
};

static void accepted(const struct call *c, size_t size, const later *options, const char *sentence)
{
    later copy = *options;
    copy.known.size = size;
    memset(&err, 0, sizeof err);
    ft_status status = c->make(&copy);
    bool fine = status == c->status && strstr(err.text, c->text) != NULL &&
                strstr(err.text, "size is") == NULL;
    ok(fine, "%s: %s", c->name, sentence);
    if (!fine)
        diag("%s: %s", ft_status_name(status), err.text);
}

static void refused(const struct call *c, size_t size, const later *options, ft_status expected,
                    const char *text)
{
    later copy = *options;
    copy.known.size = size;
    ft_status status = c->make(&copy);
    ok(status == expected && strcmp(err.text, text) == 0,
       "the call is refused with the message: %s", text);
    if (status != expected || strcmp(err.text, text) != 0)
        diag("found %s: %s", ft_status_name(status), err.text);
}

static void test_sizes(const struct call *c)
{
    static const later zero;
    later garbage = zero, last = zero;
    char text[300];
    memset(garbage.more, 0xaa, sizeof garbage.more);
    ((unsigned char *) &last)[c->size + 8] = 1;
    accepted(c, 0, &zero, "size 0 is accepted");
    accepted(c, 0, &garbage, "with size 0 no member after the first version is read");
    accepted(c, c->size, &zero, "the size of this header is accepted");
    accepted(c, c->size, &garbage, "no member beyond the size is read");
    accepted(c, sizeof(size_t), &garbage, "a size alone means all defaults");
    accepted(c, c->size + 16, &zero,
             "a larger structure of a later version is accepted if its new members are 0");
    snprintf(
        text, sizeof text,
        "%s: size is %zu and byte %zu is not 0: an option that version %s of the library, with "
        "%zu bytes, does not have; install a later version",
        c->name, c->size + 16, c->size + 8, ft_version(), c->size);
    refused(c, c->size + 16, &last, FT_EUNSUPPORTED, text);
    const size_t wrong[] = { 1, sizeof(size_t) - 1, 4097, SIZE_MAX };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(text, sizeof text, "%s: size is %zu, expected 0 or sizeof(%s), here %zu", c->name,
                 wrong[i], c->name, c->size);
        refused(c, wrong[i], &zero, FT_EARG, text);
    }
}

/* Options behind the size are missing, whatever is there. */
static void test_older_callers(void)
{
    ft_session *out;
    ft_session_options options = { .threads = 1, .max_tokens = -1 };
    is_int(ft_session_open(&out, model, &options, &err), FT_EARG,
           "ft_session_open() refuses an invalid max_tokens in a structure of size 0");
    options.size = offsetof(ft_session_options, max_tokens);
    is_int(ft_session_open(&out, model, &options, &err), FT_OK,
           "a caller whose structure has no max_tokens gets its default");
    ft_session_close(out);
    options.threads = -1;
    is_int(ft_session_open(&out, model, &options, &err), FT_EARG,
           "members within the size are read");
    is_int((long) options.size, (long) offsetof(ft_session_options, max_tokens),
           "the caller's structure is not modified");
}

int main(void)
{
    tiny t;
    calibrated files;
    tiny_make_classifier(&t);
    calibrated_make(&files, &t);
    path = files.real;
    model = calibrated_open(path, NULL);
    session = calibrated_session(model, &(ft_session_options){ .threads = 1 });
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        test_sizes(&calls[i]);
    test_older_callers();
    ft_session_close(session);
    ft_model_close(model);
    tiny_remove(&t);
    return done_testing();
}
