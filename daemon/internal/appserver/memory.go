package appserver

import (
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/service-dev/service/daemon/internal/profiles"
	"github.com/service-dev/service/glasses/assistantscript"
	"github.com/service-dev/service/glasses/host/websocket"
	"github.com/service-dev/service/internal/problem"
)

// Headers with which an app remembers. Pages cannot set headers on a WebSocket, so they send both values as a
// subprotocol.
const (
	userHeader     = "X-Service-User"
	memoryHeader   = "X-Service-Memory"
	wearerAgreed   = "wearer-agreed"
	memoryProtocol = "service-memory."
)

var userPattern = regexp.MustCompile(`^[0-9a-f]{32}$`)

func invalidMemory(param, message string) error {
	return &assistantscript.Failure{Status: http.StatusBadRequest, Type: "invalid_request_error",
		Code: problem.CodeInvalidValue, Param: param, Message: message}
}

// memoryHeaders returns the user's secret that a request contains, or "" if it is missing, and whether the wearer
// agreed. It returns a *assistantscript.Failure if a header has a value that is not allowed, or if the user is missing
// although the wearer agreed.
func memoryHeaders(r *http.Request) (user string, agreed bool, err error) {
	given := r.Header.Values(memoryHeader)
	if value := strings.Join(given, ","); len(given) > 0 && value != wearerAgreed {
		return "", false, errNotAgreed
	}
	return checkMemory(strings.Join(r.Header.Values(userHeader), ","), len(given) > 0)
}

var errNotAgreed = invalidMemory(memoryHeader, memoryHeader+" must be "+wearerAgreed+
	", which states that the wearer agreed, or missing")

func checkMemory(user string, agreed bool) (string, bool, error) {
	switch {
	case user == "" && !agreed:
		return "", false, nil
	case !userPattern.MatchString(user):
		return "", false, invalidUser()
	}
	return user, agreed, nil
}

// rememberedUser returns the secret of the user that a call remembers, or "" if it does not remember.
func rememberedUser(r *http.Request) (string, error) {
	user, agreed, err := memoryHeaders(r)
	if !agreed {
		return "", err
	}
	return user, nil
}

// conversingUser is like rememberedUser for a WebSocket, which may have a subprotocol instead of the headers.
func conversingUser(r *http.Request) (string, error) {
	var given []string
	for _, p := range websocket.Protocols(r) {
		if value, ok := strings.CutPrefix(p, memoryProtocol); ok {
			given = append(given, value)
		}
	}
	if len(given) == 0 || len(r.Header.Values(userHeader))+len(r.Header.Values(memoryHeader)) > 0 {
		return rememberedUser(r)
	}
	if len(given) > 1 {
		return "", invalidMemory(memoryHeader, "there are several subprotocols "+memoryProtocol+"…: send one")
	}
	agreed, user, _ := strings.Cut(given[0], ".")
	if agreed != wearerAgreed {
		return "", errNotAgreed
	}
	user, _, err := checkMemory(user, true)
	return user, err
}

// userOf returns the secret of the user whose profile a request is about.
func userOf(r *http.Request) (string, error) {
	user, _, err := memoryHeaders(r)
	if err == nil && user == "" {
		err = invalidUser()
	}
	return user, err
}

func invalidUser() error {
	return invalidMemory(userHeader, userHeader+" must be the user's secret: 32 lower-case hexadecimal digits")
}

// memoryAnswer is the answer of GET and PUT /v1/memory.
type memoryAnswer struct {
	Object    string  `json:"object"`
	Enabled   bool    `json:"enabled"`
	Why       *string `json:"why"`
	Profile   string  `json:"profile"`
	UpdatedAt *string `json:"updatedAt"`
	ExpiresAt *string `json:"expiresAt"`
}

func writeMemory(w http.ResponseWriter, p profiles.Profile, err error) {
	if err != nil {
		fail(w, err)
		return
	}
	answer := memoryAnswer{Object: "memory", Enabled: true, Profile: p.Text}
	if p.Text != "" {
		updated, expires := p.UpdatedAt.UTC().Format(time.RFC3339), p.ExpiresAt.UTC().Format(time.RFC3339)
		answer.UpdatedAt, answer.ExpiresAt = &updated, &expires
	}
	encodeJSON(w, answer)
}

func (s *Server) getMemory(w http.ResponseWriter, r *http.Request, token string) {
	user, err := userOf(r)
	if err != nil {
		fail(w, err)
		return
	}
	p, err := s.sessions.Memory(token, user)
	writeMemory(w, p, err)
}

func (s *Server) putMemory(w http.ResponseWriter, r *http.Request, token string) {
	user, err := rememberedUser(r)
	if err == nil && user == "" {
		err = invalidMemory(memoryHeader, memoryHeader+" is missing: only a profile whose user agreed is stored")
	}
	var body []byte
	if err == nil {
		body, err = readJSON(w, r)
	}
	if err != nil {
		fail(w, err)
		return
	}
	var given struct {
		Profile *string `json:"profile"`
	}
	if err := json.Unmarshal(body, &given); err != nil || given.Profile == nil {
		fail(w, invalidMemory("profile", `the body must be JSON with a text, such as {"profile":"Name: Ann"}`))
		return
	}
	if err := assistantscript.CheckProfile(*given.Profile); err != nil {
		fail(w, invalidMemory("profile", "profile cannot be stored: "+err.Error()))
		return
	}
	p, err := s.sessions.SetMemory(token, user, *given.Profile)
	writeMemory(w, p, err)
}

func (s *Server) deleteMemory(w http.ResponseWriter, r *http.Request, token string) {
	user, err := userOf(r)
	if err == nil {
		err = s.sessions.EraseMemory(token, user)
	}
	if err != nil {
		fail(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
