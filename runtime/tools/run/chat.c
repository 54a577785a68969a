/*
 * chat.c - interactive chat: one message per line of standard input, streamed answers.
 *
 * Every turn prefills the whole conversation again, so an answer depends only on the messages.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/base/strbuf.h"
#include "runtime/tools/run/generation.h"
#include "runtime/tools/run/conversation.h"
#include "runtime/data/texts/text_reader.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct chat {
    const ft_run *run;
    const ft_model *model;
    const ft_tokenizer *tokenizer;
    ft_session *session;
    ft_conversation conversation;
    ft_request sampling;
    int32_t *stop_id;
    ft_strbuf answer;
    size_t tokens; /* of the current answer */
    bool no_memory;
} chat;

static ft_status open_session(chat *c, ft_error *err)
{
    ft_session_options options = c->run->session;
    size_t positions = (size_t) c->model->config.positions;
    if (options.context == 0)
        options.context = (int64_t) ft_min_size(positions, 4096);
    options.max_sequences = 1;
    ft_warn_short_context(c->run, 1, (size_t) options.context);
    options.max_tokens = c->run->chunk > 0 ? c->run->chunk : 512;
    FT_TRY(ft_session_open(&c->session, c->model, &options, err));
    return ft_run_explain(c->run, c->session, err);
}

static bool add_answer_token(void *user, const ft_token *token)
{
    chat *c = user;
    c->tokens++;
    ft_print_piece(token->text, token->text_bytes);
    if (token->text_bytes > 0 && !ft_strbuf_append(&c->answer, token->text, token->text_bytes))
        c->no_memory = true;
    return !c->no_memory;
}

/* Generate, print and append the assistant's answer. */
static ft_status answer(chat *c, ft_error *err)
{
    ft_generate_stats stats;
    const ft_generate_options options = { .tokenizer = c->tokenizer, .stats = &stats };
    int32_t *ids = NULL;
    c->answer.bytes = c->tokens = 0;
    ft_status status = ft_conversation_encode(&c->conversation, c->tokenizer, &ids,
                                              &c->sampling.prompt_tokens, err);
    c->sampling.prompt = ids;
    if (status == FT_OK)
        status = ft_generate(c->session, &c->sampling, 1, &options, add_answer_token, c, err);
    free(ids);
    FT_TRY(status);
    putchar('\n');
    fflush(stdout);
    if (isatty(STDERR_FILENO))
        ft_print_speed(stderr, 1, c->tokens, &stats);
    if (c->no_memory || !ft_strbuf_append(&c->answer, "", 1))
        return ft_fail(err, FT_ENOMEM, "no memory for text");
    return ft_conversation_add(&c->conversation, "assistant", c->answer.data, err);
}

static void print_prompt(void)
{
    if (isatty(STDIN_FILENO))
        fputs("> ", stderr);
}

static ft_status run_loop(chat *c, ft_text_reader *messages, ft_error *err)
{
    for (const char *text;;) {
        print_prompt();
        FT_TRY(ft_text_reader_next(messages, &text, err));
        if (text == NULL)
            return FT_OK;
        if (text[0] == '\0')
            continue;
        FT_TRY(ft_conversation_add(&c->conversation, "user", text, err));
        FT_TRY(answer(c, err));
    }
}

static ft_status work(chat *c, ft_error *err)
{
    FT_TRY(ft_conversation_init(&c->conversation, c->model, c->run->date, err));
    if (c->run->system != NULL)
        FT_TRY(ft_conversation_add(&c->conversation, "system", c->run->system, err));
    FT_TRY(ft_run_request(&c->sampling, &c->stop_id, c->run, c->model, err));
    FT_TRY(open_session(c, err));
    ft_text_reader messages;
    FT_TRY(ft_text_reader_open(&messages, "-", false, err));
    ft_status status = run_loop(c, &messages, err);
    ft_text_reader_close(&messages);
    return status;
}

ft_status ft_run_chat(const ft_run *run, const ft_model *model, const ft_tokenizer *tokenizer,
                      ft_error *err)
{
    chat c = { .run = run, .model = model, .tokenizer = tokenizer };
    ft_status status = work(&c, err);
    ft_session_close(c.session);
    ft_conversation_fini(&c.conversation);
    ft_strbuf_fini(&c.answer);
    free(c.stop_id);
    return status;
}
