package serve

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// CodeAdapterUnavailable is the code of a call that the adapter itself spoiled.
const CodeAdapterUnavailable = "adapter_unavailable"

// fence turns a panic of one call into a refusal of that call: other calls and the embedded backend go on.
func fence(log *slog.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
		defer func() {
			if r := recover(); r != nil {
				// The value may quote what the call carried, so only its type is told.
				log.Error("a call panicked", "method", info.FullMethod, "type", fmt.Sprintf("%T", r), "stack", string(debug.Stack()))
				resp, err = nil, Refuse(codes.Internal, &pluginv1.Problem{
					Code:      CodeAdapterUnavailable,
					Message:   "the adapter had an internal error",
					Retryable: true,
					FixHint:   "Try again. If it happens again, run servicectl doctor and report the log.",
				})
			}
		}()
		return next(ctx, req)
	}
}

// Refuse makes the gRPC error that carries p (proto/plugin/v1).
func Refuse(c codes.Code, p *pluginv1.Problem) error {
	st, err := status.New(c, p.GetMessage()).WithDetails(p)
	if err != nil {
		return status.Error(codes.Internal, "encoding a refusal")
	}
	return st.Err()
}

// quiet is go-plugin's own logger: what matters is told by the adapter itself.
func quiet() hclog.Logger { return hclog.NewNullLogger() }
