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

// recordRoute is where a kind of record is kept, and what an answer about it must be.
type recordRoute struct {
	method string
	// path stands below the project, but for ofAccount; {id} is what of the project.
	path      string
	ofAccount bool
	out       func() checked
}

type recordKey struct {
	kind   string
	change bool
}

// recordRoutes are all the records that there are; what is not here is not asked for.
var recordRoutes = map[recordKey]recordRoute{
	{"projects", false}:        {http.MethodGet, "", true, func() checked { return &projectList{} }},
	{"assistant", false}:       {http.MethodGet, backendapi.PathAssistant, false, func() checked { return &assistantConfig{} }},
	{"assistant", true}:        {http.MethodPatch, backendapi.PathAssistant, false, func() checked { return &assistantConfig{} }},
	{"credentials", false}:     {http.MethodGet, backendapi.PathCredentials, false, func() checked { return &credentialList{} }},
	{"credential_link", true}:  {http.MethodPost, backendapi.PathCredentialLink, false, func() checked { return &credentialLink{} }},
	{"analytics", false}:       {http.MethodGet, backendapi.PathAnalytics, false, func() checked { return &analyticsReport{} }},
	{"connection_page", false}: {http.MethodGet, backendapi.PathConnectionPage, false, func() checked { return &connectionPage{} }},
	{"connection_page", true}:  {http.MethodPatch, backendapi.PathConnectionPage, false, func() checked { return &connectionPage{} }},
	{"connection_page_file", false}: {http.MethodGet, backendapi.PathConnectionPageFile, false,
		func() checked { return &connectionPageFile{} }},
}

// Record reads or changes a record. What the backend answers is read into the type of its kind and written anew, so that
// the daemon is told nothing that this version does not know.
func (s *Server) Record(ctx context.Context, r *pluginv1.RecordRequest) (*pluginv1.RecordResponse, error) {
	route, ok := recordRoutes[recordKey{r.GetKind(), r.GetChange()}]
	if !ok {
		return nil, unfit("there is no such record", "Ask for a kind of record that this version knows.")
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
		return nil, status.Error(codes.Internal, "encoding a record")
	}
	return &pluginv1.RecordResponse{Body: body}, nil
}

// at is the path of one record, with its query.
func (route recordRoute) at(r *pluginv1.RecordRequest) (string, error) {
	path := backendapi.PathProjects
	if !route.ofAccount {
		if !segment(r.GetProject()) {
			return "", unfit("the project is missing or no app id", "Name the project by its app id.")
		}
		path += "/" + url.PathEscape(r.GetProject()) + route.path
	}
	if strings.Contains(path, "{id}") {
		if !segment(r.GetId()) {
			return "", unfit("what of the project is meant is missing", "Name it by its id.")
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

// segment tells whether s can stand in a path as one part of it, and be no way to another.
func segment(s string) bool { return s != "" && s != "." && s != ".." }

func unfit(message, hint string) error {
	return serve.Refuse(codes.InvalidArgument, &pluginv1.Problem{Code: backendapi.CodeInvalidRequest, Message: message, FixHint: hint})
}
