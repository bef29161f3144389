// Command service-plugin-backendlocal is the adapter for the embedded backend: it runs the backend in its own process,
// on loopback, and calls it over HTTP like any other backend. It is the only package that may import another
// component.
package main

import (
	"log/slog"

	"github.com/service-dev/service/plugins/internal/serve"
)

func main() {
	serve.Main("backendlocal", func(log *slog.Logger) serve.Backend { return newLocal(log) })
}
