package control

import (
	"context"
	"encoding/json"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/service-dev/service/daemon/internal/tools"
	controlv1 "github.com/service-dev/service/proto/control/v1"
)

// ListTools lists the agent's catalogue.
func (s *Server) ListTools(context.Context, *controlv1.ListToolsRequest) (*controlv1.ListToolsResponse, error) {
	list := s.o.Tools.List()
	out := make([]*controlv1.Tool, 0, len(list))
	for _, t := range list {
		out = append(out, &controlv1.Tool{
			Name: t.Name, Title: t.Title, Description: t.Description, NeedsAccount: t.NeedsAccount,
			InputSchema: string(t.InputSchema), OutputSchema: string(t.OutputSchema),
		})
	}
	return &controlv1.ListToolsResponse{Tools: out}, nil
}

// CallTool calls one tool on behalf of the client, as an agent would.
func (s *Server) CallTool(r *controlv1.CallToolRequest,
	stream grpc.ServerStreamingServer[controlv1.CallToolResponse]) error {
	ctx := s.withClient(stream.Context(), r.GetCaller())
	args, err := parseArguments(r.GetArguments())
	if err != nil {
		return err
	}
	var sending sync.Mutex // a tool may report progress from its own goroutine
	progress := func(done, total float64, message string) {
		sending.Lock()
		defer sending.Unlock()
		_ = stream.Send(&controlv1.CallToolResponse{Event: &controlv1.CallToolResponse_Progress{
			Progress: &controlv1.Progress{Progress: done, Total: total, Message: message},
		}})
	}
	result := s.o.Tools.Call(ctx, r.GetName(), args, tools.IO{Progress: progress})
	if ctx.Err() != nil {
		return statusError(ctx.Err())
	}
	sending.Lock()
	defer sending.Unlock()
	return s.sendWithNotice(ctx, r.GetPrintsNotice(), result, stream.Send)
}

// OpenLocalSession starts a session that lasts as long as the stream. Otherwise the session of a killed
// client would stay open and keep the daemon running.
func (s *Server) OpenLocalSession(r *controlv1.OpenLocalSessionRequest,
	stream grpc.ServerStreamingServer[controlv1.OpenLocalSessionResponse]) error {
	ctx := s.withClient(stream.Context(), r.GetCaller())
	args, err := parseArguments(r.GetArguments())
	if err != nil {
		return err
	}
	result := s.o.Tools.Call(ctx, toolStartLocal, args, tools.IO{Progress: func(float64, float64, string) {}})
	if id := createdSession(result); id != "" {
		release := s.o.System.HoldLocalSession(id)
		defer func() {
			if err := release(context.WithoutCancel(ctx)); err != nil {
				s.o.Log.Warn("failed to close the session of a disconnected client", "session", id, "err", err)
			}
		}()
	}
	if ctx.Err() != nil {
		return statusError(ctx.Err())
	}
	err = s.sendWithNotice(ctx, r.GetPrintsNotice(), result,
		func(r *controlv1.CallToolResponse) error {
			return stream.Send(&controlv1.OpenLocalSessionResponse{Result: r.GetResult()})
		})
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

// createdSession returns the id of the session that a call of toolStartLocal created, or "".
func createdSession(result tools.Result) string {
	var answer struct{ Status, SessionID string }
	if result.IsError || json.Unmarshal(result.Structured, &answer) != nil || answer.Status != "active" {
		return ""
	}
	return answer.SessionID
}

// parseArguments checks a tool's arguments; an empty string means none.
func parseArguments(text string) (json.RawMessage, error) {
	if text == "" {
		return json.RawMessage("{}"), nil
	}
	if !json.Valid([]byte(text)) {
		return nil, refuse(codes.InvalidArgument, &controlv1.Error{
			Code: "invalid_request", Message: "the arguments are not JSON", FixHint: "Pass one JSON object, e.g. '{}'.",
		})
	}
	return json.RawMessage(text), nil
}

func imageMessages(result tools.Result) []*controlv1.ToolImage {
	var images []*controlv1.ToolImage
	for _, image := range result.Images {
		images = append(images, &controlv1.ToolImage{Mime: image.MIME, Data: image.Data})
	}
	return images
}
