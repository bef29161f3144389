// Package httpbackend implements the Backend contract by calling a backend over the HTTP interface of
// proto/backendapi, for backendhttp, backendlocal and browsersim. Every error response and network failure becomes a
// typed Problem whose texts are safe to show; the daemon checks the content of other responses. The package must not
// depend on the daemon or on the adapter that uses it. It stores no links or sessions, and never logs the content of
// requests or responses.
package httpbackend

import (
	"context"
	"time"

	"github.com/service-dev/service/internal/buildinfo"
	"github.com/service-dev/service/proto/backendapi"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// Server implements the Backend contract over HTTP.
type Server struct {
	pluginv1.UnimplementedBackendServer
	*client
	name string
}

// New returns a server for targets that contain the URL of their backend: an absolute https URL, or an http URL on
// this machine.
func New(name string) *Server { return NewAt(name, remote) }

// NewAt returns a server that calls locate for the URL of a target's backend. Errors of locate are returned
// unchanged.
func NewAt(name string, locate func(context.Context, *pluginv1.Target) (string, error)) *Server {
	return &Server{client: newClient(locate), name: name}
}

// Describe returns the adapter's name and version.
func (s *Server) Describe(context.Context, *pluginv1.DescribeRequest) (*pluginv1.DescribeResponse, error) {
	return &pluginv1.DescribeResponse{Name: s.name, Version: buildinfo.Version}, nil
}

// Activity returns an empty response: a remote backend does not require the adapter to keep running.
func (s *Server) Activity(context.Context, *pluginv1.ActivityRequest) (*pluginv1.ActivityResponse, error) {
	return &pluginv1.ActivityResponse{}, nil
}

// Call makes one request to the backend. It returns the body of a successful response unchecked, and every other
// response as a Problem.
func (s *Server) Call(ctx context.Context, r *pluginv1.CallRequest) (*pluginv1.CallResponse, error) {
	route, ok := backendapi.FindRoute(r.GetRoute())
	if !ok || route.WebSocket {
		return nil, unfit("unknown route "+printable(r.GetRoute(), 100),
			"Install the service again so that all its binaries are of one version.")
	}
	path, err := route.Target(r.GetPath(), r.GetQuery())
	if err != nil {
		return nil, unfit(err.Error(), "Pass an id for each parameter of the path.")
	}
	if t := r.GetTarget(); route.Caller == backendapi.Install && (t.GetBearer() != "" || t.GetInstallId() == "") {
		// A token would tie usage to an account.
		return nil, unfit("usage events must be sent with an install id and no token", "Set the install id and no bearer.")
	}
	wait := time.Duration(min(r.GetWaitMs(), backendapi.MaxWaitMs)) * time.Millisecond
	return s.do(ctx, request{target: r.GetTarget(), route: route, path: path, body: r.GetBody(), wait: wait})
}
