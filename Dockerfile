# One build, one image: every program of the suite is in it, and compose says which one a container runs.
FROM rust:1-slim-trixie AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked --workspace --exclude lock-sim --exclude lock-chaos --exclude lock-bench --bins \
 && mkdir /out \
 && for program in last-ticket lock-node lockctl inventory billing checkout card-gateway boxoffice loadtest; do \
      install -s -m 755 "target/release/$program" /out/; \
    done

FROM debian:trixie-slim
# curl is for the healthchecks.
RUN apt-get update \
 && apt-get install -y --no-install-recommends curl \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 10001 --user-group --home-dir /data --create-home --shell /usr/sbin/nologin ticket \
 && install -d -o ticket -g ticket /secrets /report
COPY --from=build /out/ /usr/local/bin/
USER ticket
WORKDIR /data
CMD ["last-ticket", "--data-dir", "/data"]
