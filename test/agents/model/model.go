// Package model is a scripted language model for tests: a loopback server that implements the APIs of several vendors,
// calls the tools of a script one after another, and then finishes.
package model

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// Step is one tool call that the model makes.
type Step struct {
	Tool      string // the name on the server; agents add a prefix
	Arguments string // a JSON object
}

// Answer is the result that the model received for a tool call.
type Answer struct {
	Text   string
	Images int
}

// Finished is the model's last text.
const Finished = "The script is over."

// maxRequest is the maximum size of a request body in bytes.
const maxRequest = 64 << 20

// Server answers model requests. It is safe for concurrent use.
type Server struct {
	script []Step

	mu      sync.Mutex
	answers []Answer // results in the longest conversation
	offered []string // names of the tools in the last request that offered the script's first tool
	seen    []string // one line per request: method, path, number of tools and number of results
	done    bool
}

// New returns a model that follows the script.
func New(script []Step) *Server { return &Server{script: script} }

// Answers returns the results of the script's calls, in order, and whether the model reached the end of the script.
func (s *Server) Answers() (answers []Answer, finished bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Answer(nil), s.answers...), s.done
}

// Offered returns the names of the tools that the agent offered to the model.
func (s *Server) Offered() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.offered...)
}

// Seen describes the requests in order, for failure messages.
func (s *Server) Seen() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.seen, "\n")
}

// conversation is a request in a form common to all vendors.
type conversation struct {
	tools   []tool
	answers []Answer
	stream  bool

	searches int // for tools that the agent hides
}

// tool is a tool that the agent offers.
type tool struct{ name, namespace string }

// reply is one turn of the model: a tool call or text.
type reply struct {
	id        string
	tool      tool
	arguments string
	text      string
}

// dialect is one vendor's API.
type dialect interface {
	read(body []byte) (conversation, error)
	write(w http.ResponseWriter, r reply, stream bool)
}

// ServeHTTP selects the vendor's API by the request path.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequest))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	d := dialectOf(r)
	if d == nil {
		s.note(r, conversation{})
		other(w, r)
		return
	}
	c, err := d.read(body)
	if err != nil {
		s.note(r, conversation{})
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.stream = c.stream || strings.Contains(r.URL.Path, ":stream")
	s.note(r, c)
	d.write(w, s.next(c), c.stream)
}

func dialectOf(r *http.Request) dialect {
	path := r.URL.Path
	switch {
	case r.Method != http.MethodPost:
		return nil
	case strings.HasSuffix(path, "/responses"):
		return responses{}
	case strings.HasSuffix(path, "/chat/completions"):
		return chat{}
	case strings.HasSuffix(path, "/messages"):
		return messages{}
	case strings.HasSuffix(path, ":generateContent"), strings.HasSuffix(path, ":streamGenerateContent"):
		return gemini{}
	}
	return nil
}

// other answers the agents' requests that are not model requests.
func other(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/models"):
		writeJSON(w, map[string]any{"object": "list",
			"data": []any{map[string]any{"id": "scripted", "object": "model", "owned_by": "test"}}})
	case strings.HasSuffix(r.URL.Path, "/count_tokens"):
		writeJSON(w, map[string]any{"input_tokens": 1})
	case strings.HasSuffix(r.URL.Path, ":countTokens"):
		writeJSON(w, map[string]any{"totalTokens": 1})
	default:
		http.NotFound(w, r)
	}
}

func (s *Server) note(r *http.Request, c conversation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, fmt.Sprintf("%s %s: %d tools, %d answers", r.Method, r.URL.Path, len(c.tools), len(c.answers)))
}

// next returns the model's next turn for a conversation. Requests without the script's tools are for the agent's own
// purposes, such as a title.
func (s *Server) next(c conversation) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(c.answers) >= len(s.answers) {
		s.answers = c.answers
	}
	if len(c.answers) >= len(s.script) {
		s.done = true
		return reply{text: Finished}
	}
	step := s.script[len(c.answers)]
	for _, t := range c.tools {
		if strings.HasSuffix(t.name, step.Tool) {
			s.offered = nil
			for _, other := range c.tools {
				s.offered = append(s.offered, other.name)
			}
			return reply{id: fmt.Sprintf("call_%d", len(c.answers)), tool: t, arguments: step.Arguments}
		}
	}
	for _, t := range c.tools {
		if t.name == "tool_search" && c.searches < maxSearches {
			query, _ := json.Marshal(map[string]string{"query": "select:" + searched + step.Tool})
			return reply{id: fmt.Sprintf("%s%d", searchID, c.searches), tool: t, arguments: string(query)}
		}
	}
	return reply{text: "ok"}
}

// Some agents hide tools until the model searches for them.
const (
	searchID    = "search_" // prefix of the ids of tool_search calls
	searched    = "mcp__service__"
	maxSearches = 10
)

// answered adds the result of a call.
func (c *conversation) answered(id string, a Answer) {
	if strings.HasPrefix(id, searchID) {
		c.searches++
		return
	}
	c.answers = append(c.answers, a)
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // if the agent has disconnected, its test notices
}

// event is one event of a stream of server-sent events.
type event struct {
	name string
	data any
}

func writeEvents(w http.ResponseWriter, events ...event) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		data, err := json.Marshal(e.data)
		if err != nil {
			continue
		}
		if text, ok := e.data.(string); ok {
			data = []byte(text)
		}
		if e.name != "" {
			_, _ = fmt.Fprintf(w, "event: %s\n", e.name)
		}
		_, _ = fmt.Fprintf(w, "data: %s\n\n", data)
	}
}
