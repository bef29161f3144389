// Command service-plugin-backendlocal is the adapter to the embedded backend: it runs the backend in this process, on
// loopback, and talks to it over HTTP as to any other. It is the only package through which one component may import
// another.
package main

import (
	"log/slog"

	"github.com/service-dev/service/plugins/internal/serve"
)

func main() {
	serve.Main("backendlocal", func(log *slog.Logger) serve.Backend { return newLocal(log) })
}
