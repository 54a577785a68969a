/*
 * image_dataset.h - image files as the samples of a vision model.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_DATA_IMAGE_FILES_IMAGE_DATASET_H
#define FT_RUNTIME_DATA_IMAGE_FILES_IMAGE_DATASET_H

#include "runtime/data/dataset.h"
#include "runtime/data/image_files/image_list.h"
#include "runtime/model/model.h"

/*
 * A dataset with a row per file, which is decoded and preprocessed as preprocessor_config.json says
 * each time the row is needed; memory holds the images of one batch. List and model must last as
 * long as the dataset.
 *
 * FT_EUNSUPPORTED: no vision model, or no preprocessor_config.json. Reading a row fails with
 * FT_ESHAPE if the preprocessed image has another size than the model's input.
 */
FT_MUST_USE ft_status ft_dataset_from_images(ft_dataset *out, const ft_image_list *list,
                                             const ft_model *model, ft_error *err);

/*
 * The same for samples, which are read several times and may have labels: of a model that has any,
 * the folders of classes, by their names in id2label or by index.
 *
 * FT_EFORMAT: a folder is no label or the name of two, or only some images have a class.
 * FT_EUNSUPPORTED: folders of classes for a model whose problem_type is not single labels, or a
 * path that can be read only once.
 */
FT_MUST_USE ft_status ft_dataset_from_labeled_images(ft_dataset *out, const ft_image_list *list,
                                                     const ft_model *model, ft_error *err);

#endif
