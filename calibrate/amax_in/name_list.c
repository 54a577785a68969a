/*
 * name_list.c - a list of names in a message: the first ones, "and 12 more".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "calibrate/amax_in/name_list.h"

#include <stdio.h>
#include <string.h>

void ft_name_list_add(ft_name_list *list, const char *name)
{
    size_t used = strlen(list->text);
    if (list->count++ < FT_NAME_LIST_SHOWN)
        snprintf(list->text + used, sizeof list->text - used, "%s%.120s", used > 0 ? ", " : "",
                 name);
}

const char *ft_name_list_text(ft_name_list *list)
{
    size_t used = strlen(list->text);
    if (list->count > FT_NAME_LIST_SHOWN)
        snprintf(list->text + used, sizeof list->text - used, " and %zu more",
                 list->count - FT_NAME_LIST_SHOWN);
    return list->text;
}
