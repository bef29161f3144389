//go:build unix

package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"github.com/service-dev/service/test/chromium"
)

// proof is the outcome of a scenario run: the event log without times and ids, and pictures of the panel.
type proof struct {
	rows     []map[string]any
	pictures []any
	panel    []byte
}

// The same app in three languages produces the same log and pictures on the local simulator and on the simulator page.
func TestExampleApps_SameOnBothSimulators(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	a := startAgent(w, "modern", false)
	browser := linkAnd(t, w, a)
	apps := deskApps(t)
	var first *proof
	for _, name := range []string{"go", "ts", "py"} {
		for _, where := range []string{"local", "browser"} {
			t.Run(name+"/"+where, func(t *testing.T) {
				if _, err := exec.LookPath(apps[name][0]); err != nil {
					missing(t, apps[name][0], "apt-get install "+apps[name][0])
				}
				a.t = t
				got := prove(t, w, a, browser, apps[name], where)
				if first == nil {
					first = &got
					if len(got.rows) < 50 || len(got.pictures) < 6 || len(got.panel) == 0 {
						t.Errorf("only %d rows and %d pictures were recorded", len(got.rows), len(got.pictures))
					}
					return
				}
				if diff := cmp.Diff(first.rows, got.rows); diff != "" {
					t.Errorf("the event log differs from the Go app's on the local simulator:\n%s", diff)
				}
				if diff := cmp.Diff(first.pictures, got.pictures); diff != "" {
					t.Errorf("the pictures differ from the Go app's on the local simulator:\n%s", diff)
				}
				if !bytes.Equal(first.panel, got.panel) {
					t.Error("the last picture differs from the Go app's on the local simulator")
				}
			})
		}
	}
}

// linkAnd links the world's install to a new account and returns the browser of the signed-in user.
func linkAnd(t *testing.T, w *world, a *agent, options ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	asked := a.call("createSimulatorSession", map[string]any{"openBrowser": false})
	browser := newBrowser(t, options...)
	approve(t, browser, asked.str(t, "verificationUrl"), asked.str(t, "userCode"), "ada@example.org")
	if linked := a.call("completeAuthLink",
		map[string]any{"deviceCode": asked.str(t, "deviceCode")}); linked.Structured["linked"] != true {
		t.Fatalf("link the install: got %v, want it linked", linked.Structured)
	}
	return browser
}

// deskApps returns the command of each language's example app.
func deskApps(t *testing.T) map[string][]string {
	t.Helper()
	app := func(parts ...string) string {
		path, err := filepath.Abs(filepath.Join(append([]string{"..", "..", "examples", "apps"}, parts...)...))
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	return map[string][]string{
		"go": {filepath.Join(bin, "desk-go")},
		"ts": {nodeTool(t, "node/bin/node"), "--experimental-strip-types", "--no-warnings", app("desk-ts", "desk.ts")},
		"py": {"python3", app("desk-py", "desk.py")},
	}
}

// prove runs the desk scenario against an app in a new session.
func prove(t *testing.T, w *world, a *agent, browser context.Context, app []string, where string) proof {
	t.Helper()
	var s toolResult
	if where == "local" {
		s = a.call("startLocalSimulation", map[string]any{"fresh": true, "clock": "virtual"})
	} else {
		s = a.call("createSimulatorSession", map[string]any{"fresh": true, "openBrowser": false})
		openSimulator(t, browser, s.str(t, "sessionUrl"))
	}
	id := s.str(t, "sessionId")
	startApp(t, w, app, s)
	report := a.call("replaySession", map[string]any{"sessionId": id, "file": patientDesk(t)})
	if report.IsError || report.Structured["verdict"] != "pass" {
		shown, _ := json.MarshalIndent(report.Structured, "", " ")
		t.Fatalf("the scenario did not pass: %s\n%s", shown, strings.Join(logLines(t, a, id), "\n"))
	}
	got := proof{rows: plainRows(eventRows(t, a, id))}
	for _, p := range report.Structured["pictures"].([]any) {
		p := p.(map[string]any)
		got.pictures = append(got.pictures, map[string]any{"name": p["name"], "sha256": p["sha256"]})
	}
	got.panel = panelPicture(t, a, id)
	if where == "browser" {
		sameAsCanvas(t, browser, got.panel)
	}
	a.call("closeSession", map[string]any{"sessionId": id})
	return got
}

// patientDesk returns the desk scenario with longer time limits, so that it passes on a busy machine, too.
func patientDesk(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "examples", "scenarios", "desk.json"))
	if err != nil {
		t.Fatal(err)
	}
	pictures, err := filepath.Abs(filepath.Join("..", "..", "examples", "pictures"))
	if err != nil {
		t.Fatal(err)
	}
	var scenario map[string]any
	if err := json.Unmarshal(bytes.ReplaceAll(data, []byte("../pictures"), []byte(pictures)), &scenario); err != nil {
		t.Fatal(err)
	}
	for _, step := range scenario["steps"].([]any) {
		for _, kind := range []string{"expect", "expectDisplay"} {
			if expected, ok := step.(map[string]any)[kind].(map[string]any); ok {
				expected["withinMs"] = 20_000
			}
		}
	}
	if data, err = json.Marshal(scenario); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "desk.json")
	writeInto(t, file, string(data))
	return file
}

// startApp runs an app as instructed by a result of startLocalSimulation or createSimulatorSession.
func startApp(t *testing.T, w *world, app []string, session toolResult) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(app[0], app[1:]...)
	cmd.Env = append(append([]string{}, w.env...), "SERVICE_GLASSES_TRANSPORT=simulator",
		"SERVICE_GLASSES_URL="+session.str(t, "appEndpoint"), "SERVICE_GLASSES_SECRET_FILE="+session.str(t,
			"appTokenFile"))
	out, err := os.CreateTemp(t.TempDir(), "app")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
		if said, _ := os.ReadFile(out.Name()); t.Failed() {
			t.Logf("%s said:\n%s", app[0], said)
		}
		out.Close()
	})
	return cmd
}

// eventRows reads the whole event log.
func eventRows(t *testing.T, a *agent, id string) []map[string]any {
	t.Helper()
	var rows []map[string]any
	for since := 0.0; ; {
		page := a.call("getEventLog", map[string]any{"sessionId": id, "since": since})
		events, ok := page.Structured["events"].([]any)
		if !ok {
			t.Fatalf("getEventLog: got %v, want a list of events", page.Structured)
		}
		for _, e := range events {
			rows = append(rows, e.(map[string]any))
		}
		if since, ok = page.Structured["next"].(float64); !ok || page.Structured["more"] != true {
			return rows
		}
	}
}

func logLines(t *testing.T, a *agent, id string) []string {
	t.Helper()
	var lines []string
	for _, row := range eventRows(t, a, id) {
		line, _ := json.Marshal(row)
		lines = append(lines, string(line))
	}
	return lines
}

// plainRows removes times, and replaces ids with numbers in the order of their first occurrence, so that related rows
// can still be matched.
func plainRows(rows []map[string]any) []map[string]any {
	names := map[string]string{}
	name := func(id any) any {
		s, ok := id.(string)
		if !ok {
			return id
		}
		if names[s] == "" {
			names[s] = "id-" + strconv.Itoa(len(names)+1)
		}
		return names[s]
	}
	for _, row := range rows {
		delete(row, "at")
		row["id"] = name(row["id"])
		if payload, ok := row["payload"].(map[string]any); ok && row["type"] == "speech" {
			payload["id"] = name(payload["id"])
		}
	}
	return rows
}

// panelPicture returns getDisplayState's picture as PNG.
func panelPicture(t *testing.T, a *agent, id string) []byte {
	t.Helper()
	shown := a.call("getDisplayState", map[string]any{"sessionId": id})
	for _, c := range shown.Content {
		if c.Type == "image" && c.MIMEType == "image/png" {
			data, err := base64.StdEncoding.DecodeString(c.Data)
			if err != nil {
				t.Fatal(err)
			}
			return data
		}
	}
	t.Fatalf("getDisplayState has no picture: %v", shown.Structured)
	return nil
}

// sameAsCanvas waits until the page's canvas equals a picture, because the page answers a command before it draws.
func sameAsCanvas(t *testing.T, browser context.Context, picture []byte) {
	t.Helper()
	want, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(chromium.StepLimit); ; {
		diff := compare(want, canvas(t, browser))
		if diff == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(diff)
		}
	}
}

// canvas returns the picture on the page's canvas.
func canvas(t *testing.T, browser context.Context) image.Image {
	t.Helper()
	encoded, err := chromium.Run(browser, chromedp.Evaluate[string](
		`document.getElementById("canvas").toDataURL("image/png").split(",")[1]`))
	if err != nil {
		t.Fatal(err)
	}
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return shown
}

// compare describes how a canvas differs from a picture. It returns "" if they are equal.
func compare(want, got image.Image) string {
	if got.Bounds() != want.Bounds() {
		return fmt.Sprintf("the canvas measures %v, want %v like the picture", got.Bounds(), want.Bounds())
	}
	for y := range want.Bounds().Dy() {
		for x := range want.Bounds().Dx() {
			r1, g1, b1, _ := want.At(x, y).RGBA()
			r2, g2, b2, _ := got.At(x, y).RGBA()
			if r1 != r2 || g1 != g2 || b1 != b2 {
				return fmt.Sprintf("pixel %d,%d of the canvas differs from the picture", x, y)
			}
		}
	}
	return ""
}
