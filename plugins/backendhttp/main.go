// Command service-plugin-backendhttp is the adapter for a remote backend: it implements proto/plugin over HTTPS. It
// must not depend on the daemon or on the purpose of a call.
package main

import (
	"log/slog"

	"github.com/service-dev/service/plugins/internal/httpbackend"
	"github.com/service-dev/service/plugins/internal/serve"
)

func main() {
	serve.Main("backendhttp", func(*slog.Logger) serve.Backend { return httpbackend.New("backendhttp") })
}
