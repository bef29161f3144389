package web

import (
	"errors"
	"net/url"
	"slices"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credentials"
	"github.com/service-dev/service/backend/internal/gateway"
)

// serversForm is the local servers' data for the template "dashboard_gateway".
type serversForm struct {
	Offered bool
	List    []serverRow
	ID, URL string // values as entered
}

type serverRow struct {
	gateway.LocalServer
	At   shownTime
	Path string
}

func (w *Web) serverPath(c *call, id string) string {
	return gatewayPath(c.project.ID) + "/servers/" + url.PathEscape(id)
}

func (w *Web) servers(c *call) (form serversForm, err error) {
	if w.Dashboard.LocalServers == nil {
		return form, nil
	}
	list, err := w.Dashboard.LocalServers.List(c.Context(), c.account.ID, c.project.ID)
	form = serversForm{Offered: true, ID: c.PostFormValue("server-id"), URL: c.PostFormValue("server-url")}
	for _, s := range list {
		form.List = append(form.List, serverRow{s, showTime(s.Checked), w.serverPath(c, s.ID)})
	}
	return form, err
}

func (w *Web) addServer(c *call) error {
	s, err := w.Dashboard.LocalServers.Add(c.Context(), c.account.ID, c.project.ID, c.PostFormValue("server-id"),
		c.PostFormValue("server-url"), c.PostFormValue("server-key"), audit.Person())
	var f formErrors
	var invalid *credentials.InvalidError
	switch {
	case errors.Is(err, gateway.ErrServerID):
		f.add("server-id", "Use 1 to 64 lower-case letters, digits, dots, - and _, such as ollama. "+
			"Begin with a letter or digit.")
	case errors.Is(err, gateway.ErrServerURL):
		f.add("server-url", "Enter an address such as http://localhost:11434/v1.")
	case errors.Is(err, gateway.ErrNotLocal):
		f.add("server-url", "Enter an address of this machine or of a private network, such as 192.168.1.20.")
	case errors.Is(err, gateway.ErrServers):
		f.Problem = "This project has the maximum number of local servers. Remove one first."
	case errors.As(err, &invalid):
		f.add("server-key", invalid.Message)
	default:
		return c.done(err, gatewayPath(c.project.ID), serverNotice(s))
	}
	return w.showGateway(c, f, nil)
}

func serverNotice(s gateway.LocalServer) string {
	if s.Problem != "" {
		return "server-silent"
	}
	if s.LeftOut > 0 {
		return "server-names"
	}
	return "server-ok"
}

func (w *Web) checkServer(c *call) error {
	s, err := w.Dashboard.LocalServers.Check(c.Context(), c.account.ID, c.project.ID, c.PathValue("server"))
	return c.done(found(err), gatewayPath(c.project.ID), serverNotice(s))
}

// found reports an unknown server as a missing page.
func found(err error) error {
	if !errors.Is(err, gateway.ErrNoServer) {
		return err
	}
	return errNotFound
}

func (w *Web) removeServerPage(c *call) error {
	list, err := w.Dashboard.LocalServers.List(c.Context(), c.account.ID, c.project.ID)
	if err != nil {
		return err
	}
	id, back := c.PathValue("server"), gatewayPath(c.project.ID)
	if !slices.ContainsFunc(list, func(s gateway.LocalServer) bool { return s.ID == id }) {
		return errNotFound
	}
	return w.confirm(c, confirmation{
		Nav: "projects", Title: "Remove the local server " + id + "?",
		Text: []string{
			"Its models are no longer offered to " + c.project.DisplayName + ". The server itself keeps running."},
		Action: w.serverPath(c, id) + "/remove", Label: "Remove", Back: back, Instead: "Keep it",
	})
}

func (w *Web) removeServer(c *call) error {
	err := w.Dashboard.LocalServers.Remove(c.Context(), c.account.ID, c.project.ID, c.PathValue("server"), audit.Person())
	return c.done(found(err), gatewayPath(c.project.ID), "server-gone")
}
