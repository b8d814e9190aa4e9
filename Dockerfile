# tightrope in an image:
#   docker build -t tightrope .
#   docker run --rm -v "$PWD:/work" tightrope compare --before old/ --after new/
FROM python:3.12-slim AS wheels
COPY . /source
RUN pip wheel --no-cache-dir --wheel-dir /wheels /source

FROM python:3.12-slim
COPY --from=wheels /wheels /wheels
RUN pip install --no-cache-dir --no-index --find-links /wheels tightrope && rm -rf /wheels \
    && useradd --create-home user
USER user
# Kernels are compiled on first use; they are kept in this volume, which belongs to the user.
ENV XDG_CACHE_HOME=/home/user/.cache
RUN mkdir -p /home/user/.cache
VOLUME /home/user/.cache
WORKDIR /work
ENTRYPOINT ["tightrope"]
CMD ["--help"]
