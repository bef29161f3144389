package llmtest

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

// stream is the state of one answer.
type stream struct {
	p        *Provider
	w        http.ResponseWriter
	r        *http.Request
	c        *Call
	api      string
	tool     string // the tool that the answer calls, or "" for a text answer
	in, out  int64  // input and output tokens of the whole answer
	sequence int    // of the next event of the responses interface
	usage    any
}

type object = map[string]any

// whole sends an answer without streaming.
func (s *stream) whole(tokens []string) {
	answer := s.wholeAnswer(strings.Join(tokens, ""))
	if !hides(s.c.Model) {
		answer["usage"] = s.usage
	}
	if s.c.Model == ErrorFrame {
		answer = object{"error": object{"message": "Overloaded", "type": "server_error"}}
	}
	body, _ := json.Marshal(answer)
	s.w.Header().Set("Content-Type", "application/json")
	switch s.c.Model {
	case ErrorFrame:
		_, _ = s.w.Write(body)
		return
	case WrongLength:
		s.w.Header().Set("Content-Length", "100000")
	case Gzip:
		s.w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(s.w)
		_, _ = packed.Write(body)
		_ = packed.Close()
		return
	}
	if s.c.Model == Reasons {
		if s.enter(0, false); !sleep(s.r, s.p.Reasoning) {
			return
		}
	}
	s.enter(len(tokens), true)
	_, _ = s.w.Write(body)
}

// send streams an answer, with one event per token.
func (s *stream) send(tokens []string) {
	model := s.c.Model
	switch model {
	case ErrorFrame:
		s.fail()
		return
	case LongLine:
		tokens = append([]string{strings.Repeat("x", 2<<20)}, tokens...)
	}
	s.first()
	for i, token := range tokens {
		s.enter(i+1, false)
		if !s.token(token) {
			return
		}
		if i > 0 {
			continue
		}
		switch model {
		case WaitsInside:
			s.p.wait(s.r)
		case Reasons:
			if !sleep(s.r, s.p.Reasoning) {
				return
			}
		case HangsInside:
			s.p.hang(s.r)
			return
		case ErrorInside:
			s.fail()
			return
		case EndsEarly:
			return
		}
	}
	if model == CutBeforeUsage {
		panic(http.ErrAbortHandler)
	}
	s.last(strings.Join(tokens, ""))
	s.enter(len(tokens), true)
	if model == HangsAtEnd {
		s.p.hang(s.r)
	}
}

// fail sends an error event instead of the next event.
func (s *stream) fail() {
	s.event("error", object{"type": "error", "error": object{"message": "Overloaded", "type": "overloaded_error"}})
}

// event writes one event and returns false if the client has disconnected.
func (s *stream) event(name string, data object) bool {
	text, _ := json.Marshal(data)
	out := "data: " + string(text) + "\n\n"
	if s.api != chat {
		out = "event: " + name + "\n" + out
	}
	return s.write(out)
}

func (s *stream) write(text string) bool {
	if s.c.Model == CRLF {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	size := len(text)
	if s.c.Model == OneByte {
		size = 1 // this also splits multi-byte characters
	}
	control := http.NewResponseController(s.w)
	for ; text != ""; text = text[min(size, len(text)):] {
		if _, err := io.WriteString(s.w, text[:min(size, len(text))]); err != nil || control.Flush() != nil {
			return false
		}
	}
	return s.r.Context().Err() == nil
}
