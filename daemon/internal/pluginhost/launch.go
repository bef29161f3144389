package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"

	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
	"github.com/service-dev/service/proto/wiretext"
)

// startTimeout bounds the handshake of an adapter, describeTimeout its Describe: the embedded backend may have to
// bring its database up to date.
const (
	startTimeout    = 10 * time.Second
	describeTimeout = 30 * time.Second
)

// instance is one running process of an adapter.
type instance struct {
	client *plugin.Client
	proc   *process // set once the start has come that far; read by others only after launch returned
	rpc    pluginv1.BackendClient
	// transport is of a transport adapter only, which answers every call of rpc as unimplemented.
	transport pluginv1.TransportClient
	about     *about
	conn      *grpc.ClientConn
	busy      atomic.Int64  // calls and attachments under way
	silent    atomic.Bool   // the last probe was not answered
	stuck     chan struct{} // closed when the process lives and does not answer
}

// use counts a call or an attachment until the returned function is called.
func (i *instance) use() (done func()) {
	i.busy.Add(1)
	return func() { i.busy.Add(-1) }
}

func (i *instance) pid() int {
	n, _ := strconv.Atoi(i.proc.ID())
	return n
}

// wait returns when the process is gone or stuck, or ctx ends.
func (i *instance) wait(ctx context.Context) error {
	select {
	case <-i.proc.done:
		return fmt.Errorf("process %s ended: %v", i.proc.ID(), i.proc.cmd.ProcessState)
	case <-i.stuck:
		return fmt.Errorf("process %s %w", i.proc.ID(), errStuck)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stopWait is how long a process may take to go before it is killed; go-plugin asks without a limit.
const stopWait = 3 * time.Second

// stop asks the process to go, kills what is left of its group and removes its directory. A process that is stuck is
// killed at once.
func (i *instance) stop() {
	wait := stopWait
	if i.isStuck() {
		wait = 0
	}
	force := time.AfterFunc(wait, func() { _ = i.proc.Kill(context.Background()) })
	defer force.Stop()
	i.client.Kill()
	_ = i.proc.Kill(context.Background())
	_ = os.RemoveAll(i.proc.dir)
}

// launch verifies and starts the adapter once. Nothing is left behind when it fails.
func (h *Host) launch(ctx context.Context, a *adapter) (*instance, error) {
	if err := verify(h.opts.Dir, a.path); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(h.opts.SocketDir, 0o700); err != nil {
		return nil, fmt.Errorf("making the directory for adapters' sockets: %w", err)
	}
	dir, err := os.MkdirTemp(h.opts.SocketDir, "")
	if err != nil {
		return nil, fmt.Errorf("making the directory for adapters' sockets: %w", err)
	}
	log := h.opts.Log.With("adapter", a.name)
	inst := &instance{stuck: make(chan struct{})}
	born := make(chan *process, 1)
	inst.client = plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			ProtocolVersion:  pluginv1.ProtocolVersion,
			MagicCookieKey:   pluginv1.CookieKey,
			MagicCookieValue: pluginv1.CookieValue,
		},
		Plugins:          plugin.PluginSet{pluginv1.BackendPlugin: &adapterPlugin{}, pluginv1.TransportPlugin: &adapterPlugin{}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		SkipHostEnv:      true,
		AutoMTLS:         runtime.GOOS == "windows", // the transport is loopback TCP there
		StartTimeout:     startTimeout,
		Logger:           newHostLog(log),
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: dir},
		GRPCDialOptions:  []grpc.DialOption{grpc.WithDefaultCallOptions(grpc.ForceCodecV2(wiretext.Codec()), grpc.MaxCallRecvMsgSize(maxMessage))},
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, _ string) (runner.Runner, error) {
			p, err := newProcess(a.path, dir, environment(cmd.Env, dir), log, func(p *process) { born <- p })
			if err != nil {
				return nil, err
			}
			inst.proc = p
			return p, nil
		},
	})
	if err := h.greet(ctx, a.name, inst, born); err != nil {
		if inst.proc != nil {
			inst.stop()
		} else {
			_ = os.RemoveAll(dir)
		}
		return nil, explain(err)
	}
	return inst, nil
}

// greet makes the handshake and hears what the adapter is. It gives up when ctx ends.
func (h *Host) greet(ctx context.Context, name string, inst *instance, born <-chan *process) error {
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		select {
		case p := <-born:
			_ = p.Kill(ctx)
		case <-time.After(startTimeout):
		}
	})
	defer stop()
	client, err := inst.client.Client()
	if err != nil {
		return err
	}
	return h.describe(ctx, name, client, inst)
}

// describe hears what the adapter is.
func (h *Host) describe(ctx context.Context, name string, client plugin.ClientProtocol, inst *instance) error {
	face := pluginv1.BackendPlugin
	if isTransport(name) {
		face = pluginv1.TransportPlugin
	}
	raw, err := client.Dispense(face)
	if err != nil {
		return err
	}
	conn := raw.(*grpc.ClientConn)
	inst.conn, inst.rpc = conn, pluginv1.NewBackendClient(conn)
	if isTransport(name) {
		inst.transport = pluginv1.NewTransportClient(conn)
		said, err := inst.transport.DescribeTransport(ctx, &pluginv1.DescribeTransportRequest{ConfigDir: []byte(h.opts.ConfigDir)})
		if err != nil {
			return problemOf(ctx, name, err)
		}
		inst.about = &about{Name: said.GetName(), Version: said.GetVersion()}
		return nil
	}
	inst.about, err = inst.rpc.Describe(ctx, &pluginv1.DescribeRequest{ConfigDir: []byte(h.opts.ConfigDir)})
	if err != nil {
		return problemOf(ctx, "", err)
	}
	return nil
}

// explain turns go-plugin's words into ours where a person must act.
func explain(err error) error {
	text := err.Error()
	switch {
	case strings.Contains(text, "incompatible API version"), strings.Contains(text, "incompatible core API"):
		return refuse("the adapter speaks another protocol version than this serviced (%d): install the service again so that all its binaries are of one version", pluginv1.ProtocolVersion)
	case strings.Contains(text, "Unrecognized remote plugin message"):
		line, _, _ := strings.Cut(text, "\n")
		return fmt.Errorf("the adapter printed something else than its handshake: %q", cut(line, 200))
	case errors.Is(err, context.DeadlineExceeded), strings.Contains(text, "timeout while waiting for plugin"):
		return errors.New("the adapter did not get ready in time")
	}
	return err
}

func cut(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}

// adapterPlugin tells go-plugin how to reach the adapter: over its connection, whatever it serves.
type adapterPlugin struct{ plugin.NetRPCUnsupportedPlugin }

func (*adapterPlugin) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error {
	return errors.New("serving an adapter: this side is the host")
}

func (*adapterPlugin) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, c *grpc.ClientConn) (any, error) {
	return c, nil
}
