// Package localsim is LocalSimTransport, the transport adapter for simulated glasses. Each session has its own
// glasses from glasses/device, in real or virtual time. Pictures, sound and speech come from a directory of fixtures.
// The adapter needs no account, network, window or camera, and is independent of apps and logs.
package localsim

import (
	"log/slog"

	"github.com/service-dev/service/plugins/internal/serve"
)

// Main serves the adapter until its host exits.
func Main() {
	serve.Main("localsim", func(log *slog.Logger) serve.Transport { return newSim(log) })
}
