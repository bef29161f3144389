package app

import (
	"github.com/service-dev/service/backend/internal/api"
	"github.com/service-dev/service/backend/internal/relay"
	"github.com/service-dev/service/backend/internal/sessions"
)

// simulators provides the simulator page with sessions and WebSockets.
type simulators struct {
	*sessions.Service
	*relay.Hub
	baseURL string
}

// AppEndpoint returns the WebSocket URL to which the apps of a session connect.
func (s simulators) AppEndpoint(id string) string { return api.AppEndpoint(s.baseURL, id) }
