package stdioproxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
)

func TestProxy_ForwardsBothWays(t *testing.T) {
	r := newRig(t)
	d := r.daemon()
	for _, line := range []string{`{"id":1,"method":"tools/list"}`, `not json at all`, ``, `{"method":"n"}`} {
		r.say(line)
		d.expect(line)
	}
	d.put(`{"id":1,"result":{}}`)
	r.expect(`{"id":1,"result":{}}`)
}

func TestProxy_ForwardsHugeLines(t *testing.T) {
	r := newRig(t)
	d := r.daemon()
	big := fmt.Sprintf(`{"id":1,"method":"x","params":%q}`, strings.Repeat("a", 3<<20))
	go r.say(big)
	d.expect(big)
	answer := fmt.Sprintf(`{"id":1,"result":%q}`, strings.Repeat("b", 6<<20))
	go d.put(answer)
	r.expect(answer)
}

func TestProxy_AnswersTooLongLine(t *testing.T) {
	r := newRig(t)
	d := r.daemon()
	go func() {
		r.say(strings.Repeat("x", maxClientLine+bufferSize))
		r.say(`{"id":2,"method":"ping"}`)
	}()
	if got := r.hear(); got != strings.TrimSuffix(rejection(nil, tooLong), "\n") {
		t.Fatalf("got %s, want a rejection without an id", got)
	}
	d.expect(`{"id":2,"method":"ping"}`)
}

func TestProxy_AnswersUnusableIDOnce(t *testing.T) {
	r := newRig(t)
	d := r.daemon()
	// Ids are returned exactly as the client wrote them.
	for _, id := range []string{"7.5", "1.0", "1e3", "12345678901234567890"} {
		r.say(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"x"}}`)
		r.expect(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32600,"message":` + quote(badID) + `}}`)
	}
	for _, id := range []string{"null", "{}", "true"} {
		r.say(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"x"}}`)
		r.expect(strings.TrimSuffix(rejection(nil, badID), "\n"))
	}
	// The daemon refuses batches; the proxy does not.
	r.say(`[{"jsonrpc":"2.0","id":7.5,"method":"ping"}]`)
	d.expect(`[{"jsonrpc":"2.0","id":7.5,"method":"ping"}]`)
	r.say(`{"jsonrpc":"2.0","id":7,"method":"tools/call"}`)
	d.expect(`{"jsonrpc":"2.0","id":7,"method":"tools/call"}`)
	r.gone(d)
	if got := r.hear(); !strings.Contains(got, `"id":7,`) {
		t.Fatalf("got response %s, want id 7", got)
	}
	r.refuse <- errors.New("no")
	r.say(`[{"jsonrpc":"2.0","id":7.5,"method":"ping"},{"jsonrpc":"2.0","id":8,"method":"ping"}]`)
	got := r.hear()
	var answers []struct{ ID any }
	if err := json.Unmarshal([]byte(got), &answers); err != nil || len(answers) != 2 || answers[0].ID != 7.5 ||
		answers[1].ID != 8.0 {
		t.Fatalf("response to the batch: %s: %v", got, err)
	}
}

// A request gets a response under its id even if only the id is readable.
func TestProxy_AnswersUnreadableMessage(t *testing.T) {
	r := newRig(t)
	// The response may arrive before the message is completely written.
	var said sync.WaitGroup
	defer said.Wait()
	d := r.daemon()
	deep := strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1)
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"a":"` + strings.Repeat("x", maxClientLine) + `"}}`,
		`{"method":"tools/call","params":{"a":"` + strings.Repeat("x", 5<<20) + `"},"jsonrpc":"2.0","id":5}`,
		`{"method":"tools/call","params":` + deep + `,"jsonrpc":"2.0","id":5}`,
		`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"a":tru}}`,
		`{"jsonrpc":"2.0","id":5}`,
	} {
		said.Go(func() { r.say(line) })
		var got struct {
			ID    int
			Error struct{ Code int }
		}
		if err := json.Unmarshal([]byte(r.hear()), &got); err != nil || got.ID != 5 || got.Error.Code != -32600 {
			t.Errorf("message %.60s: got %+v, %v, want error -32600 with id 5", line, got, err)
		}
	}
	// a response to no request
	said.Go(func() { r.say(`{"jsonrpc":"2.0","id":9,"result":{"a":"` + strings.Repeat("x", maxClientLine) + `"}}`) })
	d.put(`{"id":"ask","method":"elicitation/create"}`)
	r.hear()
	said.Go(func() {
		r.say(`{"jsonrpc":"2.0","result":{"a":"` + strings.Repeat("x", maxClientLine) + `"},"id":"ask"}`)
	})
	if got := d.get(); !strings.Contains(got, `"id":"ask","error"`) {
		t.Errorf("the daemon received %.100s, want an error response", got)
	}
}

func TestProxy_SkipsByteOrderMark(t *testing.T) {
	r := newRig(t)
	d := r.daemon()
	r.say("\ufeff" + `{"id":1,"method":"ping"}`)
	d.expect(`{"id":1,"method":"ping"}`)
}
