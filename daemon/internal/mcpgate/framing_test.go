package mcpgate

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"strings"
	"testing"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/internal/problem"
)

func TestLinesThatAreNoMessage(t *testing.T) {
	c, _ := started(t, Options{Catalogue: newFakeTools()})
	c.initialize()
	for _, test := range []struct{ name, line string }{
		{"not JSON", "hello"},
		{"half an object", `{"jsonrpc":"2.0",`},
		{"no UTF-8", "\xff\xfe"},
		{"a number", "7"},
		{"an object as id", `{"jsonrpc":"2.0","id":{},"method":"ping"}`},
		{"a broken response", `{"jsonrpc":"1.0","id":1,"result":{}}`},
		{"a response with an invalid id", `{"jsonrpc":"2.0","id":1.5,"result":{}}`},
		{"empty batch", "[]"},
		{"too long", `"` + strings.Repeat("x", MaxLine+1) + `"`},
	} {
		c.send(test.line)
		got := c.receive()
		if _, present := got["id"]; present || got["method"] != "notifications/message" || dig(got, "params", "data") == "" {
			t.Errorf("%s: answered with %v, want a notification", test.name, got)
		}
	}
	c.send("", "  ", `{"jsonrpc":"2.0","id":77,"method":"ping"}`)
	if got := c.receive(); got["id"] != 77.0 || got["error"] != nil {
		t.Errorf("got %v, want the session to answer the ping", got)
	}
}

// A request is answered under its id even if only the id could be read.
func TestUnreadableMessagesAreAnsweredUnderTheirID(t *testing.T) {
	c, _ := started(t, Options{Catalogue: newFakeTools()})
	c.initialize()
	long := strings.Repeat("x", 5<<20)
	deep := strings.Repeat("[", 10001) + strings.Repeat("]", 10001)
	for _, test := range []struct {
		name, line string
		code       float64
	}{
		{"another version", `{"jsonrpc":"1.0","id":5,"method":"ping"}`, -32600},
		{"no version", `{"id":5,"method":"ping"}`, -32600},
		{"neither request nor response", `{"jsonrpc":"2.0","id":5}`, -32600},
		{"too long, the id first", `{"jsonrpc":"2.0","id":5,"method":"ping","params":{"a":"` + long + `"}}`, -32600},
		{"too long, the id last", `{"method":"ping","params":{"a":"` + long + `"},"jsonrpc":"2.0","id":5}`, -32600},
		{"nested too deeply", `{"method":"ping","params":` + deep + `,"jsonrpc":"2.0","id":5}`, -32700},
		{"not JSON behind the id", `{"jsonrpc":"2.0","id":5,"method":"ping","params":{"a":tru}}`, -32700},
	} {
		c.send(test.line)
		if got := c.receive(); got["id"] != 5.0 || dig(got, "error", "code") != test.code {
			t.Errorf("%s: answered with %v, want an error under id 5", test.name, got)
		}
	}
}

// A response that is too long to be read still ends the wait for it.
func TestUnreadableAnswerEndsTheQuestion(t *testing.T) {
	c, _ := started(t, Options{Catalogue: newFakeTools()})
	c.send(strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{"elicitation":{"url":{}}}`, 1), initialized,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"link"}}`)
	c.receive()
	question := c.receive()
	id, _ := json.Marshal(question["id"])
	c.send(`{"jsonrpc":"2.0","result":{"action":"` + strings.Repeat("x", 5<<20) + `"},"id":` + string(id) + `}`)
	if got := c.receive(); got["id"] != 1.0 || dig(got, "result", "isError") != true {
		t.Errorf("the call is answered with %v, want an error result", got)
	}
}

func TestByteOrderMark(t *testing.T) {
	gate := New(Options{Catalogue: newFakeTools(), Version: "1"})
	var out bytes.Buffer
	if err := gate.ServeStdio(context.Background(), strings.NewReader("\ufeff"+initialize+"\n"), &out,
		caller.Caller{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "serverInfo") {
		t.Errorf("answered %s", out.String())
	}
}

func TestRequestIds(t *testing.T) {
	c, _ := started(t, Options{Catalogue: newFakeTools()})
	c.initialize()
	for _, id := range []string{"7.5", "1.0", "1e3", "-1E2", "12345678901234567890", "9007199254740993",
		"-9007199254740993"} {
		c.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`)
		if line := c.line(); !strings.Contains(line, `"id":`+id+`,"error":{"code":-32600`) {
			t.Errorf("id %s: answered with %s, want an error under this id", id, line)
		}
	}
	for _, id := range []string{"null", "{}", "[]", "true"} {
		c.send(`{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`, `{"jsonrpc":"2.0","id":"next","method":"ping"}`)
		got := c.receive()
		if _, present := got["id"]; present || got["method"] != "notifications/message" {
			t.Errorf("id %s: answered with %v, want a notification", id, got)
		}
		if got := c.receive(); got["id"] != "next" || got["error"] != nil {
			t.Fatalf("%s: then %v", id, got)
		}
	}
	for _, id := range []string{"0", "-5", "9007199254740992", "-9007199254740992", `""`, `"7.5"`} {
		c.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`)
		if line := c.line(); !strings.Contains(line, `"id":`+id+`,`) || !strings.Contains(line, `"result"`) {
			t.Errorf("id %s: answered with %s, want a result under this id", id, line)
		}
	}
}

func TestCancelOfAnIdThatIsNoneCancelsNothing(t *testing.T) {
	f := newFakeTools()
	c, _ := started(t, Options{Catalogue: f})
	c.initialize()
	c.send(`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"slow"}}`)
	<-f.begun
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9.5}}`,
		`{"jsonrpc":"2.0","id":10,"method":"ping"}`)
	if got := c.receive(); got["id"] != 10.0 {
		t.Fatalf("got %v", got)
	}
	close(f.release)
	if err := <-f.ended; err != nil {
		t.Errorf("the call ended with %v, want no error", err)
	}
	if got := c.receive(); got["id"] != 9.0 || got["error"] != nil {
		t.Errorf("got %v", got)
	}
}

func TestErrorsHaveCodes(t *testing.T) {
	c, _ := started(t, Options{Catalogue: newFakeTools()})
	expect := func(what, line string, code float64) {
		t.Helper()
		c.send(line)
		if got := c.receive(); dig(got, "error", "code") != code {
			t.Errorf("%s: %v", what, got)
		}
	}
	expect("before initialize", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, -32602)
	c.initialize()
	expect("initialize again", initialize, -32600)
	expect("unknown method", `{"jsonrpc":"2.0","id":1,"method":"nope"}`, -32601)
	expect("unknown tool", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nope"}}`, -32602)
	expect("wrong params", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":7}`, -32602)
	expect("discover without revision", `{"jsonrpc":"2.0","id":1,"method":"server/discover"}`, -32601)
	expect("a revision of the future",
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01","io.modelcontextprotocol/clientCapabilities":{}}}}`, -32022)
	expect("no capabilities", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, -32602)
}

func TestBatch(t *testing.T) {
	c, _ := started(t, Options{Catalogue: newFakeTools()})
	c.initialize()
	c.send(`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":2,"method":"ping"}]`)
	var answers []map[string]any
	if err := json.Unmarshal([]byte(c.line()), &answers); err != nil || len(answers) != 2 {
		t.Errorf("batch answered with %v, %v; want two answers", answers, err)
	}
}

// Each element of a batch that expects an answer gets it inside the array, even if the element is not a valid
// message.
func TestBatchWithElementsThatAreRefused(t *testing.T) {
	for _, test := range []struct{ name, line, ids string }{
		{"among valid ones", `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"1.0","id":2,"method":"ping"},` +
			`{"jsonrpc":"2.0","id":3.0,"method":"ping"},7,{"jsonrpc":"2.0","id":1,"method":"ping"}]`, "[1 2 3 <nil> 1]"},
		{"alone", `[1,{"foo":"boo"}]`, "[<nil> <nil>]"},
		{"too many", "[" + strings.Repeat(`{"jsonrpc":"2.0","id":4,"method":"ping"},`, maxCalls) +
			`{"jsonrpc":"2.0","id":4,"method":"ping"}]`, "[4" + strings.Repeat(" 4", maxCalls) + "]"},
	} {
		c, _ := started(t, Options{Catalogue: newFakeTools()})
		c.initialize()
		c.send(test.line, `{"jsonrpc":"2.0","id":"after","method":"ping"}`)
		line, after := c.line(), c.line() // in any order: calls run at the same time
		if strings.HasPrefix(after, "[") {
			line, after = after, line
		}
		var answers []map[string]any
		if err := json.Unmarshal([]byte(line), &answers); err != nil {
			t.Errorf("%s: the answer is not an array: %s", test.name, line)
		}
		ids := map[string]int{}
		for _, a := range answers {
			ids[fmt.Sprint(a["id"])]++
		}
		want := map[string]int{}
		for _, id := range strings.Fields(strings.Trim(test.ids, "[]")) {
			want[id]++
		}
		if !maps.Equal(ids, want) {
			t.Errorf("%s: got %s, want each expected id once", test.name, line)
		}
		if !strings.Contains(after, `"id":"after","result":{}`) {
			t.Errorf("%s: the next call got %s", test.name, after)
		}
	}
}

func TestHandshakes(t *testing.T) {
	for _, test := range []struct{ name, line, code string }{
		{"older client", `{"mcp":1,"protocolMin":0,"protocolMax":0}`, problem.CodeProtocolMismatch},
		{"newer client", `{"mcp":1,"protocolMin":99,"protocolMax":100}`, problem.CodeProtocolMismatch},
		{"an MCP message", initialize, problem.CodeInvalidHandshake},
		{"not JSON", "GET / HTTP/1.1", problem.CodeInvalidHandshake},
		{"too long", strings.Repeat("x", 70<<10), problem.CodeInvalidHandshake},
	} {
		dial, _ := start(t, Options{Catalogue: newFakeTools()})
		c := dial()
		c.send(test.line)
		got := c.receive()
		if got["ok"] != false || got["code"] != test.code || got["message"] == "" || got["fixHint"] == "" {
			t.Errorf("%s: %v", test.name, got)
		}
		if _, err := c.in.ReadByte(); err == nil {
			t.Errorf("%s: the stream was not closed", test.name)
		}
	}
}

func TestTooManyClients(t *testing.T) {
	dial, gate := start(t, Options{Catalogue: newFakeTools(), MaxConnections: 1})
	first := dial()
	first.send(goodHandshake)
	first.receive()
	if n := gate.Clients(); n != 1 {
		t.Errorf("%d clients are counted, want 1", n)
	}
	if got := dial().receive(); got["code"] != problem.CodeTooManyClients {
		t.Errorf("the second client got %v, want a refusal", got)
	}
	_ = first.conn.Close()
}

func TestRefusedPeer(t *testing.T) {
	dial, _ := start(t, Options{Catalogue: newFakeTools(),
		Admit: func(net.Conn) error { return fmt.Errorf("another user") }})
	if got := dial().receive(); got["code"] != problem.CodeRefused || got["message"] != "another user" {
		t.Errorf("got %v", got)
	}
}

func TestStdio(t *testing.T) {
	f := newFakeTools()
	gate := New(Options{Catalogue: f, Version: "1"})
	in := strings.NewReader(initialize + "\n" + initialized + "\n" +
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":1}}}`)
	var out bytes.Buffer
	if err := gate.ServeStdio(context.Background(), in, &out, caller.Caller{Cwd: "/x"}); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(strings.TrimSpace(out.String()), "\n"); len(lines) != 2 {
		t.Errorf("answered %q", lines)
	}
	if who := f.lastCaller(); who.Cwd != "/x" || who.Client != "agent-x" {
		t.Errorf("caller is %+v, want agent-x in /x", who)
	}
}

func TestInstructionsFit(t *testing.T) {
	if n := len(instructions); n >= 2000 {
		t.Errorf("instructions have %d characters, want fewer than 2,000", n)
	}
}

// TestInstructions_SayWhatIsNotInThisVersion checks both toolsets, because an agent with either toolset could
// promise features that this version lacks.
func TestInstructions_SayWhatIsNotInThisVersion(t *testing.T) {
	for _, said := range []string{instructions, localInstructions} {
		for _, want := range []string{
			"Real glasses of a published app", "hosted assistant", "not in this version", "published yet",
		} {
			if !strings.Contains(said, want) {
				t.Errorf("the instructions do not contain %q: %s", want, said)
			}
		}
	}
}

// TestInstructions_DescribeSharedArguments checks that the instructions explain the arguments whose schemas have no
// description.
func TestInstructions_DescribeSharedArguments(t *testing.T) {
	for _, want := range []string{"sessionId defaults to", "project, an app id", "openBrowser is"} {
		if !strings.Contains(instructions, want) {
			t.Errorf("the instructions do not contain %q", want)
		}
	}
}

func TestTheDaemonsEndEndsCalls(t *testing.T) {
	f := newFakeTools()
	gate := New(Options{Catalogue: f, Version: "1"})
	ours, theirs := net.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); gate.ServeConn(ctx, theirs) }()
	c := &client{t: t, conn: ours, in: bufio.NewReader(ours)}
	c.send(goodHandshake)
	c.receive()
	c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow",` + modernMeta + `}}`)
	<-f.begun
	cancel()
	if err := <-f.ended; err == nil {
		t.Error("the call was not cancelled")
	}
	<-done
	if n := gate.Clients(); n != 0 {
		t.Errorf("%d clients are still counted", n)
	}
}
