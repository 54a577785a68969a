/*
 * parse.c - ft_jinja_parse(): limits, tokens, tree.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/jinja/jinja.h"
#include "runtime/text/jinja/parser.h"

#include "runtime/base/utf8.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>

static ft_status check_text(const char *name, const char *text, size_t bytes, ft_error *err)
{
    size_t valid = bytes > FT_JINJA_MAX_TEMPLATE ? 0 : ft_utf8_valid_prefix(text, bytes);
    if (bytes > FT_JINJA_MAX_TEMPLATE)
        return ft_fail(err, FT_ELIMIT, "%s: the template has %zu bytes, expected at most %d", name,
                       bytes, FT_JINJA_MAX_TEMPLATE);
    if (valid < bytes)
        return ft_fail(err, FT_EFORMAT, "%s: byte %zu is 0x%02x, expected valid UTF-8", name, valid,
                       (unsigned) (unsigned char) text[valid]);
    return FT_OK;
}

static void parse(ft_jinja_run *run, ft_jinja_template *template, const char *text, size_t bytes)
{
    ft_jinja_parser p = { .run = run,
                          .template = template,
                          .expression = ft_jinja_parse_expression };
    p.token = ft_jinja_lex(run, text, bytes).token;
    run->line = p.token->line;
    template->loop = ft_jinja_symbol_number(&p, "loop");
    template->caller = ft_jinja_symbol_number(&p, "caller");
    template->body = ft_jinja_parse_statements(&p, NULL);
}

/* A function of its own, because locals of the one that calls setjmp() must not change. */
static ft_status try_to_parse(ft_jinja_run *run, ft_jinja_template *template, const char *text,
                              size_t bytes)
{
    if (setjmp(run->failed) != 0)
        return run->status;
    parse(run, template, text, bytes);
    return FT_OK;
}

ft_status ft_jinja_parse(ft_jinja_template **out, const char *name, const char *text, size_t bytes,
                         ft_error *err)
{
    *out = NULL;
    FT_TRY(check_text(name, text, bytes, err));
    ft_jinja_template *template = calloc(1, sizeof *template);
    if (template == NULL || (template->name = ft_strdup(name)) == NULL) {
        free(template);
        return ft_fail(err, FT_ENOMEM, "%s: no memory for the template", name);
    }
    const size_t limit = ((size_t) 16 << 20) + 1024 * bytes; /* a node of 128 bytes per token */
    ft_jinja_run run = { .name = template->name, .err = err, .arena.limit = limit };
    run.max_text = FT_JINJA_MAX_TEMPLATE;
    run.steps = SIZE_MAX;
    ft_status status = try_to_parse(&run, template, text, bytes);
    template->arena = run.arena;
    if (status != FT_OK)
        ft_jinja_free(template);
    else
        *out = template;
    return status;
}

void ft_jinja_free(ft_jinja_template *template)
{
    if (template == NULL)
        return;
    ft_jinja_arena_fini(&template->arena);
    free(template->name);
    free(template);
}
