"""ort_variants.py - one encoder in the variants that ONNX Runtime's own tools produce.

The fastest variant depends on the processor and the version, so a fair comparison tries all.  The
list below follows from measurements with 1.31 on a processor with AVX-512 VNNI: quantization halves
the time only with signed weights (unsigned ones were 2.4 times slower); dynamic and static
quantization of the linears are within 10 % of each other; the fused SkipLayerNormalization node
takes 5 times as long as Add and LayerNormalization, so disabling that fusion gains 15 %; the
MultiHeadAttention variant was never the fastest at 128 tokens.

SPDX-License-Identifier: Apache-2.0
"""
import collections
import contextlib
import functools
import io
import logging
import os

import onnx
import onnxruntime
from onnxruntime.quantization import (CalibrationDataReader, CalibrationMethod, QuantFormat,
                                      QuantType, quantize_dynamic, quantize_static)
from onnxruntime.transformers import optimizer
from onnxruntime.transformers.fusion_options import FusionOptions

# Fused nodes are in another domain, whose output types the quantizer cannot infer.
OPTIONS = {"DefaultTensorType": onnx.TensorProto.FLOAT}
# Only the linears: not the two MatMuls of attention, which have no constant operand.
LINEARS = {"MatMulConstBOnly": True}
# ... with float results: biases, residual sums and norms follow in float.
LINEARS_TO_FLOAT = {**LINEARS, "OpTypesToExcludeOutputQuantization": ["MatMul"]}


class Samples(CalibrationDataReader):
    """Calibration inputs, one feed at a time; all, or a range of them."""

    def __init__(self, feeds):
        super().__init__()
        self.feeds = feeds
        self.set_range(0, len(feeds))

    def __len__(self):
        return len(self.feeds)

    def set_range(self, start_index, end_index):
        self.rest = iter(self.feeds[start_index:end_index])

    def get_next(self):
        return next(self.rest, None)


def dynamic_defaults(source, path, _samples):
    """What quantize_dynamic() does by itself: one scale per matrix, int8 embeddings."""
    quantize_dynamic(source, path, extra_options=dict(OPTIONS))


def dynamic(source, path, _samples, ops=None):
    quantize_dynamic(source, path, per_channel=True, reduce_range=False, op_types_to_quantize=ops,
                     weight_type=QuantType.QInt8, extra_options={**OPTIONS, **LINEARS})


def static(form, activations, ops, options, source, path, samples,
           method=CalibrationMethod.MinMax):
    with contextlib.redirect_stdout(io.StringIO()):     # the percentile calibrator is talkative
        quantize_static(source, path, Samples(samples), quant_format=form, per_channel=True,
                        reduce_range=False, activation_type=activations,
                        weight_type=QuantType.QInt8, calibrate_method=method,
                        op_types_to_quantize=ops, extra_options={**OPTIONS, **options})


def static_qdq(activations, ops, options, **method):
    return functools.partial(static, QuantFormat.QDQ, activations, ops, options, **method)


def static_percentile(percentile):
    # The stride, in spite of its name, lets this method see feeds of different shapes.
    options = {**LINEARS_TO_FLOAT, "CalibPercentile": percentile, "CalibStridedMinMax": 1}
    return static_qdq(QuantType.QUInt8, ["MatMul"], options, method=CalibrationMethod.Percentile)


# Options of ONNX Runtime's transformer optimizer; None: the graph as built.
GRAPHS = {
    "exported": None,
    "fused": {},
    "attention fused": {"enable_skip_layer_norm": False, "enable_bias_skip_layer_norm": False,
                        "enable_bias_gelu": False},
}

QUANTIZATIONS = {
    "float32": None,
    "dynamic U8S8 by defaults": dynamic_defaults,
    "dynamic U8S8": dynamic,
    "dynamic U8S8 of linears": functools.partial(dynamic, ops=["MatMul", "Attention"]),
    "static QDQ U8S8": static_qdq(QuantType.QUInt8, ["MatMul"], LINEARS_TO_FLOAT),
    "static QDQ S8S8": static_qdq(QuantType.QInt8, ["MatMul"], LINEARS_TO_FLOAT),
    "static QDQ U8S8 percentile 99.999": static_percentile(99.999),
    "static QDQ U8S8 percentile 99.99": static_percentile(99.99),
    "static QDQ U8S8 all ops": static_qdq(QuantType.QUInt8, None, {}),
    "static QOperator U8S8": functools.partial(static, QuantFormat.QOperator, QuantType.QUInt8,
                                               ["MatMul"], LINEARS),
}

# Fusions that a session applies by default and that are disabled.
DEFAULT, NORM_APART = (), ("SkipLayerNormFusion",)
NORM_AND_GELU_APART = ("SkipLayerNormFusion", "BiasGeluFusion")

VARIANTS = (
    ("float32", "exported", DEFAULT),
    ("float32", "exported", NORM_AND_GELU_APART),
    ("float32", "fused", DEFAULT),
    ("dynamic U8S8", "exported", DEFAULT),
    ("dynamic U8S8", "exported", NORM_APART),
    ("dynamic U8S8", "fused", DEFAULT),
    ("dynamic U8S8", "attention fused", NORM_APART),
    ("static QDQ U8S8", "exported", DEFAULT),
    ("static QDQ U8S8", "exported", NORM_AND_GELU_APART),
    ("static QDQ S8S8", "exported", NORM_AND_GELU_APART),
    ("static QDQ U8S8 all ops", "exported", NORM_AND_GELU_APART),
    ("static QOperator U8S8", "exported", NORM_AND_GELU_APART),
)


class Variant(collections.namedtuple("Variant", "quantization graph apart path")):
    @property
    def int8(self):
        return self.quantization != "float32"

    @property
    def name(self):
        apart = " and ".join(fusion.replace("Fusion", "") for fusion in self.apart)
        return f"{self.quantization}, {self.graph}" + (f", {apart} not fused" if apart else "")

    def open(self, threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        return onnxruntime.InferenceSession(self.path, options, disabled_optimizers=self.apart,
                                            providers=["CPUExecutionProvider"])


def fuse(source, path, config, choices):
    options = FusionOptions("bert")
    for name, value in choices.items():
        setattr(options, name, value)
    optimizer.optimize_model(source, "bert", num_heads=config["num_attention_heads"],
                             hidden_size=config["hidden_size"], opt_level=0,
                             optimization_options=options).save_model_to_file(path)


def make(folder, build, config, samples, variants=VARIANTS):
    """
    Write the graphs that `variants` need into `folder`, keeping those already there.
    build() returns the ONNX model; `samples` are its inputs for calibration, a list of
    { name: array }.
    """
    logging.getLogger().setLevel(logging.ERROR)
    onnxruntime.set_default_logger_severity(3)

    def file(name, write):
        path = os.path.join(folder, name.replace(" ", "-") + ".onnx")
        if not os.path.exists(path):
            write(path + ".part")
            os.replace(path + ".part", path)
        return path

    def graph(name):
        if GRAPHS[name] is None:
            return file(name, lambda path: onnx.save(build(), path))
        return file(name, lambda path: fuse(graph("exported"), path, config, GRAPHS[name]))

    def quantized(name, source):
        if QUANTIZATIONS[name] is None:
            return graph(source)
        return file(f"{name} {source}",
                    lambda path: QUANTIZATIONS[name](graph(source), path, samples))

    return [Variant(how, source, apart, quantized(how, source))
            for how, source, apart in variants]
