package model

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestModel_EveryInterface checks that the model calls the scripted tool, accepts a result with a picture, and
// reports that it is done.
func TestModel_EveryInterface(t *testing.T) {
	for name, c := range map[string]struct{ path, first, call, second string }{
		"responses": {
			"/v1/responses", `{"stream":STREAM,"input":"go","tools":[{"type":"namespace","name":"mcp__service",` +
				`"tools":[{"name":"look"}]}]}`,
			`"namespace":"mcp__service"`,
			`{"stream":STREAM,"input":[{"type":"function_call_output","call_id":"call_0","output":[{"type":"input_text",` +
				`"text":"seen"},{"type":"input_image","image_url":"data:"}]}]}`,
		},
		"chat": {
			"/v1/chat/completions", `{"stream":STREAM,"messages":[{"role":"user","content":"go"}],` +
				`"tools":[{"function":{"name":"service_look"}}]}`, `"name":"service_look"`,
			`{"stream":STREAM,"messages":[{"role":"tool","tool_call_id":"call_0","content":"seen"},{"role":"user",` +
				`"content":[{"type":"image_url"}]}]}`,
		},
		"messages": {
			"/v1/messages", `{"stream":STREAM,"messages":[{"role":"user","content":"go"}],` +
				`"tools":[{"name":"mcp__service__look"}]}`, `"name":"mcp__service__look"`,
			`{"stream":STREAM,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_0",` +
				`"content":[{"type":"text","text":"seen"},{"type":"image"}]}]}]}`,
		},
		"gemini": {
			"/v1beta/models/x:METHOD", `{"contents":[{"parts":[{"text":"go"}]}],` +
				`"tools":[{"functionDeclarations":[{"name":"mcp_service_look"}]}]}`, `"functionCall"`,
			`{"contents":[{"parts":[{"functionResponse":{"id":"call_0","response":{"output":"seen"}}},` +
				`{"inlineData":{"mimeType":"image/png"}}]}]}`,
		},
	} {
		for _, stream := range []string{"true", "false"} {
			t.Run(name+"/stream="+stream, func(t *testing.T) {
				s := New([]Step{{"look", `{"a":1}`}})
				method := map[string]string{"true": "streamGenerateContent", "false": "generateContent"}[stream]
				ask := func(body string) string {
					return post(t, s, strings.Replace(c.path, "METHOD", method, 1), strings.Replace(body, "STREAM", stream, 1))
				}
				if got := ask(c.first); !strings.Contains(got, c.call) || strings.Contains(got, Finished) {
					t.Errorf("first turn: got %s, want a tool call", got)
				}
				if got := ask(c.second); !strings.Contains(got, Finished) {
					t.Errorf("second turn: got %s, want the final text", got)
				}
				answers, finished := s.Answers()
				if !finished || len(answers) != 1 || !strings.Contains(answers[0].Text, "seen") || answers[0].Images != 1 {
					t.Errorf("got results %+v, finished %v; want one with a picture\n%s", answers, finished, s.Seen())
				}
			})
		}
	}
}

// TestModel_SearchesForHiddenTools checks that a search for tools does not count as a result of the script.
func TestModel_SearchesForHiddenTools(t *testing.T) {
	s := New([]Step{{"look", `{}`}})
	got := post(t, s, "/v1/chat/completions", `{"messages":[],"tools":[{"function":{"name":"tool_search"}}]}`)
	if !strings.Contains(got, "select:mcp__service__look") {
		t.Errorf("first turn: got %s, want a search for the tool", got)
	}
	got = post(t, s, "/v1/chat/completions", `{"messages":[{"role":"tool","tool_call_id":"search_0","content":"found"}],`+
		`"tools":[{"function":{"name":"mcp__service__look"}}]}`)
	if !strings.Contains(got, "mcp__service__look") || strings.Contains(got, Finished) {
		t.Errorf("after the search: got %s, want a tool call", got)
	}
}

func post(t *testing.T, s *Server, path, body string) string {
	t.Helper()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
	data, err := io.ReadAll(w.Result().Body)
	if err != nil || w.Code != http.StatusOK {
		t.Fatalf("got status %d (error %v), want 200: %s", w.Code, err, data)
	}
	return string(data)
}
