package pump

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// rig is a pump between a test that plays the client and one that plays the daemons.
type rig struct {
	t       *testing.T
	in      *io.PipeWriter
	out     *bufio.Reader
	pipe    *io.PipeReader // under out
	daemons chan net.Conn  // our ends of the connections
	refuse  chan error     // what the next attempts meet instead
	done    chan error
	pump    *Pump
}

func newRig(t *testing.T) *rig {
	t.TempDir() // registers the removal of all such folders: it comes after the pump has ended
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	r := &rig{t: t, in: inW, out: bufio.NewReader(outR), pipe: outR, daemons: make(chan net.Conn, 8), refuse: make(chan error, 8), done: make(chan error, 1)}
	p := New(Options{
		In: inR, Out: outW, Hello: Hello{Client: "test", Version: "1", Cwd: "/w", Env: map[string]string{"CI": "1"}},
		Drain: 2 * time.Second, Pause: time.Millisecond,
		Connect: func(context.Context) (io.ReadWriteCloser, error) {
			select {
			case err := <-r.refuse:
				return nil, err
			case <-t.Context().Done():
				return nil, t.Context().Err()
			default:
			}
			ours, theirs := socketPair(t)
			r.daemons <- ours
			return theirs, nil
		},
		HalfClose: func(c io.ReadWriteCloser) error { return c.(*net.UnixConn).CloseWrite() },
	})
	r.pump = p
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = p.Open(context.Background())
		r.done <- p.Run(context.Background())
		_ = outW.Close()
	}()
	t.Cleanup(func() { _ = inW.Close(); _ = outR.Close(); <-ended })
	return r
}

func socketPair(t *testing.T) (a, b net.Conn) {
	l, err := net.Listen("unix", t.TempDir()+"/s")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	b, err = net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if a, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close(); _ = b.Close() })
	return a, b
}

func (r *rig) say(line string) {
	r.t.Helper()
	if _, err := io.WriteString(r.in, line+"\n"); err != nil {
		r.t.Error(err) // also called beside the test's goroutine
	}
}

// hear reads one line that the client gets; it must be JSON.
func (r *rig) hear() string {
	r.t.Helper()
	patience := time.AfterFunc(time.Minute, func() { _ = r.pipe.CloseWithError(errors.New("nothing for a minute")) })
	defer patience.Stop()
	line, err := r.out.ReadString('\n')
	if err != nil {
		r.t.Fatalf("the client hears nothing: %v", err)
	}
	if !json.Valid([]byte(line)) {
		r.t.Fatalf("not JSON on stdout: %s", line)
	}
	return strings.TrimSuffix(line, "\n")
}

// daemon is a test's end of one connection, past the preface.
type daemon struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

func (r *rig) daemon() *daemon {
	r.t.Helper()
	select {
	case conn := <-r.daemons:
		_ = conn.SetDeadline(time.Now().Add(time.Minute)) // a loaded machine takes its time over long lines
		d := &daemon{t: r.t, Conn: conn, r: bufio.NewReader(conn)}
		preface := d.get()
		if !strings.Contains(preface, `"mcp":1`) || !strings.Contains(preface, `"env":{"CI":"1"}`) || !strings.Contains(preface, `"cwd":"/w"`) || !json.Valid([]byte(preface)) {
			r.t.Fatalf("preface = %s", preface)
		}
		d.put(`{"ok":true,"protocol":1,"version":"1","repeatable":["look","listen"]}`)
		return d
	case <-time.After(10 * time.Second):
		r.t.Fatal("nobody connects")
		return nil
	}
}

func (r *rig) linked() bool {
	r.pump.mu.Lock()
	defer r.pump.mu.Unlock()
	return r.pump.link != nil
}

// gone closes a daemon and waits until the pump has seen it.
func (r *rig) gone(d *daemon) {
	r.t.Helper()
	d.Close()
	r.until("the pump sees that the daemon is gone", func() bool { return !r.linked() })
}

func (r *rig) until(what string, yes func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !yes(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("not in 10 s: %s", what)
		}
	}
}

func (d *daemon) get() string {
	d.t.Helper()
	line, err := d.r.ReadString('\n')
	if err != nil {
		d.t.Fatalf("the daemon hears nothing: %v", err)
	}
	return strings.TrimSuffix(line, "\n")
}

func (d *daemon) put(line string) {
	d.t.Helper()
	if _, err := io.WriteString(d, line+"\n"); err != nil {
		d.t.Error(err)
	}
}

func (d *daemon) expect(want string) {
	d.t.Helper()
	if got := d.get(); got != want {
		d.t.Fatalf("the daemon hears %s, want %s", got, want)
	}
}

func (r *rig) expect(want string) {
	r.t.Helper()
	if got := r.hear(); got != want {
		r.t.Fatalf("the client hears %s, want %s", got, want)
	}
}

func TestLinesGoBothWays(t *testing.T) {
	r := newRig(t)
	d := r.daemon()
	for _, line := range []string{`{"id":1,"method":"tools/list"}`, `not json at all`, ``, `{"method":"n"}`} {
		r.say(line)
		d.expect(line)
	}
	d.put(`{"id":1,"result":{}}`)
	r.expect(`{"id":1,"result":{}}`)
}

func TestHugeLinesPass(t *testing.T) {
	r := newRig(t)
	d := r.daemon()
	big := fmt.Sprintf(`{"id":1,"method":"x","params":%q}`, strings.Repeat("a", 3<<20))
	go r.say(big)
	d.expect(big)
	answer := fmt.Sprintf(`{"id":1,"result":%q}`, strings.Repeat("b", 6<<20))
	go d.put(answer)
	r.expect(answer)
}

func TestATooLongLineIsAnsweredAndSkipped(t *testing.T) {
	r := newRig(t)
	d := r.daemon()
	go func() {
		r.say(strings.Repeat("x", maxClientLine+bufferSize))
		r.say(`{"id":2,"method":"ping"}`)
	}()
	if got := r.hear(); got != strings.TrimSuffix(rejection(nil, tooLong), "\n") {
		t.Fatalf("answer = %s", got)
	}
	d.expect(`{"id":2,"method":"ping"}`)
}

func TestARequestWithoutAUsableIDIsAnsweredOnce(t *testing.T) {
	r := newRig(t)
	d := r.daemon()
	for _, id := range []string{"7.5", "1.0", "1e3", "12345678901234567890"} { // answered as they were written
		r.say(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"x"}}`)
		r.expect(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32600,"message":` + quote(badID) + `}}`)
	}
	for _, id := range []string{"null", "{}", "true"} {
		r.say(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"x"}}`)
		r.expect(strings.TrimSuffix(rejection(nil, badID), "\n"))
	}
	r.say(`[{"jsonrpc":"2.0","id":7.5,"method":"ping"}]`) // the daemon refuses what is in a batch
	d.expect(`[{"jsonrpc":"2.0","id":7.5,"method":"ping"}]`)
	r.say(`{"jsonrpc":"2.0","id":7,"method":"tools/call"}`)
	d.expect(`{"jsonrpc":"2.0","id":7,"method":"tools/call"}`)
	r.gone(d)
	if got := r.hear(); !strings.Contains(got, `"id":7,`) {
		t.Fatalf("answered %s", got)
	}
	r.refuse <- errors.New("no")
	r.say(`[{"jsonrpc":"2.0","id":7.5,"method":"ping"},{"jsonrpc":"2.0","id":8,"method":"ping"}]`)
	got := r.hear()
	var answers []struct{ ID any }
	if err := json.Unmarshal([]byte(got), &answers); err != nil || len(answers) != 2 || answers[0].ID != 7.5 || answers[1].ID != 8.0 {
		t.Fatalf("the batch is answered with %s: %v", got, err)
	}
}

// What a client waits for is answered under its id, also when nothing but the id can be read.
func TestUnreadableMessagesAreAnsweredUnderTheirID(t *testing.T) {
	r := newRig(t)
	var said sync.WaitGroup // an answer may come before the message has ended
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
			t.Errorf("%.60s: %+v, %v", line, got, err)
		}
	}
	said.Go(func() { r.say(`{"jsonrpc":"2.0","id":9,"result":{"a":"` + strings.Repeat("x", maxClientLine) + `"}}`) }) // nobody asked
	d.put(`{"id":"ask","method":"elicitation/create"}`)
	r.hear()
	said.Go(func() {
		r.say(`{"jsonrpc":"2.0","result":{"a":"` + strings.Repeat("x", maxClientLine) + `"},"id":"ask"}`)
	})
	if got := d.get(); !strings.Contains(got, `"id":"ask","error"`) {
		t.Errorf("the daemon hears %.100s", got)
	}
}

func TestAByteOrderMarkIsSkipped(t *testing.T) {
	r := newRig(t)
	d := r.daemon()
	r.say("\ufeff" + `{"id":1,"method":"ping"}`)
	d.expect(`{"id":1,"method":"ping"}`)
}

// The answers to a batch come in one array, whoever gives them.
func TestALostBatchIsAnsweredInOneArray(t *testing.T) {
	r := newRig(t)
	d := r.daemon()
	r.say(`[{"jsonrpc":"2.0","id":1,"method":"tools/call"},{"jsonrpc":"2.0","method":"n"},{"jsonrpc":"2.0","id":2,"method":"tools/call"}]`)
	d.get()
	d.Close()
	got := r.hear()
	var answers []struct{ ID int }
	if err := json.Unmarshal([]byte(got), &answers); err != nil || len(answers) != 2 || answers[0].ID+answers[1].ID != 3 {
		t.Fatalf("answered with %s: %v", got, err)
	}
}

// A client that uses an id twice has two answers, and the end of its input waits for both.
func TestAnIDInUseIsCountedTwice(t *testing.T) {
	r := newRig(t)
	d := r.daemon()
	for range 2 {
		r.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)
		d.get()
	}
	d.put(`{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"in use"}}`)
	r.hear()
	d.Close()
	if got := r.hear(); !strings.Contains(got, "daemon_restarted") {
		t.Fatalf("the first call is answered with %s", got)
	}
}

func TestCallsInFlightAreAnsweredOnceWhenTheDaemonGoes(t *testing.T) {
	r := newRig(t)
	d := r.daemon()
	r.say(`{"id":"a","method":"tools/call","params":{"name":"x"}}`)
	d.get()
	d.Close()
	var old struct {
		ID     string
		Result struct {
			IsError           bool
			ResultType        string
			StructuredContent struct {
				Code, Message, FixHint string
				Retryable              bool
			}
			Content []struct{ Type, Text string }
		}
	}
	if err := json.Unmarshal([]byte(r.hear()), &old); err != nil {
		t.Fatal(err)
	}
	s := old.Result.StructuredContent
	if old.ID != "a" || !old.Result.IsError || s.Code != "daemon_restarted" || !s.Retryable || s.FixHint == "" || old.Result.ResultType != "" || len(old.Result.Content) != 1 {
		t.Fatalf("answer = %+v", old)
	}

	r.gone(d)
	r.say(`{"id":2,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`)
	d = r.daemon()
	d.get()
	r.say(`{"id":3,"method":"logging/setLevel"}`)
	d.get()
	d.Close()
	got := r.hear() + r.hear()
	if !strings.Contains(got, `"resultType":"complete"`) || !strings.Contains(got, `"id":3,"error":{"code":-32603`) {
		t.Fatalf("answers = %s", got)
	}
}

func TestInitializeIsReplayedAndItsAnswerSwallowed(t *testing.T) {
	r := newRig(t)
	d := r.daemon()
	const initLine = `{"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`
	r.say(initLine)
	d.expect(initLine)
	d.put(`{"id":0,"result":{"n":1}}`)
	r.expect(`{"id":0,"result":{"n":1}}`)
	r.say(`{"method":"notifications/initialized"}`)
	d.get()
	r.gone(d)

	r.say(`{"id":1,"method":"ping"}`)
	d = r.daemon()
	d.expect(initLine)
	d.put(`{"method":"notifications/message"}`)
	d.put(`{"id":0,"result":{"n":2}}`)
	r.expect(`{"method":"notifications/message"}`)
	d.expect(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	d.expect(`{"id":1,"method":"ping"}`)
	d.put(`{"id":1,"result":{}}`)
	r.expect(`{"id":1,"result":{}}`)
}

func TestAnUnansweredInitializeGoesToTheNextDaemonOnce(t *testing.T) {
	r := newRig(t)
	d := r.daemon()
	r.say(`{"id":0,"method":"initialize"}`)
	d.get()
	d.Close()
	d = r.daemon()
	d.expect(`{"id":0,"method":"initialize"}`)
	d.Close()
	if got := r.hear(); !strings.Contains(got, `"id":0,"error"`) {
		t.Fatalf("answer = %s", got)
	}
	r.say(`{"id":1,"method":"tools/list"}`) // and no third daemon gets what is answered
	d = r.daemon()
	d.expect(`{"id":1,"method":"tools/list"}`)
	d.put(`{"id":1,"result":{}}`)
	r.expect(`{"id":1,"result":{}}`)
}

// If a daemon ends during the replay of initialize, the pump tries the next daemon and the client sees no error.
func TestDaemonEndsWhileItIsToldOfTheSession(t *testing.T) {
	const initLine, list = `{"id":0,"method":"initialize"}`, `{"id":1,"method":"tools/list"}`
	r := newRig(t)
	d := r.daemon()
	r.say(initLine)
	d.expect(initLine)
	d.put(`{"id":0,"result":{}}`)
	r.expect(`{"id":0,"result":{}}`)
	d.Close()
	r.say(list)
	for range 2 {
		d = r.daemon()
		d.expect(initLine)
		d.Close()
	}
	d = r.daemon()
	d.expect(initLine)
	d.put(`{"id":0,"result":{}}`)
	d.expect(list)
	d.put(`{"id":1,"result":{}}`)
	r.expect(`{"id":1,"result":{}}`)
}

func TestAnInitializeIsSentOnceOnEachLink(t *testing.T) {
	r := newRig(t)
	const initLine, list = `{"id":0,"method":"initialize"}`, `{"id":1,"method":"tools/list"}`
	d := r.daemon()
	r.say(initLine)
	d.get()
	d.Close()
	ending := daemon{t: t, Conn: <-r.daemons} // it ends before it admits anybody
	ending.r = bufio.NewReader(ending)
	ending.get()
	ending.expect(initLine)
	ending.Close()
	d = r.daemon()
	d.expect(initLine)
	r.say(list)
	d.expect(list)
}

func TestAnswersForAnEarlierDaemonAreDropped(t *testing.T) {
	r := newRig(t)
	d := r.daemon()
	d.put(`{"id":"ask","method":"elicitation/create"}`)
	r.hear()
	r.gone(d)
	r.say(`{"id":1,"method":"tools/call"}`)
	d = r.daemon()
	d.expect(`{"id":1,"method":"tools/call"}`)
	r.say(`{"id":"ask","result":{}}`)
	r.say(`{"method":"after"}`)
	d.expect(`{"method":"after"}`)
}

func TestARefusedPrefaceAnswersEveryRequest(t *testing.T) {
	r := newRig(t)
	refuse := func(conn net.Conn) {
		_, _ = io.WriteString(conn, `{"ok":false,"code":"protocol_mismatch","message":"too \"old\"","fixHint":"upgrade"}`+"\n")
		conn.Close()
	}
	refuse(<-r.daemons)
	go func() { // however often it tries
		for {
			select {
			case conn := <-r.daemons:
				refuse(conn)
			case <-t.Context().Done():
				return
			}
		}
	}()
	r.say(`{"id":1,"method":"tools/list"}`)
	if got := r.hear(); !strings.Contains(got, `"id":1,"error"`) || !strings.Contains(got, "protocol_mismatch") {
		t.Fatalf("answer = %s", got)
	}
}

// A daemon with too many clients says so and closes before it reads; the write that fails then must not hide its reason.
func TestRefusedBeforeThePreface(t *testing.T) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	attempts := 0
	p := New(Options{
		In: inR, Out: outW, Hello: Hello{Client: "test", Version: "1"}, Drain: time.Second, Pause: time.Minute,
		Connect: func(context.Context) (io.ReadWriteCloser, error) {
			attempts++
			ours, theirs := socketPair(t)
			_, _ = io.WriteString(ours, `{"ok":false,"code":"too_many_clients","message":"full","fixHint":"close some"}`+"\n")
			return theirs, ours.Close()
		},
	})
	done := make(chan error, 1)
	go func() {
		_ = p.Open(context.Background())
		done <- p.Run(context.Background())
	}()
	r := &rig{t: t, in: inW, out: bufio.NewReader(outR), pipe: outR}
	r.say(`{"id":1,"method":"tools/list"}`)
	if got := r.hear(); !strings.Contains(got, "too_many_clients") || !strings.Contains(got, "close some") {
		t.Errorf("answer = %s", got)
	}
	_ = inW.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if attempts != 1 {
		t.Errorf("it tried %d times in a row", attempts)
	}
}

// An attempt that failed is followed by a pause, but not once there is a daemon again, whoever started it.
func TestDaemonOfAnotherClientIsUsedAtOnce(t *testing.T) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	var runs atomic.Bool
	attempts, daemons := 0, make(chan net.Conn, 1)
	p := New(Options{
		In: inR, Out: outW, Hello: Hello{Client: "test", Version: "1"}, Drain: time.Second,
		Pause: time.Hour, Running: runs.Load,
		Connect: func(context.Context) (io.ReadWriteCloser, error) {
			if attempts++; !runs.Load() {
				return nil, errors.New("it ended before it was ready")
			}
			ours, theirs := socketPair(t)
			daemons <- ours
			return theirs, nil
		},
	})
	done := make(chan error, 1)
	go func() {
		_ = p.Open(context.Background())
		done <- p.Run(context.Background())
	}()
	r := &rig{t: t, in: inW, out: bufio.NewReader(outR), pipe: outR}
	for range 2 {
		r.say(`{"id":1,"method":"tools/list"}`)
		if got := r.hear(); !strings.Contains(got, "ended before it was ready") {
			t.Errorf("answer = %s", got)
		}
	}
	if attempts != 1 {
		t.Errorf("it tried %d times in a row", attempts)
	}
	runs.Store(true)
	r.say(`{"id":2,"method":"tools/list"}`)
	d := <-daemons
	lines := bufio.NewScanner(d)
	for lines.Scan() && !strings.Contains(lines.Text(), "tools/list") {
		_, _ = io.WriteString(d, `{"ok":true}`+"\n")
	}
	_, _ = io.WriteString(d, `{"id":2,"result":{}}`+"\n")
	r.expect(`{"id":2,"result":{}}`)
	_ = inW.Close()
	_ = d.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// What a daemon said last is heard, also when a message no longer reaches it.
func TestLastWordsAreHeard(t *testing.T) {
	r := newRig(t)
	d := r.daemon()
	for _, id := range []string{"1", "2", "3"} {
		call := `{"id":` + id + `,"method":"tools/call"}`
		r.say(call)
		d.expect(call)
	}
	long := `,"result":"` + strings.Repeat("x", 2*bufferSize) + `"}`
	d.put(`{"id":1` + long) // the reader of the link stands here until the client hears it
	d.put(`{"id":2` + long)
	_ = d.Close()
	r.say(`{"method":"notifications/anything"}`) // is not written
	r.say(`{"method":"notifications/anything"}`) // taken: the write before it has failed
	r.expect(`{"id":1` + long)
	r.expect(`{"id":2` + long)
	if got := r.hear(); !strings.Contains(got, `"id":3`) || !strings.Contains(got, "daemon_restarted") {
		t.Fatalf("the call that was open: %s", got)
	}
}

func TestWithoutADaemonRequestsAreAnsweredAndItTriesAgain(t *testing.T) {
	r := newRig(t)
	(<-r.daemons).Close()
	r.refuse <- errors.New("starting the daemon: no space left")
	r.say(`{"id":1,"method":"initialize"}`)
	first := r.hear()
	if !strings.Contains(first, `"id":1,"error"`) {
		t.Fatalf("answer = %s", first)
	}
	for i := 2; ; i++ {
		r.say(fmt.Sprintf(`{"id":%d,"method":"tools/list"}`, i))
		select {
		case conn := <-r.daemons:
			r.daemons <- conn
			r.daemon().get()
			return
		case <-time.After(5 * time.Millisecond):
			if i > 1000 {
				t.Fatal("it never tries again")
			}
			if got := r.hear(); !strings.Contains(got, "error") {
				t.Fatalf("answer = %s", got)
			}
		}
	}
}

func TestEndOfInputWaitsForAnswersThatAreDue(t *testing.T) {
	r := newRig(t)
	d := r.daemon()
	r.say(`{"id":1,"method":"tools/call"}`)
	d.get()
	r.say(`{"id":2,"method":"tools/call"}`)
	d.get()
	r.say(`{"method":"notifications/cancelled","params":{"requestId":2}}`)
	d.get()
	_ = r.in.Close()
	if _, err := d.r.ReadByte(); err != io.EOF {
		t.Fatalf("the daemon does not hear the end: %v", err)
	}
	d.put(`{"id":1,"result":{}}`)
	r.expect(`{"id":1,"result":{}}`)
	if err := <-r.done; err != nil {
		t.Fatal(err)
	}
}

// The daemon ends calls that wait for a person when the input has ended; the shim ends with it and tells why.
func TestEndOfInputEndsWithTheDaemonsConnection(t *testing.T) {
	r := newRig(t)
	d := r.daemon()
	r.say(`{"id":1,"method":"tools/call","params":{"name":"listen"}}`)
	d.get()
	_ = r.in.Close()
	if _, err := d.r.ReadByte(); err != io.EOF {
		t.Fatalf("the daemon does not hear the end: %v", err)
	}
	d.Close()
	if got := r.hear(); !strings.Contains(got, `"id":1`) || !strings.Contains(got, "input_closed") {
		t.Fatalf("the call is answered with %s", got)
	}
	if err := <-r.done; err != nil {
		t.Fatal(err)
	}
}

func TestEndOfInputDoesNotWaitForEver(t *testing.T) {
	r := newRig(t)
	d := r.daemon()
	r.say(`{"id":1,"method":"tools/call"}`)
	d.get()
	_ = r.in.Close()
	select {
	case <-r.done:
	case <-time.After(8 * time.Second):
		t.Fatal("the shim stays")
	}
}

// A daemon that dies leaves its socket open for a moment: who dials it then is accepted by nobody.
func TestADaemonThatEndsBeforeItAdmitsLosesNothing(t *testing.T) {
	call := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"whoAmI","arguments":{}}}`
	for _, initialized := range []bool{false, true} {
		r := newRig(t)
		d := r.daemon()
		if initialized {
			r.say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
			d.get()
			d.put(`{"jsonrpc":"2.0","id":1,"result":{}}`)
			r.hear()
		}
		r.until("the pump has taken the connection up", r.linked) // else it is lost before it was one
		r.gone(d)
		r.say(call)
		for range 2 { // two that end at once
			_ = (<-r.daemons).Close()
		}
		next := r.daemon()
		if initialized {
			next.get() // the replay
			next.put(`{"jsonrpc":"2.0","id":1,"result":{}}`)
		}
		next.expect(call)
		next.put(`{"jsonrpc":"2.0","id":7,"result":{}}`)
		r.expect(`{"jsonrpc":"2.0","id":7,"result":{}}`)
	}
}

const look = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"look"}}`

// A call that only reads goes to the next daemon, once; so does a request for a list.
func TestReadsInFlightAreRepeatedOnce(t *testing.T) {
	r := newRig(t)
	d := r.daemon()
	call, write, list := fmt.Sprintf(look, 1), `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"write"}}`, `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`
	for _, line := range []string{call, write, list} {
		r.say(line)
		d.expect(line)
	}
	d.Close()
	if got := r.hear(); !strings.Contains(got, `"id":2`) || !strings.Contains(got, "daemon_restarted") {
		t.Fatalf("the call that is not repeated: %s", got)
	}
	d = r.daemon()
	got := map[string]bool{d.get(): true, d.get(): true}
	if !got[call] || !got[list] {
		t.Fatalf("the next daemon hears %v", got)
	}
	d.put(`{"jsonrpc":"2.0","id":3,"result":{}}`)
	r.expect(`{"jsonrpc":"2.0","id":3,"result":{}}`)
	d.Close() // a second death is told
	if got := r.hear(); !strings.Contains(got, `"id":1`) || !strings.Contains(got, "daemon_restarted") {
		t.Fatalf("after two daemons: %s", got)
	}
}

// What was sent before the daemon took us in is repeated alike, and a call that was cancelled meanwhile is not.
func TestReadsAreRepeatedUnlessCancelled(t *testing.T) {
	r := newRig(t)
	r.until("the pump has taken the connection up", r.linked)
	r.say(fmt.Sprintf(look, 1)) // before the handshake is answered
	d := r.daemon()
	d.expect(fmt.Sprintf(look, 1))
	r.say(fmt.Sprintf(look, 2))
	d.expect(fmt.Sprintf(look, 2))
	r.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	d.get()
	d.Close()
	d = r.daemon()
	d.expect(fmt.Sprintf(look, 1))
	r.say(`{"method":"after"}`)
	d.expect(`{"method":"after"}`)
}

// Calls that share an id are not repeated, because only one of them would be answered. Each gets daemon_restarted.
func TestReadsUnderOneIDAreNotRepeated(t *testing.T) {
	r := newRig(t)
	d := r.daemon()
	for range 2 {
		r.say(fmt.Sprintf(look, 1))
		d.expect(fmt.Sprintf(look, 1))
	}
	d.Close()
	for range 2 {
		if got := r.hear(); !strings.Contains(got, `"id":1`) || !strings.Contains(got, "daemon_restarted") {
			t.Fatalf("answered %s", got)
		}
	}
}

func TestWhatIsKeptOfReadsIsBounded(t *testing.T) {
	l := newLink(nil)
	l.admit([]byte(`{"ok":true,"repeatable":["look"]}`))
	padding := strings.Repeat(" ", maxRepeated-200)
	for id := range 2 * maxRepeatedSize / maxRepeated {
		line := []byte(fmt.Sprintf(look, id) + padding)
		m := scan(line)
		l.expect(m, false)
		l.keep(m, line)
	}
	held := 0
	for _, call := range l.inflight {
		held += len(call.line)
	}
	if held > maxRepeatedSize || held < maxRepeatedSize/2 || held != l.kept {
		t.Errorf("%d bytes are kept, counted %d", held, l.kept)
	}
	for range maxRepeatedSize / maxRepeated { // an id that is used again before it is answered
		line := []byte(fmt.Sprintf(look, 0))
		m := scan(line)
		l.expect(m, false)
		l.keep(m, line)
	}
	for id, call := range maps.Clone(l.inflight) {
		for range call.asked {
			l.answered(id)
		}
	}
	if l.kept != 0 {
		t.Errorf("%d bytes are counted of calls that were answered", l.kept)
	}
}

// A daemon that takes the connection and says nothing costs the client a bounded wait, at its start and later.
func TestADaemonThatSaysNothingIsToldOf(t *testing.T) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	daemons := make(chan net.Conn, 8)
	p := New(Options{
		In: inR, Out: outW, Hello: Hello{Client: "test", Version: "1"}, Handshake: 50 * time.Millisecond, Pause: time.Millisecond, Drain: time.Second,
		Connect: func(context.Context) (io.ReadWriteCloser, error) {
			ours, theirs := socketPair(t)
			daemons <- ours
			return theirs, nil
		},
		Explain: func(err error) *Failure {
			if errors.Is(err, ErrSilent) {
				return &Failure{Code: "daemon_not_responding", Message: "pid 7"}
			}
			return nil
		},
	})
	done := make(chan error, 1)
	go func() {
		_ = p.Open(context.Background())
		done <- p.Run(context.Background())
	}()
	r := &rig{t: t, in: inW, out: bufio.NewReader(outR), pipe: outR, pump: p}
	silence := func(id string) {
		t.Helper()
		r.say(`{"id":` + id + `,"method":"initialize"}`)
		if got := r.hear(); !strings.Contains(got, `"id":`+id) || !strings.Contains(got, "daemon_not_responding") {
			t.Fatalf("answer = %s", got)
		}
	}
	silence("1")
	<-daemons
	rested := func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return time.Now().After(p.retryAt)
	}
	r.until("the pause between two attempts is over", rested)
	silence("2")
	<-daemons

	r.until("the pause between two attempts is over", rested)
	r.say(`{"id":3,"method":"initialize"}`)
	conn := <-daemons
	d := &daemon{t: t, Conn: conn, r: bufio.NewReader(conn)}
	d.get()
	d.put(`{"ok":true}`)
	d.get()
	d.put(`{"id":3,"result":{}}`)
	r.hear()
	r.gone(d)
	r.say(`{"id":4,"method":"tools/list"}`) // the next one is to hear the replay, and says nothing
	<-daemons
	if got := r.hear(); !strings.Contains(got, `"id":4`) || !strings.Contains(got, "daemon_not_responding") {
		t.Fatalf("answer = %s", got)
	}
	r.until("the pause between two attempts is over", rested)
	r.say(`{"id":5,"method":"tools/list"}`) // this one takes us in, and does not answer the replay
	conn = <-daemons
	_, _ = io.WriteString(conn, `{"ok":true}`+"\n")
	if got := r.hear(); !strings.Contains(got, `"id":5`) || !strings.Contains(got, "daemon_not_responding") {
		t.Fatalf("answer = %s", got)
	}
	_ = inW.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A daemon that a service manager is starting has longer than one that hangs.
func TestADaemonThatIsBeingStartedHasItsTime(t *testing.T) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	daemons := make(chan net.Conn, 1)
	asked := make(chan struct{}, startFactor)
	p := New(Options{
		In: inR, Out: outW, Hello: Hello{Client: "test", Version: "1"}, Handshake: 500 * time.Millisecond, Drain: time.Second,
		Connect: func(context.Context) (io.ReadWriteCloser, error) {
			ours, theirs := socketPair(t)
			daemons <- ours
			return theirs, nil
		},
		Starting: func() bool { asked <- struct{}{}; return true },
	})
	done := make(chan error, 1)
	go func() {
		_ = p.Open(context.Background())
		done <- p.Run(context.Background())
	}()
	r := &rig{t: t, in: inW, out: bufio.NewReader(outR), pipe: outR, pump: p}
	r.say(`{"id":1,"method":"initialize"}`)
	conn := <-daemons
	<-asked // the first wait is over
	d := &daemon{t: t, Conn: conn, r: bufio.NewReader(conn)}
	d.get()
	d.put(`{"ok":true}`)
	d.get()
	d.put(`{"id":1,"result":{}}`)
	r.expect(`{"id":1,"result":{}}`)
	_ = inW.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
