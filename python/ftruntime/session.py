"""Sessions: forward passes from arrays to arrays.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

from ._arrays import as_array, numpy, shape_of, tensor_of
from ._library import c_strings, call, error, ffi, lib, opened, raise_error

TYPE_CHECKING = False  # as in typing, whose import takes longer than the rest
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, Mapping

    import numpy as np

    from .model import Model


class Session:
    """Memory for forward passes of one model; made by Model.session().

    Only one thread at a time may use a session; threads may have one each.
    """

    def __init__(self, model: "Model", *, threads: int = 0, max_tokens: int = 0,
                 max_sequences: int = 0, keep: Iterable[str] = (), context: int = 0,
                 cache_tokens: int = 0, source_tokens: int = 0, all_logits: bool = False):
        names, self._kept = c_strings(list(keep))
        options = ffi.new("ft_session_options *", {
            "threads": threads or model._threads,
            "max_tokens": max_tokens,
            "max_sequences": max_sequences,
            "keep": names,
            "context": context,
            "cache_tokens": cache_tokens,
            "source_tokens": source_tokens,
            "all_logits": all_logits,
        })
        self._session = opened("ft_session", lib.ft_session_close, lib.ft_session_open,
                               model._model, options, owner=model._model)

    def run(self, inputs: Mapping[str, Any],
            outputs: Iterable[str] = ("logits",)) -> Dict[str, "np.ndarray"]:
        """One forward pass.

        Args:
            inputs: "input_ids" [N, S] int32 or int64, and optionally "attention_mask" (1 = token)
                and "token_type_ids" of the same shape; "decoder_input_ids" and
                "decoder_attention_mask" [N, T] of encoder-decoders; "pixel_values"
                [N, channels, height, width] float32 of vision models.
            outputs: names of outputs: "logits", "embedding", "last_hidden_state", "start_logits",
                "end_logits", "encoder_last_hidden_state", or names given to Model.session(keep=).

        Returns:
            float32 arrays by name, of their shapes in ft.h.

        Raises:
            FtError: FT_ESHAPE, FT_EARG or FT_ELIMIT for inputs that do not fit; FT_ENONFINITE if
                an output is not finite.
        """
        self._set(inputs)
        call(lib.ft_session_run, self._session)
        return {name: self._get(name) for name in outputs}

    def bind(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> "Binding":
        """Bind arrays for many passes of one shape: Binding.run() reads and writes these arrays.

        Args:
            inputs: as of run(); C-contiguous arrays, which are kept and read by each pass.
            outputs: writable C-contiguous float32 arrays by name, of the shapes of the outputs.
        """
        return Binding(self, inputs, outputs)

    def _set(self, inputs):
        # "input_ids" clears the other two inputs.
        for name in sorted(inputs, key=lambda name: name != "input_ids"):
            array = as_array(inputs[name], name)
            call(lib.ft_session_set, self._session, name.encode(), tensor_of(array))

    def _get(self, name):
        tensor = ffi.new("ft_tensor *")
        key = name.encode()
        call(lib.ft_session_get, self._session, key, tensor)
        array = numpy().empty(shape_of(tensor), dtype="float32")
        tensor.data = ffi.cast("void *", array.ctypes.data)
        call(lib.ft_session_get, self._session, key, tensor)
        return array


class Binding:
    """Arrays bound to a session, so that a pass costs little more than in C.

    The owner of the arrays writes new inputs into them, calls run(), and reads the outputs.
    """

    def __init__(self, session: Session, inputs: Mapping[str, Any], outputs: Mapping[str, Any]):
        session._set(inputs)
        self._arrays = []  # keeps what the tensors point to
        self._inputs = [self._bind(name, self._in_place(name, inputs[name]))
                        for name in sorted(inputs, key=lambda name: name != "input_ids")]
        self._owner = session
        self._session = session._session
        self._err = ffi.new("ft_error *")
        call(lib.ft_session_run, self._session)
        self._outputs = [self._bind_output(name, array) for name, array in outputs.items()]

    def _in_place(self, name, values):
        """The memory of an array itself, not of a copy."""
        array = as_array(values, name)
        if array is values:
            return array
        if not hasattr(values, "__dlpack__") or not numpy().shares_memory(
                array, numpy().from_dlpack(values)):
            raise error(f"{name}: found no C-contiguous array, expected one to bind", lib.FT_EARG)
        return array

    def _bind(self, name, array):
        self._arrays.append(array)
        return ffi.new("char[]", name.encode()), tensor_of(array)

    def _bind_output(self, name, values):
        array = self._in_place(name, values)
        shape = ffi.new("ft_tensor *")
        call(lib.ft_session_get, self._session, name.encode(), shape)
        expected = shape_of(shape)
        if array.shape != expected or array.dtype.name != "float32" or not array.flags.writeable:
            raise error(f"{name}: found {array.dtype.name} {list(array.shape)}, expected a "
                        f"writable array float32 {list(expected)}", lib.FT_ESHAPE)
        return self._bind(name, array)

    def run(self) -> None:
        """One forward pass from the bound inputs to the bound outputs.

        Raises:
            FtError: as Session.run().
        """
        session, err = self._session, self._err
        for name, tensor in self._inputs:
            code = lib.ft_session_set(session, name, tensor, err)
            if code:
                raise_error(code, err)
        code = lib.ft_session_run(session, err)
        if code:
            raise_error(code, err)
        for name, tensor in self._outputs:
            code = lib.ft_session_get(session, name, tensor, err)
            if code:
                raise_error(code, err)
