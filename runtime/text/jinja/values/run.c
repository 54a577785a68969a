/*
 * run.c - errors and limits of a parse or a rendering.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/jinja/values/run.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdarg.h>
#include <string.h>

void ft_jinja_fail(ft_jinja_run *run, ft_status status, const char *format, ...)
{
    char text[900];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    run->status = ft_fail(run->err, status, "%s: line %u: %s", run->name, run->line, text);
    longjmp(run->failed, 1);
}

void ft_jinja_fail_unknown(ft_jinja_run *run, const char *what, const char *name, size_t bytes)
{
    ft_jinja_fail(run, FT_EUNSUPPORTED,
                  "found the %s \"%.*s\", which is not supported in chat templates", what,
                  (int) ft_min_size(bytes, 80), name);
}

void *ft_jinja_alloc(ft_jinja_run *run, size_t count, size_t size)
{
    size_t bytes;
    if (!ft_checked_mul(count, size, &bytes) || !ft_jinja_arena_fits(&run->arena, bytes))
        ft_jinja_fail(run, FT_ELIMIT, "no memory: the template needs more than %zu MiB",
                      run->arena.used >> 20);
    void *memory = ft_jinja_arena_alloc(&run->arena, bytes);
    if (memory == NULL)
        ft_jinja_fail(run, FT_ENOMEM, "no memory for the template");
    return memory;
}

char *ft_jinja_copy(ft_jinja_run *run, const char *text, size_t bytes)
{
    char *copy = ft_jinja_alloc(run, bytes + 1, 1);
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    return copy;
}

void ft_jinja_spend(ft_jinja_run *run, size_t steps)
{
    if (run->steps < steps)
        ft_jinja_fail(run, FT_ELIMIT, "the template takes too many steps");
    run->steps -= steps;
}

void ft_jinja_enter(ft_jinja_run *run)
{
    if (++run->depth > FT_JINJA_MAX_DEPTH)
        ft_jinja_fail(run, FT_ELIMIT, "nested more than %d levels deep", FT_JINJA_MAX_DEPTH);
}
