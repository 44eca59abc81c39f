# Headlight in a container: CPU, no root, no network needed. The lab, which trains models, is not in it.
#   docker build -t headlight .        or podman build, or buildah build --format docker
#   docker run --rm -p 127.0.0.1:8000:8000 --read-only --tmpfs /tmp headlight
ARG PYTHON_VERSION=3.11

FROM python:${PYTHON_VERSION}-slim AS build
# Extras, such as '[hf]' for Hugging Face checkpoints, which a mounted folder may hold:
#   docker build --build-arg EXTRAS='[hf]' -t headlight .
#   docker run … -v ./models:/models:ro -e HEADLIGHT_MODELS_DIR=/models headlight
ARG EXTRAS=""
# The CPU build of torch; another index of PyTorch's gives a CUDA build.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
ENV PATH="/headlight/bin:${PATH}" \
    PIP_BUILD_CONSTRAINT=constraints.txt \
    PIP_NO_CACHE_DIR=1 \
    PIP_ROOT_USER_ACTION=ignore
# hadolint ignore=DL3008
RUN apt-get update && \
    apt-get install --yes --no-install-recommends binutils && \
    rm -rf /var/lib/apt/lists/*
WORKDIR /src
# The dependencies come before the code, so that a change of the code installs only the code again. Their
# list is that of pyproject.toml. What only a compiler, a debugger, the tests of others or JupyterLab would
# read is dropped in the same layer, 970 MB become 620. (NumPy's libraries keep their symbols: they were
# patched after they were linked, and would not load without.)
COPY constraints.txt pyproject.toml ./
RUN python -c "import sys, tomllib; \
project = tomllib.load(open('pyproject.toml', 'rb'))['project']; \
extras = [extra.strip() for extra in sys.argv[1].strip('[]').split(',') if extra.strip()]; \
needed = [*project['dependencies'], *(line for extra in extras for line in project['optional-dependencies'][extra])]; \
print(*needed, sep='\n')" "${EXTRAS}" > requirements.txt && \
    pip install --constraint constraints.txt --upgrade pip && \
    python -m venv --without-pip /headlight && \
    pip --python /headlight install --no-compile --constraint constraints.txt --no-deps --index-url "${TORCH_INDEX}" torch && \
    pip --python /headlight install --no-compile --constraint constraints.txt --requirement requirements.txt && \
    pip --python /headlight uninstall --yes hf-xet && \
    rm -rf /headlight/lib/python3*/site-packages/torch/include \
           /headlight/lib/python3*/site-packages/torch/share \
           /headlight/lib/python3*/site-packages/torch/lib/*test.so \
           /headlight/lib/python3*/site-packages/plotly/labextension \
           /headlight/lib/python3*/site-packages/plotly/package_data/datasets && \
    find /headlight/lib/python3*/site-packages/torch/bin -type f ! -name torch_shm_manager -delete && \
    find /headlight/lib -type d \( -name test -o -name tests \) ! -path '*.dist-info/*' -prune -exec rm -rf {} + && \
    find /headlight/lib/python3*/site-packages/torch/lib /headlight/lib/python3*/site-packages/zstandard \
         -name '*.so' -exec strip --strip-unneeded {} +
COPY . .
RUN pip --python /headlight install --no-compile --no-deps . ./model/zoo
# The list of all parts, as CycloneDX; the tool that writes it is not among them.
RUN python -m venv /sbom && \
    /sbom/bin/pip install cyclonedx-bom==7.5.0 && \
    /sbom/bin/cyclonedx-py environment --output-reproducible --of JSON -o /headlight/headlight.cdx.json /headlight/bin/python
# What was dropped is missed by nobody: a server starts and is warm. What it imported lies compiled
# beside it from then on: a read-only container can compile nothing, and would compute for 4 seconds in
# place of 2 whenever it starts.
ENV PYTHONPYCACHEPREFIX=/headlight/bytecode
# hadolint ignore=DL3001
RUN headlight serve & server=$! && \
    timeout 120 sh -ec "until python -c \"from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/readyz')\"; do kill -0 $server; sleep 1; done" && \
    headlight trace "Once upon a time" && \
    kill $server

FROM python:${PYTHON_VERSION}-slim
LABEL org.opencontainers.image.title="headlight-viz" \
      org.opencontainers.image.version="1.0.0" \
      org.opencontainers.image.description="Type a sentence, watch a transformer read it" \
      org.opencontainers.image.licenses="MIT"
RUN useradd --system --uid 10001 --no-create-home headlight
COPY --from=build /headlight /headlight
# The file system may be read-only: nothing is written but what a library may put under /tmp.
ENV PATH="/headlight/bin:${PATH}" \
    HOME=/tmp \
    HEADLIGHT_HOST=0.0.0.0 \
    HEADLIGHT_PORT=8000 \
    HF_HUB_OFFLINE=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONPYCACHEPREFIX=/headlight/bytecode \
    PYTHONUNBUFFERED=1
USER 10001
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=4s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request; urllib.request.urlopen(f\"http://127.0.0.1:{os.environ['HEADLIGHT_PORT']}/readyz\", timeout=3)"]
ENTRYPOINT ["headlight"]
CMD ["serve"]
