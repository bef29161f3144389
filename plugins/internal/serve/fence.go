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
	"github.com/service-dev/service/proto/wiretext"
)

// CodeAdapterUnavailable is the code of a call that the adapter itself spoiled.
const CodeAdapterUnavailable = "adapter_unavailable"

// fence turns a panic of one call into a refusal of that call: other calls and the embedded backend go on.
func fence(log *slog.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
		defer func() {
			if r := recover(); r != nil {
				resp, err = nil, spoiled(log, info.FullMethod, r)
			}
		}()
		return next(ctx, req)
	}
}

// fenceStream does the same for a stream: it ends, the others go on. A goroutine that a stream starts needs a fence of its
// own.
func fenceStream(log *slog.Logger) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
		defer func() {
			if r := recover(); r != nil {
				err = spoiled(log, info.FullMethod, r)
			}
		}()
		return next(srv, stream)
	}
}

// spoiled logs a panic and makes the refusal that answers it.
func spoiled(log *slog.Logger, method string, r any) error {
	// The value may quote what the call carried, so only its type is told.
	log.Error("a call panicked", "method", method, "type", fmt.Sprintf("%T", r), "stack", string(debug.Stack()))
	return Refuse(codes.Internal, &pluginv1.Problem{
		Code:      CodeAdapterUnavailable,
		Message:   "the adapter had an internal error",
		Retryable: true,
		FixHint:   "Try again. If it happens again, run servicectl doctor and report the log.",
	})
}

// Refuse makes the gRPC error that carries p (proto/plugin/v1).
func Refuse(c codes.Code, p *pluginv1.Problem) error {
	wiretext.Repair(p)
	st, err := status.New(c, p.GetMessage()).WithDetails(p)
	if err != nil {
		return status.Error(codes.Internal, "encoding a refusal")
	}
	return st.Err()
}

// quiet is go-plugin's own logger: what matters is told by the adapter itself.
func quiet() hclog.Logger { return hclog.NewNullLogger() }
