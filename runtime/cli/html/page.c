/*
 * page.c - the skeleton of a page, its sections, and escaped text.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/cli/html/page.h"

#include <stdarg.h>
#include <string.h>

enum { MAX_TEXT = 1024 };

static const char style[] =
#include "runtime/cli/html/style.inc"
    ;

static const char script[] =
#include "runtime/cli/html/sort.inc"
    ;

/* ---- Text ---------------------------------------------------------------------------------- */

static const char *reference(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    }
    return NULL;
}

void ft_html_escape(FILE *file, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        const char *escaped = reference(text[i]);
        if (escaped != NULL)
            fputs(escaped, file);
        else
            fputc(text[i], file);
    }
}

__attribute__((format(printf, 2, 0))) static void print_escaped(FILE *file, const char *format,
                                                                va_list arguments)
{
    char text[MAX_TEXT];
    vsnprintf(text, sizeof text, format, arguments);
    ft_html_escape(file, text, strlen(text));
}

void ft_html_printf(FILE *file, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_escaped(file, format, arguments);
    va_end(arguments);
}

/* ---- Skeleton ------------------------------------------------------------------------------ */

void ft_html_begin(FILE *file, const char *title)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
          "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n<title>",
          file);
    ft_html_printf(file, "%s", title);
    fprintf(file, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<main>\n<h1>", style);
    ft_html_printf(file, "%s", title);
    fputs("</h1>\n", file);
}

void ft_html_end(FILE *file)
{
    fprintf(file, "</main>\n<script>\n%s</script>\n</body>\n</html>\n", script);
}

void ft_html_begin_section(FILE *file, const char *heading, const char *explanation)
{
    fputs("<section>\n<h2>", file);
    ft_html_printf(file, "%s", heading);
    fputs("</h2>\n<p>", file);
    ft_html_printf(file, "%s", explanation);
    fputs("</p>\n", file);
}

void ft_html_end_section(FILE *file)
{
    fputs("</section>\n", file);
}

void ft_html_begin_facts(FILE *file)
{
    fputs("<dl>\n", file);
}

void ft_html_fact(FILE *file, const char *name, const char *format, ...)
{
    va_list arguments;
    fputs("<div><dt>", file);
    ft_html_printf(file, "%s", name);
    fputs("</dt><dd>", file);
    va_start(arguments, format);
    print_escaped(file, format, arguments);
    va_end(arguments);
    fputs("</dd></div>\n", file);
}

void ft_html_end_facts(FILE *file)
{
    fputs("</dl>\n", file);
}

void ft_html_begin_scroll(FILE *file, const char *label)
{
    fputs("<div class=\"scroll wide\" tabindex=\"0\" role=\"region\" aria-label=\"", file);
    ft_html_printf(file, "%s", label);
    fputs("\">\n", file);
}

void ft_html_end_scroll(FILE *file)
{
    fputs("</div>\n", file);
}
