// Package serve is what every adapter's main does: the handshake, logs on stderr, the watch on the parent and the fence
// around panics. It knows neither what an adapter does nor who started it.
package serve

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/service-dev/service/proto/buildinfo"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// Limits of an adapter's server.
const (
	// MaxMessage bounds a request in bytes; the daemon's own are far smaller.
	MaxMessage = 4 << 20
	// closeTimeout bounds the drain of an adapter whose host is gone: it must be away within 3 s.
	closeTimeout = 1500 * time.Millisecond
)

// Backend is a backend adapter. Close is called once, when the host has asked the adapter to stop or is gone.
type Backend interface {
	pluginv1.BackendServer
	Close(ctx context.Context) error
}

// Main serves the adapter that open makes until its host asks it to stop or is gone, then exits. Logs go to stderr as
// JSON lines; the host reads them.
func Main(name string, open func(log *slog.Logger) Backend) {
	if len(os.Args) == 2 && os.Args[1] == "version" {
		fmt.Println("service-plugin-"+name, buildinfo.Version)
		return
	}
	if os.Getenv(pluginv1.CookieKey) != pluginv1.CookieValue {
		fmt.Fprintf(os.Stderr, "service-plugin-%s is started by serviced and does nothing by itself\n", name)
		os.Exit(2)
	}
	// go-plugin replaces os.Stderr while it serves, so the logger keeps the descriptor of now.
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	b := open(log)
	closeOnce := sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		if err := b.Close(ctx); err != nil {
			log.Warn("closing the adapter", "err", err)
		}
	})
	go func() {
		waitForHost(os.Stdin)
		log.Info("the host is gone")
		closeOnce()
		os.Exit(0)
	}()
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			ProtocolVersion:  pluginv1.ProtocolVersion,
			MagicCookieKey:   pluginv1.CookieKey,
			MagicCookieValue: pluginv1.CookieValue,
		},
		Plugins: plugin.PluginSet{pluginv1.BackendPlugin: &backendPlugin{impl: b}},
		Logger:  quiet(),
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(opts, grpc.MaxRecvMsgSize(MaxMessage), grpc.UnaryInterceptor(fence(log)))...)
		},
	})
	closeOnce()
}

// waitForHost returns when the other end of the host's pipe is closed: the host never writes, so that is its death on
// every platform, even by kill -9.
func waitForHost(stdin io.Reader) { _, _ = io.Copy(io.Discard, stdin) }

// backendPlugin tells go-plugin how to register the adapter.
type backendPlugin struct {
	plugin.NetRPCUnsupportedPlugin
	impl pluginv1.BackendServer
}

func (p *backendPlugin) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	pluginv1.RegisterBackendServer(s, p.impl)
	return nil
}

func (p *backendPlugin) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, fmt.Errorf("serving an adapter: this side has no client")
}
