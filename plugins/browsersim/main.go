// Package browsersim is the transport adapter for the browser simulator: a backend hosts its sessions, and a page of
// that backend acts as the glasses. It calls the backend named by a target over HTTPS, or over HTTP on this machine.
// The daemon makes calls about the embedded backend's sessions through backendlocal. It stores nothing and is
// independent of a session's purpose.
package browsersim

import (
	"context"
	"log/slog"

	"github.com/service-dev/service/internal/buildinfo"
	"github.com/service-dev/service/plugins/internal/httpbackend"
	"github.com/service-dev/service/plugins/internal/serve"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// Main serves the adapter until its host exits.
func Main() {
	serve.Main("browsersim", func(*slog.Logger) serve.Transport { return adapter{Server: httpbackend.New("browsersim")} })
}

// adapter implements the Transport contract without Attach, and the Backend contract for calls about sessions.
type adapter struct {
	pluginv1.UnimplementedTransportServer
	*httpbackend.Server
}

// DescribeTransport returns the adapter's name.
func (adapter) DescribeTransport(context.Context,
	*pluginv1.DescribeTransportRequest) (*pluginv1.DescribeTransportResponse, error) {
	return &pluginv1.DescribeTransportResponse{Name: "browsersim", Version: buildinfo.Version,
		Title: "Browser simulator", NeedsAccount: true, HostsSessions: true}, nil
}
