"""A runtime for MLServer: an ONNX encoder that turns rows of token ids into one embedding per row.

Each row is run by itself, so that rows do not depend on each other.
"""

import os
import time

import numpy
import onnxruntime
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse
from mlserver.utils import get_model_uri


class OnnxEncoder(MLModel):
    """Serves `input_ids` INT64 [rows, tokens] as `embedding` FP32 [rows, width]."""

    async def load(self) -> bool:
        """Opens the graph that the settings name."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        path = await get_model_uri(self._settings)
        self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """Returns the embeddings of a request's rows."""
        # mlserver.ts writes seconds into this file to delay answers.
        delay = os.environ.get("DELAY_FILE")
        if delay and os.path.exists(delay):
            with open(delay) as file:
                time.sleep(float(file.read() or 0))
        ids = NumpyCodec.decode_input(payload.inputs[0])
        rows = [self._session.run(["embedding"], {"input_ids": row[numpy.newaxis, :]})[0][0] for row in ids]
        output = NumpyCodec.encode_output("embedding", numpy.stack(rows).astype(numpy.float32))
        return InferenceResponse(id=payload.id, model_name=self.name, model_version=self.version, outputs=[output])
