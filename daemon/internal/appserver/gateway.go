package appserver

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/glasses/assistantscript"
)

// Limits of a model request. The assistants of apps call models at this server with OpenAI's interface, and scripts
// provide the answers.

const (
	gatewayPath  = "/v1"
	maxChat      = 1 << 20 // bytes
	bodyTimeout  = 10 * time.Second
	writeTimeout = 10 * time.Second
	maxBearer    = 256
	bearerScheme = "Bearer "
)

func (s *Server) mountGateway(mux *http.ServeMux) {
	mux.HandleFunc("POST "+gatewayPath+"/chat/completions", s.withToken(s.chat))
	mux.HandleFunc("GET "+gatewayPath+"/realtime", s.withToken(s.converse))
	mux.HandleFunc("GET "+gatewayPath+"/memory", s.withToken(s.getMemory))
	mux.HandleFunc("PUT "+gatewayPath+"/memory", s.withToken(s.putMemory))
	mux.HandleFunc("DELETE "+gatewayPath+"/memory", s.withToken(s.deleteMemory))
	mux.HandleFunc("GET "+gatewayPath+"/models", s.withToken(listModels))
	mux.HandleFunc("GET "+gatewayPath+"/models/{id}", s.withToken(oneModel))
	mux.HandleFunc("OPTIONS "+gatewayPath+"/", preflight)
	mux.HandleFunc(gatewayPath+"/", func(w http.ResponseWriter, r *http.Request) {
		allowOrigin(w, r)
		fail(w, &assistantscript.Failure{Status: http.StatusNotFound, Type: "not_found_error", Code: "not_found",
			Message: "a local session serves only GET /v1/models, GET /v1/models/{id}, " +
				"POST /v1/chat/completions, GET /v1/realtime, and GET, PUT and DELETE /v1/memory"})
	})
}

// allowOrigin lets a page read the response. requireLocal has already checked that this machine served the page.
func allowOrigin(w http.ResponseWriter, r *http.Request) {
	if origin := r.Header.Get("Origin"); origin != "" {
		w.Header().Set("Access-Control-Allow-Origin", origin)
		w.Header().Set("Access-Control-Expose-Headers", "Retry-After")
		w.Header().Add("Vary", "Origin")
	}
}

func preflight(w http.ResponseWriter, r *http.Request) {
	allowOrigin(w, r)
	w.Header().Set("Access-Control-Allow-Methods", "GET, POST, PUT, DELETE")
	w.Header().Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
	w.WriteHeader(http.StatusNoContent)
}

// withToken returns a handler that calls serve if the request's token belongs to a session's assistant.
func (s *Server) withToken(serve func(w http.ResponseWriter, r *http.Request, token string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.beginServing() {
			http.Error(w, errClosing.Error(), http.StatusServiceUnavailable)
			return
		}
		defer s.wg.Done()
		allowOrigin(w, r)
		token := cmp.Or(r.Header.Get("X-Api-Key"), protocolToken(r))
		if h := r.Header.Get("Authorization"); len(h) > len(bearerScheme) && len(h) <= maxBearer &&
			strings.EqualFold(h[:len(bearerScheme)], bearerScheme) {
			token = h[len(bearerScheme):]
		}
		if !s.sessions.OpensAssistant(token) {
			fail(w, session.ErrGatewayToken)
			return
		}
		serve(w, r, token)
	}
}

func (s *Server) chat(w http.ResponseWriter, r *http.Request, token string) {
	user, err := rememberedUser(r)
	if err != nil {
		fail(w, err)
		return
	}
	body, err := readJSON(w, r)
	if err != nil {
		fail(w, err)
		return
	}
	reply, err := s.sessions.AskAssistant(r.Context(), token, user, body)
	if err != nil {
		fail(w, err)
		return
	}
	if !reply.Request.Stream {
		writeJSON(w, http.StatusOK, reply.Completion(reply.ID, reply.Created))
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-cache, no-transform")
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(writeTimeout))
	for _, event := range reply.Events(reply.ID, reply.Created, reply.Request.IncludeUsage) {
		if _, err := w.Write(event); err != nil || control.Flush() != nil {
			return // the app has disconnected
		}
	}
}

// readJSON reads the body of a request.
func readJSON(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	refuse := func(status int, code, message string) error {
		return &assistantscript.Failure{Status: status, Type: "invalid_request_error", Code: code, Message: message}
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, refuse(http.StatusUnsupportedMediaType, "unsupported_media_type", "set Content-Type: application/json")
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxChat))
	_ = control.SetReadDeadline(time.Time{}) // the response may take longer
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, refuse(http.StatusRequestEntityTooLarge, "body_too_large",
			fmt.Sprintf("the body is over %d MB", maxChat>>20))
	case err != nil:
		return nil, refuse(http.StatusBadRequest, "invalid_json", "the body is incomplete; send it again")
	}
	return body, nil
}

type model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

func models() []model {
	return []model{{ID: assistantscript.Assistant, Object: "model", OwnedBy: "service"},
		{ID: assistantscript.Model, Object: "model", OwnedBy: "service"}}
}

func listModels(w http.ResponseWriter, _ *http.Request, _ string) {
	encodeJSON(w, map[string]any{"object": "list", "data": models()})
}

func oneModel(w http.ResponseWriter, r *http.Request, _ string) {
	for _, m := range models() {
		if m.ID == r.PathValue("id") {
			encodeJSON(w, m)
			return
		}
	}
	fail(w, assistantscript.ErrNoModel)
}

func encodeJSON(w http.ResponseWriter, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		fail(w, err)
		return
	}
	writeJSON(w, http.StatusOK, data)
}

// fail responds with the interface's error object. If err is not an *assistantscript.Failure, the app has disconnected
// and fail does nothing.
func fail(w http.ResponseWriter, err error) {
	var f *assistantscript.Failure
	if !errors.As(err, &f) {
		return
	}
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(f.RetryAfter))
	}
	writeJSON(w, f.Status, f.Body())
}

func writeJSON(w http.ResponseWriter, status int, data []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(data)
}
