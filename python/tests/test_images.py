"""Images give what ft-run gives.

SPDX-License-Identifier: Apache-2.0
"""
import os
import unittest

import ftruntime as ft
import numpy as np
import support

FOLDER = os.path.join(support.SOURCES, "tests/golden/images")
FILES = [os.path.join(FOLDER, name) for name in ("rgb.png", "photo.jpg", "gray.jpg", "alpha.png")]


class Images(unittest.TestCase):
    def setUp(self):
        self.model = ft.Model.open(support.generated("vit"))

    def logits(self, images):
        return [prediction.logits for prediction in self.model.classify_images(images)]

    def test_classes_of_files_are_those_of_ft_run(self):
        found = self.model.classify_images(FILES)
        arguments = [part for path in FILES for part in ("--image", path)]
        expected = support.run(self.model.path, *arguments)
        self.assertEqual(np.float32([p.logits for p in found]).tolist(),
                         np.float32([e["logits"] for e in expected]).tolist())
        self.assertEqual([(p.label, f"{p.score:.9g}") for p in found],
                         [(e["label"], f"{e['probability']:.9g}") for e in expected])

    def test_pixels_give_what_their_file_gives(self):
        rows, columns = np.mgrid[0:40, 0:50]
        pixels = np.stack([rows * 5, columns * 4, rows + columns], axis=2).astype("uint8")
        path = os.path.join(support.FOLDER, "pixels.png")
        with open(path, "wb") as file:
            file.write(support.png(pixels))
        self.assertEqual(self.logits([pixels]), self.logits([path]))
        self.assertEqual(self.logits([np.asfortranarray(pixels)]), self.logits(path))

    def test_pixel_values_are_classified_without_preprocessing(self):
        values = self.model.pixel_values(FILES)
        self.assertEqual((values.dtype.name, values.shape), ("float32", (4, 3, 12, 12)))
        self.assertEqual(self.logits(values), self.logits(FILES))
        logits = self.model.session().run({"pixel_values": values})["logits"]
        self.assertEqual(logits.tolist(), self.logits(FILES))

    def test_many_images_are_split_into_batches(self):
        values = np.repeat(self.model.pixel_values(FILES), 300, axis=0)
        self.assertEqual(self.logits(values), np.repeat(self.logits(FILES), 300, axis=0).tolist())
        self.assertEqual(self.logits([]), [])

    def test_what_is_no_image_is_refused(self):
        for image in np.zeros((4, 4, 3)), np.zeros((4, 4), "uint8"), np.zeros((0, 4, 3), "uint8"):
            with self.assertRaises(ft.FtError) as caught:
                self.model.classify_images([image])
            self.assertEqual(caught.exception.status, "FT_ESHAPE")
        for path, words in (("/missing.png", "/missing.png"),
                            (os.path.join(FOLDER, "expected.txt"), "neither a PNG nor a JPEG")):
            with self.assertRaises(ft.FtError) as caught:
                self.model.pixel_values([path])
            self.assertIn(words, str(caught.exception))


if __name__ == "__main__":
    unittest.main()
