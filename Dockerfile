# The daemon, the device plugin and the operator's tool, in an image that holds nothing else: no shell, no package
# manager, no root.
#
#   docker build -t rnicd .                           the image. How to run it: deploy/README.md, deploy/kubernetes
#   docker build -t rnicd-debug --target debug .      the symbols of its programs
#
# scripts/container-test builds and tries both without Docker.
ARG VERSION=0.1.0
# Built as the last part of the path, found at the path.
ARG PROGRAMS="daemon/app/rnicd client/ctl/rnicctl client/kubernetes/rnicd-device-plugin"

FROM debian:bookworm-slim AS build
WORKDIR /src
# The package list of the project is scripts/setup; it changes seldom, so it is a layer of its own.
COPY scripts/setup scripts/lib.sh scripts/
RUN scripts/setup --build && rm -rf /var/lib/apt/lists/*
COPY . .
# A compiler cache may be mounted here: buildah bud --volume FOLDER:/ccache
ENV CCACHE_DIR=/ccache CCACHE_BASEDIR=/src CCACHE_NOHASHDIR=1
# Set, it makes warnings errors, as in this project's CI.
ARG CI
ARG PROGRAMS
RUN cmake --preset release -DRNICD_TESTS=OFF \
 && cmake --build build/release --parallel "$(nproc)" --target $(basename -a $PROGRAMS)

# Everything of the image in one folder: deploy/image says what and why.
FROM build AS assembled
ARG PROGRAMS
ARG VERSION
ARG SOURCE_DATE_EPOCH=0
RUN cd build/release \
 && python3 -B /src/deploy/image/assemble.py --out /out --debug /debug --version "$VERSION" \
      --epoch "$SOURCE_DATE_EPOCH" $PROGRAMS

FROM scratch AS debug
COPY --from=assembled /debug/ /

FROM scratch
ARG VERSION
ARG REVISION=unknown
COPY --from=assembled /out/ /
ENV PATH=/usr/bin
USER 65532:65532
LABEL org.opencontainers.image.title="rnicd" \
      org.opencontainers.image.description="One daemon per node that owns the RDMA NIC and serves registered memory over gRPC" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
# Writable also in a read-only container.
VOLUME ["/run/rnicd", "/run/rnicd-admin", "/run/rnicd-doors"]
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=5s --retries=3 \
  CMD ["/usr/bin/rnicctl", "health", "--live"]
# Flags given to `docker run` come after these, and the last one wins.
ENTRYPOINT ["/usr/bin/rnicd", "--provider=soft", "--socket_dir=/run/rnicd", "--admin_socket_dir=/run/rnicd-admin"]
