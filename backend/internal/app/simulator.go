package app

import (
	"strings"

	"github.com/service-dev/service/backend/internal/relay"
	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/proto/backendapi"
)

// simulators gives the simulator page its sessions and its sockets.
type simulators struct {
	*sessions.Service
	*relay.Hub
	baseURL string
}

// AppEndpoint is the WebSocket address of a session's apps.
func (s simulators) AppEndpoint(id string) string {
	return "ws" + strings.TrimPrefix(strings.TrimSuffix(s.baseURL, "/"), "http") + backendapi.PathSessions + "/" + id + "/app"
}
