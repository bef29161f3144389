package docs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/guide"
	"github.com/service-dev/service/glasses/render"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/internal/rendezvous"
	"github.com/service-dev/service/proto/backendapi"
	"github.com/service-dev/service/proto/control"
	"github.com/service-dev/service/proto/telemetry"
)

// generate replaces lines like {{models}} with facts from proto and glasses.
func generate(body string) (string, error) {
	parts := map[string]func() string{
		"models": models, "glance": glance, "focus": focus, "protocol": protocol, "capabilities": capabilities,
		"wake-words": wakeWords, "declarations": declarations, "events": events, "http-routes": httpRoutes,
		"http-codes": httpCodes, "call-variables": callVariables, "control-routes": controlRoutes, "steps": steps,
	}
	var out strings.Builder
	for line := range strings.Lines(body) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "{{")
		if !ok || !strings.HasSuffix(name, "}}") {
			out.WriteString(line)
			continue
		}
		part, ok := parts[strings.TrimSuffix(name, "}}")]
		if !ok {
			return "", fmt.Errorf("unknown part {{%s", name)
		}
		out.WriteString(strings.TrimSpace(part()) + "\n")
	}
	return out.String(), nil
}

// protocol returns PROTOCOL.md without title and table of contents, which the page already has.
func protocol() string {
	_, body, _ := strings.Cut(glasses.Protocol, "\n")
	intro, rest, _ := strings.Cut(body, "\n## ")
	intro, _, _ = strings.Cut(intro, "\n- [")
	return intro + "\n\n## " + rest
}

// glance returns an overview table of all models.
func glance() string {
	var out strings.Builder
	out.WriteString("| model id | panel | camera | microphone | speaker | motion | inputs |\n")
	out.WriteString("|---|---|---|---|---|---|---|\n")
	for _, m := range glasses.Models() {
		panel, camera := "none", "no"
		if m.Panel != nil {
			panel = fmt.Sprintf("%d×%d %s", m.Panel.Width, m.Panel.Height, m.Panel.Colour)
		}
		if m.Camera != nil {
			camera = fmt.Sprintf("%d×%d", m.Camera.Width, m.Camera.Height)
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s | %s | %s | %s |\n",
			m.ID, panel, camera, yes(m.Microphone), yes(m.Speaker), yes(m.Motion), orNone(strings.Join(m.Inputs, ", ")))
	}
	return out.String()
}

// focus returns a table of the inputs that select an element and move the focus on each model with a panel.
func focus() string {
	var out strings.Builder
	out.WriteString("| model id | focus |\n|---|---|\n")
	for _, m := range glasses.Models() {
		if words := guide.FocusWords(m); words != "" {
			fmt.Fprintf(&out, "| `%s` | %s |\n", m.ID, words)
		}
	}
	return out.String()
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// ownFonts describes what draws text on the real glasses of each model with a panel.
var ownFonts = map[string]string{
	"rayban_display": "the maker's, which are not published; widths and line breaks differ from the simulator's, so " +
		"leave room",
	"even_g1": "the maker's, in one size, in text mode; its scripts are not published. Sent as a picture, " +
		"text of every language looks as it does in the simulator",
	"even_g2": "the maker's, which are not published; apps draw through the maker's phone app, so try each language " +
		"that you need there",
	"brilliant_frame": "one in the firmware. Sent as a picture, text of every language looks as it does in the simulator",
	"brilliant_halo": "Dogica, 8 pixels high, in the firmware. Sent as a picture, text of every language looks as it " +
		"does in the simulator",
	"android_xr_display": "those of Android, with its widths and line breaks, so leave room",
}

// models returns one section per model.
func models() string {
	var out strings.Builder
	for _, m := range glasses.Models() {
		fmt.Fprintf(&out, "## %s\n\n%s, model id `%s`.\n\n", m.Name, m.Name, m.ID)
		fmt.Fprintf(&out, "- Screen: %s.\n", panelOf(m.Panel))
		if sizes := render.TextSizeWords(m); sizes != "" {
			fmt.Fprintf(&out, "- Text in pixels: %s.\n", sizes)
			fmt.Fprintf(&out, "- Fonts of the real glasses: %s.\n", ownFonts[m.ID])
		}
		fmt.Fprintf(&out, "- Inputs: %s.\n", orNone(strings.Join(m.Inputs, ", ")))
		if m.Camera != nil {
			fmt.Fprintf(&out, "- Camera: up to %d×%d pixels.\n", m.Camera.Width, m.Camera.Height)
		} else {
			out.WriteString("- Camera: none.\n")
		}
		fmt.Fprintf(&out, "- Microphone: %s. Speaker: %s. Motion sensor: %s.\n",
			yes(m.Microphone), yes(m.Speaker), yes(m.Motion))
		if m.Panel != nil && m.Panel.FullMs > 0 {
			fmt.Fprintf(&out, "- A whole picture takes the real panel about %.1f seconds.\n", float64(m.Panel.FullMs)/1000)
		}
		fmt.Fprintf(&out, "- On real glasses: %s: %s.\n", strings.ReplaceAll(m.Proof.State, "_", " "), m.Proof.Reason)
		fmt.Fprintf(&out, "- How this is known: %s.\n\n", fidelity(m.Fidelity))
	}
	return out.String()
}

func panelOf(p *glasses.Panel) string {
	if p == nil {
		return "none, so the app speaks and listens"
	}
	shapes := map[string]string{glasses.ShapeRect: "rectangular", glasses.ShapeRound: "round"}
	text := fmt.Sprintf("%d×%d pixels, %s", p.Width, p.Height, shapes[p.Shape])
	switch p.Colour {
	case glasses.ColourGreen:
		text += fmt.Sprintf(", green, %d bit (%d shades)", p.Bits, 1<<p.Bits)
	case glasses.ColourPalette:
		text += fmt.Sprintf(", a palette of %d colours", 1<<p.Bits)
	default:
		text += ", full colour"
	}
	if p.Additive {
		text += ", additive light (black is transparent)"
	}
	if p.TextWidth > 0 {
		text += fmt.Sprintf("; a line of text is at most %d pixels wide", p.TextWidth)
	}
	if p.TextLines > 0 {
		text += ", and " + strconv.Itoa(p.TextLines) + " lines of text fit at once"
	}
	return text
}

// fidelity lists the facts about a model that its manufacturer does not document.
func fidelity(marks map[string]string) string {
	var other []string
	for part, mark := range marks {
		if mark != glasses.Documented {
			other = append(other, part+" is "+mark)
		}
	}
	if len(other) == 0 {
		return "all of it is documented by the maker"
	}
	slices.Sort(other)
	return strings.Join(other, ", ") + "; the rest is documented by the maker"
}

// capabilities returns a table of capabilities with their commands and events.
func capabilities() string {
	var out strings.Builder
	out.WriteString("| capability | what for | commands | events |\n|---|---|---|---|\n")
	for _, c := range guide.Capabilities() {
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", c.ID, c.About, words(c.Commands), words(c.Events))
	}
	return out.String()
}

func words(list []string) string {
	if len(list) == 0 {
		return "–"
	}
	return "`" + strings.Join(list, "`, `") + "`"
}

func wakeWords() string {
	return "These wake words are checked: " + strings.Join(guide.WakeWords(), ", ") + "."
}

// declarations returns one table per platform.
func declarations() string {
	var out strings.Builder
	titles := map[string]string{"ios": "iOS", "android": "Android", "web": "Web", "desktop": "Desktop"}
	for _, platform := range guide.Platforms() {
		fmt.Fprintf(&out, "### %s\n\n| file | key | when | why |\n|---|---|---|---|\n", titles[platform])
		for _, d := range guide.Declarations(platform) {
			fmt.Fprintf(&out, "| `%s` | `%s` | %s | %s |\n", d.File, d.Key, d.When, d.Why)
		}
		out.WriteString("\n")
	}
	return out.String()
}

// events returns a table of the usage events that are recorded.
func events() string {
	var out strings.Builder
	out.WriteString("| event | when | fields |\n|---|---|---|\n")
	for _, d := range telemetry.List() {
		var fields []string
		for _, f := range d.Fields {
			fields = append(fields, fmt.Sprintf("`%s` %s", f.Name, f.What))
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", d.Name, d.When, orNone(strings.Join(fields, "; ")))
	}
	return out.String()
}

// httpRoutes returns a table of the routes for programs.
func httpRoutes() string {
	var out strings.Builder
	out.WriteString("| method and path | who | grant | what |\n|---|---|---|---|\n")
	for _, r := range backendapi.Routes() {
		grant := "–"
		if r.Capability != "" {
			grant = "`" + r.Capability + "` " + r.Level
		}
		what := r.Does
		if r.WebSocket {
			what += " (WebSocket)"
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", r.Name, r.Caller, grant, what)
	}
	return out.String()
}

// controlRoutes returns a table of the calls of the control API.
func controlRoutes() string {
	var out strings.Builder
	out.WriteString("| call | what it does |\n|---|---|\n")
	for _, r := range control.Routes() {
		what := r.Does
		if r.Stream {
			what += " (stream)"
		}
		fmt.Fprintf(&out, "| `%s %s` | %s |\n", r.Method, r.Path, what)
	}
	return out.String()
}

// httpCodes returns a table of the codes of HTTP error responses.
func httpCodes() string {
	var out strings.Builder
	out.WriteString("| status | `code` | `title` | `retryable` | when |\n|---|---|---|---|---|\n")
	for _, c := range problem.Table() {
		if c.Title != "" {
			fmt.Fprintf(&out, "| %d | `%s` | %s | %t | %s |\n", c.Status, c.Codes[0], c.Title, c.Retryable, c.Meaning)
		}
	}
	return out.String()
}

// variableUses describes the variables of rendezvous.Variables. It is defined here because that package must stay
// small.
var variableUses = map[string]string{
	"SERVICE_BACKEND_URL": "URL of the backend for this call, `https://…`, or `http://…` on loopback; " +
		"`embedded` for the embedded one. Wins over `backend_url`, unless `backend_fixed` is set",
	"SERVICE_NO_AUTO_OPEN": "`1`: open no browser; the answer has the URL",
	"SERVICE_TELEMETRY":    "`0`, `no`, `off` or `false`: upload no usage events of this call",
	"DO_NOT_TRACK":         "any value except those four and empty: the same",
	"CI":                   "as `DO_NOT_TRACK`",
	"HTTPS_PROXY":          "not used, but named in the error of a call that fails without it: set `https_proxy`",
	"https_proxy":          "as `HTTPS_PROXY`",
	"ALL_PROXY":            "as `HTTPS_PROXY`",
	"all_proxy":            "as `HTTPS_PROXY`",
	"NO_PROXY":             "likewise: set `no_proxy`",
	"no_proxy":             "as `NO_PROXY`",
	"SSL_CERT_FILE":        "likewise: set `ca_file`",
	"SSL_CERT_DIR":         "as `SSL_CERT_FILE`",
}

// callVariables returns a table of the variables that the daemon receives from its caller. A variable without a
// description gets an empty cell, which a test detects.
func callVariables() string {
	var out strings.Builder
	out.WriteString("| variable | meaning |\n|---|---|\n")
	for _, name := range rendezvous.Variables {
		fmt.Fprintf(&out, "| `%s` | %s |\n", name, variableUses[name])
	}
	return out.String()
}
