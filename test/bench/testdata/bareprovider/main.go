// Command bareprovider is a model provider with one chat model that streams the same short answer to every caller at
// minimal cost. A model named "waits" stops after its first event until /release is called. /book returns the total
// delivered to callers with the key in its query. It prints its address.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
)

// The tokens of an answer, each sent as one event.
const tokens = 12

func main() {
	const chunk = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,` +
		`"delta":{"content":"word%d "},"finish_reason":null}],"usage":null}` + "\n\n"
	var events [tokens][]byte
	for i := range events {
		events[i] = fmt.Appendf(nil, chunk, i)
	}
	var calls, in atomic.Int64
	released := make(chan struct{})
	http.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		control := http.NewResponseController(w)
		for i, event := range events {
			if _, err := w.Write(event); err != nil || control.Flush() != nil {
				return
			}
			if i == 0 && bytes.Contains(body, []byte(`"waits"`)) {
				<-released
			}
		}
		n := int64(len(body)/4 + 1)
		if r.Header.Get("Authorization") == "Bearer "+os.Args[1] {
			calls.Add(1)
			in.Add(n)
		}
		fmt.Fprintf(w, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":`+
			`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`+"\n\ndata: [DONE]\n\n", n, tokens, n+tokens)
	})
	http.HandleFunc("POST /release", func(http.ResponseWriter, *http.Request) { close(released) })
	http.HandleFunc("GET /book", func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(map[string]int64{"calls": calls.Load(), "in": in.Load(), "out": tokens * calls.Load()})
	})
	fmt.Println(httptest.NewServer(http.DefaultServeMux).URL)
	io.Copy(io.Discard, os.Stdin) // the benchmark closes standard input when it is done
}
