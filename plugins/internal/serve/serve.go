// Package serve is the common main function of adapters: the handshake, logging to stderr, watching the host, and
// recovery from panics. It is independent of the adapter's function and of the program that started it.
package serve

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/service-dev/service/internal/buildinfo"
	"github.com/service-dev/service/internal/programpath"
	"github.com/service-dev/service/internal/wiretext"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// Limits of an adapter's server.
const (
	// MaxMessage is the maximum size of a request in bytes; the daemon's own requests are far smaller.
	MaxMessage = 4 << 20
	// closeTimeout is the maximum duration of the shutdown after the host exited: the adapter must exit within 3 s.
	closeTimeout = 1500 * time.Millisecond
)

// Adapter is implemented by every adapter. Close is called once, when the host asks the adapter to stop or exits.
type Adapter interface {
	Close(ctx context.Context) error
}

// Backend is a backend adapter.
type Backend interface {
	pluginv1.BackendServer
	Adapter
}

// Transport is a transport adapter.
type Transport interface {
	pluginv1.TransportServer
	Adapter
}

// Main serves the adapter returned by open, with every service that it implements, until its host asks it to stop or
// exits. Then it exits the process. It logs JSON lines to stderr, which the host reads.
func Main[A Adapter](name string, open func(log *slog.Logger) A) {
	if len(os.Args) == 2 && os.Args[1] == "version" {
		fmt.Println(programpath.AdapterPrefix+name, buildinfo.Version)
		return
	}
	if os.Getenv(pluginv1.CookieKey) != pluginv1.CookieValue {
		fmt.Fprintf(os.Stderr, "%s%s is an adapter that serviced starts\n", programpath.AdapterPrefix, name)
		os.Exit(2)
	}
	// After the host has been killed, stderr has no reader. Without this call, the first log line would end the
	// process before Close returns.
	signal.Ignore(syscall.SIGPIPE)
	// go-plugin replaces os.Stderr while it serves, so the logger keeps the original file.
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	b := open(log)
	closeOnce := sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		if err := b.Close(ctx); err != nil {
			log.Warn("failed to close the adapter", "err", err)
		}
	})
	go func() {
		waitForHost(os.Stdin)
		log.Info("host ended")
		closeOnce()
		os.Exit(0)
	}()
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			ProtocolVersion:  pluginv1.ProtocolVersion,
			MagicCookieKey:   pluginv1.CookieKey,
			MagicCookieValue: pluginv1.CookieValue,
		},
		Plugins: services(b),
		Logger:  hclog.NewNullLogger(), // the adapter logs relevant events itself
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(opts, grpc.ForceServerCodecV2(wiretext.Codec()), grpc.MaxRecvMsgSize(MaxMessage),
				grpc.UnaryInterceptor(recoverUnary(log)), grpc.StreamInterceptor(recoverStream(log)),
				grpc.UnknownServiceHandler(refuseUnknown))...)
		},
	})
	closeOnce()
}

// waitForHost returns when the other end of the host's pipe is closed. The host never writes to the pipe, so this
// happens when the host exits, on every platform and even after kill -9.
func waitForHost(stdin io.Reader) { _, _ = io.Copy(io.Discard, stdin) }

// services returns the services that the adapter implements.
func services(a Adapter) plugin.PluginSet {
	set := plugin.PluginSet{}
	add := func(name string, register func(*grpc.Server)) { set[name] = &grpcService{register: register} }
	if b, ok := a.(pluginv1.BackendServer); ok {
		add(pluginv1.BackendPlugin, func(s *grpc.Server) { pluginv1.RegisterBackendServer(s, b) })
	}
	if t, ok := a.(pluginv1.TransportServer); ok {
		add(pluginv1.TransportPlugin, func(s *grpc.Server) { pluginv1.RegisterTransportServer(s, t) })
	}
	return set
}

// grpcService registers one service of the adapter with go-plugin.
type grpcService struct {
	plugin.NetRPCUnsupportedPlugin
	register func(*grpc.Server)
}

func (f *grpcService) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	f.register(s)
	return nil
}

func (f *grpcService) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, fmt.Errorf("this side of the plugin has no client")
}
