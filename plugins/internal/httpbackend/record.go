package httpbackend

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/service-dev/service/plugins/internal/serve"
	"github.com/service-dev/service/proto/backendapi"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// recordRoute is the route for a kind of record and the type of its response.
type recordRoute struct {
	method string
	// path is relative to the project unless ofAccount is set; {id} is the id of a part of the project.
	path      string
	ofAccount bool
	out       func() any
}

type recordKey struct {
	kind   string
	change bool
}

// recordRoutes lists all supported records.
var recordRoutes = map[recordKey]recordRoute{
	{"projects", false}: {http.MethodGet, "", true, newAnswer[backendapi.ProjectList]},
	{"assistant", false}: {http.MethodGet, backendapi.PathAssistant, false,
		newAnswer[backendapi.AssistantConfig]},
	{"assistant", true}: {http.MethodPatch, backendapi.PathAssistant, false,
		newAnswer[backendapi.AssistantConfig]},
	{"credentials", false}: {http.MethodGet, backendapi.PathCredentials, false,
		newAnswer[backendapi.CredentialList]},
	{"credential_link", true}: {http.MethodPost, backendapi.PathCredentialLink, false,
		newAnswer[backendapi.CredentialLink]},
	{"analytics", false}: {http.MethodGet, backendapi.PathAnalytics, false,
		newAnswer[backendapi.AnalyticsReport]},
	{"gateway_usage", false}: {http.MethodGet, backendapi.PathGatewayUsage, false,
		newAnswer[backendapi.GatewayUsage]},
	{"connection_page", false}: {http.MethodGet, backendapi.PathConnectionPage, false,
		newAnswer[backendapi.ConnectionPage]},
	{"connection_page", true}: {http.MethodPatch, backendapi.PathConnectionPage, false,
		newAnswer[backendapi.ConnectionPage]},
	{"connection_page_file", false}: {http.MethodGet, backendapi.PathConnectionPageFile, false,
		newAnswer[connectionPageFile]},
}

func newAnswer[T any]() any { return new(T) }

// Record reads or changes a record. It decodes the response into the type of its kind and encodes it again, so that
// the daemon receives only fields known to this version.
func (s *Server) Record(ctx context.Context, r *pluginv1.RecordRequest) (*pluginv1.RecordResponse, error) {
	route, ok := recordRoutes[recordKey{r.GetKind(), r.GetChange()}]
	if !ok {
		return nil, unfit("unknown kind of record", "Use a kind of record that this version knows.")
	}
	path, err := route.at(r)
	if err != nil {
		return nil, err
	}
	call := request{target: r.GetTarget(), method: route.method, path: path, out: route.out()}
	if r.GetChange() {
		body := json.RawMessage(r.GetBody())
		if len(body) == 0 {
			body = json.RawMessage("{}")
		}
		if !json.Valid(body) {
			return nil, unfit("the change is not JSON", "Send a JSON object.")
		}
		call.in = body
	}
	if err := s.do(ctx, call); err != nil {
		return nil, err
	}
	body, err := json.Marshal(call.out)
	if err != nil {
		return nil, status.Error(codes.Internal, "encode record")
	}
	return &pluginv1.RecordResponse{Body: body}, nil
}

// at returns the path of one record, with its query.
func (route recordRoute) at(r *pluginv1.RecordRequest) (string, error) {
	path := backendapi.PathProjects
	if !route.ofAccount {
		if !segment(r.GetProject()) {
			return "", unfit("the project is missing or not an app id", "Name the project by its app id.")
		}
		path += "/" + url.PathEscape(r.GetProject()) + route.path
	}
	if strings.Contains(path, "{id}") {
		if !segment(r.GetId()) {
			return "", unfit("the id is missing", "Name the part of the project by its id.")
		}
		path = strings.Replace(path, "{id}", url.PathEscape(r.GetId()), 1)
	}
	query := url.Values{}
	for name, value := range r.GetQuery() {
		query.Set(name, value)
	}
	if len(query) > 0 && !r.GetChange() {
		path += "?" + query.Encode()
	}
	return path, nil
}

// segment reports whether s is a path segment that does not alter the rest of the path.
func segment(s string) bool { return s != "" && s != "." && s != ".." }

func unfit(message, hint string) error {
	return serve.Refuse(codes.InvalidArgument, &pluginv1.Problem{
		Code: backendapi.CodeInvalidRequest, Message: message, FixHint: hint,
	})
}
