# Programs and scripts to begin with.  They are built by those who read them, and by tests.
# SPDX-License-Identifier: Apache-2.0

EXTRA_DIST += \
	samples/CMakeLists.txt \
	samples/containers/Containerfile \
	samples/containers/kserve.yaml \
	samples/README.md \
	samples/cluster/README.md \
	samples/cluster/Snakefile \
	samples/cluster/calibrate.slurm \
	samples/cluster/mpi_calibrate.py \
	samples/cluster/ray_calibrate.py \
	samples/cluster/ray_serve.py \
	samples/cluster/shard_files.py \
	samples/device.sh \
	samples/generate.c \
	samples/minilm.py \
	samples/packages.sh \
	samples/phases.sh \
	samples/python/langchain_ft.py \
	samples/python/sentence_encoder.py \
	samples/quickstart.sh \
	samples/run.c \
	samples/snippets.txt \
	samples/source-language-bert/calibration.safetensors \
	samples/source-language-bert/calibration.txt \
	samples/source-language-bert/config.json \
	samples/source-language-bert/evaluation.jsonl \
	samples/source-language-bert/model.safetensors \
	samples/source-language-bert/reference.safetensors \
	samples/source-language-bert/tokenizer.json \
	samples/source-language-bert/tokenizer_config.json
