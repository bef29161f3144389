package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/glasses"
)

// drawing measures the native renderer and compares it with its WebAssembly build in Node.
func (b *bench) drawing() error {
	for _, model := range []string{"rayban_display", "even_g1"} {
		native, err := nanoseconds(exec.Command(filepath.Join(b.work, "drawing"), model))
		if err != nil {
			return err
		}
		b.rows = append(b.rows, row{"typical tree drawn for " + model, ms(native), "", "", ""})
		wasm, err := b.wasm(model)
		if err != nil {
			return err
		}
		if wasm > 0 {
			b.rows = append(b.rows, row{"the same as WebAssembly in Node / native", ms(wasm), ms(native),
				ratio(float64(wasm), float64(native)), ""})
		}
		han, err := nanoseconds(exec.Command(filepath.Join(b.work, "drawing"), model, "han"))
		if err != nil {
			return err
		}
		b.rows = append(b.rows, row{"a similar tree of new Chinese text / of Latin text", ms(han), ms(native),
			ratio(float64(han), float64(native)), "at most 3"})
	}
	return b.firstTexts()
}

// firstTexts measures drawing the first picture with text in each script, which includes unpacking and parsing the
// script's fonts.
func (b *bench) firstTexts() error {
	for _, c := range []struct{ script, text string }{
		{"Arabic", "مرحبا"}, {"Devanagari", "नमस्ते"}, {"Thai", "สวัสดี"}, {"Hangul", "안녕하세요"}, {"kana", "こんにちは"},
		{"simplified Chinese", "你好"}, {"emoji", "🙂"},
	} {
		var times []time.Duration
		for range min(b.runs, 20) {
			first, err := nanoseconds(exec.Command(filepath.Join(b.work, "drawing"), "rayban_display", "first="+c.text))
			if err != nil {
				return err
			}
			times = append(times, first)
		}
		b.rows = append(b.rows, row{"first text in " + c.script, medianMs(times), "", "", "at most 30 ms"})
	}
	return nil
}

// sizes lists the sizes of the programs, of the files that the simulator page loads, and of the font files, of which
// the page loads only those that a text needs.
func (b *bench) sizes() error {
	var files []string
	for _, pattern := range []string{filepath.Join(b.bin, "*"), "backend/internal/web/wasm/*.gz",
		"glasses/render/fonts/packs/*.zst"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return err
		}
		files = append(files, found...)
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		b.rows = append(b.rows, row{"size of " + filepath.Base(file), mb(info.Size() >> 10), "", "", ""})
	}
	return nil
}

// wasm measures the WebAssembly build. It returns 0 if Node is missing.
func (b *bench) wasm(model string) (time.Duration, error) {
	node, err := exec.LookPath("node")
	if err != nil {
		fmt.Println("SKIPPED, node is missing: the renderer as WebAssembly")
		return 0, nil
	}
	program := filepath.Join(b.work, "drawing.wasm")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program,
		"./test/bench/testdata/drawing")
	build.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build for WebAssembly: %w\n%s", err, out)
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(node, filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec_node.js"), program,
		model)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")} // Go's WebAssembly loader limits the size of the environment
	return nanoseconds(cmd)
}

func nanoseconds(cmd *exec.Cmd) (time.Duration, error) {
	out, err := cmd.Output()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	return time.Duration(n), err
}

// localSim measures the round trip of a command from an app on loopback through the daemon to the local simulator,
// compared with an echo over one plain connection.
func (b *bench) localSim() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	app, err := b.attachTo(ctx, "startLocalSimulation", `{"fresh":true}`)
	if err != nil {
		return err
	}
	defer app.CloseNow()
	bare, err := b.startBare("barerelay")
	if err != nil {
		return err
	}
	defer bare.stop()
	echo, err := dial(ctx, "ws"+strings.TrimPrefix(bare.url, "http")+"/echo", nil)
	if err != nil {
		return err
	}
	defer echo.CloseNow()
	var ours, floor []time.Duration
	for n := range 600 {
		frame := []byte(fmt.Sprintf(`{"v":1,"type":"display.show","id":"bench-%d","at":0,"payload":{"tree":{"type":"text",`+
			`"text":"%d"}}}`, n+1, n))
		if n == 100 { // end of the warm-up
			ours, floor = nil, nil
		}
		if err := measure(&ours, func() error { return roundTrip(ctx, app, frame) }); err != nil {
			return err
		}
		err := measure(&floor, func() error {
			if err := echo.Write(ctx, websocket.MessageText, frame); err != nil {
				return err
			}
			_, _, err := echo.Read(ctx)
			return err
		})
		if err != nil {
			return err
		}
	}
	b.rows = append(b.rows, timesRow("LocalSim command, app to glasses and back / bare echo", ours, floor, medianMs, ""))
	return nil
}

// roundTrip sends a command and reads until its result arrives.
func roundTrip(ctx context.Context, app *websocket.Conn, frame []byte) error {
	if err := app.Write(ctx, websocket.MessageText, frame); err != nil {
		return err
	}
	for {
		_, data, err := app.Read(ctx)
		if err != nil {
			return err
		}
		if f, err := glasses.Parse(data); err == nil && f.Type == glasses.TypeResult {
			return nil
		}
	}
}

// call calls a tool and decodes its structured result.
func (p *peer) call(tool string, args map[string]any, into any) error {
	data, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 7, "method": "tools/call",
		"params": map[string]any{"name": tool, "arguments": args}})
	if err != nil {
		return err
	}
	line, err := p.ask(string(data))
	if err != nil {
		return err
	}
	var answer struct {
		Result struct {
			IsError           bool
			StructuredContent json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(line), &answer); err != nil {
		return err
	}
	if answer.Result.IsError || answer.Result.StructuredContent == nil {
		return fmt.Errorf("%s answered %s", tool, line)
	}
	return json.Unmarshal(answer.Result.StructuredContent, into)
}
