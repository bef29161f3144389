package tools

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/service-dev/service/glasses"
)

func findingRows(t *testing.T, lines ...string) (rows []glasses.Event) {
	t.Helper()
	for _, line := range lines {
		var e glasses.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, e)
	}
	return rows
}

func TestLastFindings(t *testing.T) {
	show := func(id, node string) string {
		return `{"kind":"request","type":"display.show","id":"` + id + `","sender":"app","payload":{"tree":` +
			`{"type":"column","children":[` + node + `]}}}`
	}
	result := func(id, findings string) string {
		return `{"kind":"result","type":"result","id":"` + id + `","sender":"glasses","payload":{"ok":true` + findings + `}}`
	}
	const cut = `,"findings":[{"kind":"cut","path":"tree.children[0]","id":"next","text":"Next"}]`
	const device = `{"kind":"event","type":"device","id":"d","sender":"glasses",` +
		`"payload":{"deviceModel":{"id":"rayban_display"}}}`
	const next, other = `{"type":"button","id":"next","text":"Next"}`, `{"type":"text","text":"Bye"}`
	for _, c := range []struct {
		name, want string
		rows       []string
	}{
		{"as found", "even_g1", []string{show("a", next), result("a", cut)}},
		{"mended", "", []string{show("a", next), result("a", cut), show("b", next), result("b", "")}},
		{"another screen", "even_g1", []string{show("a", next), result("a", cut), show("b", other), result("b", "")}},
		{"before another model", earlierModel, []string{show("a", next), result("a", cut), device, show("b", next),
			result("b", "")}},
		{"on another model", "rayban_display", []string{device, show("a", next), result("a", cut)}},
	} {
		var models []string
		for _, f := range lastFindings(findingRows(t, c.rows...), "even_g1") {
			models = append(models, f.DeviceModel)
		}
		if got := strings.Join(models, " "); got != c.want {
			t.Errorf("%s: findings %q, want %q", c.name, got, c.want)
		}
	}
}
