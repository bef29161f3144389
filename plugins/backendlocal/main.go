// Package backendlocal is the adapter for the embedded backend: it runs the backend in its own process, on loopback,
// and calls it over HTTP like any other backend. It is the only adapter that may import another component.
package backendlocal

import (
	"log/slog"

	"github.com/service-dev/service/plugins/internal/serve"
)

// Main serves the adapter until its host exits.
func Main() {
	serve.Main("backendlocal", func(log *slog.Logger) serve.Backend { return newLocal(log) })
}
