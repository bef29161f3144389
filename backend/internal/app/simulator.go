package app

import (
	"github.com/service-dev/service/backend/internal/api"
	"github.com/service-dev/service/backend/internal/relay"
	"github.com/service-dev/service/backend/internal/sessions"
)

// simulators gives the simulator page its sessions and its sockets.
type simulators struct {
	*sessions.Service
	*relay.Hub
	baseURL string
}

// AppEndpoint is the WebSocket address of a session's apps.
func (s simulators) AppEndpoint(id string) string { return api.AppEndpoint(s.baseURL, id) }
