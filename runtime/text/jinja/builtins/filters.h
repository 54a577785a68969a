/*
 * filters.h - the tables of filters, and what they share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_JINJA_BUILTINS_FILTERS_H
#define FT_RUNTIME_TEXT_JINJA_BUILTINS_FILTERS_H

#include "runtime/text/jinja/builtins/builtin.h"

const ft_jinja_builtin *ft_jinja_find_text_filter(const char *name, size_t bytes);
const ft_jinja_builtin *ft_jinja_find_number_filter(const char *name, size_t bytes);
const ft_jinja_builtin *ft_jinja_find_list_filter(const char *name, size_t bytes);
const ft_jinja_builtin *ft_jinja_find_sort_filter(const char *name, size_t bytes);

/* What a filter compares: the value at a path, MISSING: itself; without regard to case if asked. */
ft_jinja_value ft_jinja_sort_key(ft_jinja_run *run, ft_jinja_value item, ft_jinja_value path,
                                 bool case_sensitive);

#endif
