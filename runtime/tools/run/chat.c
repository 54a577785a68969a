/*
 * chat.c - interactive chat: one message per line of standard input, streamed answers, commands.
 *
 * The KV cache outlives a turn, so that only the new part of the conversation is computed; the
 * answers are those of a conversation that is computed again.  What the context has no room for is
 * refused and not forgotten: dropping the oldest turns would change what the model has been told
 * without a word.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/base/strbuf.h"
#include "runtime/model/session.h"
#include "runtime/tools/run/generation.h"
#include "runtime/tools/run/conversation.h"
#include "runtime/tools/run/interrupt.h"
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
    size_t kept; /* messages that /reset keeps: the system message */
    ft_request sampling;
    int32_t *stop_id;

    /* The current answer. */
    ft_strbuf answer;
    size_t tokens;
    ft_finish_reason reason;
    bool interrupted, no_memory;
    ft_generate_stats stats;
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

/* ---- Answers ------------------------------------------------------------------------------ */

static bool add_answer_token(void *user, const ft_token *token)
{
    chat *c = user;
    c->tokens++;
    c->reason = token->reason;
    ft_print_piece(token->text, token->text_bytes);
    if (token->text_bytes > 0 && !ft_strbuf_append(&c->answer, token->text, token->text_bytes))
        c->no_memory = true;
    c->interrupted = ft_interrupt_take();
    return !c->no_memory && !c->interrupted;
}

static ft_status check_room(const chat *c, ft_error *err)
{
    if (c->sampling.prompt_tokens < c->session->context)
        return FT_OK;
    return ft_fail(err, FT_ELIMIT,
                   "the conversation has %zu tokens and the context %zu: /reset starts a new "
                   "conversation, and --ctx sets a longer context",
                   c->sampling.prompt_tokens, c->session->context);
}

/* Generate and print the assistant's answer. */
static ft_status generate(chat *c, ft_error *err)
{
    const ft_generate_options options = {
        .size = sizeof options, .tokenizer = c->tokenizer, .stats = &c->stats, .keep_cache = true
    };
    int32_t *ids = NULL;
    c->answer.bytes = c->tokens = 0;
    c->reason = FT_FINISH_NONE;
    ft_status status = ft_conversation_encode(&c->conversation, c->tokenizer, &ids,
                                              &c->sampling.prompt_tokens, err);
    if (status == FT_OK)
        status = check_room(c, err);
    c->sampling.prompt = ids;
    if (status == FT_OK)
        status = ft_generate(c->session, &c->sampling, 1, &options, add_answer_token, c, err);
    free(ids);
    return status;
}

/* Why an answer ended before its end. */
static void print_reason(const chat *c)
{
    size_t used = c->sampling.prompt_tokens + c->tokens;
    if (c->interrupted)
        fputs("ft-run: stopped; Ctrl-C again leaves\n", stderr);
    else if (c->reason == FT_FINISH_LENGTH && used >= c->session->context)
        fprintf(stderr,
                "ft-run: the context of %zu tokens is full: /reset starts a new conversation\n",
                c->session->context);
}

static ft_status answer(chat *c, ft_error *err)
{
    FT_TRY(generate(c, err));
    putchar('\n');
    fflush(stdout);
    print_reason(c);
    if (isatty(STDERR_FILENO))
        ft_print_speed(stderr, 1, c->tokens, &c->stats);
    if (c->no_memory || !ft_strbuf_append(&c->answer, "", 1))
        return ft_fail(err, FT_ENOMEM, "no memory for text");
    return ft_conversation_add(&c->conversation, "assistant", c->answer.data, err);
}

/* A message that cannot be answered leaves the conversation as it was. */
static ft_status say(chat *c, const char *text, ft_error *err)
{
    size_t before = c->conversation.count;
    FT_TRY(ft_conversation_add(&c->conversation, "user", text, err));
    ft_status status = answer(c, err);
    bool refused = status == FT_EARG || status == FT_EFORMAT || status == FT_ELIMIT;
    if (!refused || !isatty(STDIN_FILENO))
        return status;
    ft_conversation_truncate(&c->conversation, before);
    fprintf(stderr, "ft-run: %s\n", err->text);
    return FT_OK;
}

/* ---- Commands ----------------------------------------------------------------------------- */

static void print_help(void)
{
    fputs("/help   this list\n"
          "/reset  start a new conversation; the system message stays\n"
          "/exit   leave, as the end of the input does\n"
          "Ctrl-C  stop an answer; leave when there is none\n",
          stderr);
}

/* Whether a line is one word that begins with a slash. */
static bool is_command(const char *line)
{
    return line[0] == '/' && strpbrk(line, " \t") == NULL && strchr(line + 1, '/') == NULL;
}

/* False: leave. */
static bool obey(chat *c, const char *line)
{
    if (strcmp(line, "/exit") == 0)
        return false;
    if (strcmp(line, "/reset") == 0) {
        ft_conversation_truncate(&c->conversation, c->kept);
        fputs("ft-run: a new conversation\n", stderr);
    } else {
        if (strcmp(line, "/help") != 0)
            fprintf(stderr, "ft-run: there is no command like this\n");
        print_help();
    }
    return true;
}

/* ---- The loop ----------------------------------------------------------------------------- */

static void print_banner(const chat *c)
{
    ft_model_info info = ft_model_get_info(c->model);
    fprintf(stderr, "ft-run: %s (%s, %s), chat template of %s, context %zu; /help lists commands\n",
            c->model->path, info.family, info.precision,
            ft_chat_template_name(c->conversation.template), c->session->context);
}

/* Ctrl-C at the prompt leaves. */
static ft_status read_line(ft_text_reader *messages, const char **text, ft_error *err)
{
    if (isatty(STDIN_FILENO))
        fputs("> ", stderr);
    ft_interrupt_allow();
    ft_status status = ft_text_reader_next(messages, text, err);
    ft_interrupt_hold();
    return status;
}

static ft_status run_loop(chat *c, ft_text_reader *messages, ft_error *err)
{
    for (const char *text;;) {
        FT_TRY(read_line(messages, &text, err));
        if (text == NULL)
            return FT_OK;
        if (text[0] == '\0')
            continue;
        if (!is_command(text))
            FT_TRY(say(c, text, err));
        else if (!obey(c, text))
            return FT_OK;
    }
}

static ft_status work(chat *c, ft_error *err)
{
    FT_TRY(ft_conversation_init(&c->conversation, c->model, c->run->date, err));
    if (c->run->system != NULL)
        FT_TRY(ft_conversation_add(&c->conversation, "system", c->run->system, err));
    c->kept = c->conversation.count;
    FT_TRY(ft_run_request(&c->sampling, &c->stop_id, c->run, c->model, err));
    FT_TRY(open_session(c, err));
    print_banner(c);
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
    ft_interrupt_hold(); /* before the session starts threads */
    ft_status status = work(&c, err);
    ft_interrupt_allow();
    ft_session_close(c.session);
    ft_conversation_fini(&c.conversation);
    ft_strbuf_fini(&c.answer);
    free(c.stop_id);
    return status;
}
