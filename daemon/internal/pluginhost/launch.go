package pluginhost

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/internal/wiretext"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// startTimeout is the time limit of an adapter's handshake. describeTimeout is the time limit of its Describe, during
// which the embedded backend may migrate its database.
const (
	startTimeout    = 10 * time.Second
	describeTimeout = 30 * time.Second
)

// embeddedDir is the embedded backend's directory in the state directory. Its file portFile stores the port.
const (
	embeddedDir = "backend"
	portFile    = "port"
)

// instance is one running process of an adapter.
type instance struct {
	name   string // the adapter's name
	client *plugin.Client
	proc   *process // set during the start; other goroutines read it only after launch has returned
	// rpc is set for backend adapters and browsersim. transport and describes are set only for transport adapters.
	rpc       pluginv1.BackendClient
	transport pluginv1.TransportClient
	describes *backend.Transport
	about     *pluginv1.DescribeResponse
	conn      *grpc.ClientConn
	created   time.Time
	busy      atomic.Int64  // calls and attachments in progress
	used      atomic.Int64  // when the last one ended, as a time.Duration since created
	isPaused  bool          // no call may begin, because the process may be about to stop; guarded by the adapter's mu
	silent    atomic.Bool   // the last probe was not answered
	stuck     chan struct{} // closed when the process is running but does not respond
	rests     chan struct{} // closed when the idle process has agreed to stop
}

// use counts a call or an attachment until the returned function is called.
func (i *instance) use() (done func()) {
	i.busy.Add(1)
	return func() {
		i.used.Store(int64(time.Since(i.created)))
		i.busy.Add(-1)
	}
}

// idle returns how long no call or attachment has been in progress; 0 while one is in progress.
func (i *instance) idle() time.Duration {
	if i.busy.Load() > 0 {
		return 0
	}
	return time.Since(i.created) - time.Duration(i.used.Load())
}

func (i *instance) pid() int {
	n, _ := strconv.Atoi(i.proc.ID())
	return n
}

// wait returns when the process has ended, is stuck or has agreed to stop because it is idle, or when ctx ends.
func (i *instance) wait(ctx context.Context) error {
	select {
	case <-i.proc.done:
		return fmt.Errorf("process %s ended: %v", i.proc.ID(), i.proc.cmd.ProcessState)
	case <-i.stuck:
		return fmt.Errorf("process %s %w", i.proc.ID(), errStuck)
	case <-i.rests:
		return errRests
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stopWait is how long to wait for a process to exit before it is killed. Without it, go-plugin would wait forever.
const stopWait = 3 * time.Second

// stop asks the process to exit, kills the rest of its group and removes its directory. It kills a stuck process
// immediately.
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

// launch verifies the adapter and starts it once. On failure, it releases everything except the address.
func (h *Host) launch(ctx context.Context, a *adapter) (*instance, error) {
	path, err := a.verify()
	if err == nil && a.added != nil {
		path, err = h.copyOf(*a.added)
	}
	if err != nil {
		return nil, err
	}
	var listeners []*os.File
	if a.name == Local {
		if listeners, err = a.address.open(ctx, filepath.Join(h.opts.ConfigDir, embeddedDir)); err != nil {
			return nil, err
		}
		defer closeFiles(listeners)
	}
	dir := ""
	err = os.MkdirAll(h.opts.SocketDir, 0o700)
	if err == nil {
		dir, err = os.MkdirTemp(h.opts.SocketDir, "")
	}
	if err != nil {
		return nil, fmt.Errorf("create the directory for adapters' sockets: %w", err)
	}
	inst, started := h.newInstance(a, path, dir, listeners)
	if err := h.connect(ctx, a, inst, started); err != nil {
		if inst.proc != nil {
			inst.stop()
		} else {
			_ = os.RemoveAll(dir)
		}
		return nil, a.explainMismatch(path, startError(err))
	}
	return inst, nil
}

// newInstance prepares a process that inherits the listeners. Once the process is running, newInstance sends it on
// started.
func (h *Host) newInstance(a *adapter, path, dir string, listeners []*os.File) (inst *instance, started chan *process) {
	// An adapter that is being added has no name until it describes itself.
	log := h.opts.Log.With("adapter", cmp.Or(a.name, filepath.Base(a.file())))
	inst = &instance{name: a.name, created: time.Now(), stuck: make(chan struct{}), rests: make(chan struct{})}
	started = make(chan *process, 1)
	inst.client = plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			ProtocolVersion:  pluginv1.ProtocolVersion,
			MagicCookieKey:   pluginv1.CookieKey,
			MagicCookieValue: pluginv1.CookieValue,
		},
		Plugins: plugin.PluginSet{
			pluginv1.BackendPlugin: &adapterPlugin{}, pluginv1.TransportPlugin: &adapterPlugin{},
		},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		SkipHostEnv:      true,
		AutoMTLS:         runtime.GOOS == "windows", // on Windows the transport is loopback TCP
		StartTimeout:     startTimeout,
		Logger:           newHostLog(log),
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: dir},
		GRPCDialOptions: []grpc.DialOption{
			grpc.WithDefaultCallOptions(grpc.ForceCodecV2(wiretext.Codec()), grpc.MaxCallRecvMsgSize(maxMessage)),
		},
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, _ string) (runner.Runner, error) {
			env := a.environment(cmd.Env, dir, len(listeners))
			p, err := newProcess(a.command(path, listeners), dir, env, log, func(p *process) { started <- p })
			if err != nil {
				return nil, err
			}
			inst.proc = p
			return p, nil
		},
	})
	return inst, started
}

// connect performs the handshake and reads the adapter's description. It returns early if ctx ends.
func (h *Host) connect(ctx context.Context, a *adapter, inst *instance, started <-chan *process) error {
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		select {
		case p := <-started:
			_ = p.Kill(ctx)
		case <-time.After(startTimeout):
		}
	})
	defer stop()
	client, err := inst.client.Client()
	if err != nil {
		return err
	}
	if a.isTransport() {
		return h.describeTransport(ctx, a, client, inst)
	}
	return h.describe(ctx, a.name, client, inst)
}

// describe reads a backend adapter's description.
func (h *Host) describe(ctx context.Context, name string, client plugin.ClientProtocol, inst *instance) error {
	err := inst.dispense(client, pluginv1.BackendPlugin)
	if err != nil {
		return err
	}
	inst.rpc = pluginv1.NewBackendClient(inst.conn)
	inst.about, err = inst.rpc.Describe(ctx, &pluginv1.DescribeRequest{
		ConfigDir: []byte(h.opts.ConfigDir), Network: h.network(),
	})
	if err != nil {
		return problemOf(ctx, name, err)
	}
	return nil
}

// describeTransport reads a transport adapter's description and passes the fonts to the adapter. An added adapter gets
// no information about the state directory.
func (h *Host) describeTransport(ctx context.Context, a *adapter, client plugin.ClientProtocol, inst *instance) error {
	if err := inst.dispense(client, pluginv1.TransportPlugin); err != nil {
		return err
	}
	inst.transport = pluginv1.NewTransportClient(inst.conn)
	if a.name == BrowserSim {
		inst.rpc = pluginv1.NewBackendClient(inst.conn)
	}
	req := &pluginv1.DescribeTransportRequest{}
	if a.added == nil {
		req.ConfigDir = []byte(h.opts.ConfigDir)
	}
	d, err := inst.transport.DescribeTransport(ctx, req)
	if err != nil {
		return problemOf(ctx, a.name, err)
	}
	inst.about = &pluginv1.DescribeResponse{Name: d.GetName(), Version: d.GetVersion()}
	if inst.describes, err = describedTransport(a, d); err != nil {
		return err
	}
	if err := h.sendFonts(ctx, inst); err != nil {
		return problemOf(ctx, a.name, err)
	}
	return nil
}

// dispense connects to one service of the adapter.
func (i *instance) dispense(client plugin.ClientProtocol, service string) error {
	raw, err := client.Dispense(service)
	if err != nil {
		return err
	}
	i.conn = raw.(*grpc.ClientConn)
	return nil
}

// startError rewords go-plugin errors that require an action by the user.
func startError(err error) error {
	text := err.Error()
	switch {
	case strings.Contains(text, "incompatible API version"), strings.Contains(text, "incompatible core API"):
		return refuseMismatch("the adapter's protocol version differs from that of this serviced (%d): install the service again "+
			"so that all its binaries are of one version", pluginv1.ProtocolVersion)
	case strings.Contains(text, "Unrecognized remote plugin message"):
		line, _, _ := strings.Cut(text, "\n")
		return fmt.Errorf("the adapter printed something other than its handshake: %q", line[:min(len(line), 200)])
	case errors.Is(err, context.DeadlineExceeded), strings.Contains(text, "timeout while waiting for plugin"):
		return errors.New("the adapter did not become ready in time")
	}
	return err
}

// adapterPlugin provides access to the adapter's connection, whatever services the adapter offers.
type adapterPlugin struct{ plugin.NetRPCUnsupportedPlugin }

func (*adapterPlugin) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error {
	return errors.New("the host does not serve an adapter")
}

func (*adapterPlugin) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, c *grpc.ClientConn) (any, error) {
	return c, nil
}
