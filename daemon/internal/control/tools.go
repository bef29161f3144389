package control

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/service-dev/service/daemon/internal/tools"
	api "github.com/service-dev/service/proto/control"
)

// listTools lists the agent's catalogue.
func (s *Server) listTools(context.Context, api.None) (api.Tools, error) {
	list := []api.Tool{}
	for _, t := range s.o.Tools.List() {
		list = append(list, api.Tool{
			Name: t.Name, Title: t.Title, Description: t.Description, NeedsAccount: t.NeedsAccount,
			InputSchema: t.InputSchema, OutputSchema: t.OutputSchema,
		})
	}
	return api.Tools{Tools: list}, nil
}

func (s *Server) callTool(ctx context.Context, r api.ToolRequest, send func(api.ToolEvent) error) error {
	var sending sync.Mutex // a tool may report progress from its own goroutine
	progress := func(done, total float64, message string) {
		sending.Lock()
		defer sending.Unlock()
		_ = send(api.ToolEvent{Progress: &api.Progress{Progress: done, Total: total, Message: message}})
	}
	result := s.o.Tools.Call(ctx, r.Name, arguments(r.Arguments), tools.IO{Progress: progress})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	sending.Lock()
	defer sending.Unlock()
	return s.sendWithNotice(ctx, r.PrintsNotice, result, send)
}

// arguments returns the arguments of a tool, or {} if there are none.
func arguments(args json.RawMessage) json.RawMessage {
	if len(args) == 0 {
		return json.RawMessage("{}")
	}
	return args
}

// openSession starts a session that ends with the stream. Otherwise the session of a killed client would stay open and
// keep the daemon running.
func (s *Server) openSession(ctx context.Context, r api.SessionRequest, send func(api.ToolEvent) error) error {
	result := s.o.Tools.Call(ctx, toolStartLocal, arguments(r.Arguments),
		tools.IO{Progress: func(float64, float64, string) {}})
	if id := createdSession(result); id != "" {
		release := s.o.Daemon.HoldLocalSession(id)
		defer func() {
			if err := release(context.WithoutCancel(ctx)); err != nil {
				s.o.Log.Warn("failed to close the session of a disconnected client", "session", id, "err", err)
			}
		}()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	err := s.sendWithNotice(ctx, r.PrintsNotice, result, send)
	if err != nil || result.IsError {
		return err
	}
	select {
	case <-ctx.Done():
	case <-s.stopping:
	}
	return nil
}

// toolStartLocal is the name of the tool that starts local sessions.
const toolStartLocal = "startLocalSimulation"

// createdSession returns the ID of the session that a call of toolStartLocal created, or "" if the call failed.
func createdSession(result tools.Result) string {
	var answer struct{ Status, SessionID string }
	if result.IsError || json.Unmarshal(result.Structured, &answer) != nil || answer.Status != "active" {
		return ""
	}
	return answer.SessionID
}
