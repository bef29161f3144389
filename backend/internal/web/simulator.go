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
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/glasses"
)

// Simulators serves the simulator pages of sessions.
type Simulators struct {
	Sessions *sessions.Service
	// AppEndpoint returns the URL to which apps of a session connect.
	AppEndpoint func(id string) string
	// ServePage upgrades the request to the page's WebSocket and serves it until stillSignedIn returns false. It checks
	// the origin itself. It is a function so that tests can play the relay.
	ServePage func(rw http.ResponseWriter, r *http.Request, id string, stillSignedIn func(context.Context) bool)
}

// simulatorView is the data of the template "simulator".
type simulatorView struct {
	ID       string
	Project  string // the app id
	Name     string
	Platform string
	Model    glasses.DeviceModel
	Models   []glasses.DeviceModel // models that the user can choose from
	Chips    []string              // filters of the event log
	Program  bool                  // whether this build contains the page's program
	Expires  string
	Open     bool
	Endpoint string
	Setup    string // JSON for the script, in a data attribute
	Picture  string // URL of a picture of the panel; "" if the panel is empty
}

func (w *Web) mountSimulator(mux *http.ServeMux) {
	if w.Simulators == nil {
		return
	}
	mux.Handle("GET /s/{id}", w.page(w.simulator))
	mux.Handle("GET /s/{id}/live", w.page(w.simulatorLive))
}

// simulator shows the page of a session to its owner. Visitors sign in first.
func (w *Web) simulator(c *call) error {
	if !c.isSignedIn() {
		return c.redirect("/signin?next=" + url.QueryEscape(c.URL.Path))
	}
	s, err := w.session(c)
	if err != nil {
		return err
	}
	model, ok := glasses.Model(s.DeviceModel)
	if !ok {
		model = glasses.DeviceModel{ID: s.DeviceModel, Name: s.DeviceModel}
	}
	picture, err := w.panelURL(c, s.ID)
	if err != nil {
		return err
	}
	setup, err := json.Marshal(map[string]any{
		"session": s.ID, "project": s.Project, "live": "/s/" + s.ID + "/live", "models": glasses.Models(), "model": model,
		"program": w.assets.program(), "picture": picture,
	})
	if err != nil {
		return fmt.Errorf("encode setup of simulator page: %w", err)
	}
	c.rw.Header().Set("Content-Security-Policy", simulatorPolicy)
	return w.render(c, http.StatusOK, "simulator", simulatorView{
		ID: s.ID, Project: s.Project, Name: w.projectName(c, s.Project), Platform: s.Platform, Model: model, Setup: string(setup), Picture: picture,
		Models: glasses.Models(), Program: w.assets.program() != nil, Chips: []string{glasses.ChipErrors, glasses.ChipVoice,
			glasses.ChipCamera, glasses.ChipDisplay, glasses.ChipLifecycle, glasses.ChipCustom},
		Expires: s.ExpiresAt.UTC().Format(time.RFC3339), Open: s.Open(w.Now()), Endpoint: w.Simulators.AppEndpoint(s.ID),
	})
}

// projectName returns the name of a project as shown to the user, or the default one if it cannot be read.
func (w *Web) projectName(c *call, id string) string {
	if w.Dashboard != nil {
		if p, err := w.Dashboard.Projects.Get(c.Context(), c.account.ID, id); err == nil {
			return p.DisplayName
		}
	}
	return projects.DefaultName(id)
}

// simulatorLive serves the page's WebSocket. Although it is a GET, it has no effect until the origin has been checked.
func (w *Web) simulatorLive(c *call) error {
	if !c.isSignedIn() {
		http.Error(c.rw, "sign in first", http.StatusUnauthorized)
		return nil
	}
	s, err := w.session(c)
	if err != nil {
		return err
	}
	w.Simulators.ServePage(c.rw, c.Request, s.ID, w.stillSignedIn(c))
	return nil
}

// stillSignedIn returns a function that reports whether the browser session still exists. If the store cannot be read,
// the user stays signed in.
func (w *Web) stillSignedIn(c *call) func(context.Context) bool {
	secret := strings.Clone(browserSecret(c)) // cloned so that the connection does not keep the header in memory
	return func(ctx context.Context) bool {
		_, err := w.Accounts.FindSession(ctx, secret)
		return !errors.Is(err, account.ErrNoSession)
	}
}

func (w *Web) session(c *call) (sessions.Session, error) {
	return w.Simulators.Sessions.Get(c.Context(), c.account.ID, c.PathValue("id"))
}
