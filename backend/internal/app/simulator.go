package app

import (
	"github.com/service-dev/service/backend/internal/api"
	"github.com/service-dev/service/backend/internal/relay"
	"github.com/service-dev/service/backend/internal/sessions"
)

// simulators provides sessions and WebSockets to the simulator page.
type simulators struct {
	*sessions.Service
	*relay.Hub
	baseURL string
}

// AppEndpoint returns the WebSocket URL of a session's apps.
func (s simulators) AppEndpoint(id string) string { return api.AppEndpoint(s.baseURL, id) }
