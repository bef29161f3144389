// Package client is the typed client of the daemon's control socket. It connects, starting the daemon if necessary,
// identifies the caller, and converts all errors of the daemon into one type. It must not depend on commands or texts
// for people.
package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/service-dev/service/ctl/internal/clientio"
	"github.com/service-dev/service/ctl/internal/dialer"
	"github.com/service-dev/service/internal/buildinfo"
	contract "github.com/service-dev/service/internal/clientio"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/internal/rendezvous"
	"github.com/service-dev/service/proto/control"
)

// Types of the control API.
type (
	// Status is the status of the daemon.
	Status = control.Status
	// Identity is the result of Whoami.
	Identity = control.Identity
	// Link is the account link as the daemon sees it.
	Link = control.Link
	// Consent is the telemetry decision and its effect on this caller.
	Consent = control.Consent
	// Backend is the backend that the caller's calls use.
	Backend = control.Backend
	// Plugin is one adapter.
	Plugin = control.Plugin
	// Tool is one of the agent's tools.
	Tool = control.Tool
	// Check is one result of the doctor.
	Check = control.Check
	// Code is the device code of a login, with the page to open and the code to compare.
	Code = control.DeviceCode
	// Waiting reports that a login is still waiting for approval.
	Waiting = control.Waiting
	// Opened reports whether a browser was opened for a login.
	Opened = control.Opened
	// Linked is the result of a login.
	Linked = control.Linked
	// Progress is a progress report of a tool call.
	Progress = control.Progress
	// Result is the result of a tool call.
	Result = control.ToolResult
	// Picture is a picture in the result of a tool call.
	Picture = control.ToolImage
	// LoggedOut is the result of Logout.
	LoggedOut = control.LoggedOut
	// LocalAccount is an account of the embedded backend.
	LocalAccount = control.LocalAccount
	// NewPassword is a request to set the password of an embedded backend's account. Password is a secret.
	NewPassword = control.PasswordRequest
	// PasswordReset reports what a password reset ended.
	PasswordReset = control.PasswordReset
	// Decision is the result of SetConsent.
	Decision = control.Decision
	// Font is a font that the user added.
	Font = control.Font
	// Telemetry describes what is recorded and where it is sent.
	Telemetry = control.Telemetry
	// Purged is the result of PurgeTelemetry.
	Purged = control.Purged
)

// Client calls one daemon. Call Close when done.
type Client struct {
	Daemon    dialer.Daemon
	transport *http.Transport
	caller    control.Caller

	mu     sync.Mutex
	given  dialer.Conn // the connection of Open, until it is used
	conns  []net.Conn
	closed bool

	printsNotice bool
	notice       atomic.Pointer[string]

	startIO   sync.Once
	endIO     context.CancelFunc
	servingIO sync.WaitGroup
}

// Options configure Open.
type Options struct {
	// Program is the name that the client sends to the daemon, e.g. "servicectl".
	Program string
	// Running makes Open fail unless a daemon is already running.
	Running bool
	// AnyProtocol also accepts a daemon whose protocol range does not overlap this program's, for calls that are
	// identical in all protocols. A daemon without this API is still refused.
	AnyProtocol bool
	// PrintsNotice promises that the caller prints Notice at the end. Without it, results contain no notice.
	PrintsNotice bool
}

// Open connects to the daemon, or to its successor if it exits during the attempt. It returns a
// *problem.Error or a system error.
func Open(ctx context.Context, o Options) (*Client, error) {
	c, err := open(ctx, o)
	if problem.CodeOf(err) == problem.CodeDaemonGone {
		c, err = open(ctx, o)
	}
	return c, err
}

func open(ctx context.Context, o Options) (*Client, error) {
	daemon, err := dialer.Find()
	if err != nil {
		return nil, err
	}
	if err := checkRecord(daemon, o.AnyProtocol); err != nil {
		return nil, err
	}
	first, err := connect(ctx, daemon, o.Running)
	if err != nil {
		return nil, err
	}
	c := &Client{
		Daemon: daemon, given: first, printsNotice: o.PrintsNotice,
		caller: control.Caller{
			Env: rendezvous.Environ(), Cwd: dialer.WorkingDir(), Client: o.Program, Version: buildinfo.Version,
		},
	}
	c.transport = &http.Transport{DialContext: c.dial, DisableCompression: true}
	if err := c.greet(ctx, o.AnyProtocol); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func connect(ctx context.Context, d dialer.Daemon, running bool) (dialer.Conn, error) {
	if running {
		return d.Dial(d.Paths.Control)
	}
	return d.Connect(ctx, d.Paths.Control)
}

// checkRecord returns an error if the running daemon recorded a protocol range that does not overlap this program's.
func checkRecord(d dialer.Daemon, anyProtocol bool) error {
	version, lo, hi, ok := d.ControlProtocol()
	if !ok {
		return nil // no daemon runs, or it is starting
	}
	err := mismatch(version, lo, hi)
	if hi == 0 {
		err = tooOld(fmt.Sprintf("the running daemon (%s) is too old for this program (%s)", version, buildinfo.Version))
	} else if anyProtocol {
		err = nil
	}
	if err == nil || !d.Held() { // the record may be left over
		return nil
	}
	return err
}

// mismatch returns an error if the protocol range of a daemon does not overlap this program's.
func mismatch(version string, lo, hi int) error {
	const own, newest = rendezvous.ControlProtocolMin, rendezvous.ControlProtocolMax
	ranges := fmt.Sprintf("the client speaks protocol %d to %d, the daemon %d to %d", own, newest, lo, hi)
	switch {
	case hi < own:
		return tooOld("the daemon is too old: " + ranges)
	case lo > newest:
		return &problem.Error{Code: problem.CodeProtocolMismatch, Message: "the client is too old: " + ranges,
			FixHint: "Upgrade the client: the running daemon is " + version + "."}
	}
	return nil
}

// ErrDaemonTooOld is the cause of an error if the running daemon is too old for this program.
var ErrDaemonTooOld = errors.New("the running daemon is too old")

func tooOld(message string) error {
	return &problem.Error{Code: problem.CodeProtocolMismatch, Message: message, Err: ErrDaemonTooOld,
		FixHint: "Run `servicectl daemon restart`; connected agents continue with the new daemon."}
}

// greet waits for the daemon's first answer, because a stopped process accepts connections but sends nothing. It also
// checks the protocol range in the answer, because the daemon may have started after its record was read.
func (c *Client) greet(ctx context.Context, anyProtocol bool) error {
	answer, cancel := context.WithTimeout(ctx, dialer.AnswerTimeout)
	defer cancel()
	v, err := call(answer, c, control.GetVersion, control.None{})
	// The service manager accepted the connection and is still starting the daemon.
	if answer.Err() != nil && ctx.Err() == nil && !c.Daemon.Held() {
		answer, cancel = context.WithTimeout(ctx, dialer.StartTimeout)
		defer cancel()
		v, err = call(answer, c, control.GetVersion, control.None{})
	}
	switch {
	case err != nil && answer.Err() != nil && !errors.Is(ctx.Err(), context.Canceled):
		return c.Daemon.NotResponding()
	case err != nil || anyProtocol:
		return err
	}
	return mismatch(v.Version, v.ProtocolMin, v.ProtocolMax)
}

// dial returns the connection of Open, and then new ones to a running daemon.
func (c *Client) dial(context.Context, string, string) (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.given
	c.given = nil
	if c.closed {
		return nil, net.ErrClosed
	}
	if first == nil {
		var err error
		if first, err = c.Daemon.Dial(c.Daemon.Paths.Control); err != nil {
			return nil, err
		}
	}
	conn, err := netConn(first)
	if err == nil {
		c.conns = append(c.conns, conn)
	}
	return conn, err
}

// Close ends the connections and the calls in progress.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	if c.given != nil {
		_ = c.given.Close()
	}
	c.mu.Unlock()
	c.transport.CloseIdleConnections()
	if c.endIO != nil {
		c.endIO()
	}
	c.servingIO.Wait()
}

// serveIO lets the daemon open pages and read and write files through this process during the following calls. If it
// fails, calls still work, and the daemon reports what it could not do.
func (c *Client) serveIO() {
	c.startIO.Do(func() {
		token := rand.Text()
		conn, err := clientio.Dial(c.Daemon, contract.Handshake{Token: token})
		if err != nil {
			return
		}
		ctx, cancel := context.WithCancel(context.Background())
		c.caller.ClientIO, c.endIO = token, cancel
		c.servingIO.Go(func() { _ = clientio.Serve(ctx, conn) }) // the calls themselves report connection errors
	})
}
