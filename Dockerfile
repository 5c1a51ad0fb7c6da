# The daemon and its tool for the operator, in an image without compiler, shell scripts or root.
# docker build -t rnicd .       How to run it: deploy/README.md. scripts/image-test builds and tries it without Docker.

FROM debian:bookworm-slim AS build
WORKDIR /src
# The package list of the project is scripts/setup; it changes seldom, so it is a layer of its own.
COPY scripts/setup scripts/lib.sh scripts/
RUN scripts/setup --build && rm -rf /var/lib/apt/lists/*
COPY . .
RUN cmake --preset release -DRNICD_TESTS=OFF \
 && cmake --build build/release --parallel "$(nproc)" --target rnicd rnicctl \
 && install -D --strip build/release/daemon/app/rnicd /out/usr/bin/rnicd \
 && install -D --strip build/release/client/ctl/rnicctl /out/usr/bin/rnicctl

FROM debian:bookworm-slim
# The libraries that the two programs are linked with; the last line fails the build when one is missing here. Without
# ibverbs-providers, which libibverbs loads by itself, there would be no cards for --provider=verbs.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends \
      libabsl20220623 libcivetweb1 libfmt9 libgrpc++1.51 libibverbs1 libprometheus-cpp-core1.0 libprotobuf32 \
      libspdlog1.10 libssl3 libcap2 libseccomp2 \
      ibverbs-providers \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /out/ /
RUN ! ldd /usr/bin/rnicd /usr/bin/rnicctl | grep "not found"

# A user that owns nothing but the two directories of sockets: the first is shared with the workloads' containers, the
# second stays with the operator.
RUN groupadd --gid 65532 rnicd \
 && useradd --uid 65532 --gid 65532 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin rnicd \
 && install -d -o rnicd -g rnicd -m 0755 /run/rnicd \
 && install -d -o rnicd -g rnicd -m 0700 /run/rnicd-admin
USER 65532:65532

LABEL org.opencontainers.image.title="rnicd" \
      org.opencontainers.image.description="One daemon per node that owns the RDMA NIC and serves registered memory over gRPC" \
      org.opencontainers.image.licenses="Apache-2.0"
# Writable also in a read-only container.
VOLUME ["/run/rnicd", "/run/rnicd-admin"]
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=5s --retries=3 \
  CMD ["/usr/bin/rnicctl", "status"]
# Flags given to `docker run` come after these, and the last one wins.
ENTRYPOINT ["/usr/bin/rnicd", "--provider=soft", "--socket_dir=/run/rnicd", "--admin_socket_dir=/run/rnicd-admin"]
