// Package client is the typed client of the daemon's control socket. It connects, starting the daemon if necessary,
// identifies the caller, and converts all errors of the daemon into one type. It is the only package of the clients
// that uses the generated control contract; it must not depend on commands or texts for people.
package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/service-dev/service/ctl/internal/clientio"
	"github.com/service-dev/service/ctl/internal/dialer"
	"github.com/service-dev/service/internal/buildinfo"
	contract "github.com/service-dev/service/internal/clientio"
	"github.com/service-dev/service/internal/rendezvous"
	"github.com/service-dev/service/internal/wiretext"
	controlv1 "github.com/service-dev/service/proto/control/v1"
)

// Messages of the control contract.
type (
	// Status is the status of the daemon.
	Status = controlv1.StatusResponse
	// Identity is the result of Whoami.
	Identity = controlv1.WhoamiResponse
	// Link is the account link as the daemon sees it.
	Link = controlv1.Link
	// Consent is the telemetry decision and its effect on this caller.
	Consent = controlv1.Consent
	// Backend is the backend that the caller's calls use.
	Backend = controlv1.Backend
	// Plugin is one adapter.
	Plugin = controlv1.Plugin
	// Tool is one of the agent's tools.
	Tool = controlv1.Tool
	// Check is one result of the doctor.
	Check = controlv1.Check
	// Code is the device code of a login, with the page to open and the code to compare.
	Code = controlv1.DeviceCode
	// Waiting reports that a login is still waiting for approval.
	Waiting = controlv1.Waiting
	// Opened reports whether a browser was opened for a login.
	Opened = controlv1.Opened
	// Linked is the result of a login.
	Linked = controlv1.Linked
	// Progress is a progress report of a tool call.
	Progress = controlv1.Progress
	// Result is the result of a tool call.
	Result = controlv1.ToolResult
	// Picture is a picture in the result of a tool call.
	Picture = controlv1.ToolImage
	// LoggedOut is the result of Logout.
	LoggedOut = controlv1.LogoutResponse
	// LocalAccount is an account of the embedded backend.
	LocalAccount = controlv1.LocalAccount
	// PasswordReset reports what a password reset ended.
	PasswordReset = controlv1.ResetPasswordResponse
	// Decision is the result of SetConsent.
	Decision = controlv1.SetConsentResponse
)

// Error is an error reported by the daemon or this client. Callers branch on Code.
type Error struct {
	Code, Message string
	Retryable     bool
	FixHint       string
}

func (e *Error) Error() string { return e.Message }

// CodeNoAnswer is the Code for a daemon that accepted the connection but did not respond in time.
const CodeNoAnswer = dialer.CodeNotResponding

// CodeGone is the Code for a daemon that exited before it responded.
const CodeGone = "daemon_gone"

// NotResponding returns the error for a daemon that does not respond, with its process id and the next step.
func NotResponding(d dialer.Daemon) *Error {
	p, _ := dialer.ProblemOf(d.NotResponding())
	return (*Error)(&p)
}

// Client is one connection to the daemon. Call Close when done.
type Client struct {
	Daemon dialer.Daemon
	conn   *grpc.ClientConn
	spoke  <-chan struct{}
	api    controlv1.ControlClient
	caller *controlv1.Caller

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
	// Lean skips the protocol exchange, which saves a round trip for calls that are identical in all protocols.
	Lean bool
	// PrintsNotice promises that the caller prints Notice at the end. Without it, results contain no notice.
	PrintsNotice bool
}

// Open connects to the daemon, or to its successor if it exits during the attempt. It returns an error of package
// dialer or an *Error.
func Open(ctx context.Context, o Options) (*Client, error) {
	c, err := open(ctx, o)
	var refused *Error
	if errors.As(err, &refused) && refused.Code == CodeGone {
		c, err = open(ctx, o)
	}
	return c, err
}

func open(ctx context.Context, o Options) (*Client, error) {
	daemon, err := dialer.Find()
	if err != nil {
		return nil, err
	}
	first, err := connect(ctx, daemon, o.Running)
	var silent *dialer.NotRespondingError
	if errors.As(err, &silent) {
		return nil, NotResponding(daemon)
	}
	if err != nil {
		return nil, err
	}
	conn, spoke, err := dial(daemon, first)
	if err != nil {
		_ = first.Close()
		return nil, err
	}
	cwd := dialer.WorkingDir()
	c := &Client{
		Daemon: daemon, conn: conn, spoke: spoke, api: controlv1.NewControlClient(conn),
		caller: &controlv1.Caller{
			Env: environ(), Cwd: []byte(cwd), Client: o.Program, Version: buildinfo.Version,
		},
		printsNotice: o.PrintsNotice,
	}
	answer, cancel := context.WithTimeout(ctx, dialer.AnswerTimeout)
	defer cancel()
	err = c.awaitSettings(answer)
	// The service manager accepted the connection and is still starting the daemon.
	if err != nil && ctx.Err() == nil && !daemon.Held() {
		answer, cancel = context.WithTimeout(ctx, dialer.StartTimeout)
		defer cancel()
		err = c.awaitSettings(answer)
	}
	if err == nil && !o.Lean {
		err = c.hello(answer)
	}
	if err != nil {
		c.Close()
		if answer.Err() != nil && !errors.Is(ctx.Err(), context.Canceled) {
			err = NotResponding(daemon)
		}
		return nil, err
	}
	return c, nil
}

// awaitSettings waits for the daemon's first frame, because a stopped process accepts connections but sends nothing. If
// a connection ends before or after that frame, the first call reconnects or reports the end. The state of the gRPC
// channel is not sufficient: a connection may begin and end between two checks.
func (c *Client) awaitSettings(ctx context.Context) error {
	c.conn.Connect()
	select {
	case <-c.spoke:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// hello exchanges the protocol ranges. The client checks them too, because a daemon of another build may not refuse.
func (c *Client) hello(ctx context.Context) error {
	r, err := c.api.Hello(ctx, &controlv1.HelloRequest{Caller: c.caller, ProtocolMin: rendezvous.ProtocolMin,
		ProtocolMax: rendezvous.ProtocolMax})
	switch {
	case err != nil:
		return refusal(err)
	case r.GetProtocolMax() < rendezvous.ProtocolMin:
		return tooOld(fmt.Sprintf("the running daemon (%s) is too old for this program (%s)", r.GetVersion(),
			buildinfo.Version))
	case r.GetProtocolMin() > rendezvous.ProtocolMax:
		return &Error{
			Code: codeMismatch, FixHint: "Upgrade this program.",
			Message: fmt.Sprintf("this program (%s) is too old for the running daemon (%s)", buildinfo.Version, r.GetVersion()),
		}
	}
	return nil
}

const codeMismatch = "protocol_mismatch"

// environ returns the caller's environment variables except values that are not UTF-8.
func environ() map[string]string {
	env := rendezvous.Environ()
	maps.DeleteFunc(env, func(_, value string) bool { return !utf8.ValidString(value) })
	return env
}

func tooOld(message string) *Error {
	return &Error{Code: codeMismatch, Message: message,
		FixHint: "Run `servicectl daemon restart`; connected agents continue with the new daemon."}
}

func connect(ctx context.Context, d dialer.Daemon, running bool) (dialer.Conn, error) {
	if running {
		return d.Dial(d.Paths.Control)
	}
	return d.Connect(ctx, d.Paths.Control)
}

// dial makes gRPC use the existing connection. It closes spoke once the daemon has sent data on the connection or ended
// it. If the connection breaks, gRPC dials a running daemon again.
func dial(d dialer.Daemon, first dialer.Conn) (conn *grpc.ClientConn, spoke <-chan struct{}, err error) {
	given, closed := make(chan dialer.Conn, 1), make(chan struct{})
	given <- first
	dialer := func(context.Context, string) (net.Conn, error) {
		select {
		case conn := <-given:
			c, err := netConn(conn)
			if err != nil {
				close(closed)
				return nil, err
			}
			return &firstConn{Conn: c, spoke: sync.OnceFunc(func() { close(closed) })}, nil
		default:
		}
		conn, err := d.Dial(d.Paths.Control)
		if err != nil {
			return nil, err
		}
		return netConn(conn)
	}
	conn, err = grpc.NewClient("passthrough:///serviced", grpc.WithContextDialer(dialer), grpc.WithNoProxy(),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(wiretext.Codec()), grpc.MaxCallRecvMsgSize(64<<20)))
	return conn, closed, err
}

// firstConn calls spoke after each Read.
type firstConn struct {
	net.Conn
	spoke func()
}

func (c *firstConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.spoke()
	return n, err
}

// Close ends the connection.
func (c *Client) Close() {
	_ = c.conn.Close()
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
		c.caller.ClientIo, c.endIO = token, cancel
		c.servingIO.Go(func() { _ = clientio.Serve(ctx, conn) }) // the calls report errors of the connection
	})
}

// refusal converts a gRPC error into an *Error, or into context.Canceled for a cancelled call.
func refusal(err error) error {
	if err == nil {
		return nil
	}
	st := status.Convert(err)
	for _, detail := range st.Details() {
		if e, ok := detail.(*controlv1.Error); ok {
			return fromWire(e)
		}
	}
	switch st.Code() {
	case codes.Canceled:
		return context.Canceled
	case codes.DeadlineExceeded:
		return &Error{Code: CodeNoAnswer, Message: "the daemon does not respond", Retryable: true,
			FixHint: "Run `servicectl daemon restart`."}
	case codes.ResourceExhausted:
		return &Error{Code: "too_large", Message: "the message is too large for the daemon", FixHint: "Send at most 4 MB."}
	case codes.Unimplemented:
		return tooOld("the running daemon is older than this program")
	case codes.Unavailable:
		return gone("the daemon went away")
	}
	return &Error{Code: "internal", Message: st.Message(), FixHint: "Run `servicectl doctor`."}
}

func gone(message string) *Error {
	return &Error{Code: CodeGone, Message: message, Retryable: true,
		FixHint: "Try again; `servicectl daemon logs` shows more."}
}

func fromWire(e *controlv1.Error) error {
	if e.GetCode() == "cancelled" {
		return context.Canceled
	}
	return &Error{Code: e.GetCode(), Message: e.GetMessage(), Retryable: e.GetRetryable(), FixHint: e.GetFixHint()}
}
