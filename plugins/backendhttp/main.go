// Package backendhttp is the adapter for a remote backend: it implements proto/plugin over HTTPS. It must not depend
// on the daemon or on the purpose of a call.
package backendhttp

import (
	"log/slog"

	"github.com/service-dev/service/plugins/internal/httpbackend"
	"github.com/service-dev/service/plugins/internal/serve"
)

// Main serves the adapter until its host exits.
func Main() {
	serve.Main("backendhttp", func(*slog.Logger) serve.Backend { return httpbackend.New("backendhttp") })
}
