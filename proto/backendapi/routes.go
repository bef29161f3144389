package backendapi

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
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
	// App is a published app, with its project key as bearer token.
	App Caller = "project key"
	// SessionApp sends the app secret in its first frame.
	SessionApp Caller = "app secret"
	// PageSession is a browser with the site's cookie and Origin.
	PageSession Caller = "signed-in browser"
)

// Route is one route that programs call.
type Route struct {
	// Name is the method and the path, e.g. "GET /api/sessions/{id}". The daemon uses it to tell adapters which route
	// to call.
	Name   string
	Caller Caller
	// Capability and Level are the grant that an agent needs. Both are empty if none is needed.
	Capability, Level string
	// WebSocket is set for a route that upgrades the connection.
	WebSocket bool
	// NoContent is set for a route whose response has no body.
	NoContent bool
	// Does describes the route, for the documentation.
	Does string
}

// Routes returns every route for programs, in reading order. It does not include a backend's pages.
func Routes() []Route { return slices.Clone(routes) }

// Method returns the HTTP method.
func (r Route) Method() string {
	method, _, _ := strings.Cut(r.Name, " ")
	return method
}

// Path returns the path, in which parameters have braces.
func (r Route) Path() string {
	_, path, _ := strings.Cut(r.Name, " ")
	return path
}

const sessionPath, projectPath = PathSessions + "/{id}", PathProjects + "/{project}"

// Names of the routes that the daemon calls.
const (
	RouteHealth             = "GET " + PathHealth
	RouteIssueCode          = "POST " + PathDeviceCode
	RoutePollCode           = "POST " + PathDeviceToken
	RouteCancelCode         = "POST " + PathDeviceCancel
	RouteAccount            = "GET " + PathAccount
	RouteRevokeLink         = "DELETE " + PathAccountLink
	RouteOpenSession        = "POST " + PathSessions
	RouteSessions           = "GET " + PathSessions
	RouteSession            = "GET " + sessionPath
	RouteCloseSession       = "DELETE " + sessionPath
	RouteMintSecret         = "POST " + sessionPath + "/secrets"
	RouteEvents             = "GET " + sessionPath + "/events"
	RouteControl            = "POST " + sessionPath + "/control"
	RouteAssistantScript    = "POST " + sessionPath + PathAssistantScript
	RouteProjects           = "GET " + PathProjects
	RouteMintKey            = "POST " + projectPath + "/keys"
	RouteAssistant          = "GET " + projectPath + PathAssistant
	RouteChangeAssistant    = "PATCH " + projectPath + PathAssistant
	RouteGatewayUsage       = "GET " + projectPath + PathGatewayUsage
	RouteCredentials        = "GET " + projectPath + PathCredentials
	RouteCredentialLink     = "POST " + projectPath + PathCredentialLink
	RouteAnalytics          = "GET " + projectPath + PathAnalytics
	RouteConnectionPage     = "GET " + projectPath + PathConnectionPage
	RouteChangePage         = "PATCH " + projectPath + PathConnectionPage
	RouteConnectionPageFile = "GET " + projectPath + PathConnectionPageFile
	RouteUploadTelemetry    = "POST " + PathTelemetry
	RoutePurgeTelemetry     = "DELETE " + PathTelemetry
)

// FindRoute returns the route with the given name.
func FindRoute(name string) (Route, bool) {
	i := slices.IndexFunc(routes, func(r Route) bool { return r.Name == name })
	if i < 0 {
		return Route{}, false
	}
	return routes[i], true
}

// Target returns the path of a request with its query. path contains the value of each parameter of the route's path. A
// value that is empty, . or .. is an error, because it would alter the rest of the path. A slash is escaped.
func (r Route) Target(path, query map[string]string) (string, error) {
	parts := strings.Split(r.Path(), "/")
	for i, part := range parts {
		name, isParameter := strings.CutPrefix(strings.TrimSuffix(part, "}"), "{")
		if !isParameter {
			continue
		}
		value := path[name]
		if value == "" || value == "." || value == ".." {
			return "", fmt.Errorf("the %s is missing or not an id", name)
		}
		parts[i] = url.PathEscape(value)
	}
	target := strings.Join(parts, "/")
	if len(query) == 0 {
		return target, nil
	}
	values := url.Values{}
	for name, value := range query {
		values.Set(name, value)
	}
	return target + "?" + values.Encode(), nil
}

var routes = []Route{
	{Name: RouteHealth, Caller: Anyone, Does: "report whether the backend is ready"},
	{Name: RouteIssueCode, Caller: Anyone, Does: "issue a device code"},
	{Name: RoutePollCode, Caller: Anyone, Does: "poll a device code"},
	{Name: RouteCancelCode, Caller: Anyone, NoContent: true, Does: "cancel a device code"},
	{Name: RouteAccount, Caller: Linked, Does: "tell whose token this is"},
	{Name: RouteRevokeLink, Caller: Linked, NoContent: true, Does: "revoke this token"},

	{Name: RouteOpenSession, Caller: Linked, Does: "open or resume a simulator session"},
	{Name: RouteSessions, Caller: Linked, Does: "list open sessions, newest first"},
	{Name: RouteSession, Caller: Linked, Does: "read a session"},
	{Name: RouteCloseSession, Caller: Linked, Does: "close a session"},
	{Name: RouteMintSecret, Caller: Linked, Does: "mint an app secret"},
	{Name: RouteEvents, Caller: Linked, Does: "read the event log, or wait for a row"},
	{Name: RouteControl, Caller: Linked, Does: "send a control frame to the simulator page"},
	{Name: RouteAssistantScript, Caller: Linked, Does: "set the script of the app's assistant"},
	{Name: "GET " + sessionPath + "/app", Caller: SessionApp, WebSocket: true, Does: "attach an app"},
	{Name: "GET /s/{id}/live", Caller: PageSession, WebSocket: true, Does: "attach a simulator page"},

	{Name: RouteProjects, Caller: Linked, Does: "list the account's projects"},
	{Name: RouteMintKey, Caller: Linked, Does: "create a project key and, if new, the project"},
	{Name: RouteAssistant, Caller: Owner, Capability: CapabilityAssistant, Level: LevelRead,
		Does: "read the assistant's settings"},
	{Name: RouteChangeAssistant, Caller: Owner, Capability: CapabilityAssistant,
		Level: LevelReadWrite, Does: "change the assistant's settings"},
	{Name: RouteGatewayUsage, Caller: Owner, Capability: CapabilityAssistant, Level: LevelRead,
		Does: "report what calls through the AI gateway cost"},
	{Name: RouteCredentials, Caller: Owner, Capability: CapabilityCredentials, Level: LevelRead,
		Does: "list the providers and whether they have a key"},
	{Name: RouteCredentialLink, Caller: Owner, Capability: CapabilityCredentials,
		Level: LevelReadWrite, Does: "create a page on which the user pastes a key"},
	{Name: RouteAnalytics, Caller: Owner, Capability: CapabilityAnalytics, Level: LevelRead,
		Does: "report the activity of a shipped app"},
	{Name: RouteConnectionPage, Caller: Owner, Does: "read the connection page"},
	{Name: RouteChangePage, Caller: Owner, Does: "change the connection page"},
	{Name: RouteConnectionPageFile, Caller: Owner,
		Does: "get the connection page as one HTML file"},

	{Name: "POST " + PathIngest, Caller: App, Does: "upload events of a shipped app"},
	{Name: "OPTIONS " + PathIngest, Caller: Anyone, Does: "allow browsers to post from any site"},
	{Name: RouteUploadTelemetry, Caller: Install, Does: "take usage events"},
	{Name: RoutePurgeTelemetry, Caller: Install, Does: "erase the install's usage events"},
}
