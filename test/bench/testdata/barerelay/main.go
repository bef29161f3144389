// Command barerelay is the baseline of the relay benchmarks: it forwards a page's messages to the app of the same
// session using only net/http and coder/websocket. /echo sends a message back. It exits when its standard input
// closes.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"

	"github.com/coder/websocket"
)

func main() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var mu sync.Mutex
	apps := map[string]*websocket.Conn{}
	accept := func(w http.ResponseWriter, r *http.Request) *websocket.Conn {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
		if err != nil {
			return nil
		}
		c.SetReadLimit(2 << 20)
		return c
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /app/{id}", func(w http.ResponseWriter, r *http.Request) {
		c := accept(w, r)
		if c == nil {
			return
		}
		mu.Lock()
		apps[r.PathValue("id")] = c
		mu.Unlock()
		_, _, _ = c.Read(r.Context())
	})
	mux.HandleFunc("GET /page/{id}", func(w http.ResponseWriter, r *http.Request) {
		c := accept(w, r)
		if c == nil {
			return
		}
		mu.Lock()
		app := apps[r.PathValue("id")]
		mu.Unlock()
		for {
			kind, data, err := c.Read(r.Context())
			if err != nil || app.Write(r.Context(), kind, data) != nil {
				return
			}
		}
	})
	mux.HandleFunc("GET /echo", func(w http.ResponseWriter, r *http.Request) {
		c := accept(w, r)
		for c != nil {
			kind, data, err := c.Read(r.Context())
			if err != nil || c.Write(r.Context(), kind, data) != nil {
				return
			}
		}
	})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	fmt.Println("http://" + l.Addr().String())
	fmt.Fprintln(os.Stderr, http.Serve(l, mux))
}
