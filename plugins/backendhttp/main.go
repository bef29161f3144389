// Command service-plugin-backendhttp is the adapter to a remote backend: proto/plugin on one side, HTTPS on the other.
// It knows neither the daemon nor what a call is for.
package main

import (
	"log/slog"

	"github.com/service-dev/service/plugins/internal/httpbackend"
	"github.com/service-dev/service/plugins/internal/serve"
)

func main() {
	serve.Main("backendhttp", func(*slog.Logger) serve.Backend { return httpbackend.New("backendhttp") })
}
