// Package control defines the control API, which servicectl calls on the daemon: JSON over HTTP on control.sock. It
// contains every route with the types of its request and response, and the header that describes the caller. The daemon
// serves the API only to processes of its own user.
//
// The body of a request is one JSON object, except for an upload. A response is one JSON value, and a stream is one
// JSON object per line. The response to a refused call is a Failure with the HTTP status of its code. A stream that
// fails after its first line ends with a Failure. The only secret that is sent is the new password of ResetPassword.
package control

import (
	"net/http"

	"github.com/service-dev/service/internal/problem"
)

// Host is the host in the URLs of requests, e.g. http://service/v1/status. Requests with another host are refused.
const Host = "service"

// MaxBody is the maximum size of a JSON body in bytes. The largest body contains the arguments of one tool call.
const MaxBody = 4 << 20

// Route is one call of the API.
type Route struct {
	Method, Path string
	// Stream is set if the response is a sequence of JSON lines.
	Stream bool
	// Upload is set if the request's body is a file instead of JSON.
	Upload bool
	// Diagnostic is set for calls that still work when too many calls are in progress.
	Diagnostic bool
	// Does describes the route, for the documentation.
	Does string
}

// Call is a route with the types of its request and response. For a stream, Answer is the type of its lines.
type Call[Request, Answer any] struct{ Route }

// None is the request of a call without arguments, or a response without content.
type None struct{}

// Failure is the response to a refused call, and the last line of a stream that fails.
type Failure struct {
	Error *problem.Error `json:"error,omitempty"`
}

// Routes of the API.
var (
	GetVersion = Call[None, Version]{Route{Method: get, Path: "/v1/version", Diagnostic: true,
		Does: "version, process id and protocol range of the daemon"}}
	GetStatus = Call[None, Status]{Route{Method: get, Path: "/v1/status", Diagnostic: true,
		Does: "state of the daemon, from memory only"}}
	Whoami = Call[WhoamiRequest, Identity]{Route{Method: post, Path: "/v1/whoami",
		Does: "install and link as last verified; asks the backend if `refresh` is true or it was never asked"}}
	Login = Call[LoginRequest, LoginEvent]{Route{Method: post, Path: "/v1/login", Stream: true,
		Does: "run a device-code flow; it ends when the connection is closed"}}
	Logout = Call[None, LoggedOut]{Route{Method: post, Path: "/v1/logout",
		Does: "delete `auth.json`, and ask the backend to revoke the token"}}
	SetConsent = Call[ConsentRequest, Decision]{Route{Method: post, Path: "/v1/consent",
		Does: "record the telemetry decision, `accepted` or `declined`"}}
	ListAccounts = Call[AccountsRequest, Accounts]{Route{Method: post, Path: "/v1/accounts",
		Does: "list accounts of the embedded backend, which it starts"}}
	ResetPassword = Call[PasswordRequest, PasswordReset]{Route{Method: post, Path: "/v1/accounts/password",
		Does: "set a new password of an account of the embedded backend, and sign out its browsers"}}
	GetTelemetry = Call[None, Telemetry]{Route{Method: get, Path: "/v1/telemetry",
		Does: "what is recorded, what would be uploaded, and which setting decides"}}
	PurgeTelemetry = Call[None, Purged]{Route{Method: post, Path: "/v1/telemetry/purge",
		Does: "erase recorded events here and at the backends"}}
	ListTools = Call[None, Tools]{Route{Method: get, Path: "/v1/tools", Does: "list the tools of agents"}}
	CallTool  = Call[ToolRequest, ToolEvent]{Route{Method: post, Path: "/v1/tools/call", Stream: true,
		Does: "call a tool as an agent would: any number of `progress` lines, then one `result`"}}
	OpenSession = Call[SessionRequest, ToolEvent]{Route{Method: post, Path: "/v1/sessions", Stream: true,
		Does: "call `startLocalSimulation` for a session that is closed together with the connection"}}
	ListPlugins = Call[None, Plugins]{Route{Method: get, Path: "/v1/plugins", Diagnostic: true,
		Does: "list the adapters"}}
	AddPlugin = Call[AddPluginRequest, PluginAnswer]{Route{Method: post, Path: "/v1/plugins/add",
		Does: "add an adapter that was approved in the state directory"}}
	RemovePlugin = Call[NameRequest, PluginAnswer]{Route{Method: post, Path: "/v1/plugins/remove",
		Does: "remove and stop an added adapter; its file stays"}}
	ListFonts  = Call[None, Fonts]{Route{Method: get, Path: "/v1/fonts", Does: "list the added fonts"}}
	AddFont    = Call[None, FontAnswer]{Route{Method: post, Path: "/v1/fonts/add", Upload: true, Does: "add a font"}}
	RemoveFont = Call[NameRequest, FontAnswer]{Route{Method: post, Path: "/v1/fonts/remove",
		Does: "remove an added font, by its name or the first 8 or more digits of its SHA-256"}}
	ListGlasses = Call[GlassesRequest, GlassesAnswer]{Route{Method: post, Path: "/v1/glasses",
		Does: "list the remembered glasses, and those found within `seconds` (0 to 60)"}}
	DisconnectGlasses = Call[None, Disconnected]{Route{Method: post, Path: "/v1/glasses/disconnect",
		Does: "close the sessions of real glasses of the caller's directory"}}
	ForgetGlasses = Call[NameRequest, None]{Route{Method: post, Path: "/v1/glasses/forget",
		Does: "forget a pair; a session that has it keeps it"}}
	SetPanel = Call[PanelRequest, None]{Route{Method: post, Path: "/v1/glasses/panel",
		Does: "store what you said about the panel of a session's glasses"}}
	RunDoctor = Call[None, Checks]{Route{Method: get, Path: "/v1/doctor", Does: "run every check"}}
	Stop      = Call[None, Stopped]{Route{Method: post, Path: "/v1/stop", Diagnostic: true,
		Does: "drain and exit; the answer is sent before"}}
)

const get, post = http.MethodGet, http.MethodPost

// Routes returns every route, in reading order.
func Routes() []Route {
	return []Route{
		GetVersion.Route, GetStatus.Route, RunDoctor.Route, Stop.Route, Whoami.Route, Login.Route, Logout.Route,
		ListAccounts.Route, ResetPassword.Route, SetConsent.Route, GetTelemetry.Route, PurgeTelemetry.Route,
		ListTools.Route, CallTool.Route, OpenSession.Route, ListPlugins.Route, AddPlugin.Route, RemovePlugin.Route,
		ListFonts.Route, AddFont.Route, RemoveFont.Route, ListGlasses.Route, DisconnectGlasses.Route,
		ForgetGlasses.Route, SetPanel.Route,
	}
}
