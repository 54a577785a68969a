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
import functools
import logging
import os

import numpy as np
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
    """Calibration inputs, four sequences at a time."""

    def __init__(self, ids):
        super().__init__()
        self.batches = iter([ids[i:i + 4].astype(np.int64) for i in range(0, len(ids), 4)])

    def get_next(self):
        ids = next(self.batches, None)
        return None if ids is None else {"input_ids": ids}


def dynamic(source, path, _samples):
    quantize_dynamic(source, path, per_channel=True, reduce_range=False,
                     weight_type=QuantType.QInt8, extra_options={**OPTIONS, **LINEARS})


def static(form, activations, ops, options, source, path, samples):
    quantize_static(source, path, Samples(samples), quant_format=form, per_channel=True,
                    reduce_range=False, activation_type=activations, weight_type=QuantType.QInt8,
                    calibrate_method=CalibrationMethod.MinMax, op_types_to_quantize=ops,
                    extra_options={**OPTIONS, **options})


def static_qdq(activations, ops, options):
    return functools.partial(static, QuantFormat.QDQ, activations, ops, options)


# Options of ONNX Runtime's transformer optimizer; None: the graph as built.
GRAPHS = {
    "exported": None,
    "fused": {},
    "attention fused": {"enable_skip_layer_norm": False, "enable_bias_skip_layer_norm": False,
                        "enable_bias_gelu": False},
}

QUANTIZATIONS = {
    "float32": None,
    "dynamic U8S8": dynamic,
    "static QDQ U8S8": static_qdq(QuantType.QUInt8, ["MatMul"], LINEARS_TO_FLOAT),
    "static QDQ S8S8": static_qdq(QuantType.QInt8, ["MatMul"], LINEARS_TO_FLOAT),
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


def make(folder, build, config, samples):
    """
    Write the graphs that VARIANTS needs into `folder`, keeping those already there.
    build() returns the ONNX model; `samples` are token ids int [n, length] for calibration.
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
            for how, source, apart in VARIANTS]
