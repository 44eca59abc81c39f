# syntax=docker/dockerfile:1
# Headlight in a container: CPU, no root, no network needed.
#   docker build -t headlight .
#   docker run --rm -p 8000:8000 --read-only --tmpfs /tmp headlight
ARG PYTHON_VERSION=3.11

FROM python:${PYTHON_VERSION}-slim AS build
# The CPU build of torch; another index of PyTorch's gives a CUDA build.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
ENV PIP_BUILD_CONSTRAINT=constraints.txt \
    PIP_NO_CACHE_DIR=1 \
    PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
# The dependencies come before the code, so that a change of the code installs only the code again.
# What only a C++ compiler or torch's own tests would read is dropped in the same layer.
COPY constraints.txt pyproject.toml README.md LICENSE ./
RUN pip install --constraint constraints.txt --upgrade pip && \
    python -m venv --without-pip /headlight && \
    pip --python /headlight install --constraint constraints.txt --no-deps --index-url "${TORCH_INDEX}" torch && \
    pip --python /headlight install --constraint constraints.txt . && \
    rm -rf /headlight/lib/python3*/site-packages/torch/include \
           /headlight/lib/python3*/site-packages/torch/share \
           /headlight/lib/python3*/site-packages/torch/test \
           /headlight/lib/python3*/site-packages/torch/bin/protoc* \
           /headlight/lib/python3*/site-packages/torch/bin/test_*
COPY . .
RUN pip --python /headlight install --no-deps --force-reinstall .

FROM python:${PYTHON_VERSION}-slim
LABEL org.opencontainers.image.title="Headlight" \
      org.opencontainers.image.description="Type a sentence, watch a transformer read it" \
      org.opencontainers.image.licenses="MIT"
RUN useradd --system --uid 10001 --no-create-home headlight
COPY --from=build /headlight /headlight
# The file system may be read-only: nothing is written but what a library may put under /tmp.
ENV PATH="/headlight/bin:${PATH}" \
    HOME=/tmp \
    HF_HUB_OFFLINE=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
ENTRYPOINT ["headlight"]
CMD ["serve", "--host", "0.0.0.0", "--port", "8000"]
