/*
 * name_list.h - a list of names in a message: the first ones, "and 12 more".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_AMAX_IN_NAME_LIST_H
#define FT_CALIBRATE_AMAX_IN_NAME_LIST_H

#include <stddef.h>

enum { FT_NAME_LIST_SHOWN = 5, FT_NAME_LIST_SIZE = 640 };

/* Zero-initialized means empty. */
typedef struct ft_name_list {
    size_t count;
    char text[FT_NAME_LIST_SIZE]; /* the names that are shown */
} ft_name_list;

/* Adds a name; names after the first FT_NAME_LIST_SHOWN are only counted. */
void ft_name_list_add(ft_name_list *list, const char *name);

/* Ends the list with "and N more" if names were left out, and returns its text. */
const char *ft_name_list_text(ft_name_list *list);

#endif
