package serve

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/internal/wiretext"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// recoverUnary converts a panic to an error of that call, so that other calls and the embedded backend continue.
func recoverUnary(log *slog.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
		defer func() {
			if r := recover(); r != nil {
				resp, err = nil, panicError(log, info.FullMethod, r)
			}
		}()
		return next(ctx, req)
	}
}

// recoverStream is like recoverUnary, for streams. A goroutine started by a stream must recover its own panics.
func recoverStream(log *slog.Logger) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
		defer func() {
			if r := recover(); r != nil {
				err = panicError(log, info.FullMethod, r)
			}
		}()
		return next(srv, stream)
	}
}

// panicError logs a panic and returns the error of the call.
func panicError(log *slog.Logger, method string, r any) error {
	// The value may contain data of the call, so log only its type.
	log.Error("call panicked", "method", method, "type", fmt.Sprintf("%T", r), "stack", string(debug.Stack()))
	return Refuse(codes.Internal, &pluginv1.Problem{
		Code:      problem.CodeAdapterUnavailable,
		Message:   "the adapter had an internal error",
		Retryable: true,
		FixHint:   "Try again. If it happens again, run servicectl doctor and report the log.",
	})
}

// refuseUnknown rejects a call that this version does not implement. Such a call comes from a daemon that was started
// before an upgrade replaced its adapters; some versions of the daemon add no useful hint themselves.
func refuseUnknown(any, grpc.ServerStream) error {
	return Refuse(codes.Unimplemented, &pluginv1.Problem{
		Code:    problem.CodeAdapterUnavailable,
		Message: "the running daemon and its adapters are of different versions",
		FixHint: "Run `servicectl daemon restart`; connected agents continue with the new daemon. If that does not help, " +
			"install the service again.",
	})
}

// Refuse returns a gRPC error that contains p (proto/plugin/v1).
func Refuse(c codes.Code, p *pluginv1.Problem) error {
	wiretext.Repair(p)
	st, err := status.New(c, p.GetMessage()).WithDetails(p)
	if err != nil {
		return status.Error(codes.Internal, "encode problem")
	}
	return st.Err()
}
