package modelapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/httpjson"
	"github.com/service-dev/service/backend/internal/memory"
	"github.com/service-dev/service/internal/problem"
)

// How an app says which of its users a call is for, and that the user has agreed to be remembered. Pages that open a
// WebSocket, which cannot set headers, send both as a subprotocol.
const (
	userHeader     = "X-Service-User"
	memoryHeader   = "X-Service-Memory"
	agreed         = "wearer-agreed"
	memoryProtocol = "service-memory." + agreed + "."

	maxMemoryBody = 64 << 10 // bytes; a profile may be escaped
)

// userOf returns the secret of the user that a call is for, or "", and whether the call remembers.
func userOf(r *http.Request) (user string, remembers bool, err error) {
	user = strings.Join(r.Header.Values(userHeader), ",") // two users are refused
	given := r.Header.Values(memoryHeader)
	remembers = len(given) > 0
	if remembers && strings.Join(given, ",") != agreed { // also if it is empty
		return "", false, gateway.Refuse(problem.CodeInvalidValue, memoryHeader+" must be "+agreed+
			": leave it out if the user has not agreed").At(memoryHeader)
	}
	if secret, ok := protocolWith(r, memoryProtocol); ok {
		if user != "" && user != secret {
			return "", false, gateway.Refuse(problem.CodeInvalidValue, "the header and the subprotocol name different users").
				At(userHeader)
		}
		user, remembers = secret, true
	}
	switch {
	case remembers && user == "":
		return "", false, gateway.Refuse(problem.CodeInvalidValue, userHeader+" is missing: "+memoryHeader+
			" requires the user's 32 hexadecimal digits").At(userHeader)
	case user != "" && !memory.ValidSecret(user):
		return "", false, gateway.Refuse(problem.CodeInvalidValue, userHeader+
			" must be 32 lower-case hexadecimal digits").At(userHeader)
	}
	return user, remembers, nil
}

// remembering wraps the routes that call models: it sets the user of calls that remember.
func (a *API) remembering(serve handler) handler {
	return func(w http.ResponseWriter, r *http.Request, who gateway.Caller) {
		user, remembers, err := userOf(r)
		if err != nil {
			a.refuseUpgrade(w, err)
			a.fail(w, r, err)
			return
		}
		if remembers {
			who.User = user
		}
		serve(w, r, who)
	}
}

// withUser wraps the routes of the memory itself, which require a user.
func (a *API) withUser(serve func(http.ResponseWriter, *http.Request, memory.User) error) handler {
	return func(w http.ResponseWriter, r *http.Request, who gateway.Caller) {
		user, remembers, err := userOf(r)
		switch {
		case err != nil:
		case user == "":
			err = gateway.Refuse(problem.CodeInvalidValue, userHeader+
				" is missing: send the user's 32 hexadecimal digits").At(userHeader)
		case r.Method == http.MethodPut && !remembers:
			err = gateway.Refuse(problem.CodeInvalidValue, memoryHeader+" must be "+agreed+
				": only what a user has agreed to is remembered").At(memoryHeader)
		default:
			err = serve(w, r, memory.User{Account: who.Account, Project: who.Project, Secret: user})
		}
		if err != nil {
			a.fail(w, r, err)
		}
	}
}

// memoryBody is the answer of GET and PUT /v1/memory.
type memoryBody struct {
	Object    string  `json:"object"`
	Enabled   bool    `json:"enabled"`
	Why       *string `json:"why"`
	Profile   string  `json:"profile"`
	UpdatedAt *string `json:"updatedAt"`
	ExpiresAt *string `json:"expiresAt"`
}

func (a *API) writeMemory(w http.ResponseWriter, why string, p memory.Profile) {
	body := memoryBody{Object: "memory", Enabled: why == "", Profile: p.Text, UpdatedAt: timeText(p.UpdatedAt),
		ExpiresAt: timeText(p.ExpiresAt)}
	if why != "" {
		body.Why = &why
	}
	httpjson.Write(w, a.Log, http.StatusOK, body)
}

func timeText(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := t.UTC().Format(time.RFC3339)
	return &text
}

func (a *API) getMemory(w http.ResponseWriter, r *http.Request, u memory.User) error {
	why, err := a.Gateway.MemoryOff(r.Context(), u.Account, u.Project)
	if err != nil {
		return err
	}
	var p memory.Profile
	if a.Gateway.Memory != nil && a.Gateway.Memory.Configured() {
		if p, err = a.Gateway.Memory.Profile(r.Context(), u); err != nil {
			return err
		}
	}
	a.writeMemory(w, why, p)
	return nil
}

func (a *API) putMemory(w http.ResponseWriter, r *http.Request, u memory.User) error {
	profile, err := readProfile(w, r)
	if err != nil {
		return err
	}
	why, err := a.Gateway.MemoryOff(r.Context(), u.Account, u.Project)
	if err != nil {
		return err
	}
	if why != "" {
		return gateway.Refuse(problem.CodeMemoryOff, why)
	}
	p, err := a.Gateway.Memory.Put(r.Context(), u, profile)
	if err != nil {
		return memoryRefusal(err)
	}
	a.writeMemory(w, "", p)
	return nil
}

func (a *API) deleteMemory(w http.ResponseWriter, r *http.Request, u memory.User) error {
	if a.Gateway.Memory != nil {
		if err := a.Gateway.Memory.Erase(r.Context(), u); err != nil {
			return memoryRefusal(err)
		}
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// readProfile returns the profile in a request.
func readProfile(w http.ResponseWriter, r *http.Request) (string, error) {
	body, err := readJSON(w, r, maxMemoryBody, fmt.Sprintf("%d KB", maxMemoryBody>>10))
	if refusal := (*gateway.Refusal)(nil); errors.As(err, &refusal) && refusal.Code == problem.CodeBodyTooLarge {
		return "", memoryRefusal(memory.CheckText(strings.Repeat("x", maxMemoryBody)))
	}
	if err != nil {
		return "", err
	}
	var given struct {
		Profile *string `json:"profile"`
	}
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.DisallowUnknownFields()
	if err := d.Decode(&given); err != nil || given.Profile == nil || d.Decode(&struct{}{}) != io.EOF {
		return "", gateway.Refuse(problem.CodeInvalidJSON, `the body must be {"profile":"..."}`).At("profile")
	}
	return *given.Profile, nil
}

func memoryRefusal(err error) error {
	var invalid *memory.InvalidError
	switch {
	case errors.As(err, &invalid):
		return gateway.Refuse(problem.CodeInvalidValue, invalid.Message).At("profile")
	case errors.Is(err, memory.ErrTooMany):
		return gateway.Refuse(problem.CodeMemoryOff, fmt.Sprintf("the project already remembers %d users, as many as it can: "+
			"unused profiles expire, and its owner can erase them", memory.MaxProfiles))
	case errors.Is(err, db.ErrNoProject):
		return errInvalidKey // the project was deleted during the call
	}
	return err
}
