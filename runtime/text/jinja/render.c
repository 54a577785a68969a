/*
 * render.c - ft_jinja_render(): limits, variables, output.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/jinja/interpreter.h"
#include "runtime/text/jinja/jinja.h"

#include "runtime/error.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of all texts of a JSON value, up to a depth that ft_jinja_from_json() refuses anyway. */
static size_t text_bytes(const json_t *json, int depth)
{
    const char *key;
    const json_t *value;
    size_t bytes = json_string_length(json) + 16;
    if (depth > FT_JINJA_MAX_DEPTH)
        return bytes;
    json_object_foreach((json_t *) (uintptr_t) json, key, value) bytes +=
        strlen(key) + text_bytes(value, depth + 1);
    for (size_t i = 0; i < json_array_size(json); i++)
        bytes += text_bytes(json_array_get(json, i), depth + 1);
    return bytes;
}

/* What a template may use grows with what it is given. */
static void set_limits(ft_jinja_run *run, const ft_jinja_variable *variables, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        if (variables[i].value != NULL)
            bytes += text_bytes(variables[i].value, 0);
    run->max_text = ((size_t) 8 << 20) + 16 * bytes;
    run->arena.limit = ((size_t) 128 << 20) + 64 * bytes;
    run->steps = 2000000 + 16 * bytes;
}

static void assign_variables(ft_jinja_interpreter *in, const ft_jinja_variable *variables,
                             size_t count)
{
    const struct ft_jinja_template *t = in->template;
    for (size_t i = 0; i < FT_JINJA_SYMBOL_BUCKETS; i++)
        for (const ft_jinja_symbol *symbol = t->bucket[i]; symbol != NULL; symbol = symbol->next)
            for (size_t k = 0; k < count; k++)
                if (variables[k].value != NULL && strcmp(variables[k].name, symbol->name) == 0)
                    in->global[symbol->number] =
                        ft_jinja_from_json(&in->run, variables[k].value, variables[k].message);
}

static void render(ft_jinja_interpreter *in, const ft_jinja_variable *variables, size_t count)
{
    in->global = ft_jinja_alloc(&in->run, in->template->symbols, sizeof *in->global);
    memset(in->global, 0, in->template->symbols * sizeof *in->global);
    assign_variables(in, variables, count);
    (void) ft_jinja_execute(in, in->template->body);
}

/* A function of its own, because locals of the one that calls setjmp() must not change. */
static ft_status try_to_render(ft_jinja_interpreter *in, const ft_jinja_variable *variables,
                               size_t count)
{
    if (setjmp(in->run.failed) != 0)
        return in->run.status;
    render(in, variables, count);
    return FT_OK;
}

/* Text and origin in one block of memory. */
static ft_status copy_output(const ft_jinja_builder *from, ft_jinja_output *out, ft_error *err)
{
    char *text = malloc(2 * from->bytes + 1);
    if (text == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for a rendered template of %zu bytes",
                       from->bytes);
    if (from->bytes > 0) {
        memcpy(text, from->data, from->bytes);
        memcpy(text + from->bytes, from->mask, from->bytes);
    }
    *out = (ft_jinja_output){ text, (uint8_t *) text + from->bytes, from->bytes };
    return FT_OK;
}

ft_status ft_jinja_render(const ft_jinja_template *template, const ft_jinja_variable *variables,
                          size_t count, int64_t date, ft_jinja_output *out, ft_error *err)
{
    ft_jinja_interpreter in = {
        .run = { .name = template->name, .err = err, .line = 1, .date = date },
        .template = template,
        .call_macro = ft_jinja_call_macro,
        .execute = ft_jinja_execute,
    };
    ft_jinja_builder text = { .run = &in.run };
    in.out = &text;
    *out = (ft_jinja_output){ 0 };
    set_limits(&in.run, variables, count);
    ft_status status = try_to_render(&in, variables, count);
    if (status == FT_OK)
        status = copy_output(&text, out, err);
    ft_jinja_arena_fini(&in.run.arena);
    return status;
}
