package agents

import (
	"encoding/base64"
	"encoding/json"
	"flag"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/service-dev/service/docs"
)

var update = flag.Bool("update", false, "rewrite the links in the documentation")

const installPage = "../../../docs/pages/install.md"

// deepLinks are the links that register service-mcp in editors: where the documentation contains each one, and how to
// write and read it.
var deepLinks = []struct {
	agent   string
	pattern *regexp.Regexp
	link    func(entry map[string]any) string
	decode  func(t *testing.T, link string) (name string, entry map[string]any)
}{
	{"cursor", regexp.MustCompile("`(cursor://anysphere[^`]*)`"), cursorLink, decodeCursorLink},
	{"vscode", regexp.MustCompile("`(vscode:mcp/install[^`]*)`"), vscodeLink, decodeVSCodeLink},
}

func cursorLink(entry map[string]any) string {
	data, _ := json.Marshal(entry)
	return "cursor://anysphere.cursor-deeplink/mcp/install?" +
		url.Values{"name": {entryName}, "config": {base64.StdEncoding.EncodeToString(data)}}.Encode()
}

func decodeCursorLink(t *testing.T, link string) (name string, entry map[string]any) {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil || u.Scheme != "cursor" || u.Host != "anysphere.cursor-deeplink" || u.Path != "/mcp/install" {
		t.Fatalf("no link of Cursor: %s, %v", link, err)
	}
	data, err := base64.StdEncoding.DecodeString(u.Query().Get("config"))
	if err == nil {
		err = json.Unmarshal(data, &entry)
	}
	if err != nil {
		t.Fatalf("%s: %v", link, err)
	}
	return u.Query().Get("name"), entry
}

func vscodeLink(entry map[string]any) string {
	named := map[string]any{"name": entryName}
	for key, value := range entry {
		named[key] = value
	}
	data, _ := json.Marshal(named)
	return "vscode:mcp/install?" + strings.ReplaceAll(url.QueryEscape(string(data)), "+", "%20")
}

func decodeVSCodeLink(t *testing.T, link string) (name string, entry map[string]any) {
	t.Helper()
	text, err := url.PathUnescape(strings.TrimPrefix(link, "vscode:mcp/install?"))
	if err == nil {
		err = json.Unmarshal([]byte(text), &entry)
	}
	if err != nil {
		t.Fatalf("%s: %v", link, err)
	}
	name, _ = entry["name"].(string)
	delete(entry, "name")
	return name, entry
}

// TestDeepLinks_AreWhatAgentAddWrites checks the links in the documentation, and rewrites them with -update. A link
// cannot contain the programs' path, so its command is service-mcp in PATH.
func TestDeepLinks_AreWhatAgentAddWrites(t *testing.T) {
	if *update {
		updateDeepLinks(t)
		return
	}
	page, _ := docs.Find("install")
	for _, l := range deepLinks {
		found := l.pattern.FindAllStringSubmatch(page.Markdown, -1)
		if len(found) != 1 {
			t.Errorf("%s: the page has %d links, want 1", l.agent, len(found))
			continue
		}
		name, entry := l.decode(t, found[0][1])
		if want := writtenEntry(t, l.agent); name != entryName || !reflect.DeepEqual(entry, want) {
			t.Errorf("%s: the link registers %q as %v, agent add writes %v; run the test with -update",
				l.agent, name, entry, want)
		}
	}
}

// writtenEntry returns what `agent add` writes for service-mcp to an agent's new file.
func writtenEntry(t *testing.T, agent string) map[string]any {
	t.Helper()
	place := Place{OS: "linux", Home: t.TempDir(), Getenv: func(string) string { return "" }}
	a := find(t, place, agent)
	change, err := a.Add(Shim("service-mcp", ""), true)
	if err != nil {
		t.Fatal(err)
	}
	var file map[string]map[string]map[string]any
	if err := json.Unmarshal(change.After, &file); err != nil || len(file) != 1 {
		t.Fatalf("%s: %v in %s", agent, err, change.After)
	}
	for _, servers := range file {
		return servers[entryName]
	}
	return nil
}

func updateDeepLinks(t *testing.T) {
	t.Helper()
	data, err := os.ReadFile(installPage)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, l := range deepLinks {
		link := "`" + l.link(writtenEntry(t, l.agent)) + "`"
		text = l.pattern.ReplaceAllLiteralString(text, link)
	}
	if err := os.WriteFile(installPage, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
