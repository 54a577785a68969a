/*
 * image_list.h - the image files that paths name: files, folders of images, and folders with a
 * folder of images for each class.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_DATA_IMAGE_FILES_IMAGE_LIST_H
#define FT_RUNTIME_DATA_IMAGE_FILES_IMAGE_LIST_H

#include "runtime/ft.h"

enum { FT_IMAGE_LIST_MAX = 1 << 22 /* files */ };

/* Zero-initialized means empty. */
typedef struct ft_image_list {
    char **path;   /* [count]: owned */
    char **folder; /* [count]: the name of the folder of its class, owned; NULL: none */
    size_t count, capacity;
    const char *once; /* one of the paths that can be read only once, such as a pipe; NULL: none */
} ft_image_list;

/*
 * List files in the order of the paths. The files of a folder are sorted by the bytes of their
 * names, those of a folder of classes by class and then by name (the layout of torchvision's
 * ImageFolder); names that begin with a dot are left out.
 *
 * FT_EUNSUPPORTED, with the path: a file is no image that this build reads, which its first bytes
 * tell. FT_EFORMAT: a folder holds no image, or the folder of a class holds another one. FT_ELIMIT:
 * more than FT_IMAGE_LIST_MAX files. Free with ft_image_list_fini(), also after a failure.
 */
FT_MUST_USE ft_status ft_image_list_read(ft_image_list *out, const char *const *path, size_t count,
                                         ft_error *err);
void ft_image_list_fini(ft_image_list *list);

#endif
