package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/service-dev/service/test/browser"
)

// visit is one measured route or page.
type visit struct {
	name string
	runs int
	do   func() error
}

const growthApp = "com.example.app1"

// visits returns the routes and pages of a user.
func (g *growthBench) visits(who *linked, email string) (all []visit, err error) {
	if who.Browser, err = g.signIn(email); err != nil { // cookies belong to the address of a server
		return nil, err
	}
	for _, part := range []func(*linked, string) ([]visit, error){
		g.linking, g.agentCalls, g.appCalls, g.pages, g.commands,
	} {
		more, err := part(who, email)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

// linking returns the steps of linking and of signing in.
func (g *growthBench) linking(who *linked, email string) ([]visit, error) {
	client := newLoad(1)
	var code struct{ DeviceCode, VerificationURL string }
	if err := who.Post("/api/auth/device/code", map[string]any{"scope": "account_full"}, &code); err != nil {
		return nil, err
	}
	_, query, _ := strings.Cut(code.VerificationURL, "?")
	poll, err := json.Marshal(map[string]string{"deviceCode": code.DeviceCode})
	if err != nil {
		return nil, err
	}
	return []visit{
		{"device code: issue", growthRuns, func() error {
			return exchange(client, g.backend.url+"/api/auth/device/code", []byte(`{"scope":"account_full"}`), http.StatusOK,
				`"deviceCode":"`)
		}},
		{"device code: poll", growthRuns, func() error {
			return exchange(client, g.backend.url+"/api/auth/device/token", poll, http.StatusOK, `"pending":true`)
		}},
		{"activation page", growthRuns, g.page(who, "/activate?"+query)},
		{"sign in, and dashboard", 5, func() error { // sign-in attempts per address are limited
			_, err := g.signIn(email)
			return err
		}},
	}, nil
}

// signIn returns a browser in which a user is signed in.
func (g *growthBench) signIn(email string) (*browser.Browser, error) {
	fresh, err := browser.New()
	if err != nil {
		return nil, err
	}
	page, at, err := fresh.Get(g.backend.url + "/signin")
	if err != nil {
		return nil, err
	}
	page, _, err = fresh.Submit(page, at, "/signin", "email", email, "password", benchPassword)
	if err == nil && !strings.Contains(page, `action="/signout"`) {
		err = errors.New("the page after signing in has no button to sign out")
	}
	return fresh, err
}

// agentCalls returns the calls of a linked install.
func (g *growthBench) agentCalls(who *linked, _ string) ([]visit, error) {
	get := func(name, path string) visit {
		return visit{name, growthRuns, func() error {
			var answer json.RawMessage
			return who.Get(path, &answer)
		}}
	}
	var s struct{ SessionID string }
	open := map[string]any{"project": growthApp, "platform": "web"}
	if err := who.Post("/api/sessions", open, &s); err != nil {
		return nil, err
	}
	session, project := "/api/sessions/"+s.SessionID, "/api/projects/"+growthApp
	fresh := map[string]any{"project": growthApp, "platform": "web", "fresh": true}
	return []visit{
		get("health", "/api/health"), get("token check (whoami)", "/api/account"),
		{"session: resume", growthRuns, func() error { return who.Post("/api/sessions", open, &s) }},
		{"session: new", growthRuns, func() error { return who.Post("/api/sessions", fresh, &s) }},
		get("sessions: list", "/api/sessions"), get("session: state", session),
		get("session: events", session+"/events?since=0&limit=100"),
		get("projects: list", "/api/projects"), get("project: assistant", project+"/assistant"),
		get("project: credentials", project+"/credentials"),
		get("project: gateway usage", project+"/gateway/usage?range=7d"),
		get("project: analytics report", project+"/analytics?range=7d"),
		get("project: connection page", project+"/connection-page"),
	}, nil
}

// appCalls returns the requests of shipped apps and daemons.
func (g *growthBench) appCalls(who *linked, _ string) ([]visit, error) {
	client := newLoad(1)
	key, err := who.ProjectKey(ingestApp + g.engine + fmt.Sprint(len(g.sizes)))
	if err != nil {
		return nil, err
	}
	return []visit{
		{"analytics: batch of 500 events", growthRuns, func() error { return sendBatch(g.backend.url, key, batches(1)[0]) }},
		{"telemetry: batch of 200 events", growthRuns, func() error {
			body, err := usage()
			if err != nil {
				return err
			}
			return exchange(client, g.backend.url+"/api/telemetry", bytes.Clone(body), http.StatusAccepted, `"accepted":200`)
		}},
	}, nil
}

// page returns a function that opens a page.
func (g *growthBench) page(who *linked, path string) func() error {
	return func() error {
		resp, err := who.Browser.Client().Get(g.backend.url + path)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		var page bytes.Buffer
		if _, err := page.ReadFrom(resp.Body); err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK || strings.HasSuffix(resp.Request.URL.Path, "/signin") {
			return fmt.Errorf("status %d at %s", resp.StatusCode, resp.Request.URL)
		}
		return nil
	}
}

// pages returns the pages of an account.
func (g *growthBench) pages(who *linked, _ string) (all []visit, err error) {
	var s struct{ SessionID string }
	if err := who.Post("/api/sessions", map[string]any{"project": growthApp, "platform": "web"}, &s); err != nil {
		return nil, err
	}
	project := "/account/projects/" + growthApp
	for _, path := range []string{
		"/account", "/account/projects", "/account/sessions", "/account/credit", "/account/mcp-access", "/account/audit",
		"/account/audit?actor=person", "/account/settings", project, project + "/sessions", project + "/assistant",
		project + "/credentials", project + "/gateway", project + "/connection-page", project + "/analytics", "/docs",
	} {
		all = append(all, visit{"page " + path, growthRuns, g.page(who, path)})
	}
	return append(all, visit{"page /s/ID (simulator)", growthRuns, g.page(who, "/s/"+s.SessionID)}), nil
}

// commands returns the operator's commands; each measurement includes starting a process.
func (g *growthBench) commands(_ *linked, email string) (all []visit, err error) {
	list := [][]string{{"account", email}, {"links", email}, {"trail", "--account", email}}
	if email == benchEmail {
		list = append(list, []string{"ledger"})
	}
	for _, args := range list {
		all = append(all, visit{"admin " + args[0], 3, func() error { return g.admin(args...) }})
	}
	return all, nil
}
