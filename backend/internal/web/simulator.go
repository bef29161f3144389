package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/proto/glasses"
)

// Simulators gives the simulator page its session and its live connection.
type Simulators interface {
	// Get returns sessions.ErrNotFound for a missing session and for another account's alike.
	Get(ctx context.Context, accountID, id string) (sessions.Session, error)
	// AppEndpoint is the address that apps of this session connect to.
	AppEndpoint(id string) string
	// ServePage takes over the request as the live socket of a page, until stillSignedIn says no. It checks the origin
	// itself.
	ServePage(rw http.ResponseWriter, r *http.Request, id string, stillSignedIn func(context.Context) bool)
}

// simulatorView is what the template "simulator" shows.
type simulatorView struct {
	ID       string
	Project  string
	Platform string
	Model    glasses.DeviceModel
	Models   []glasses.DeviceModel // to choose from
	Chips    []string              // of the event log
	Program  bool                  // whether the page's own program is part of this build
	Expires  string
	Open     bool
	Endpoint string
	// Setup is what the script needs, as JSON in a data attribute.
	Setup string
}

func (w *Web) mountSimulator(mux *http.ServeMux) {
	if w.Simulators == nil {
		return
	}
	mux.Handle("GET /s/{id}", w.page(w.simulator))
	mux.Handle("GET /s/{id}/live", w.page(w.simulatorLive))
}

// simulator shows the page of a session to its owner, and sends everyone else to sign in first.
func (w *Web) simulator(rw http.ResponseWriter, r *http.Request) error {
	account, signedIn := currentAccount(r)
	if !signedIn {
		http.Redirect(rw, r, "/signin?next="+url.QueryEscape(r.URL.Path), http.StatusSeeOther)
		return nil
	}
	s, err := w.session(r, account.ID)
	if err != nil {
		return err
	}
	model, ok := glasses.Model(s.DeviceModel)
	if !ok {
		model = glasses.DeviceModel{ID: s.DeviceModel, Name: s.DeviceModel}
	}
	setup, err := json.Marshal(map[string]any{
		"session": s.ID, "live": "/s/" + s.ID + "/live", "models": glasses.Models(), "model": model, "program": w.assets.program(),
	})
	if err != nil {
		return fmt.Errorf("composing the simulator page: %w", err)
	}
	rw.Header().Set("Content-Security-Policy", simulatorPolicy)
	return w.render(rw, r, http.StatusOK, "simulator", simulatorView{
		ID: s.ID, Project: s.Project, Platform: s.Platform, Model: model, Setup: string(setup),
		Models: glasses.Models(), Program: w.assets.program() != nil, Chips: []string{glasses.ChipErrors, glasses.ChipVoice,
			glasses.ChipCamera, glasses.ChipDisplay, glasses.ChipLifecycle, glasses.ChipCustom},
		Expires: s.ExpiresAt.UTC().Format(time.RFC3339), Open: s.Open(w.Now()), Endpoint: w.Simulators.AppEndpoint(s.ID),
	})
}

// simulatorLive is the page's socket. It is a GET, yet acts on nothing before the origin was checked.
func (w *Web) simulatorLive(rw http.ResponseWriter, r *http.Request) error {
	account, signedIn := currentAccount(r)
	if !signedIn {
		http.Error(rw, "sign in first", http.StatusUnauthorized)
		return nil
	}
	s, err := w.session(r, account.ID)
	if err != nil {
		return err
	}
	w.Simulators.ServePage(rw, r, s.ID, w.stillSignedIn(r))
	return nil
}

// stillSignedIn asks whether the request's browser session still stands. Accounts that cannot be read sign nobody out.
func (w *Web) stillSignedIn(r *http.Request) func(context.Context) bool {
	cookie := strings.TrimPrefix(currentBrowser(r).id, signedPrefix)
	return func(ctx context.Context) bool {
		_, err := w.Accounts.FindSession(ctx, cookie)
		return !errors.Is(err, account.ErrNoSession)
	}
}

func (w *Web) session(r *http.Request, accountID string) (sessions.Session, error) {
	s, err := w.Simulators.Get(r.Context(), accountID, r.PathValue("id"))
	if errors.Is(err, sessions.ErrNotFound) {
		return s, errNotFound
	}
	return s, err
}
