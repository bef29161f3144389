// Command minute is an example app that acts at every second of the session's clock and at each input. It does the
// same in every run, so a test can check that runs in virtual time are identical. It reads SERVICE_GLASSES_URL and
// SERVICE_GLASSES_SECRET_FILE and exits when its connection ends.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/coder/websocket"

	"github.com/service-dev/service/glasses"
)

// minute is the app. Its frame ids are the same in each run.
type minute struct {
	ws                      *websocket.Conn
	next, second, taps, bat int
	heard, sleep            string
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "minute:", err)
		os.Exit(1)
	}
}

// run sends hello and handles frames until the session closes the connection.
func run(ctx context.Context) error {
	secret, err := os.ReadFile(os.Getenv("SERVICE_GLASSES_SECRET_FILE"))
	if err != nil {
		return err
	}
	ws, _, err := websocket.Dial(ctx, os.Getenv("SERVICE_GLASSES_URL"), nil)
	if err != nil {
		return err
	}
	ws.SetReadLimit(1 << 20)
	m := &minute{ws: ws, bat: 100}
	m.send(ctx, glasses.TypeHello, glasses.Hello{Secret: string(secret), App: glasses.AppInfo{Name: "Minute"},
		Barrier: true})
	for {
		_, data, err := ws.Read(ctx)
		if websocket.CloseStatus(err) != -1 {
			return nil
		}
		if err != nil {
			return err
		}
		f, err := glasses.Parse(data)
		if err == nil {
			m.take(ctx, f)
		}
	}
}

func (m *minute) take(ctx context.Context, f glasses.Frame) {
	var p struct {
		Text  string
		Level int
	}
	_ = json.Unmarshal(f.Payload, &p)
	switch f.Type {
	case glasses.TypeWelcome:
		m.send(ctx, glasses.TypeTranscriptionStart, struct{}{})
		m.show(ctx)
		m.wait(ctx)
	case glasses.TypeBarrier:
		data, _ := glasses.Frame{Type: f.Type, ID: f.ID, At: f.At, Payload: json.RawMessage("{}")}.Encode()
		_ = m.ws.Write(ctx, websocket.MessageText, data)
	case glasses.TypeResult:
		if f.ID == m.sleep {
			m.second++
			m.show(ctx)
			m.wait(ctx)
		}
	case glasses.TypeInput:
		m.taps++
		m.show(ctx)
	case glasses.TypeTranscript:
		m.heard = p.Text
		m.show(ctx)
	case glasses.TypeBattery:
		m.bat = p.Level
		m.show(ctx)
	}
}

func (m *minute) wait(ctx context.Context) {
	m.sleep = m.send(ctx, glasses.TypeClockSleep, glasses.Sleep{Ms: 1000})
}

func (m *minute) show(ctx context.Context) {
	line := func(format string, args ...any) glasses.Node {
		return glasses.Node{Type: glasses.NodeText, Text: fmt.Sprintf(format, args...)}
	}
	m.send(ctx, glasses.TypeDisplayShow, glasses.Show{Tree: glasses.Node{Type: glasses.NodeColumn, Padding: 8,
		Children: []glasses.Node{
			line("second %d", m.second), line("taps %d", m.taps), line("heard %s", m.heard), line("battery %d", m.bat)}}})
}

func (m *minute) send(ctx context.Context, typ string, payload any) string {
	m.next++
	id := fmt.Sprintf("minute-%d", m.next)
	f, err := glasses.New(typ, id, 0, payload)
	if err != nil {
		return id
	}
	data, _ := f.Encode()
	_ = m.ws.Write(ctx, websocket.MessageText, data)
	return id
}
