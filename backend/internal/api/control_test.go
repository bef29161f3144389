package api

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
)

// onePage is a live session with one page, which answers every control frame or none.
type onePage struct {
	nobody
	err     error
	typ     string
	payload string
	media   []byte
}

func (p *onePage) Control(_ context.Context, _, typ string, payload json.RawMessage, media []byte) (json.RawMessage,
	error) {
	p.typ, p.payload, p.media = typ, string(payload), media
	return json.RawMessage(`{"ok":true,"later":[1]}`), p.err
}

func (p *onePage) Watch(string, string) (<-chan struct{}, func(), error) { return nil, nil, p.err }

func TestControlRoute(t *testing.T) {
	page := &onePage{}
	w := newWorld(t, func(o *Options) { o.Sessions.Live = page })
	bearer := "Bearer " + w.link()
	var s backendapi.CreatedSession
	w.call("POST", backendapi.PathSessions, `{"project":"com.example.app"}`, "Authorization",
		bearer).is(http.StatusCreated).into(&s)
	path := backendapi.PathSessions + "/" + s.SessionID + "/control"

	picture := bytes.Repeat([]byte("p"), backendapi.MaxControlMedia)
	body := `{"type":"sim.camera","payload":{"a":1},"media":"` + base64.StdEncoding.EncodeToString(picture) + `"}`
	var out backendapi.Controlled
	w.call("POST", path, body, "Authorization", bearer).is(http.StatusOK).into(&out)
	if string(out.Result) != `{"ok":true,"later":[1]}` || page.typ != "sim.camera" || page.payload != `{"a":1}` ||
		!bytes.Equal(page.media, picture) {
		t.Errorf("got result %s; page received frame %s with payload %s and %d bytes of media, want all unchanged",
			out.Result, page.typ, page.payload, len(page.media))
	}
	w.call("POST", path, `{"type":"sim.state"}`, "Authorization", bearer).is(http.StatusOK)
	if page.payload != `{}` {
		t.Errorf("request without a payload: page received %s, want {}", page.payload)
	}
	tooBig := `{"type":"sim.camera","payload":{},"media":"` + base64.StdEncoding.EncodeToString(append(picture, 'x')) +
		`"}`
	w.call("POST", path, tooBig, "Authorization", bearer).problem(http.StatusRequestEntityTooLarge,
		problem.CodeRequestTooLarge)
	w.call("POST", path, `{"type":"`+strings.Repeat("x", 2<<20)+`"}`, "Authorization",
		bearer).problem(http.StatusRequestEntityTooLarge, problem.CodeRequestTooLarge)
	w.call("POST", path, `{"type":"sim.state"}`, backendapi.HeaderInstallID, installID).authRequired()

	page.err = sessions.ErrNoAnswer
	if p := w.call("POST", path, `{"type":"sim.state"}`, "Authorization", bearer).problem(http.StatusGatewayTimeout,
		problem.CodeTimeout); !p.Retryable {
		t.Error("got a timeout of the page that is not retryable, want a retryable one")
	}
	page.err = sessions.ErrTooManyWaiters
	w.call("GET", backendapi.PathSessions+"/"+s.SessionID+"/events?waitMs=1", "", "Authorization",
		bearer).problem(http.StatusTooManyRequests, problem.CodeRateLimited)
	w.call("GET", backendapi.PathSessions+"/"+s.SessionID+"/events?waitMs=x", "", "Authorization",
		bearer).problem(http.StatusBadRequest, problem.CodeInvalidRequest)
}
