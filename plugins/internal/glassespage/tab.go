package glassespage

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/glasses/driver"
	"github.com/service-dev/service/internal/problem"
)

// Status codes that the socket of a tab is closed with.
const (
	closeTaken = 4408 // another tab has taken over the glasses
	closeBusy  = 4409 // another tab is using the glasses
)

const (
	maxQueued = 64 // messages; a page that is further behind is disconnected
	writeTime = 5 * time.Second
	closeTime = time.Second
	maxTabID  = 64
)

// tab is the open page. Its id stays the same when it is reloaded.
type tab struct {
	id   string
	ws   *websocket.Conn
	out  chan message         // closed when this tab is no longer the current page
	sent *view                // the state that was last sent
	why  websocket.StatusCode // status code to close the socket with
	text string
}

// send queues a message. A tab that does not read its messages is disconnected. Only the page's current tab may
// receive messages. The page's mu must be held.
func (t *tab) send(m message) {
	select {
	case t.out <- m:
	default:
		_ = t.ws.CloseNow() // makes the reader return
	}
}

// serveLinks serves the socket of a tab until it is closed.
func (p *Page) serveLinks(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	t := &tab{id: query.Get("tab"), out: make(chan message, maxQueued), why: websocket.StatusNormalClosure}
	if len(t.id) > maxTabID {
		http.Error(w, "the tab's id is too long", http.StatusBadRequest)
		return
	}
	var err error
	t.ws, err = websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled,
		Subprotocols: []string{subprotocol}})
	if err != nil {
		return // Accept has sent the response
	}
	t.ws.SetReadLimit(maxMessage)
	if !p.enter(t, query.Has("take")) {
		_ = t.ws.Close(closeBusy, "another tab uses the glasses")
		return
	}
	defer p.workers.Done()
	p.o.Changed()
	go func() {
		defer p.workers.Done()
		t.write()
	}()
	err = p.read(t)
	p.mu.Lock()
	p.leave(t)
	p.mu.Unlock()
	p.o.Log.Info("page of the glasses disconnected", "reason", websocket.CloseStatus(err).String())
	p.o.Changed()
}

// enter makes a tab the current page, unless another tab is, and the user did not choose to take over. It registers
// the tab's two workers.
func (p *Page) enter(t *tab, takes bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.tab != nil && p.tab.id != t.id && !takes {
		return false
	}
	if old := p.tab; old != nil {
		old.why, old.text = closeTaken, "another tab has taken over the glasses"
		p.leave(old)
	}
	if p.missed != nil {
		p.missed.Stop()
	}
	p.workers.Add(2)
	p.tab, p.wanted, p.token = t, false, newSecret()
	t.send(textMessage(toPage{Type: typeSetup, Title: p.o.Title, Steps: p.o.Steps, Specs: p.o.Links}))
	p.refresh()
	return true
}

// leave ends a tab and its links. Calls of Open then wait for the next tab. mu must be held.
func (p *Page) leave(t *tab) {
	if p.tab != t {
		return
	}
	p.tab = nil
	p.missPage()
	close(t.out)
	for _, l := range p.links {
		l.name, l.problem, l.asked = "", nil, false
		l.lose(problem.CodeLost)
	}
	p.o.Left()
}

// write sends the queued messages. It closes the socket once the tab is no longer the current page.
func (t *tab) write() {
	for m := range t.out {
		ctx, cancel := context.WithTimeout(context.Background(), writeTime)
		err := t.ws.Write(ctx, m.typ, m.data)
		cancel()
		if err != nil {
			_ = t.ws.CloseNow()
			return
		}
	}
	defer time.AfterFunc(closeTime, func() { _ = t.ws.CloseNow() }).Stop() // a page that hangs does not respond
	_ = t.ws.Close(t.why, t.text)
}

// read handles the messages of a tab until its socket is closed.
func (p *Page) read(t *tab) error {
	for {
		typ, data, err := t.ws.Read(context.Background())
		if err != nil {
			return err
		}
		m, err := parse(typ, data, p.o.Links)
		if err != nil {
			_ = t.ws.Close(websocket.StatusPolicyViolation, err.Error())
			return fmt.Errorf("parse a message from the page: %w", err)
		}
		p.handle(t, m)
	}
}

// handle processes a message from a tab, if the tab is still the current page.
func (p *Page) handle(t *tab, m fromPage) {
	if m.isAboutPanel() {
		if p.has(t) {
			p.o.Answered(PanelAnswer{m.Type == typeCheck, m.Type == typeCancel, m.Upright, m.Border})
		}
		return
	}
	var refused *problem.Error
	if m.Type == typeChosen {
		refused = p.judge(m)
	}
	p.mu.Lock()
	if p.tab == t {
		p.apply(m, refused)
	}
	p.mu.Unlock()
	if m.Type == typeChosen || m.Type == typeProblem {
		p.o.Changed()
	}
}

// has reports whether t is the tab that currently uses the glasses.
func (p *Page) has(t *tab) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tab == t
}

// judge returns the reason why the peripheral that the user chose for a link is not accepted, or
// nil if it is.
func (p *Page) judge(m fromPage) *problem.Error {
	p.mu.Lock()
	others := p.names(m.Link)
	p.mu.Unlock()
	return p.o.Accept(m.Link, m.Name, others)
}

// apply processes a message from the page. mu must be held.
func (p *Page) apply(m fromPage, refused *problem.Error) {
	l := p.link(m.Link) // nil only for a problem that concerns all links
	switch m.Type {
	case typeChosen:
		p.choose(l, m.Name, refused)
	case typeProblem:
		for _, one := range p.links {
			if l == nil || l == one {
				one.problem = linkProblem(m.Problem)
			}
		}
		p.refresh()
	case typeUp:
		if l.asked && l.conn == nil {
			l.conn = newConn(p, l)
			l.answer(opened{conn: l.conn})
		}
	case typeDown:
		if l.asked {
			l.answer(opened{err: linkProblem(m.Problem)})
		}
		l.lose(m.Problem)
	case typeWritten:
		if l.conn != nil {
			l.conn.wrote(m.Problem)
		}
	case driver.Notified:
		if l.conn != nil {
			l.conn.deliver(m.data)
		}
	}
}

// choose records the peripheral that the user chose for a link. The page has already closed the link to the previous
// one. mu must be held.
func (p *Page) choose(l *link, name string, refused *problem.Error) {
	l.lose(problem.CodeLost)
	l.asked, l.problem = false, refused
	if refused != nil {
		l.name = ""
		p.tell(toPage{Type: typeForget, Link: l.spec.Key})
	} else {
		l.name = name
		p.ask(l)
	}
	p.refresh()
}

// lose ends the connection of a link, if there is one.
func (l *link) lose(code string) {
	if l.conn != nil {
		l.conn.finish(code)
		l.conn = nil
	}
}
