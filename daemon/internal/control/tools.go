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

// CallTool calls one tool as an agent would.
func (s *Server) CallTool(r *controlv1.CallToolRequest, stream grpc.ServerStreamingServer[controlv1.CallToolResponse]) error {
	ctx := s.withClient(stream.Context(), r.GetCaller())
	args := json.RawMessage(r.GetArguments())
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	if !json.Valid(args) {
		return refuse(codes.InvalidArgument, &controlv1.Error{
			Code: "invalid_arguments", Message: "the arguments are not JSON", FixHint: "Pass one JSON object, e.g. '{}'.",
		})
	}
	var sending sync.Mutex // a tool may tell its progress from a goroutine of its own
	progress := func(done, total float64, message string) {
		sending.Lock()
		defer sending.Unlock()
		_ = stream.Send(&controlv1.CallToolResponse{Event: &controlv1.CallToolResponse_Progress{
			Progress: &controlv1.Progress{Progress: done, Total: total, Message: message},
		}})
	}
	result := s.o.Tools.Call(ctx, r.GetName(), args, tools.IO{Progress: progress})
	if ctx.Err() != nil {
		return failed(ctx.Err())
	}
	sending.Lock()
	defer sending.Unlock()
	return s.announced(ctx, &controlv1.ToolResult{IsError: result.IsError, Structured: string(result.Structured), Images: imagesOf(result)}, stream.Send)
}

func imagesOf(result tools.Result) []*controlv1.ToolImage {
	var images []*controlv1.ToolImage
	for _, image := range result.Images {
		images = append(images, &controlv1.ToolImage{Mime: image.MIME, Data: image.Data})
	}
	return images
}
