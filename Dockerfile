# radii from packages, for one user that is not root:
#     docker build -t radii .
#     docker run --rm -v "$PWD:/work" radii run --network net.onnx --data points.npz --domain 0:1 --out results
# Where CPU builds of torch have an index of their own, --build-arg PIP_EXTRA_INDEX_URL=... names it;
# without one, the build that the usual index has is taken.
FROM python:3.11-slim AS wheel
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.11-slim
ARG PIP_EXTRA_INDEX_URL
COPY constraints.txt /wheels/
RUN pip install --no-cache-dir -c /wheels/constraints.txt torch==2.13.0+cpu \
    || pip install --no-cache-dir -c /wheels/constraints.txt torch==2.13.0
COPY --from=wheel /wheels /wheels
RUN pip install --no-cache-dir -c /wheels/constraints.txt "$(echo /wheels/radii-*.whl)[all]"
RUN useradd --create-home --uid 1000 radii && install --directory --owner radii /work
USER radii
WORKDIR /work
ENTRYPOINT ["radii"]
CMD ["--help"]
