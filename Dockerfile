# The tests that need root, network namespaces and a real sshd, on any machine with an engine:
#     make test-container
# It has to be privileged: container nodes are made inside, in namespaces of their own.
FROM debian:12

RUN apt-get update \
 && apt-get install -y --no-install-recommends make python3 python3-venv ca-certificates \
      openssh-server openssh-client iproute2 nftables procps libfaketime sudo strace \
 && rm -rf /var/lib/apt/lists/*

WORKDIR /src
COPY . .
RUN make .venv/.ready

ENV TIERS_MUST_RUN=ssh
CMD ["make", "test", "ARGS=tests/ssh"]
