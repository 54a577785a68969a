/*
 * page.h - the skeleton of a page, its sections, and escaped text.
 *
 * All functions write to a stream whose errors the caller checks at the end.  Text arguments are
 * plain text: whatever they contain becomes text of the page.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CLI_HTML_PAGE_H
#define FT_RUNTIME_CLI_HTML_PAGE_H

#include <stddef.h>
#include <stdio.h>

/* Write text with the characters & < > " ' as references. */
void ft_html_escape(FILE *file, const char *text, size_t length);

/* Format as printf does, and escape the result; longer than 1023 bytes, it is truncated. */
void ft_html_printf(FILE *file, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The start of a page up to its h1, and its end.  A page loads nothing: its policy forbids that. */
void ft_html_begin(FILE *file, const char *title);
void ft_html_end(FILE *file);

/* A section with an h2, and a paragraph that explains it. */
void ft_html_begin_section(FILE *file, const char *heading, const char *explanation);
void ft_html_end_section(FILE *file);

/* A list of names and values. */
void ft_html_begin_facts(FILE *file);
void ft_html_fact(FILE *file, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void ft_html_end_facts(FILE *file);

/* A part that scrolls sideways, by touch, pointer and keyboard; `label` names it. */
void ft_html_begin_scroll(FILE *file, const char *label);
void ft_html_end_scroll(FILE *file);

#endif
