/*
 * run.c - a minimal program for <ft.h>: classify a text.
 *
 *     cc run.c $(pkg-config --cflags --libs ft-runtime) -o run
 *     ./run model.int8.ft "some text"
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <ft.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TOKENS = 128, MAX_LABELS = 64 };

/* Exit with the error message, if the call has failed. */
static void need(ft_status status, const ft_error *err)
{
    if (status == FT_OK)
        return;
    fprintf(stderr, "run: %s\n", err->text);
    exit(1);
}

int main(int argc, char **argv)
{
    ft_error err;
    ft_model *model;
    ft_tokenizer *tokenizer;
    ft_session *session;
    int32_t id[MAX_TOKENS];
    float logit[MAX_LABELS];
    size_t count;
    if (argc != 3) {
        fputs("usage: run ARTIFACT TEXT\n", stderr);
        return 2;
    }

    need(ft_model_open(&model, argv[1], NULL, &err), &err);
    int labels = ft_model_get_info(model).labels;
    const char *problem = ft_model_get_info(model).problem_type;
    need(ft_tokenizer_open_model(&tokenizer, model, &err), &err);
    need(ft_tokenizer_encode(tokenizer, argv[2], strlen(argv[2]), id, MAX_TOKENS, &count, &err),
         &err);
    if (problem == NULL || strcmp(problem, "single_label_classification") != 0) {
        fputs("run: the model is not a single-label classifier\n", stderr);
        return 1;
    }
    if (count > MAX_TOKENS || labels > MAX_LABELS) {
        fprintf(stderr, "run: %zu tokens or %d labels exceed the limits of this program\n", count,
                labels);
        return 1;
    }

    ft_tensor ids = { .dtype = FT_I32, .ndim = 2, .dim = { 1, (int64_t) count }, .data = id };
    ft_tensor logits = { .data = logit };
    need(ft_session_open(&session, model, NULL, &err), &err);
    need(ft_session_set(session, "input_ids", &ids, &err), &err);
    need(ft_session_run(session, &err), &err);
    need(ft_session_get(session, "logits", &logits, &err), &err);

    int best = 0;
    for (int i = 1; i < labels; i++)
        best = logit[i] > logit[best] ? i : best;
    const char *label = ft_model_label(model, best);
    printf("%s\n", label != NULL ? label : "a class without name");

    ft_session_close(session);
    ft_tokenizer_close(tokenizer);
    ft_model_close(model);
    return 0;
}
