/*
 * generate.c - a minimal program for <ft.h>: stream the continuation of a prompt.
 *
 *     cc generate.c $(pkg-config --cflags --libs ft-runtime) -o generate
 *     ./generate llama.ft "def add(a, b):"
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <ft.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TOKENS = 1024, NEW_TOKENS = 100 };

/* Exit with the error message, if the call has failed. */
static void need(ft_status status, const ft_error *err)
{
    if (status == FT_OK)
        return;
    fprintf(stderr, "generate: %s\n", err->text);
    exit(1);
}

static bool print_token(void *user, const ft_token *token)
{
    (void) user;
    fwrite(token->text, 1, token->text_bytes, stdout);
    fflush(stdout);
    return true; /* continue */
}

int main(int argc, char **argv)
{
    ft_error err;
    ft_model *model;
    ft_tokenizer *tokenizer;
    ft_session *session;
    int32_t id[MAX_TOKENS];
    size_t count;
    if (argc != 3) {
        fputs("usage: generate ARTIFACT TEXT\n", stderr);
        return 2;
    }

    need(ft_model_open(&model, argv[1], NULL, &err), &err);
    need(ft_tokenizer_open_model(&tokenizer, model, &err), &err);
    need(ft_tokenizer_encode(tokenizer, argv[2], strlen(argv[2]), id, MAX_TOKENS, &count, &err),
         &err);
    if (count > MAX_TOKENS) {
        fprintf(stderr, "generate: %zu tokens exceed the limit of this program\n", count);
        return 1;
    }

    ft_request request = {
        .prompt = id,
        .prompt_tokens = count,
        .max_new_tokens = NEW_TOKENS,
        .temperature = 0.8f,
        .top_p = 0.95f,
        .seed = 1,
    };
    ft_generate_options options = { .tokenizer = tokenizer };
    need(ft_session_open(&session, model, NULL, &err), &err);
    need(ft_generate(session, &request, 1, &options, print_token, NULL, &err), &err);
    putchar('\n');

    ft_session_close(session);
    ft_tokenizer_close(tokenizer);
    ft_model_close(model);
    return 0;
}
