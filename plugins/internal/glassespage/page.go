// Package glassespage serves the page where the user connects real glasses with the browser's Bluetooth, and
// transfers bytes between that page and a driver in this process. It is independent of vendors: the caller defines
// the links and which peripherals are accepted. The server listens on the loopback interface until the page is
// closed.
package glassespage

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/service-dev/service/glasses/driver"
	"github.com/service-dev/service/internal/loopback"
	"github.com/service-dev/service/internal/problem"
)

// Options describes the glasses of a page.
type Options struct {
	Log *slog.Logger
	// Title is the name of the glasses shown to the user, e.g. "Even G1". Steps describe how to get them ready.
	Title string
	Steps []string
	Links []driver.LinkSpec
	// Accept returns the reason why the peripheral that the user chose for a link is not accepted, or nil if it is.
	// others holds the names of the peripherals chosen for the other links, by key.
	Accept func(key, name string, others map[string]string) *problem.Error
	// Left is called asynchronously when a tab that carried the links is gone, so that no peripheral is chosen any
	// more.
	Left func()
	// Answered is called with each action of the user about the panel, always by the same goroutine.
	Answered func(PanelAnswer)
	// Changed is called asynchronously when the result of Waits or URL may have changed.
	Changed func()
}

// Page is the page of one session. Close ends it.
type Page struct {
	o       Options
	address string // host and port
	server  *http.Server
	workers sync.WaitGroup

	mu     sync.Mutex
	token  string // admits the next browser; replaced once that browser has opened the page
	wanted bool   // whether the user has to open the page
	missed *time.Timer
	secret string // secret of the browser admitted last; "" if there is none
	tab    *tab   // nil while the page is not open
	links  []*link
	shown  Shown
	closed bool
}

// link is one radio of the glasses.
type link struct {
	spec    driver.LinkSpec
	index   byte
	name    string         // name of the peripheral chosen in the tab; "" if there is none
	problem *problem.Error // reason why the user's last choice was not accepted
	waiting chan opened    // receives the result for a waiting Open; nil if none waits
	asked   bool           // whether the tab was asked to open it
	conn    *Conn          // nil unless it is open
}

// opened is the result of Open.
type opened struct {
	conn *Conn
	err  error
}

// Serve starts the server of a page. ctx applies only to the start.
func Serve(ctx context.Context, o Options) (*Page, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the page of the glasses: %w", err)
	}
	// The token alone is not enough: users who can list processes see the address that the browser was started with.
	if err := loopback.ProbePeers(); err != nil {
		o.Log.Warn("failed to determine who owns connections; only the token protects the page from other users", "err", err)
	} else {
		listener = loopback.Guard(listener, func(err error) { o.Log.Warn("refused a browser's connection", "err", err) })
	}
	p := &Page{o: o, address: listener.Addr().String(), token: newSecret(), wanted: true}
	for i, spec := range o.Links {
		p.links = append(p.links, &link{spec: spec, index: byte(i)})
	}
	p.server = &http.Server{
		Handler: p.guard(p.routes()), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		IdleTimeout:    time.Minute,
		MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	p.workers.Go(func() { _ = p.server.Serve(listener) }) // returns when the server is closed
	return p, nil
}

// URL returns the address that the user has to open, or "" while the page is open or being reloaded. The address
// contains a token that admits one browser. Each later address contains another token.
func (p *Page) URL() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.wanted {
		return ""
	}
	return "http://" + p.address + "/#" + p.token
}

// reloadTime is how long reloading a page may take.
const reloadTime = 3 * time.Second

// missPage makes URL return an address unless a page opens soon. mu must be held.
func (p *Page) missPage() {
	p.missed = time.AfterFunc(reloadTime, func() {
		p.mu.Lock()
		p.wanted = p.tab == nil && !p.closed
		p.mu.Unlock()
		p.o.Changed()
	})
}

// Waits returns what the user has to do on the page before the links can be opened, or nil.
func (p *Page) Waits() *problem.Error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tab == nil {
		return &problem.Error{Code: problem.CodeNotChosen, Message: "the page of the glasses is not open in a browser",
			FixHint: "Open it in Chrome or Edge, and choose the glasses there."}
	}
	for _, l := range p.links {
		if l.name != "" {
			continue
		}
		if l.problem != nil {
			return l.problem
		}
		return linkProblem(problem.CodeNotChosen)
	}
	return nil
}

// names returns the names of the peripherals chosen for the other links, by key. mu must be held.
func (p *Page) names(without string) map[string]string {
	names := map[string]string{}
	for _, l := range p.links {
		if l.name != "" && l.spec.Key != without {
			names[l.spec.Key] = l.name
		}
	}
	return names
}

// Close notifies the page that the session has ended, and stops the server.
func (p *Page) Close() {
	p.mu.Lock()
	p.closed = true
	if p.tab != nil {
		p.tab.send(textMessage(toPage{Type: typeOver}))
		p.leave(p.tab)
	}
	if p.missed != nil {
		p.missed.Stop()
	}
	p.mu.Unlock()
	_ = p.server.Close()
	p.workers.Wait()
}

// Open opens a link. It waits until the page is open and the user has chosen the peripheral on it. On failure it
// returns the error of ctx or a *problem.Error.
func (p *Page) Open(ctx context.Context, key string) (*Conn, error) {
	answer := make(chan opened, 1)
	p.mu.Lock()
	l := p.link(key)
	if l == nil || p.closed {
		p.mu.Unlock()
		return nil, linkProblem(problem.CodeLost)
	}
	l.waiting = answer
	p.ask(l)
	p.mu.Unlock()
	select {
	case a := <-answer:
		return a.conn, a.err
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case a := <-answer: // the link was opened just before ctx ended
		return a.conn, a.err
	default:
	}
	l.waiting = nil
	if l.asked {
		l.asked = false
		p.tell(toPage{Type: typeDrop, Link: key})
	}
	return nil, ctx.Err()
}

// ask requests the tab to open a link that Open is waiting for. mu must be held.
func (p *Page) ask(l *link) {
	if l.waiting != nil && !l.asked && l.name != "" && p.tab != nil {
		l.asked = true
		p.tell(toPage{Type: typeOpen, Link: l.spec.Key})
	}
}

// answer ends the wait of Open with a result. mu must be held.
func (l *link) answer(a opened) {
	l.waiting <- a
	l.waiting, l.asked = nil, false
}

func (p *Page) link(key string) *link {
	i := slices.IndexFunc(p.links, func(l *link) bool { return l.spec.Key == key })
	if i < 0 {
		return nil
	}
	return p.links[i]
}

// tell sends a message to the tab, if there is one. mu must be held.
func (p *Page) tell(m toPage) {
	if p.tab != nil {
		p.tab.send(textMessage(m))
	}
}
