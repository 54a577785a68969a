/*
 * image_options.c - collect the image files of a command line.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/cli/image_options.h"

#include "runtime/mem.h"

#include <stdlib.h>
#include <unistd.h>

void ft_tool_image_option(const ft_tool *tool, ft_image_paths *paths, const char *value, int argc)
{
    if (paths->path == NULL)
        paths->path = ft_calloc((size_t) argc, sizeof *paths->path);
    if (paths->path == NULL)
        exit(ft_tool_error(tool, "no memory for the command line"));
    paths->path[paths->count++] = value;
}

void ft_tool_image_operands(const ft_tool *tool, ft_image_paths *paths, int argc, char **argv)
{
    while (paths->count > 0 && optind < argc)
        ft_tool_image_option(tool, paths, argv[optind++], argc);
}

void ft_image_paths_free(ft_image_paths *paths)
{
    free(paths->path);
    *paths = (ft_image_paths){ NULL, 0 };
}
