# ralph with git, as an ordinary user. Agents are installed on top, for example:
#   FROM ralph
#   USER root
#   RUN apt-get update && apt-get install --yes nodejs npm && npm install --global @anthropic-ai/claude-code
#   USER ralph
# Run it on the current directory:
#   docker run --rm -it -v "$PWD:/workspace" ralph run --agent demo
FROM rust:1-slim-bookworm AS build
WORKDIR /source
COPY . .
RUN cargo build --release --locked --bin ralph

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates curl git procps \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 ralph
COPY --from=build /source/target/release/ralph /usr/local/bin/ralph
USER ralph
WORKDIR /workspace
ENTRYPOINT ["ralph"]
CMD []
