package backendapi

import (
	"net/http"
	"slices"
)

// Caller is who may call a route.
type Caller string

// Values of Caller.
const (
	Anyone Caller = "anyone"
	// Install sends X-Service-Install-Id and no bearer token.
	Install Caller = "install id"
	// Linked is a linked install. An install id alone gets 401 with a device code.
	Linked Caller = "bearer token"
	// Owner is Linked, and the account owns the project in the path.
	Owner Caller = "bearer token, own project"
	// App is a shipped app, with its project key as bearer token.
	App Caller = "project key"
	// SessionApp sends the app secret in its first frame.
	SessionApp Caller = "app secret"
	// PageSession is a browser with the site's cookie and Origin.
	PageSession Caller = "signed-in browser"
)

// Route is one route that programs call.
type Route struct {
	Method, Path string
	Caller       Caller
	// Capability and Level are the grant that an agent needs; both are empty if none is needed.
	Capability, Level string
	// WebSocket is true for a route that upgrades the connection.
	WebSocket bool
	// Does describes the route, for the documentation.
	Does string
}

// Routes returns every route for programs, in reading order. The pages of a backend are not included.
func Routes() []Route { return slices.Clone(routes) }

const (
	get, post, patch, remove = http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete
	sessionPath, projectPath = PathSessions + "/{id}", PathProjects + "/{project}"
)

var routes = []Route{
	{Method: get, Path: PathHealth, Caller: Anyone, Does: "report whether the backend is ready"},
	{Method: post, Path: PathDeviceCode, Caller: Anyone, Does: "issue a device code"},
	{Method: post, Path: PathDeviceToken, Caller: Anyone, Does: "poll a device code"},
	{Method: post, Path: PathDeviceCancel, Caller: Anyone, Does: "cancel a device code"},
	{Method: get, Path: PathAccount, Caller: Linked, Does: "tell whose token this is"},
	{Method: remove, Path: PathAccountLink, Caller: Linked, Does: "revoke this token"},

	{Method: post, Path: PathSessions, Caller: Linked, Does: "open or resume a simulator session"},
	{Method: get, Path: PathSessions, Caller: Linked, Does: "list open sessions, newest first"},
	{Method: get, Path: sessionPath, Caller: Linked, Does: "read a session"},
	{Method: remove, Path: sessionPath, Caller: Linked, Does: "close a session"},
	{Method: post, Path: sessionPath + "/secrets", Caller: Linked, Does: "mint an app secret"},
	{Method: get, Path: sessionPath + "/events", Caller: Linked, Does: "read the event log, or wait for a row"},
	{Method: post, Path: sessionPath + "/control", Caller: Linked, Does: "send a control frame to the simulator page"},
	{Method: post, Path: sessionPath + PathAssistantScript, Caller: Linked, Does: "set the script of the app's assistant"},
	{Method: get, Path: sessionPath + "/app", Caller: SessionApp, WebSocket: true, Does: "attach an app"},
	{Method: get, Path: "/s/{id}/live", Caller: PageSession, WebSocket: true, Does: "attach a simulator page"},

	{Method: get, Path: PathProjects, Caller: Linked, Does: "list the account's projects"},
	{Method: post, Path: projectPath + "/keys", Caller: Linked, Does: "create a project key and, if new, the project"},
	{Method: get, Path: projectPath + PathAssistant, Caller: Owner, Capability: CapabilityAssistant, Level: LevelRead,
		Does: "read the assistant's settings"},
	{Method: patch, Path: projectPath + PathAssistant, Caller: Owner, Capability: CapabilityAssistant,
		Level: LevelReadWrite, Does: "change the assistant's settings"},
	{Method: get, Path: projectPath + PathGatewayUsage, Caller: Owner, Capability: CapabilityAssistant, Level: LevelRead,
		Does: "report what calls through the AI gateway cost"},
	{Method: get, Path: projectPath + PathCredentials, Caller: Owner, Capability: CapabilityCredentials, Level: LevelRead,
		Does: "list the providers and whether they have a key"},
	{Method: post, Path: projectPath + PathCredentialLink, Caller: Owner, Capability: CapabilityCredentials,
		Level: LevelReadWrite, Does: "create a page on which the person pastes a key"},
	{Method: get, Path: projectPath + PathAnalytics, Caller: Owner, Capability: CapabilityAnalytics, Level: LevelRead,
		Does: "report the activity of a shipped app"},
	{Method: get, Path: projectPath + PathConnectionPage, Caller: Owner, Does: "read the connection page"},
	{Method: patch, Path: projectPath + PathConnectionPage, Caller: Owner, Does: "change the connection page"},
	{Method: get, Path: projectPath + PathConnectionPageFile, Caller: Owner,
		Does: "get the connection page as one HTML file"},

	{Method: post, Path: PathIngest, Caller: App, Does: "upload events of a shipped app"},
	{Method: http.MethodOptions, Path: PathIngest, Caller: Anyone, Does: "allow browsers to post from any site"},
	{Method: post, Path: PathTelemetry, Caller: Install, Does: "take usage events"},
	{Method: remove, Path: PathTelemetry, Caller: Install, Does: "erase the install's usage events"},
}
