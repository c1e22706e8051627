FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=devel
RUN CGO_ENABLED=0 go build -buildvcs=false -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /pgrecall ./cmd/pgrecall

# Nothing but the program, and the certificates it needs to reach an embedder.
FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /pgrecall /pgrecall
USER 65532:65532
# Inside a container loopback would reach nobody. Without credentials serve refuses this unless PGRECALL_INSECURE is set.
ENV PGRECALL_ADDR=0.0.0.0:8080
EXPOSE 8080
ENTRYPOINT ["/pgrecall"]
CMD ["serve"]
