/*
 * image_dataset.c - read one image at a time; labels from the names of folders.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/data/image_files/image_dataset.h"

#include "runtime/data/image_files/image_reader.h"
#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

/* The files of the rows, and what reads them. */
typedef struct {
    const ft_image_list *list;
    ft_image_reader reader;
} image_files;

/* ---- Images --------------------------------------------------------------------------------- */

static ft_status read_image(const void *user, size_t row, float *out, ft_error *err)
{
    const image_files *files = user;
    return ft_image_reader_read(&files->reader, files->list->path[row], out, err);
}

static ft_status open_files(ft_dataset *out, const ft_image_list *list, const ft_model *model,
                            ft_error *err)
{
    image_files *files = ft_calloc(1, sizeof *files);
    if (files == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory to read images");
    out->reader = (ft_pixel_reader){ .read = read_image, .close = free, .user = files };
    files->list = list;
    return ft_image_reader_init(&files->reader, model, err);
}

/* ---- Labels --------------------------------------------------------------------------------- */

/* The images and what their labels are. */
typedef struct {
    const ft_image_list *list;
    const ft_model *model;
    ft_error *err;
} source;

/* Either all images have a class, or none has. */
static ft_status check_classes(const source *from)
{
    const ft_image_list *list = from->list;
    for (size_t i = 1; i < list->count; i++) {
        bool has_class = list->folder[i] != NULL;
        if (has_class == (list->folder[0] != NULL))
            continue;
        return ft_fail(from->err, FT_EFORMAT,
                       "%s: %s, but %s %s: give images alone, or folders with a folder of images "
                       "for each class",
                       list->path[i], has_class ? "is in a folder of a class" : "has no class",
                       list->path[0], has_class ? "has none" : "has one");
    }
    return FT_OK;
}

static ft_status check_problem(const source *from)
{
    const ft_model *model = from->model;
    if (model->config.problem_type == FT_PROBLEM_SINGLE)
        return FT_OK;
    return ft_fail(from->err, FT_EUNSUPPORTED,
                   "%s: has the problem_type %s, but the folder of %s is a single class: name the "
                   "images themselves, or use -d FILE",
                   model->path, ft_problem_name(model->config.problem_type), from->list->path[0]);
}

/* The index that a name is; -1: none. */
static int32_t parse_index(const ft_model *model, const char *name)
{
    size_t digits = strspn(name, "0123456789");
    if (digits == 0 || digits > 9 || name[digits] != '\0')
        return -1;
    long index = strtol(name, NULL, 10);
    return index < model->config.labels ? (int32_t) index : -1;
}

/* The label that an image's folder names, in id2label or by its index. */
static ft_status find_label(const source *from, size_t image, int32_t *label)
{
    const ft_model *model = from->model;
    const char *name = from->list->folder[image], *path = from->list->path[image];
    *label = ft_model_find_label(model, name, 0);
    int32_t second = *label < 0 ? -1 : ft_model_find_label(model, name, *label + 1);
    if (second >= 0)
        return ft_fail(from->err, FT_EFORMAT,
                       "%s: the class \"%s\" is the name of the labels %d and %d: name the folder "
                       "by the index",
                       path, name, *label, second);
    if (*label < 0)
        *label = parse_index(model, name);
    if (*label >= 0)
        return FT_OK;
    const char *first = ft_model_label(model, 0);
    return ft_fail(from->err, FT_EFORMAT,
                   "%s: found the class \"%s\", expected a name of the model's id2label (the first "
                   "is \"%.64s\") or an index below %d: rename the folder, or name the images "
                   "themselves to read them without labels",
                   path, name, first == NULL ? "" : first, model->config.labels);
}

/* The images of a class are neighbours. */
static ft_status label_images(ft_dataset *out, const source *from)
{
    const ft_image_list *list = from->list;
    FT_TRY(check_classes(from));
    if (list->folder[0] == NULL)
        return FT_OK;
    FT_TRY(check_problem(from));
    out->labels = ft_calloc(list->count, sizeof *out->labels);
    if (out->labels == NULL)
        return ft_fail(from->err, FT_ENOMEM, "no memory for the labels of %zu images", list->count);
    for (size_t i = 0; i < list->count; i++)
        if (i > 0 && strcmp(list->folder[i], list->folder[i - 1]) == 0)
            out->labels[i] = out->labels[i - 1];
        else
            FT_TRY(find_label(from, i, &out->labels[i]));
    return FT_OK;
}

/* ---- All ------------------------------------------------------------------------------------ */

ft_status ft_dataset_from_images(ft_dataset *out, const ft_image_list *list, const ft_model *model,
                                 ft_error *err)
{
    const ft_config *config = &model->config;
    *out = (ft_dataset){ .rows = list->count,
                         .cols = (size_t) config->positions,
                         .image = { config->channels, config->image_height, config->image_width } };
    ft_status status = open_files(out, list, model, err);
    if (status != FT_OK)
        ft_dataset_fini(out);
    return status;
}

ft_status ft_dataset_from_labeled_images(ft_dataset *out, const ft_image_list *list,
                                         const ft_model *model, ft_error *err)
{
    FT_TRY(ft_dataset_from_images(out, list, model, err));
    ft_status status = FT_OK;
    if (list->once != NULL)
        status = ft_fail(err, FT_EUNSUPPORTED,
                         "%s: is not a regular file, but samples are read several times: store the "
                         "image in a file",
                         list->once);
    if (status == FT_OK && model->config.labels > 0)
        status = label_images(out, &(source){ list, model, err });
    if (status != FT_OK)
        ft_dataset_fini(out);
    return status;
}
