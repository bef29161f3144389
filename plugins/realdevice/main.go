// Package realdevice is RealDeviceTransport, the transport adapter for real glasses over Bluetooth LE. The drivers of
// glasses/driver decide what to send. This adapter only transfers bytes, through BlueZ on Linux or through a page in
// the user's browser.
package realdevice

import (
	"log/slog"

	"github.com/service-dev/service/plugins/internal/bluez"
	"github.com/service-dev/service/plugins/internal/serve"
)

// Main serves the adapter until its host exits.
func Main() {
	serve.Main("realdevice", func(log *slog.Logger) serve.Transport { return newAdapter(log, bluez.Options{}) })
}
