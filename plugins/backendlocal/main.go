// Command service-plugin-backendlocal is the adapter to the embedded backend: it runs the backend in its own process,
// on loopback, and calls it over HTTP like any other. It is the only package in which one component may import another.
package main

import (
	"log/slog"

	"github.com/service-dev/service/plugins/internal/serve"
)

func main() {
	serve.Main("backendlocal", func(log *slog.Logger) serve.Backend { return newLocal(log) })
}
