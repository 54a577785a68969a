/*
 * image_options.h - the option that names image files, common to the tools that read them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CLI_IMAGE_OPTIONS_H
#define FT_RUNTIME_CLI_IMAGE_OPTIONS_H

#include "runtime/cli/options.h"

enum { FT_OPTION_IMAGE = 620 };

/* A row of a tool's table. */
#define FT_IMAGE_OPTION                                                                            \
    {                                                                                              \
        FT_OPTION_IMAGE, "image", "FILE...",                                                       \
            "a PNG or JPEG image, or a folder of them; may be\n"                                   \
            "repeated, further files may follow without --image"                                   \
    }

/* The files and folders of a command line; zero-initialized means none. */
typedef struct ft_image_paths {
    const char **path; /* [count]; freed by ft_image_paths_free() */
    size_t count;
} ft_image_paths;

/* Add the argument of the option; `argc` bounds their number. Without memory the program ends. */
void ft_tool_image_option(const ft_tool *tool, ft_image_paths *paths, const char *value, int argc);

/* If there are any, the operands from argv[optind] on are images, too; changes optind. */
void ft_tool_image_operands(const ft_tool *tool, ft_image_paths *paths, int argc, char **argv);

void ft_image_paths_free(ft_image_paths *paths);

#endif
