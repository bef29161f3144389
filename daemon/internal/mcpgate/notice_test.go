package mcpgate

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/service-dev/service/daemon/internal/caller"
)

// onceTold is a notice that is pending until one response has carried it.
type onceTold struct {
	mu         sync.Mutex
	taken      bool
	noticeDone int
	returned   chan struct{} // receives a value for each claim that was released
}

func newOnceTold() *onceTold { return &onceTold{returned: make(chan struct{}, 16)} }

func (o *onceTold) Take(caller.Caller) (string, func(bool), bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.taken {
		return "", nil, false
	}
	o.taken = true
	return "by the way", o.done, true
}

func (o *onceTold) done(written bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if written {
		o.noticeDone++
		return
	}
	o.taken = false
	o.returned <- struct{}{}
}

const echo = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"a":%d}}}`

// Of ten concurrent first calls, exactly one answer carries the notice: as its last text block, and in its structured
// content, which is all that some clients show to their models.
func TestOneOfManyAnswersCarriesTheNotice(t *testing.T) {
	notices := newOnceTold()
	c, _ := started(t, Options{Catalogue: newFakeTools(), Notices: notices})
	c.initialize()
	c.send(`{"jsonrpc":"2.0","id":"l","method":"tools/list"}`)
	if strings.Contains(c.line(), "by the way") {
		t.Error("the answer to tools/list carries the notice")
	}
	var calls []string
	for i := range 10 {
		calls = append(calls, fmt.Sprintf(echo, i, i))
	}
	c.send(calls...)
	carried := 0
	for range 10 {
		answer := c.receive()
		content, _ := dig(answer, "result", "content").([]any)
		structured, _ := dig(answer, "result", "structuredContent").(map[string]any)
		fields := 1
		if len(content) == 2 {
			carried++
			if fields++; structured["notice"] != "by the way" {
				t.Errorf("the structured content is %v, want the notice", structured)
			}
			if block := content[1].(map[string]any); block["type"] != "text" || block["text"] != "by the way" {
				t.Errorf("the last block is %v, want the notice", block)
			}
		}
		text := fmt.Sprintf(`{"a":%v}`, structured["a"])
		if len(structured) != fields || content[0].(map[string]any)["text"] != text {
			t.Errorf("answer %v", answer)
		}
	}
	if carried != 1 {
		t.Errorf("%d answers carry the notice, want 1", carried)
	}
	notices.mu.Lock()
	defer notices.mu.Unlock()
	if notices.noticeDone != 1 {
		t.Errorf("the notice counts as shown %d times, want 1", notices.noticeDone)
	}
}

func TestStatelessAnswerCarriesTheNotice(t *testing.T) {
	c, _ := started(t, Options{Catalogue: newFakeTools(), Notices: newOnceTold()})
	// A question to the user has no content, so its claim on the notice is released.
	c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"link","arguments":{},` + modernURL + `}}`)
	if got := c.receive(); dig(got, "result", "resultType") != "input_required" ||
		strings.Contains(fmt.Sprint(got), "by the way") {
		t.Errorf("the question is %v, want input_required without the notice", got)
	}
	c.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{},` + modernMeta + `}}`)
	if got := c.receive(); !strings.Contains(fmt.Sprint(dig(got, "result", "content")), "by the way") ||
		dig(got, "result", "resultType") != "complete" {
		t.Errorf("the answer is %v, want the notice", got)
	}
}

// An answer that reports a failure carries no notice, and neither does a protocol error.
func TestFailedCallCarriesNoNotice(t *testing.T) {
	c, _ := started(t, Options{Catalogue: newFakeTools(), Notices: newOnceTold()})
	c.initialize()
	for _, tool := range []string{"echo", "missing"} {
		c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool +
			`","arguments":{"fail":true}}}`)
		if got := c.line(); strings.Contains(got, "by the way") || !strings.Contains(got, "rror") {
			t.Errorf("%s: %s, want an error without the notice", tool, got)
		}
	}
	c.send(fmt.Sprintf(echo, 2, 2))
	if got := c.line(); !strings.Contains(got, "by the way") {
		t.Errorf("the first success is %s, want the notice", got)
	}
}

// The notice keeps the order of the answer's fields. An answer with pictures has no structured content.
func TestAddNotice(t *testing.T) {
	const block = `{"text":"by \"the\" way","type":"text"}`
	for result, want := range map[string]string{
		`{"content":[],"structuredContent":{"z":1,"a":{}}}`: `{"content":[` + block +
			`],"structuredContent":{"z":1,"a":{},"notice":"by \"the\" way"}}`,
		`{"content":[],"structuredContent": {} }`: `{"content":[` + block +
			`],"structuredContent":{"notice":"by \"the\" way"}}`,
		`{"content":[{"type":"image"}]}`:         `{"content":[{"type":"image"},` + block + `]}`,
		`{"content":[],"isError":true}`:          "",
		`{"structuredContent":{}}`:               "",
		`{"content":[],"structuredContent":[1]}`: "",
		`[]`:                                     "",
	} {
		got, ok := addNotice([]byte(result), `by "the" way`)
		if ok != (want != "") || ok && string(got) != want {
			t.Errorf("%s became %s, %v; want %s", result, got, ok, want)
		}
	}
}

// If a call was cancelled or its client disconnected, the next call carries the notice.
func TestNoticeOfAnUnreadAnswerIsGivenBack(t *testing.T) {
	notices, f := newOnceTold(), newFakeTools()
	dial, _ := start(t, Options{Catalogue: f, Notices: notices})
	slow := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","arguments":{}}}`
	open := func() *client {
		c := dial()
		c.send(goodHandshake)
		c.receive()
		c.initialize()
		return c
	}
	c := open()
	c.send(slow)
	<-f.begun
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	<-f.ended
	<-notices.returned

	gone := open()
	gone.send(slow)
	<-f.begun
	_ = gone.conn.Close()
	close(f.release)
	<-f.ended
	<-notices.returned

	c.send(fmt.Sprintf(echo, 2, 2))
	if got := c.line(); !strings.Contains(got, "by the way") {
		t.Errorf("the next answer is %s, want the notice", got)
	}
}

// The answers of a batch are written together. One of them carries the notice.
func TestBatchCarriesTheNotice(t *testing.T) {
	notices, f := newOnceTold(), newFakeTools()
	dial, _ := start(t, Options{Catalogue: f, Notices: notices})
	c := dial()
	c.send(goodHandshake)
	c.receive()
	c.initialize()
	c.send("[" + fmt.Sprintf(echo, 1, 1) + "," + fmt.Sprintf(echo, 2, 2) + "]")
	if got := strings.Count(c.line(), `"notice":"by the way"`); got != 1 {
		t.Errorf("the batch carries the notice %d times, want 1", got)
	}

	// A batch that is never completed releases its claim on the notice.
	notices = newOnceTold()
	dial, _ = start(t, Options{Catalogue: f, Notices: notices})
	c = dial()
	c.send(goodHandshake)
	c.receive()
	c.initialize()
	c.send(`[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","arguments":{}}},` +
		fmt.Sprintf(echo, 2, 2) + "]")
	<-f.begun
	_ = c.conn.Close()
	close(f.release)
	<-f.ended
	<-notices.returned
}

// The client disconnected after half of its batch was answered, so the batch is never completed.
func TestNoticeOfHalfABatchIsGivenBack(t *testing.T) {
	notices := newOnceTold()
	w := newStream(strings.NewReader(""), nil, io.Discard)
	w.withNotices(notices, caller.Caller{})
	parts, group := split([]byte("[" + fmt.Sprintf(echo, 1, 1) + "," + fmt.Sprintf(echo, 2, 2) + "]"))
	messages := w.admit(parts, group)
	first := &jsonrpc.Response{ID: messages[0].(*jsonrpc.Request).ID, Result: []byte(`{"content":[]}`)}
	if err := w.answer(first); err != nil || !notices.taken {
		t.Fatal(err, notices.taken)
	}
	w.leave()
	if notices.taken || notices.noticeDone != 0 {
		t.Errorf("claimed %v, shown %d times; want neither", notices.taken, notices.noticeDone)
	}
}
