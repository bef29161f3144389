// Package client is the typed way to the daemon's control socket: it connects (starting the daemon if need be), says on
// whose behalf it calls, and turns refusals into one kind of error. It is the only package of the clients that knows
// the control contract's wire; it must not know commands or words for people.
package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"sync"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/service-dev/service/ctl/internal/clientio"
	"github.com/service-dev/service/ctl/internal/reach"
	"github.com/service-dev/service/proto/buildinfo"
	contract "github.com/service-dev/service/proto/clientio"
	controlv1 "github.com/service-dev/service/proto/control/v1"
	"github.com/service-dev/service/proto/rendezvous"
	"github.com/service-dev/service/proto/wiretext"
)

// The contract's messages, under names of this room.
type (
	// Status is what the daemon says of itself.
	Status = controlv1.StatusResponse
	// Identity is the answer to whoami.
	Identity = controlv1.WhoamiResponse
	// Link is the account link as the daemon sees it.
	Link = controlv1.Link
	// Consent is the telemetry decision and what follows from it.
	Consent = controlv1.Consent
	// Backend is where the caller's calls go.
	Backend = controlv1.Backend
	// Plugin is one adapter.
	Plugin = controlv1.Plugin
	// Tool is one of the agent's tools.
	Tool = controlv1.Tool
	// Check is one finding of the doctor.
	Check = controlv1.Check
	// Code is a message of the contract.
	Code = controlv1.DeviceCode
	// Waiting is a message of the contract.
	Waiting = controlv1.Waiting
	// Opened is a message of the contract.
	Opened = controlv1.Opened
	// Linked is a message of the contract.
	Linked = controlv1.Linked
	// Progress is a message of the contract.
	Progress = controlv1.Progress
	// Result is a message of the contract.
	Result = controlv1.ToolResult
	// Picture is a message of the contract.
	Picture = controlv1.ToolImage
	// LoggedOut is a message of the contract.
	LoggedOut = controlv1.LogoutResponse
	// Decision is a message of the contract.
	Decision = controlv1.SetConsentResponse
)

// Error is a refusal, in the words that every room uses. Callers branch on Code.
type Error struct {
	Code, Message, FixHint string
	Retryable              bool
}

func (e *Error) Error() string { return e.Message }

// CodeNoAnswer is the Code of a daemon that took the connection and said nothing in time.
const CodeNoAnswer = "daemon_not_responding"

// CodeGone is the Code of a daemon that ended before it answered.
const CodeGone = "daemon_gone"

// NotResponding is the refusal of a daemon that does not answer, with its process and the way out.
func NotResponding(d reach.Daemon) *Error {
	e := d.NotResponding()
	return &Error{Code: CodeNoAnswer, Message: e.Error(), Retryable: true, FixHint: e.Fix()}
}

// Client is one connection to the daemon. Close it.
type Client struct {
	Daemon reach.Daemon
	conn   *grpc.ClientConn
	api    controlv1.ControlClient
	caller *controlv1.Caller

	startIO   sync.Once
	endIO     context.CancelFunc
	servingIO sync.WaitGroup
}

// Options say how to connect.
type Options struct {
	// Program is the name the daemon hears, e.g. "servicectl".
	Program string
	// Running demands a daemon that runs already: none is started.
	Running bool
	// Lean leaves the protocol exchange out: one round trip less for a call whose shape never changed.
	Lean bool
}

// Open connects. Errors are reach's (not running, sandbox, unsafe directory, start) or *Error.
func Open(ctx context.Context, o Options) (*Client, error) {
	daemon, err := reach.Find()
	if err != nil {
		return nil, err
	}
	first, err := connect(ctx, daemon, o.Running)
	var silent *reach.NotRespondingError
	if errors.As(err, &silent) {
		return nil, NotResponding(daemon)
	}
	if err != nil {
		return nil, err
	}
	conn, err := dial(daemon, first)
	if err != nil {
		_ = first.Close()
		return nil, err
	}
	cwd := reach.WorkingDir()
	c := &Client{
		Daemon: daemon, conn: conn, api: controlv1.NewControlClient(conn),
		caller: &controlv1.Caller{Env: environ(), Cwd: []byte(cwd), Client: o.Program, Version: buildinfo.Version},
	}
	answer, cancel := context.WithTimeout(ctx, reach.AnswerTimeout)
	defer cancel()
	err = c.awaitSettings(answer)
	if err != nil && ctx.Err() == nil && !daemon.Held() { // a service manager took the connection and is starting it
		answer, cancel = context.WithTimeout(ctx, reach.StartTimeout)
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

// awaitSettings waits for the daemon's first frame, which every call needs: one that is stopped takes connections and
// sends nothing. A connection that ends right after that frame, with its daemon, is made again; one that fails shows at
// the first call.
func (c *Client) awaitSettings(ctx context.Context) error {
	for {
		state := c.conn.GetState()
		switch state {
		case connectivity.Idle:
			c.conn.Connect()
		case connectivity.Connecting:
		default:
			return nil
		}
		if !c.conn.WaitForStateChange(ctx, state) {
			return ctx.Err()
		}
	}
}

// hello exchanges the protocol ranges. Both ends look: a daemon of another build may not know that it must refuse.
func (c *Client) hello(ctx context.Context) error {
	r, err := c.api.Hello(ctx, &controlv1.HelloRequest{Caller: c.caller, ProtocolMin: rendezvous.ProtocolMin, ProtocolMax: rendezvous.ProtocolMax})
	switch {
	case err != nil:
		return refusal(err)
	case r.GetProtocolMax() < rendezvous.ProtocolMin:
		return tooOld(fmt.Sprintf("the running daemon (%s) is too old for this program (%s)", r.GetVersion(), buildinfo.Version))
	case r.GetProtocolMin() > rendezvous.ProtocolMax:
		return &Error{
			Code: codeMismatch, FixHint: "Upgrade this program.",
			Message: fmt.Sprintf("this program (%s) is too old for the running daemon (%s)", buildinfo.Version, r.GetVersion()),
		}
	}
	return nil
}

const codeMismatch = "protocol_mismatch"

// environ is the caller's variables; one that is not UTF-8 cannot be meant.
func environ() map[string]string {
	env := rendezvous.Environ()
	maps.DeleteFunc(env, func(_, value string) bool { return !utf8.ValidString(value) })
	return env
}

func tooOld(message string) *Error {
	return &Error{Code: codeMismatch, Message: message, FixHint: "Run `servicectl daemon restart`; connected agents go on with the new daemon."}
}

func connect(ctx context.Context, d reach.Daemon, running bool) (reach.Conn, error) {
	if running {
		return d.Dial(d.Paths.Control)
	}
	return d.Connect(ctx, d.Paths.Control)
}

// dial gives gRPC the connection that stands already; when it breaks, a running daemon is dialled again.
func dial(d reach.Daemon, first reach.Conn) (*grpc.ClientConn, error) {
	given := make(chan reach.Conn, 1)
	given <- first
	dialer := func(context.Context, string) (net.Conn, error) {
		select {
		case conn := <-given:
			return netConn(conn)
		default:
		}
		conn, err := d.Dial(d.Paths.Control)
		if err != nil {
			return nil, err
		}
		return netConn(conn)
	}
	return grpc.NewClient("passthrough:///serviced", grpc.WithContextDialer(dialer), grpc.WithNoProxy(),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(wiretext.Codec()), grpc.MaxCallRecvMsgSize(64<<20)))
}

// Close ends the connection.
func (c *Client) Close() {
	_ = c.conn.Close()
	if c.endIO != nil {
		c.endIO()
	}
	c.servingIO.Wait()
}

// serveIO lets the daemon open pages and read and write files by way of this process, for the calls that follow. Without
// it calls are answered too: a daemon that cannot ask says what it could not do.
func (c *Client) serveIO() {
	c.startIO.Do(func() {
		token := rand.Text()
		conn, err := clientio.Dial(c.Daemon, contract.Handshake{Token: token})
		if err != nil {
			return
		}
		ctx, cancel := context.WithCancel(context.Background())
		c.caller.ClientIo, c.endIO = token, cancel
		c.servingIO.Go(func() { _ = clientio.Serve(ctx, conn) }) // its end is the call's to tell
	})
}

// refusal turns a gRPC error into *Error. A cancelled call is context.Canceled.
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
		return &Error{Code: CodeNoAnswer, Message: "the daemon does not answer", Retryable: true, FixHint: "Run `servicectl daemon restart`."}
	case codes.ResourceExhausted:
		return &Error{Code: "too_large", Message: "the daemon takes no message of that size", FixHint: "Send at most 4 MB."}
	case codes.Unimplemented:
		return tooOld("the running daemon is older than this program")
	case codes.Unavailable:
		return gone("the daemon went away")
	}
	return &Error{Code: "internal", Message: st.Message(), FixHint: "Run `servicectl doctor`."}
}

func gone(message string) *Error {
	return &Error{Code: CodeGone, Message: message, Retryable: true, FixHint: "Try again; `servicectl daemon logs` tells more."}
}

func fromWire(e *controlv1.Error) error {
	if e.GetCode() == "cancelled" {
		return context.Canceled
	}
	return &Error{Code: e.GetCode(), Message: e.GetMessage(), Retryable: e.GetRetryable(), FixHint: e.GetFixHint()}
}
