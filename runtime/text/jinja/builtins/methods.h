/*
 * methods.h - the tables of methods.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_JINJA_BUILTINS_METHODS_H
#define FT_RUNTIME_TEXT_JINJA_BUILTINS_METHODS_H

#include "runtime/text/jinja/builtins/builtin.h"

const ft_jinja_builtin *ft_jinja_find_string_method(const char *name, size_t bytes);
const ft_jinja_builtin *ft_jinja_find_split_method(const char *name, size_t bytes);
const ft_jinja_builtin *ft_jinja_find_list_method(const char *name, size_t bytes);
const ft_jinja_builtin *ft_jinja_find_dict_method(const char *name, size_t bytes);
const ft_jinja_builtin *ft_jinja_find_loop_method(const char *name, size_t bytes);

#endif
