package frame

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/service-dev/service/test/glassestest/peripheral/link"
)

//go:embed device.lua
var script string

const (
	// patience is the time after which an interpreter that does not answer is killed.
	patience = time.Minute
	// maxPayload limits one message from the interpreter, in bytes.
	maxPayload = 1 << 20
	// maxMessages is the maximum number of messages in the answer to one command.
	maxMessages = 20_000
)

// lua is an interpreter that runs device.lua. It runs only while a command is executed, so its time is the commands'
// time.
type lua struct {
	cancel context.CancelFunc
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	dead   error
}

// message is a message from the interpreter: a kind, a time in ms, more numbers or a word, and bytes.
type message struct {
	kind    string
	at      int64
	args    []string
	payload string
}

func startLua(ctx context.Context) (*lua, error) {
	path, err := exec.LookPath("lua5.4")
	if err != nil {
		return nil, fmt.Errorf("emulate Frame: %w (apt-get install lua5.4)", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	l := &lua{cancel: cancel, cmd: exec.CommandContext(ctx, path, "-E", "-e"+script)}
	var out io.ReadCloser
	if l.in, err = l.cmd.StdinPipe(); err == nil {
		if out, err = l.cmd.StdoutPipe(); err == nil {
			err = l.cmd.Start()
		}
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("start lua5.4: %w", err)
	}
	l.out = bufio.NewReader(out)
	return l, nil
}

func (l *lua) close() error {
	_ = l.in.Close()
	l.cancel()
	_ = l.cmd.Wait() // the result only reports that it was killed
	return nil
}

// exchange runs a command and returns the messages of the interpreter. The last message is done. Its time is when Lua
// continues by itself; it is negative if Lua does not. After an error the interpreter does not answer any more.
func (l *lua) exchange(kind string, now int64, payload string) (messages []message, err error) {
	if l.dead != nil {
		return nil, l.dead
	}
	guard := time.AfterFunc(patience, l.cancel)
	defer guard.Stop()
	_, err = fmt.Fprintf(l.in, "%s %d %d\n%s", kind, now, len(payload), payload)
	for err == nil && len(messages) < maxMessages {
		var m message
		if m, err = l.read(); err != nil {
			break
		}
		if m.kind == "fatal" {
			err = errors.New(m.payload)
		}
		if messages = append(messages, m); m.kind == "done" {
			return messages, nil
		}
	}
	if err == nil {
		err = fmt.Errorf("lua5.4 said more than %d things at once", maxMessages)
	}
	l.dead = err
	l.cancel()
	return nil, err
}

func (l *lua) read() (message, error) {
	line, err := l.out.ReadString('\n')
	if err != nil {
		return message{}, fmt.Errorf("read from lua5.4: %w", err)
	}
	words := strings.Fields(line)
	if len(words) < 3 {
		return message{}, fmt.Errorf("lua5.4 said %q", line)
	}
	last := len(words) - 1
	m := message{kind: words[0], args: words[2:last]}
	if m.at, err = strconv.ParseInt(words[1], 10, 64); err != nil {
		return message{}, fmt.Errorf("lua5.4 said %q: %w", line, err)
	}
	size, err := strconv.Atoi(words[last])
	if err != nil || size < 0 || size > maxPayload {
		return message{}, fmt.Errorf("lua5.4 said %q", line)
	}
	payload := make([]byte, size)
	if _, err := io.ReadFull(l.out, payload); err != nil {
		return message{}, fmt.Errorf("read from lua5.4: %w", err)
	}
	m.payload = string(payload)
	return m, nil
}

// numbers returns the arguments of a message, which device.lua writes as integers.
func (m message) numbers() []int {
	numbers := make([]int, len(m.args))
	for i, a := range m.args {
		numbers[i], _ = strconv.Atoi(a)
	}
	return numbers
}

// run makes Lua execute a command at the current time.
func (d *Device) run(kind, payload string) {
	messages, err := d.lua.exchange(kind, d.Now(), payload)
	if err != nil {
		d.wake, d.queued = -1, 0
		d.Add(d.Now(), "Lua ended: %v", err)
		return
	}
	done := messages[len(messages)-1]
	d.wake, d.queued = done.at, done.numbers()[0]
	for _, m := range messages[:len(messages)-1] {
		d.hear(m)
	}
}

// hear carries out an action of Lua at the time of the message.
func (d *Device) hear(m message) {
	switch m.kind {
	case "violation":
		d.Add(m.at, "%s", m.payload)
		return
	case "grave":
		d.AddGrave(m.at, "%s", m.payload)
		return
	}
	wait := m.at - d.Now()
	switch {
	case wait <= 0:
		d.act(m)
	case m.kind == "notify":
		d.AfterLinked(wait, func() { d.act(m) })
	default:
		d.After(wait, func() { d.act(m) })
	}
}

func (d *Device) act(m message) {
	switch m.kind {
	case "notify":
		if d.options.LoseNotification == 0 || d.random.Float64() >= d.options.LoseNotification {
			d.Notify(NotifyUUID, []byte(m.payload))
		}
	case "off":
		d.Drop(link.Forever)
	case "photo":
		if len(d.photos) < maxPhotos {
			d.photos = append(d.photos, Photo{At: m.at, Resolution: m.numbers()[0], Quality: m.payload})
		}
	case "microphone":
		n := m.numbers()
		d.microphone = Microphone{Rate: n[0], Depth: n[1]}
	default:
		if problem := d.panel.draw(m); problem != "" {
			d.Add(m.at, "%s", problem)
		}
	}
}

const maxPhotos = 64
